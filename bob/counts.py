"""The text of large counts in JSON documents, such as ``2^12321-2^12310+2^77``. Such a text is exact, and often short.
The number of legal states of a few MiB of pending writes is a sum of a few powers of two, and has thousands of digits
(docs/design.md, section 3)."""

import re
import sys
from typing import TYPE_CHECKING

# CPython refuses more than 4,300 digits by default.
sys.set_int_max_str_digits(0)

LARGEST_JSON_INTEGER = 2**53  # larger integers are strings: many readers of JSON would round them
MOST_DIGITS = 40  # a longer count becomes a sum of powers of two, if the sum is shorter
LARGEST_EXPONENT = 2**24  # more than the sectors of any disk that bob probes

if TYPE_CHECKING:
    Count = int
else:

    class Count(int):
        """An integer that :mod:`bob.schema` writes into documents by :func:`written`."""


_DIGITS = re.compile(r"-?\d+", re.ASCII)
_POWERS = re.compile(r"[+-]?2\^\d{1,8}(?:[+-]2\^\d{1,8})*")


def written(count: int) -> int | str:
    """Return ``count`` for a document: as an integer, or, if it is large, as a string of its digits or of powers of
    two."""
    if abs(count) <= LARGEST_JSON_INTEGER:
        return int(count)
    digits = str(count)
    if len(digits) <= MOST_DIGITS:
        return digits
    powers = _powers(count)
    return powers if len(powers) < len(digits) else digits


def read(text: int | str) -> int:
    """Return the count that a document has as ``text``. Raise ValueError if ``text`` is malformed."""
    if not isinstance(text, str) or "^" not in text:
        if type(text) is not int and not (isinstance(text, str) and _DIGITS.fullmatch(text)):
            raise ValueError(f"{str(text)[:40]!r} is not a count")
        return int(text)
    if not _POWERS.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a count")
    total = 0
    for sign, exponent in re.findall(r"([+-]?)2\^(\d+)", text):
        if int(exponent) > LARGEST_EXPONENT:
            raise ValueError(f"2^{exponent} is too large for a count of crash states")
        total += -(1 << int(exponent)) if sign == "-" else 1 << int(exponent)
    return total


def _powers(count: int) -> str:
    """Return powers of two with signs whose sum is ``count``, largest first. There are as few powers as possible (the
    non-adjacent form)."""
    half, more = abs(count) >> 1, abs(count) + (abs(count) >> 1)
    # Bit k of the non-adjacent form is bit k + 1 of 3n minus bit k + 1 of n.
    parts = [(bit, sign) for sign, bits in (("+", more & ~half), ("-", half & ~more)) for bit in _bits(bits)]
    flipped = {"+": "-", "-": "+"} if count < 0 else {"+": "+", "-": "-"}
    return "".join(f"{flipped[sign]}2^{bit}" for bit, sign in sorted(parts, reverse=True)).removeprefix("+")


def _bits(number: int) -> list[int]:
    digits = f"{number:b}"[::-1]
    return [found.start() for found in re.finditer("1", digits)]
