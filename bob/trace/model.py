"""A recording as data: the writes and flushes of one workload, with the moments of their submission and completion.

*Time* is a position in the guest's trace buffer: an integer that only grows, and is exact because the guest has one
CPU. A *sector* has 512 bytes everywhere in bob, whatever the device's logical block size."""

from dataclasses import dataclass

SECTOR_BYTES = 512


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment in a recording: ``time`` gives the order, and ``seconds`` (by the guest's clock) is for people."""

    time: int
    seconds: float


@dataclass(frozen=True, slots=True)
class DeviceWrite:
    """A write that reached the recorded device. ``index`` is its position in the order of submission. If two writes
    overlap, the one with the higher index lands last. If the bio had PREFLUSH and data, ``submitted`` is the completion
    of its flush (docs/design.md, section 3). ``task`` is the name of the task that submitted the write, such as
    jbd2/dm-0-8, kworker/u2:1 or bob."""

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
    """A flush of a disk's cache. On its completion, all writes that were complete at its submission are durable."""

    submitted: Moment
    completed: Moment
    task: str = ""
    device: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """A note that bob's agent in the guest wrote into the trace buffer: ``start``, ``op 3 begin``, ``op 3 end``,
    ``end``."""

    at: Moment
    text: str


@dataclass(frozen=True, slots=True)
class Trace:
    """A recording after bob has joined the data of the writes with their times. ``writes`` are in the order of
    submission (``writes[i].index == i``), ``flushes`` in the order of completion. Crashes are between ``start`` and
    ``end``. ``start`` is just before the first operation of the workload, and ``end`` after its final sync, or after
    the kernel has written everything back by itself. Earlier writes may be pending at ``start``. ``device_sectors`` has
    the length of each device. ``discards`` is the number of discards. The trace does not keep the discards themselves,
    since the recorded disk ignores them."""

    writes: tuple[DeviceWrite, ...]
    flushes: tuple[Flush, ...]
    marks: tuple[Mark, ...]
    start: Moment
    end: Moment
    device_sectors: tuple[int, ...]
    discards: int = 0

    def address(self, write: DeviceWrite) -> int:
        """Return the first sector of ``write`` in the image of all devices of the trace, laid end to end."""
        return sum(self.device_sectors[: write.device]) + write.sector
