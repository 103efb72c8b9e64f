"""The story of a crash state: the requests to the disk up to the crash, and what became of each request. A witness (a
file with one crash state that breaks a claim) keeps the story as its time line."""
