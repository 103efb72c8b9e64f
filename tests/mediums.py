"""What is on a disk, byte by byte: a base image, differences on it, and each crash state by the slow, plain rules."""

from __future__ import annotations

from collections.abc import Iterable

from bob.crash.image import Composer
from bob.crash.state import CrashState, WritePiece, effective
from bob.trace import differences
from bob.trace.base import Base
from bob.trace.model import SECTOR_BYTES, Trace
from bob.workload.pattern import stale


def image_of(base: Base) -> bytes:
    image = bytearray(stale(base.length))
    lay(base.packed, image)
    return bytes(image)


def lay(packed: bytes, image: bytearray) -> None:
    """Write a packed difference into ``image``."""
    for sector, data in differences.runs(packed):
        image[sector * SECTOR_BYTES : sector * SECTOR_BYTES + len(data)] = data


def replay(trace: Trace, pieces: Iterable[WritePiece], image: bytearray | memoryview) -> None:
    """Write ``pieces`` into ``image``, the devices of the trace end to end, in the given order."""
    for piece in pieces:
        begin = trace.address(piece.write) * SECTOR_BYTES
        image[begin + piece.start : begin + piece.stop] = piece.write.data[piece.start : piece.stop]


def put(composer: Composer, state: CrashState, image: bytearray | memoryview) -> None:
    """Write ``state`` into ``image``, which holds the base (or the ground) of all devices, end to end."""
    trace = composer._trace
    replay(trace, effective(trace, composer.model, composer._points, state), image)
