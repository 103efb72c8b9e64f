"""The comparison of two tables cell by cell: of two runs, or of a run and the published table. A cell is the verdict on
one property of one configuration."""
