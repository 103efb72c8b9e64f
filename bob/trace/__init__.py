"""Recordings: the log of dm-log-writes and the timeline of bios. bob checks them against each other and joins them. No
module here needs a guest."""
