"""The sector contents of all crash states of a trace, each kept once and then named by number."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from bob.trace.model import SECTOR_BYTES

DIGEST_BYTES = 16
"""The length of a sector's digest and of a state's key, in bytes."""


def digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()


class Payload:
    """Append-only sectors. A write's data lie together, so a whole write is one run.

    ``digests`` has shape (at least sectors + 1, 2): row 0, all zeros, is "as in the base", row n + 1 sector n.
    ``contents`` has shape (at least sectors + 1): row n + 1 has m + 1 for the first sector m with the content of sector
    n, so numbers are equal exactly if contents are.
    """

    def __init__(self) -> None:
        self._data = bytearray()
        self._all = b""
        self._placed: dict[bytes, int] = {}
        self.digests: NDArray[np.uint64] = np.zeros((1024, 2), dtype=np.uint64)
        self.contents: NDArray[np.int32] = np.zeros(1024, dtype=np.int32)

    @property
    def sectors(self) -> int:
        return len(self._data) // SECTOR_BYTES

    def place(self, data: bytes) -> int:
        """Return the payload sector at which ``data``, whole sectors, begins; append it if it is new."""
        if data in self._placed:
            return self._placed[data]
        at = self._placed[data] = self.sectors
        self._data += data
        while len(self.digests) <= self.sectors:
            self.digests = np.concatenate([self.digests, np.zeros_like(self.digests)])
            self.contents = np.concatenate([self.contents, np.zeros_like(self.contents)])
        contents = [data[start : start + SECTOR_BYTES] for start in range(0, len(data), SECTOR_BYTES)]
        rows = slice(at + 1, self.sectors + 1)
        self.contents[rows] = [
            self._placed.setdefault(content, number) + 1 for number, content in enumerate(contents, at)
        ]
        digests = b"".join(map(digest, contents))
        self.digests[rows] = np.frombuffer(digests, dtype=np.uint64).reshape(-1, 2)
        return at

    def sector(self, number: int) -> bytes:
        return bytes(self._data[number * SECTOR_BYTES : (number + 1) * SECTOR_BYTES])

    def since(self, sector: int) -> bytes:
        """Return the contents of ``sector`` and all after it. All of it is cached for the next request."""
        if len(self._all) != len(self._data):
            self._all = bytes(self._data)
        return self._all[sector * SECTOR_BYTES :]
