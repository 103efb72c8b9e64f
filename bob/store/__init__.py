"""Run directories on the host's disk. A run directory keeps all files of one run of bob. One process at a time writes
it."""
