"""Where a file system has its log, by the superblock of a base image."""

from __future__ import annotations

from bob.blocks.medium import Medium
from bob.blocks.xfs_geometry import Geometry
from bob.trace.base import Base
from bob.trace.model import SECTOR_BYTES


def log_area(form: str, base: Base) -> range:
    """The sectors of the log in ``base``, if its file system has the format ``form`` (xfs, or empty: a log that nobody
    looks for); an empty range where no log is found: it is outside of the device, or the superblock makes no sense."""
    if form != "xfs":
        return range(0)
    geometry = Geometry.of(Medium(base.length, base.sector))
    if geometry is None:
        return range(0)
    first, stop = (min(end, base.length) // SECTOR_BYTES for end in (geometry.log.start, geometry.log.stop))
    return range(first, stop)
