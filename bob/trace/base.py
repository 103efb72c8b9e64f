"""Base images: what a device held before the recording began."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from bob.trace import differences
from bob.trace.model import SECTOR_BYTES
from bob.workload.pattern import stale


@dataclass(frozen=True, slots=True)
class Base:
    """A base image. ``packed`` is its difference from a device of ``length`` bytes that is all stale pattern."""

    name: str
    length: int
    packed: bytes
    effective_options: str
    mkfs: str

    def image(self) -> bytes:
        """The whole image, ``length`` bytes."""
        image = bytearray(stale(self.length))
        differences.apply(self.packed, image)
        return bytes(image)

    def sector(self, number: int) -> bytes:
        """The 512 bytes of one sector; of the image only what mkfs and the initial tree wrote is kept for it."""
        found = _sectors(self.packed).get(number)
        return STALE_SECTOR if found is None else found


STALE_SECTOR = stale(SECTOR_BYTES)


@lru_cache(maxsize=8)
def _sectors(packed: bytes) -> differences.Sectors:
    return differences.Sectors(packed)
