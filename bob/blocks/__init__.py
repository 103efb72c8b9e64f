"""The name of every write, from the on-disk format of its file system.

Pure: a base image and a :class:`~bob.trace.model.Trace` in, one name per write out. ``naming`` is the way in.
"""
