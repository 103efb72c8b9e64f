"""A recording as data: writes and flushes of one workload, with the moments of submission and completion.

*Time* is a position in the guest's trace buffer (an integer that only grows, exact on the guest's one CPU). *Sectors*
have 512 bytes everywhere in bob, whatever the device's logical block size.
"""

from dataclasses import dataclass

SECTOR_BYTES = 512


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in a recording: ``time`` gives the order, ``seconds`` (guest's clock) is for people."""

    time: int
    seconds: float


@dataclass(frozen=True, slots=True)
class DeviceWrite:
    """One write that reached the recorded device; ``index`` is its position in submission order, in which writes land
    on the medium. If the bio was PREFLUSH with data, ``submitted`` is the completion of its flush (docs/design.md,
    section 3). ``task`` is the guest's task that submitted it (jbd2/dm-0-8, kworker/u2:1, bob ...)."""

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
        return len(self.data) // SECTOR_BYTES


@dataclass(frozen=True, slots=True)
class Flush:
    """One cache flush. On its completion, all writes that were complete at its submission are durable."""

    submitted: Moment
    completed: Moment
    task: str = ""
    device: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """A note of the agent in the trace buffer: ``start``, ``op 3 begin``, ``op 3 end``, ``end``."""

    at: Moment
    text: str


@dataclass(frozen=True, slots=True)
class Trace:
    """A recording after the join: ``writes`` in submission order (``writes[i].index == i``), ``flushes`` by completion.
    Crashes are between ``start`` (just before the first operation) and ``end`` (after the finish). Earlier writes may
    be pending at ``start``. ``device_sectors`` are lengths. The recorded disk does not carry out ``discards``."""

    writes: tuple[DeviceWrite, ...]
    flushes: tuple[Flush, ...]
    marks: tuple[Mark, ...]
    start: Moment
    end: Moment
    device_sectors: tuple[int, ...]
    discards: int = 0

    def address(self, write: DeviceWrite) -> int:
        """Return the sector of ``write`` in the image of the trace: its devices, end to end."""
        return sum(self.device_sectors[: write.device]) + write.sector
