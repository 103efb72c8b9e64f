"""The story of a crash state: all requests to the disk up to the crash, and whether each write survived it. A witness
(a file with one crash state that breaks a property under test) keeps the story as its time line."""
