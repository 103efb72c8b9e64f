"""What reading a damaged document raises, and how it is told."""

from __future__ import annotations

import lzma
import struct
import zlib

from bob.errors import BobError

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
