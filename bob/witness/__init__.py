"""Witnesses: small files that show a violation again.

document   witnesses, written and read; bundle: all of a run in one file
recipes    data as a function of a workload's operations
attempts   smaller workloads that may show the same violation
keep       a crash image with a script, for people without bob
"""
