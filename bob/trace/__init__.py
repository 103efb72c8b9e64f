"""Recordings: a dm-log-writes log and a timeline of bios, checked against each other and joined.

Usable on its own, without a guest: bytes and text in, a :class:`~bob.trace.model.Trace` out.
"""
