"""Images of block devices, the differences between two images, and the packed form of such a difference. The packed
form is compressed by zlib. Uncompressed, it lists the runs of sectors that differ. A run is stored as ``u64 sector, u32
sectors`` (of 512 bytes, big-endian) and then the data. The highest bit of ``sectors`` marks a run of zeros, whose data
is left out."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator

from bob.agent.inside.devices import SECTOR, opened

RUN = struct.Struct(">QI")
BLANK = 1 << 31
STEPS = (1024 * 1024, 64 * 1024, 4096)  # pieces of a comparison, each a multiple of the next (bytes)

APART = 256 * 4096  # the reach of the smallest TLB (bytes)

Runs = list[tuple[int, int]]  # first sector and number of sectors of each run; the runs ascend and do not touch

AddressMap = Callable[[int], int]  # maps an offset of an image to an address, valid for the largest of STEPS

GAP = 32  # sectors; a gap of up to this is copied with its neighbours: one long copy costs less than two

_ZEROS = bytes(STEPS[-1])
_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class DeviceImage:
    """The contents of a device, ``length`` bytes. They are in the new file ``path``, in ``memory``, or, if neither is
    given, in anonymous memory.

    Under emulation, page faults and copies are slow. It is also slow to compare two pages that share an entry of QEMU's
    TLB (256 entries or more). So an image lies in huge pages. If bob will compare this image with another image,
    ``beside`` is the other one. The address of this image is then chosen so that equal offsets of the two are half a
    TLB apart. Then a comparison of 32 MiB takes 50 ms, not 475."""

    def __init__(
        self, length: int, path: str | None = None, beside: DeviceImage | None = None, memory: mmap.mmap | None = None
    ) -> None:
        self.path = path
        self.length = length
        if memory is not None:
            self._memory = memory
        elif path is None:
            self._memory = mmap.mmap(-1, length + APART, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        else:
            with opened(path, os.O_RDWR | os.O_CREAT | os.O_EXCL) as fd:
                os.ftruncate(fd, length)
                self._memory = mmap.mmap(fd, length)
        self._first_byte = ctypes.c_char.from_buffer(self._memory)
        start = ctypes.addressof(self._first_byte)
        skip = 0 if beside is None else (beside.address(APART // 2) - start) % APART
        self._address = start + skip
        self.data = memoryview(self._memory)[skip : skip + length]

    def address(self, offset: int) -> int:
        return self._address + offset

    def put(self, sector: int, data: bytes | memoryview) -> None:
        self.data[sector * SECTOR : sector * SECTOR + len(data)] = data

    def get(self, sector: int, sectors: int) -> bytes:
        return bytes(self.data[sector * SECTOR : (sector + sectors) * SECTOR])

    def copy(self, other: DeviceImage, runs: Iterable[tuple[int, int]]) -> None:
        for sector, sectors in runs:
            span = slice(sector * SECTOR, (sector + sectors) * SECTOR)
            self.data[span] = other.data[span]

    def is_same(self, other: DeviceImage, sector: int, sectors: int) -> bool:
        start = sector * SECTOR
        return not _memcmp(self.address(start), other.address(start), sectors * SECTOR)

    def close(self) -> None:
        del self._first_byte
        self.data.release()
        self._memory.close()
        if self.path is not None:
            os.unlink(self.path)


class PatternImage:
    """The image of a device that contains only the bytes ``cell``, over and over."""

    def __init__(self, cell: bytes) -> None:
        self._piece = cell * (STEPS[0] // len(cell))
        self._address = ctypes.cast(ctypes.c_char_p(self._piece), ctypes.c_void_p).value or 0

    def address(self, _offset: int) -> int:
        return self._address

    def fill(self, image: DeviceImage, runs: Iterable[tuple[int, int]]) -> None:
        most = len(self._piece) // SECTOR
        for first, sectors in runs:
            for sector in range(first, first + sectors, most):
                image.put(sector, memoryview(self._piece)[: min(most, first + sectors - sector) * SECTOR])


def differing(image: DeviceImage, other: AddressMap, within: Runs | None = None) -> Runs:
    """Return the runs of sectors where ``image`` differs from another image. The runs consist of whole blocks of 4,096
    bytes. ``other`` returns the address in memory of a byte of the other image. If ``within`` is given, only these runs
    are compared."""
    runs: Runs = []
    for start, end in [(0, image.length)] if within is None else _blocks(within, image.length):
        while start < end:
            inside = start % STEPS[0]
            size = min(STEPS[0] - inside, end - start)
            for offset, length in _unequal(image.address(start), other(start - inside) + inside, size, STEPS[1:]):
                sector, sectors = (start + offset) // SECTOR, length // SECTOR
                if runs and sum(runs[-1]) == sector:
                    runs[-1] = (runs[-1][0], runs[-1][1] + sectors)
                else:
                    runs.append((sector, sectors))
            start += size
    return runs


def _blocks(runs: Runs, length: int) -> Iterator[tuple[int, int]]:
    step = STEPS[-1]
    for sector, sectors in merged(runs):
        yield sector * SECTOR // step * step, min(-(-(sector + sectors) * SECTOR // step) * step, length)


def merged(runs: Runs) -> Runs:
    """Return ascending runs of sectors that together cover ``runs``. They also cover gaps of up to :data:`GAP` sectors
    between two runs."""
    covering: Runs = []
    first, end = 0, -1
    for sector, count in sorted(runs):
        if sector > end + GAP or end < 0:
            if end >= 0:
                covering.append((first, end - first))
            first, end = sector, sector + count
        elif sector + count > end:
            end = sector + count
    if end >= 0:
        covering.append((first, end - first))
    return covering


def outside(run: tuple[int, int], places: Runs) -> Runs:
    """Return the parts of ``run`` that lie outside of ``places``. All are runs of sectors; the places are sorted, and
    may overlap."""
    parts: Runs = []
    start, end = run[0], sum(run)
    for first, count in places:
        if first >= end:
            break
        if first > start:
            parts.append((start, first - start))
        start = max(start, first + count)
    if start < end:
        parts.append((start, end - start))
    return parts


def _unequal(ours: int, theirs: int, size: int, steps: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    if not _memcmp(ours, theirs, size):
        return
    if not steps:
        yield 0, size
        return
    for offset in range(0, size, steps[0]):
        length = min(steps[0], size - offset)
        for inner, unequal in _unequal(ours + offset, theirs + offset, length, steps[1:]):
            yield offset + inner, unequal


def pack(image: DeviceImage, runs: Runs) -> bytes:
    packer = zlib.compressobj(1)
    pieces = []
    for sector, sectors, blank in _blank_apart(image, runs):
        pieces.append(packer.compress(RUN.pack(sector, sectors | BLANK if blank else sectors)))
        if not blank:
            pieces.append(packer.compress(image.get(sector, sectors)))
    return b"".join([*pieces, packer.flush()])


def _blank_apart(image: DeviceImage, runs: Runs) -> Iterator[tuple[int, int, bool]]:
    for sector, sectors in runs:
        start, stop = sector * SECTOR, (sector + sectors) * SECTOR
        first, blank = start, False
        for offset in range(start, stop, STEPS[-1]):
            zeros = not _memcmp(image.address(offset), _ZEROS, min(STEPS[-1], stop - offset))
            if zeros != blank and offset > first:
                yield first // SECTOR, (offset - first) // SECTOR, blank
                first = offset
            blank = zeros
        yield first // SECTOR, (stop - first) // SECTOR, blank


def unpack(packed: bytes) -> Iterator[tuple[int, memoryview]]:
    """Yield the first sector and the data of each run in ``packed``, the packed form of a difference."""
    data = memoryview(zlib.decompress(packed))
    position = 0
    while position < len(data):
        sector, sectors = RUN.unpack_from(data, position)
        position += RUN.size
        if sectors & BLANK:
            yield sector, memoryview(bytes((sectors & ~BLANK) * SECTOR))
        else:
            yield sector, data[position : position + sectors * SECTOR]
            position += sectors * SECTOR
