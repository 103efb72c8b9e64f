"""What crash states are held against.

claim.py        what every kind of claim can do
property/       a property of some operations
expectation/    what the user of ``bob try`` expects
idempotence.py  recovery comes to the same, though a crash interrupts it
mounting.py     the file system can be mounted, and what mounts is well
checking.py     the checker of a program accepts the state
kinds.py        the table of kinds, by which a witness is read back
verdict.py      the verdict on a claim, and the crash states that can be judged
"""
