"""Recordings: a dm-log-writes log and a timeline of bios, checked against each other and joined, without a guest."""
