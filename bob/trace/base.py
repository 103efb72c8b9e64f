"""Base images. A *base image* is the content of the disks before a recording."""

from dataclasses import dataclass
from functools import lru_cache
from typing import BinaryIO

from bob.errors import MalformedError
from bob.trace import differences
from bob.trace.model import SECTOR_BYTES
from bob.workload.pattern import stale


@dataclass(frozen=True, slots=True)
class Base:
    """A base image of ``length`` bytes. Before mkfs, bob fills the disks with a pattern that marks stale data.
    ``packed`` is the image as a difference from that pattern. ``disks`` has the lengths (bytes) of the image's disks,
    which are laid end to end; if it is empty, there is one disk."""

    name: str
    length: int
    packed: bytes
    effective_options: str
    mkfs: str
    disks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.disks:
            object.__setattr__(self, "disks", (self.length,))
        if sum(self.disks) != self.length:
            raise MalformedError(f"a base image of {self.length:,} bytes has disks of {sum(self.disks):,} bytes")

    def write(self, file: BinaryIO) -> None:
        """Write the image into the empty ``file``, with holes for zeros."""
        done = 0
        for sector, data in differences.runs(self.packed):
            _write_stale(file, sector * SECTOR_BYTES - done)
            done = sector * SECTOR_BYTES + len(data)
            if data.count(0) == len(data):
                file.seek(done)
            else:
                file.write(data)
        _write_stale(file, self.length - done)
        file.truncate(self.length)

    def sector(self, number: int) -> bytes:
        found = _sectors(self.packed).get(number)
        return STALE_SECTOR if found is None else found


STALE_SECTOR = stale(SECTOR_BYTES)
PIECE = 1024 * 1024  # write an image in pieces of at most so many bytes


def _write_stale(file: BinaryIO, length: int) -> None:
    for start in range(0, length, PIECE):
        file.write(stale(min(PIECE, length - start)))


@lru_cache(maxsize=8)
def _sectors(packed: bytes) -> differences.Sectors:
    return differences.Sectors(packed)
