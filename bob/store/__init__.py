"""Run directories on the host's disk, each written by one process at a time."""
