"""Counts in documents: exact, however large, and short if possible.

The number of legal states of a few MiB of pending writes has thousands of digits. It is a sum of a few powers of two
(docs/design.md, section 3), so documents have ``2^12321-2^12310+2^77``.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

# CPython refuses more than 4,300 digits by default.
sys.set_int_max_str_digits(0)

LARGEST_JSON_INTEGER = 2**53
"""Larger counts are text, since many readers of JSON have no larger exact integers."""
MOST_DIGITS = 40
"""A count of more digits becomes a sum of powers of two, if that is shorter."""
LARGEST_EXPONENT = 2**24
"""No disk that bob probes has so many sectors: a document with a larger one is damaged."""

if TYPE_CHECKING:
    Count = int
else:

    class Count(int):
        """The type of a field that is a count in documents (:mod:`bob.schema`); it is an integer for all else."""


_DIGITS = re.compile(r"-?\d+", re.ASCII)
_POWERS = re.compile(r"[+-]?2\^\d{1,8}(?:[+-]2\^\d{1,8})*")


def written(count: int) -> int | str:
    """Return ``count`` for a document: an integer, the text of its digits, or a sum of powers of two."""
    if abs(count) <= LARGEST_JSON_INTEGER:
        return int(count)
    digits = str(count)
    if len(digits) <= MOST_DIGITS:
        return digits
    powers = _powers(count)
    return powers if len(powers) < len(digits) else digits


def read(text: int | str) -> int:
    """Return the count in a document. Raise ValueError or TypeError if it is none."""
    if not isinstance(text, str) or "^" not in text:
        if type(text) is not int and not (isinstance(text, str) and _DIGITS.fullmatch(text)):
            raise ValueError(f"{str(text)[:40]!r} is no count")
        return int(text)
    if not _POWERS.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is no count")
    total = 0
    for sign, exponent in re.findall(r"([+-]?)2\^(\d+)", text):
        if int(exponent) > LARGEST_EXPONENT:
            raise ValueError(f"2^{exponent} is no count of crash states")
        total += -(1 << int(exponent)) if sign == "-" else 1 << int(exponent)
    return total


def _powers(count: int) -> str:
    """The fewest powers of two, with signs, that add up to ``count``, largest first (its non-adjacent form)."""
    half, more = abs(count) >> 1, abs(count) + (abs(count) >> 1)
    # Bit k of the non-adjacent form is that of (3n) less that of n, both shifted by one.
    parts = [(bit, sign) for sign, bits in (("+", more & ~half), ("-", half & ~more)) for bit in _bits(bits)]
    flipped = {"+": "-", "-": "+"} if count < 0 else {"+": "+", "-": "-"}
    return "".join(f"{flipped[sign]}2^{bit}" for bit, sign in sorted(parts, reverse=True)).removeprefix("+")


def _bits(number: int) -> list[int]:
    digits = f"{number:b}"[::-1]
    return [found.start() for found in re.finditer("1", digits)]
