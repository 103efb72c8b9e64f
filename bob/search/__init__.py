"""Workloads that bob generates within bounds, and the properties that they ask for."""
