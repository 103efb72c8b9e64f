"""A recording as it comes out of a guest, before it is checked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recording:
    """What came out of the guest, as it came: :func:`bob.record.check.checked` makes a Trace of it.

    ``log`` is the dm-log-writes log (bytes), ``timeline`` the text of the trace buffer, ``final`` the differences of
    the device (major, minor) from the base after the recording. The inode numbers are by path, before and after the
    operations.
    """

    log: bytes
    timeline: str
    final: bytes
    device: tuple[int, int]
    effective_options: str
    inodes_before: dict[str, int]
    inodes_after: dict[str, int]
