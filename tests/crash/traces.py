"""Traces to test with: small random ones, and long ones like those that are recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from hypothesis import strategies as st

from bob.crash.caches import CACHES
from bob.crash.device import DeviceModel
from bob.crash.image import ByteRun
from bob.crash.state import WritePiece
from bob.trace.model import DeviceWrite, Flush, Moment, Trace
from mediums import replay

DEVICE_SECTORS = (6, 3)
MOST_UNITS = 9


@dataclass(frozen=True)
class Case:
    trace: Trace
    model: DeviceModel
    base: bytes = field(repr=False)

    def base_sector(self, sector: int) -> bytes:
        return self.base[sector * 512 : (sector + 1) * 512]


def at(time: int) -> Moment:
    return Moment(time, time / 1000)


def content(letters: str) -> bytes:
    """Half a sector of each letter."""
    return b"".join(letter.encode() * 256 for letter in letters)


def trace_of(
    writes: list[DeviceWrite],
    flushes: list[Flush],
    start: int,
    end: int,
    device_sectors: tuple[int, ...] = DEVICE_SECTORS,
) -> Trace:
    return Trace(
        writes=tuple(writes),
        flushes=tuple(sorted(flushes, key=lambda flush: flush.completed.time)),
        marks=(),
        start=at(start),
        end=at(end),
        device_sectors=device_sectors,
    )


def patched(base: bytes, runs: Sequence[ByteRun], payload: bytes) -> bytes:
    """``base`` with the runs of a delta on it."""
    image = bytearray(base)
    for sector, source, count in runs:
        image[sector * 512 : (sector + count) * 512] = payload[source * 512 : (source + count) * 512]
    assert len(image) == len(base)
    return bytes(image)


SIZES = (256, 512, 1024, 4096)
MODELS = [DeviceModel(cache, size) for cache in CACHES.values() for size in SIZES] + [DeviceModel()] * 4


@st.composite
def cases(
    draw: st.DrawFn, models: list[DeviceModel] = MODELS, device_sectors: tuple[int, ...] = DEVICE_SECTORS
) -> Case:
    """A few writes on small devices, few letters (so that contents meet), flushes in flight at will."""
    model = draw(st.sampled_from(models))
    if model.write_cache.one_disk_only:
        device_sectors = (sum(device_sectors),)
    devices = [0, 0, *range(len(device_sectors))]
    flushes = []
    drafts: list[tuple[int, int, int, int, str, bool]] = []  # submitted, duration, device, sector, letters, fua

    def add_write(submitted: int, device: int | None = None, fua: bool | None = None) -> None:
        device = draw(st.sampled_from(devices)) if device is None else device
        sectors = min(draw(st.sampled_from([1, 1, 2, 3])), device_sectors[device])
        sector = draw(st.integers(0, device_sectors[device] - sectors))
        letters = draw(st.text("abc", min_size=2 * sectors, max_size=2 * sectors))
        fua = draw(st.sampled_from([False, False, True])) if fua is None else fua
        drafts.append((submitted, draw(st.integers(1, 8)), device, sector, letters, fua))

    for _ in range(draw(st.sampled_from([0, 1, 2, 3, 4, 4, 5, 5, 6]))):
        add_write(draw(st.integers(0, 20)))
    for _ in range(draw(st.sampled_from([0, 1, 1, 2, 2, 3]))):
        submitted, device = draw(st.integers(0, 20)), draw(st.sampled_from(devices))
        completed = submitted + draw(st.integers(1, 8))
        flushes.append(Flush(at(submitted), at(completed), device=device))
        if draw(st.booleans()):  # PREFLUSH and data: a flush, then the write
            add_write(completed, device, fua=draw(st.sampled_from([True, True, False])))

    writes: list[DeviceWrite] = []
    units = 0
    for submitted, duration, device, sector, letters, fua in sorted(drafts, key=lambda draft: draft[0]):
        write = DeviceWrite(
            len(writes), sector, content(letters), at(submitted), at(submitted + duration), fua, device=device
        )
        units += model.units(write)
        if units > MOST_UNITS:
            break
        writes.append(write)
    over = [each.completed.time for each in (*writes, *flushes)]  # what happens at the very edge of the window counts
    start = draw(st.sampled_from([0, 0, 2, 4, 6, 8, 12, *over]))
    end = start + draw(st.sampled_from([0, 4, 12, 20, 28, 28]))
    halves = 2 * sum(device_sectors)
    base = content(draw(st.text("ab", min_size=halves, max_size=halves)))
    return Case(trace_of(writes, flushes, start, end, device_sectors), model, base)


def journal(commits: int, blocks: int, *, seed: int = 0, sectors: int = 8, spare: int = 4) -> Trace:
    """Like ext4: in each epoch some data blocks in flight, journal blocks, a flush, a FUA commit block."""
    rng = Random(seed)
    writes: list[DeviceWrite] = []
    flushes = []
    time = 0

    def add_write(sector: int, fua: bool = False, lasts: int = 1) -> None:
        nonlocal time
        data = b"".join(rng.randbytes(512) for _ in range(sectors))
        writes.append(DeviceWrite(len(writes), sector, data, at(time), at(time + lasts), fua))
        time += 2

    for commit in range(commits):
        for _ in range(spare):
            add_write(rng.randrange(16) * 8, lasts=rng.randrange(1, 200))
        for block in range(blocks):
            add_write(160 + (commit * (blocks + 1) + block) * 8)
        flushes.append(Flush(at(time), at(time + 2)))
        time += 2
        add_write(160 + (commit * (blocks + 1) + blocks) * 8, fua=True)
    return trace_of(writes, flushes, 0, time, (1 << 20,))


def replay_all(trace: Trace, image: bytearray | memoryview) -> None:
    """Write every write of the trace into ``image`` in submission order: what the device holds after the recording."""
    replay(trace, [WritePiece(write, 0, len(write.data)) for write in trace.writes], image)
