"""The journal of reiserfs: its transactions, and which blocks it has copies of."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bob.blocks import reiserfs_format as form
from bob.blocks.journaled import JournaledBlock
from bob.blocks.parts import WritePart, journal


class ReiserfsJournal:
    """The journal of one file system. It has ``size`` blocks, beginning with block ``first``. The journal's header is
    in the next block after these. The argument ``read`` is a function that returns the content of a
    block of the file system."""

    def __init__(self, first: int, size: int, read: Callable[[int], bytes]) -> None:
        self._first, self._size = first, size
        self._read = read
        self._homes: dict[int, int] = {}
        self._commits: dict[int, int] = {}

    def has(self, block: int) -> bool:
        return self._first <= block <= self._first + self._size

    def read(self, block: int, data: bytes) -> WritePart | JournaledBlock:
        if block == self._first + self._size:
            header = form.JOURNAL_HEADER.parse(data)
            return journal(f"journal header (transactions up to {header.last_flush_trans_id} are home)")
        descriptor = self._descriptor(data)
        if descriptor is not None:
            count = f"{descriptor.len} block{'s' * (descriptor.len != 1)}"
            return journal(f"journal descriptor block of transaction {descriptor.trans_id} ({count})")
        if self._commits.get(block) == int.from_bytes(data[:4], "little"):
            return journal(f"journal commit block of transaction {self._commits[block]}")
        if block not in self._homes:
            return journal("journal data")
        return JournaledBlock(self._homes[block], data)

    def landed(self, block: int, data: bytes) -> None:
        descriptor = self._descriptor(data)
        if descriptor is not None and block < self._first + self._size:
            most = (len(data) - 24) // 4
            homes = np.frombuffer(data[12 : 12 + 4 * min(descriptor.len, most)], dtype="<u4").tolist()
            for number in range(descriptor.len):
                place = self._after(block, number + 1)
                self._commits.pop(place, None)
                self._homes.pop(place, None)
                if number < len(homes):
                    self._homes[place] = homes[number]
            commit = self._after(block, descriptor.len + 1)
            self._homes.pop(commit, None)
            self._commits[commit] = descriptor.trans_id

    def _after(self, block: int, count: int) -> int:
        return self._first + (block - self._first + count) % self._size

    def _descriptor(self, data: bytes) -> Any:
        if data[-form.JOURNAL_MAGIC_BYTES :][: len(form.JOURNAL_MAGIC)] != form.JOURNAL_MAGIC:
            return None
        descriptor = form.JOURNAL_DESCRIPTOR.parse(data)
        return descriptor if descriptor.len < self._size else None
