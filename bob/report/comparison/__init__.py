"""Two tables cell by cell: two runs, or a run and the published table; and how that is told."""
