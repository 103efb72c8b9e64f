"""What is kept on the host's disk: run directories, each written by one process at a time."""
