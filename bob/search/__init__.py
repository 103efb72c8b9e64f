"""Workloads within bounds. A workload is a sequence of operations on files. The bounds list the file names, the
operations and the calls for durability (such as fsync) that it may have. This package also makes the properties that
the workloads test: what must still be true after a crash."""
