"""Base images: what a device held before the recording began."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from bob.trace import differences
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
        """The whole image, ``length`` bytes; in memory once, however many ask for it."""
        return _image(self.length, self.packed)


@lru_cache(maxsize=4)
def _image(length: int, packed: bytes) -> bytes:
    image = bytearray(stale(length))
    differences.apply(packed, image)
    return bytes(image)
