"""The comparison of two tables of results, cell by cell. A table is the result of a run, or was published in a paper. A
cell is the verdict on one property of one configuration."""
