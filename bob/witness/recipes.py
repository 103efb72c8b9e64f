"""Data as a recipe. Most data in a witness (a file with one recorded crash) follows from the operations of its
workload, since each operation writes a known pattern. For a run of whole sectors with this pattern, a recipe has only
the number of the operation, and the offset in the file. All other sectors are in the recipe as compressed data."""

import lzma
from typing import NamedTuple

from bob.schema import Document
from bob.trace.model import SECTOR_BYTES
from bob.workload.pattern import UNSHADED, contents, place


class PatternRange(NamedTuple):
    """A run of ``sectors`` sectors that begins with ``sector``. The operation with the number ``operation`` wrote these
    sectors. The first byte of the run is byte ``offset`` of the file. ``shade`` is the variant of the pattern that the
    operation wrote (:mod:`bob.workload.shades`)."""

    sector: int
    sectors: int
    operation: int
    offset: int
    shade: int = UNSHADED  # older recipes lack the shade


class DataRecipe(Document, frozen=True):
    """A recipe for ``sectors`` sectors of data. ``patterns`` has the runs of sectors that bob can compute from
    operations, in ascending order. ``rest`` has the contents of all other sectors, compressed by lzma."""

    sectors: int
    patterns: tuple[PatternRange, ...]
    rest: bytes


def to_recipe(data: bytes) -> DataRecipe:
    """Return the recipe of ``data``. The data must consist of whole sectors."""
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
    """Return the data that ``recipe`` describes. Raises ValueError or LZMAError if the recipe is damaged."""
    rest = lzma.decompress(recipe.rest)
    data, used = bytearray(), 0

    def take(sectors: int) -> None:
        nonlocal used
        piece = rest[used : used + sectors * SECTOR_BYTES]
        if sectors < 0 or len(piece) != sectors * SECTOR_BYTES:
            raise ValueError("a recipe has fewer sectors than it declares")
        data.extend(piece)
        used += len(piece)

    for sector, count, operation, offset, shade in recipe.patterns:
        take(sector - len(data) // SECTOR_BYTES)
        data += contents(operation, offset, count * SECTOR_BYTES, shade)
    take(recipe.sectors - len(data) // SECTOR_BYTES)
    if used != len(rest):
        raise ValueError("a recipe has more sectors than it declares")
    return bytes(data)
