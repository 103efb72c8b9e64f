"""What is in a file that is too long to be read from end to end: its data, and not its holes."""

from __future__ import annotations

import errno
import os
from typing import NamedTuple

CHUNK = 4096
PIECE = 1024 * 1024
ZEROS = bytes(PIECE)


class Pieces(NamedTuple):
    """What is in a long file but zeros: ``chunks``, and at which byte each of them begins."""

    places: tuple[int, ...]
    chunks: tuple[bytes, ...]


def read_pieces(fd: int, size: int, most: int) -> tuple[Pieces, str | None, bool]:
    """What is in an open file of so many bytes, of which ``most`` are read; what went wrong with the rest; and whether
    that is that bob read no more. A hole and zeros read the same, so they are the same here, whichever of the two the
    file system has made of them."""
    places: list[int] = []
    chunks: list[bytes] = []
    at, left, fault, unseen = 0, most, None, False
    try:
        while not fault and (stretch := _next_data(fd, at, size)) is not None:
            at, end = stretch
            while at < end and not fault:
                piece = os.pread(fd, min(end - at, PIECE), at) if left > 0 else b""
                if left <= 0:
                    fault, unseen = f"more than the {most} bytes of data that are looked at", True
                elif not piece:
                    fault = f"ends at {at} of {size} bytes"
                elif piece != ZEROS[: len(piece)]:
                    for start in range(0, len(piece), CHUNK):
                        chunk = piece[start : start + CHUNK]
                        if chunk != ZEROS[: len(chunk)]:
                            places.append(at + start)
                            chunks.append(chunk)
                at += len(piece)
                left -= len(piece)
    except OSError as error:
        fault = error.strerror
    return Pieces(tuple(places), tuple(chunks)), fault, unseen


def _next_data(fd: int, at: int, size: int) -> tuple[int, int] | None:
    """The next stretch that may have data, in whole chunks or to the end of the file; None where there is none. For a
    file system that knows no holes (ext2, vfat) all of the file is data."""
    if at >= size:
        return None
    try:
        start = os.lseek(fd, at, os.SEEK_DATA)
        end = os.lseek(fd, start, os.SEEK_HOLE)
    except OSError as error:
        if error.errno == errno.ENXIO:  # only a hole is left
            return None
        if error.errno != errno.EINVAL:
            raise
        return at, size
    return max(at, start - start % CHUNK), min(size, -(-end // CHUNK) * CHUNK)
