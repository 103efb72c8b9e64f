"""Data as a recipe: most of what a workload writes is a function of its operations, and need not be kept as bytes.

A recipe names, for runs of whole sectors, the operation whose pattern they are and where in its file; all other sectors
are kept as they are, compressed. 2 MiB of an append are a line.
"""

from __future__ import annotations

import base64
import lzma
from collections.abc import Mapping
from typing import Any

from bob.trace.model import SECTOR_BYTES
from bob.workload.pattern import UNSHADED, contents, place


def to_recipe(data: bytes) -> dict[str, Any]:
    """The recipe of ``data``, whole sectors, as plain JSON: ``patterns`` are (sector of the data, sectors, operation,
    offset in the file, shade), ascending, ``rest`` all other sectors (lzma, base64)."""
    patterns: list[list[int]] = []
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
                patterns[-1][1] += 1
                continue
        patterns.append([sector, 1, *found])
    return {
        "sectors": len(data) // SECTOR_BYTES,
        "patterns": patterns,
        "rest": base64.b64encode(lzma.compress(bytes(rest))).decode(),
    }


def from_recipe(recipe: Mapping[str, Any]) -> bytes:
    """The data of a recipe; patterns without a shade are of before there were any.

    Raises KeyError, TypeError, ValueError or LZMAError for what is none.
    """
    rest = lzma.decompress(base64.b64decode(recipe["rest"], validate=True))
    data, used = bytearray(), 0

    def take(sectors: int) -> None:
        nonlocal used
        piece = rest[used : used + sectors * SECTOR_BYTES]
        if sectors < 0 or len(piece) != sectors * SECTOR_BYTES:
            raise ValueError("a recipe does not have the sectors that it says it has")
        data.extend(piece)
        used += len(piece)

    for sector, count, operation, offset, *shade in recipe["patterns"]:
        take(sector - len(data) // SECTOR_BYTES)
        data += contents(operation, offset, count * SECTOR_BYTES, *(shade or [UNSHADED]))
    take(recipe["sectors"] - len(data) // SECTOR_BYTES)
    if used != len(rest):
        raise ValueError("a recipe has more sectors than it says")
    return bytes(data)
