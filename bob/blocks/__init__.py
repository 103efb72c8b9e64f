"""Names for recorded writes to a disk. The name of a write is a short description of its contents, such as "inode
table". It comes from the on-disk formats of the file systems. Callers use :mod:`bob.blocks.naming`."""
