"""Data as a recipe: most of what a workload writes is a function of its operations, and need not be kept as bytes.

A recipe names, for runs of whole sectors, the operation whose pattern they are and where in its file; all other sectors
are kept as they are, compressed. 2 MiB of an append are a line.
"""

from __future__ import annotations

import lzma
from typing import NamedTuple

from bob.schema import Document
from bob.trace.model import SECTOR_BYTES
from bob.workload.pattern import UNSHADED, contents, place


class PatternRange(NamedTuple):
    """From ``sector`` of the data on, ``sectors`` that ``operation`` wrote, from ``offset`` of its file on (bytes). One
    without a ``shade`` is of before there were any."""

    sector: int
    sectors: int
    operation: int
    offset: int
    shade: int = UNSHADED


class DataRecipe(Document, frozen=True):
    """Data of so many ``sectors``: ``patterns`` ascending, and the ``rest``, all other sectors (lzma)."""

    sectors: int
    patterns: tuple[PatternRange, ...]
    rest: bytes


def to_recipe(data: bytes) -> DataRecipe:
    """Return the recipe of ``data``, whole sectors."""
    patterns: list[PatternRange] = []
    rest = bytearray()
    for sector in range(len(data) // SECTOR_BYTES):
        piece = data[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES]
        found = place(piece)
        if found is None or contents(found.operation, found.offset, SECTOR_BYTES, found.shade) != piece:
            rest += piece
            continue
        if patterns:
            first, count, same, start, shade = patterns[-1]
            if (first + count, same, start + count * SECTOR_BYTES, shade) == (sector, *found):
                patterns[-1] = PatternRange(first, count + 1, same, start, shade)
                continue
        patterns.append(PatternRange(sector, 1, *found))
    return DataRecipe(len(data) // SECTOR_BYTES, tuple(patterns), lzma.compress(bytes(rest)))


def from_recipe(recipe: DataRecipe) -> bytes:
    """Return the data of a recipe. Raises ValueError or LZMAError for what is none."""
    rest = lzma.decompress(recipe.rest)
    data, used = bytearray(), 0

    def take(sectors: int) -> None:
        nonlocal used
        piece = rest[used : used + sectors * SECTOR_BYTES]
        if sectors < 0 or len(piece) != sectors * SECTOR_BYTES:
            raise ValueError("a recipe does not have the sectors that it says it has")
        data.extend(piece)
        used += len(piece)

    for sector, count, operation, offset, shade in recipe.patterns:
        take(sector - len(data) // SECTOR_BYTES)
        data += contents(operation, offset, count * SECTOR_BYTES, shade)
    take(recipe.sectors - len(data) // SECTOR_BYTES)
    if used != len(rest):
        raise ValueError("a recipe has more sectors than it says")
    return bytes(data)
