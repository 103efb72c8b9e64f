"""What is shipped: probe files, the rows that a matrix may have, and what a probe is asked."""
