"""The story of a crash state: what was asked of the disk, when, and what became of it.

- ``timeline``: operations, writes and flushes up to the crash, in order, each write with its fate
- ``sentence``: the one sentence that sums it up

Pure: a trace and a crash state in, events and words out. A witness carries its time line, so that it can be told
without the run that found it.
"""
