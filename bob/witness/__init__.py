"""Witnesses: small files, each with one crash state that breaks a claim (what bob tested, such as a property of the
file system). With the file, bob can show the violation again.

The module ``document`` reads and writes witnesses; ``bundle`` packs all witnesses of a run into one file. The module
``recipes`` shortens the data in a witness: for data that an operation wrote, it stores little more than the number of
the operation. The module ``attempts`` lists smaller workloads that may show the same violation. The module ``keep``
writes the crash image with a script, for people without bob."""
