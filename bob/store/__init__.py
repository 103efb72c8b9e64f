"""What is kept on the host's disk.

files             documents with their checksums, written whole and read
run_directory     the run directory of a probe, and the JSON of bases and workloads
matrix_directory  the run directory of a matrix, which has one of a probe for each configuration
search_directory  the run directory of a search, which has one of a probe for each lot of workloads
kept_runs         all run directories in a folder, and how one is removed
new_folder        whether a folder can be made and written
lock              one process at a time writes a run directory
"""
