"""The catalogue of questions: the shipped probe files, the rows that a table of results may have, and the request for a
probe of a file system. A probe file declares a property, and workloads that test it."""
