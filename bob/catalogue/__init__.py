"""The catalogue of questions. It has the shipped probe files (each a property with workloads that test it), the rows
that a table of results may have, and the request for a probe of a file system."""
