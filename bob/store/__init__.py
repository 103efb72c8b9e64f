"""What is kept on the host's disk.

run_directory     the run directory of a probe, and the JSON of bases and workloads
matrix_directory  the run directory of a matrix, which has one of a probe for each configuration
lock              one process at a time writes a run directory
"""
