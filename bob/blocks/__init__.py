"""Names for all writes, from the on-disk formats of the file systems. Callers use :mod:`bob.blocks.naming`."""
