"""Workloads within bounds. A workload is a sequence of operations on files, and the bounds limit its names, operations
and calls. This package also makes the properties that the workloads test: what must still be true after a crash."""
