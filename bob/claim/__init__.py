"""What crash states are held against.

claim.py        what every kind of claim can do
property/       a property of some operations
expectation/    what the user of ``bob try`` expects
recovery.py     recovery comes to the same, though a crash interrupts it (idempotence.py)
mounting.py     the file system can be mounted
soundness.py    a state that mounts is sound: no warning, no fault that a checker finds
checking.py     the checker of a program accepts the state
kinds.py        the table of kinds, by which a witness is read back
counting.py     how many of the crash states that were explored can be judged
"""
