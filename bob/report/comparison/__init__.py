"""Compare two tables cell by cell: two runs, or a run and the published table."""
