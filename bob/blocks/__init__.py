"""The name of every write, from the on-disk format of its file system; callers use :mod:`bob.blocks.naming`."""
