"""What a recording is: the writes and flushes of one workload, each with the moment it was submitted and completed.

Plain frozen dataclasses; nothing here reads a file. *Time* is a position in the guest's trace buffer (an integer
that only grows, exact on the guest's one CPU); ``seconds`` is the guest's clock at that position, for people.
*Sectors* are 512-byte units everywhere in bob, whatever the device's logical block size is.
"""

from __future__ import annotations

from dataclasses import dataclass

SECTOR_BYTES = 512
"""The unit of every ``sector`` and ``sectors`` in bob, in bytes (the block layer's own unit)."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in a recording: ``time`` orders, ``seconds`` (guest clock) is for people."""

    time: int
    seconds: float


@dataclass(frozen=True, slots=True)
class DeviceWrite:
    """One write that reached the recorded device.

    ``index`` is its position in submission order among the trace's writes: writes to the same sector land in this
    order. For a bio that was PREFLUSH *and* data, ``submitted`` is the completion of its flush
    (docs/design.md, section 3). ``task`` is the guest task that submitted it (jbd2/dm-0-8, kworker/u2:1, bob ...).
    """

    index: int
    sector: int
    data: bytes
    submitted: Moment
    completed: Moment
    fua: bool = False
    meta: bool = False
    task: str = ""
    log_entry: int = -1
    device: int = 0

    @property
    def sectors(self) -> int:
        """Length in sectors."""
        return len(self.data) // SECTOR_BYTES


@dataclass(frozen=True, slots=True)
class Flush:
    """One cache flush: what was completed when it was submitted is durable when it has completed."""

    submitted: Moment
    completed: Moment
    task: str = ""
    device: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """A note that the agent wrote into the trace buffer: ``start``, ``op 3 begin``, ``op 3 end``, ``end``."""

    at: Moment
    text: str


@dataclass(frozen=True, slots=True)
class Trace:
    """A recording after the join of block log and bio timeline.

    ``writes`` are in submission order (``writes[i].index == i``), ``flushes`` in order of completion. ``start`` and
    ``end`` bound the window in which crashes are asked about: ``start`` is just before the first operation, ``end``
    when the finish was over. What was submitted before ``start`` is part of the trace and may be pending at it.
    ``device_sectors`` has one entry per device, in sectors. ``discards`` counts discard bios, none of which has an
    effect on any crash state: the recorded disk does not carry them out.
    """

    writes: tuple[DeviceWrite, ...]
    flushes: tuple[Flush, ...]
    marks: tuple[Mark, ...]
    start: Moment
    end: Moment
    device_sectors: tuple[int, ...]
    discards: int = 0

    def address(self, write: DeviceWrite) -> int:
        """The sector of ``write`` in the image of the trace: its devices, laid end to end."""
        return sum(self.device_sectors[: write.device]) + write.sector
