"""The story of a crash state: the requests to the disk, with times, and their fates. A witness carries its time
line."""
