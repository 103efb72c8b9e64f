"""The shipped probe files, the rows that a matrix may have, and the request of a probe."""
