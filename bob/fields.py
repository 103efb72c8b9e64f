"""The fields of documents: each is what it should be, or a ValueError says what it is; and how any error is told."""

from __future__ import annotations

import lzma
import struct
import zlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from bob.errors import BobError

W = TypeVar("W", bound=StrEnum)

MISSHAPEN: tuple[type[Exception], ...] = (
    *(LookupError, TypeError, AttributeError, ValueError, ArithmeticError, EOFError),
    *(struct.error, zlib.error, lzma.LZMAError),
)
"""What comes of reading a document that has not got the form that it should have."""
UNREADABLE: tuple[type[Exception], ...] = (OSError, *MISSHAPEN)
"""The same of a file, which may not be there."""


def said(error: Exception) -> str:
    """What such an ``error`` says is wrong, in words: which field is missing, above all."""
    match error:
        case BobError():
            return error.message
        case KeyError(args=[str(name)]):
            return f"{name[:80]!r} is missing"
        case IndexError():
            return f"a number in it is no place in it ({error})"
    return str(error) or type(error).__name__


def word(kind: type[W], value: Any) -> W:
    """``value`` as one of the words of ``kind``."""
    if value not in list(kind):
        raise ValueError(f"{value!r} is none of {', '.join(kind)}")
    return kind(value)


def words(kind: type[W], table: Mapping[str, Any], key: str) -> tuple[W, ...]:
    """The words of ``kind`` at ``key``; none where it is not there."""
    return tuple(word(kind, one) for one in texts(table.get(key, ()), key))


def tables(value: Any, key: str) -> list[Mapping[str, Any]]:
    """``value``, which stands at ``key``, as an array of tables."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ValueError(f"{key!r} is no table: write [{key}] or [[{key}]] as in the examples")
    return value


def text(value: Any, key: str = "") -> str:
    """``value``, which stands at ``key``, as one line of text."""
    if not isinstance(value, str) or not value.strip() or "\n" in value:
        raise ValueError(f"{_at(key)}{value!r} is not one line of text")
    return value


def texts(value: Any, key: str = "") -> list[str]:
    """``value``, which stands at ``key``, as an array of lines of text."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"{_at(key)}{value!r} is not an array of texts")
    return [text(one, key) for one in value]


def _at(key: str) -> str:
    return f"{key}: " if key else ""
