"""Smaller witnesses that show the same.

attempts.py   which smaller workloads are worth a try (pure)
shrinker.py   tries them in a guest: records, explores, judges
files.py      witnesses in files, and what is said of them in a run's result
"""
