"""The name of every write, from the on-disk format of its file system; ``naming`` is the way in."""
