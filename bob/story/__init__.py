"""The story of a crash state: the requests to the disk up to the crash, and what became of each. A witness (a file with
one crash state that breaks a claim) has it as its time line."""
