"""Workloads that bob makes by itself, within bounds, and what each of them is held against."""
