"""The sector contents of all crash states of a trace, each kept once: sent to the guest once, then only named.

A state is then nothing but triples (where, which payload sector, how many).
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from bob.trace.model import SECTOR_BYTES

DIGEST_BYTES = 16
"""Length of the digest of a sector's content and of a state's key, in bytes."""


def digest(content: bytes) -> bytes:
    """The digest of a sector's content."""
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()


class Payload:
    """Append-only sectors, and a digest of each.

    A write's data lie together, so a write that is on the medium whole is one run. ``sectors`` counts them.
    """

    def __init__(self) -> None:
        self._data = bytearray()
        self._all = b""
        self._placed: dict[bytes, int] = {}
        self._digests = np.zeros((1024, 2), dtype=np.uint64)
        self._contents = np.zeros(1024, dtype=np.int32)

    @property
    def sectors(self) -> int:
        """How many sectors there are by now."""
        return len(self._data) // SECTOR_BYTES

    @property
    def digests(self) -> NDArray[np.uint64]:
        """Shape (at least sectors + 1, 2): row 0, all zeros, stands for "as in the base", row n + 1 for sector n."""
        return self._digests

    @property
    def contents(self) -> NDArray[np.int32]:
        """Shape (at least sectors + 1): row 0, zero, stands for "as in the base"; row n + 1 has m + 1, where m is the
        first sector with the content of sector n. So two sectors have equal numbers exactly if their contents are."""
        return self._contents

    def place(self, data: bytes) -> int:
        """The payload sector at which ``data``, a whole number of sectors, begins; placed now unless it was before."""
        if data in self._placed:
            return self._placed[data]
        at = self._placed[data] = self.sectors
        self._data += data
        while len(self._digests) <= self.sectors:
            self._digests = np.concatenate([self._digests, np.zeros_like(self._digests)])
            self._contents = np.concatenate([self._contents, np.zeros_like(self._contents)])
        contents = [data[start : start + SECTOR_BYTES] for start in range(0, len(data), SECTOR_BYTES)]
        rows = slice(at + 1, self.sectors + 1)
        self._contents[rows] = [
            self._placed.setdefault(content, number) + 1 for number, content in enumerate(contents, at)
        ]
        digests = b"".join(map(digest, contents))
        self._digests[rows] = np.frombuffer(digests, dtype=np.uint64).reshape(-1, 2)
        return at

    def sector(self, number: int) -> bytes:
        """The content of one payload sector."""
        return bytes(self._data[number * SECTOR_BYTES : (number + 1) * SECTOR_BYTES])

    def since(self, sector: int) -> bytes:
        """The contents of ``sector`` and all after it; that of all is kept, as it is asked for with each request."""
        if len(self._all) != len(self._data):
            self._all = bytes(self._data)
        return self._all[sector * SECTOR_BYTES :]
