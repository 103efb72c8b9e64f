"""Witnesses: everything that is needed to show a violation again, in one small file.

document   witnesses, written and read; bundle: all of a run's in one file
recipes    data as a function of a workload's operations
attempts   smaller workloads that may show the same
keep       a crash image with a script, for people without bob
"""
