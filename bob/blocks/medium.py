"""The content of the device as it was before a given write of the trace. Memory holds only the pages that bob has read
or written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bob.blocks.parts import BlockPiece
from bob.trace.model import SECTOR_BYTES

PAGE_BYTES = 4096
_SECTORS = PAGE_BYTES // SECTOR_BYTES


class OverlayMedium:
    """A device of ``length`` bytes in memory. At first it has the content of a base image (the disk before the
    recording); later writes do not change this image. ``sector`` takes the number of a sector, and returns the 512
    bytes of this sector in the base image."""

    def __init__(self, length: int, sector: Callable[[int], bytes]) -> None:
        self.length = length
        self._sector = sector
        self._pages: dict[int, bytearray] = {}

    def unwritten(self) -> OverlayMedium:
        return OverlayMedium(self.length, self._sector)

    def read(self, at: int, length: int) -> bytes:
        """Return ``length`` bytes from byte ``at`` on, or fewer where the device ends."""
        if at < 0 or at >= self.length:
            return b""
        stop = min(at + length, self.length)
        first, last = at // PAGE_BYTES, -(-stop // PAGE_BYTES)
        pages = [self._page(number) for number in range(first, last)]
        skip = at - first * PAGE_BYTES
        if len(pages) == 1:
            return bytes(pages[0][skip : skip + stop - at])
        return b"".join(pages)[skip : skip + stop - at]

    def write(self, at: int, data: bytes) -> None:
        """Write ``data`` from byte ``at`` on, up to the end of the device."""
        position = 0
        while position < len(data) and 0 <= at + position < self.length:
            number, skip = divmod(at + position, PAGE_BYTES)
            count = min(PAGE_BYTES - skip, len(data) - position)
            self._page(number)[skip : skip + count] = data[position : position + count]
            position += count

    def pieces(self, at: int, data: bytes, block_bytes: int) -> Iterator[BlockPiece]:
        position = 0
        while position < len(data):
            block, skip = divmod(at + position, block_bytes)
            count = min(block_bytes - skip, len(data) - position)
            before = self.read(block * block_bytes, block_bytes).ljust(block_bytes, b"\0")
            new = data[position : position + count]
            after = new if count == block_bytes else before[:skip] + new + before[skip + count :]
            yield BlockPiece(block, position // SECTOR_BYTES, before, after, skip, count)
            position += count

    def _page(self, number: int) -> bytearray:
        page = self._pages.get(number)
        if page is None:
            first = number * _SECTORS
            whole = b"".join(self._sector(sector) for sector in range(first, first + _SECTORS))
            page = self._pages[number] = bytearray(whole)
        return page
