"""Recordings: the log of dm-log-writes and the timeline of bios, checked against each other and joined. All without a
guest."""
