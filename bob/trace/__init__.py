"""Recordings: a dm-log-writes log and a timeline of bios, read, checked against each other and joined.

Usable on its own; knows nothing of guests. Bytes and text in, a :class:`~bob.trace.model.Trace` out.

- ``model``: what a recording is: writes, flushes, marks, and when each was submitted and completed
- ``log_format``: the bytes of a dm-log-writes log, declared
- ``log``, ``log_writer``: reads such logs lazily, writes them
- ``rwbs``, ``timeline``: the kernel's letters for a bio, and the text of its block tracepoints
- ``bios``: from single events to whole bios
- ``join``: bios and log entries to a trace, or a refusal
"""
