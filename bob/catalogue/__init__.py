"""The catalogue of questions that bob can ask about a file system. Each question is a property, and a table of results
has one row for it. A probe file declares a property, and workloads that test it. The package has the shipped probe
files, the rows of all tables, and the request that says what bob should test."""
