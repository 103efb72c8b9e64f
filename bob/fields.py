"""The errors of damaged documents, and their words."""

import lzma
import struct
import zlib

from bob.errors import BobError

MISSHAPEN: tuple[type[Exception], ...] = (
    *(LookupError, TypeError, AttributeError, ValueError, ArithmeticError, EOFError),
    *(struct.error, zlib.error, lzma.LZMAError),
)  # raised by reading a document of another form
UNREADABLE: tuple[type[Exception], ...] = (OSError, *MISSHAPEN)  # raised by reading a file, which may be missing


def said(error: Exception) -> str:
    """Return the words of such an ``error``."""
    match error:
        case BobError():
            return error.message
        case KeyError(args=[str(name)]):
            return f"{name[:80]!r} is missing"
        case IndexError():
            return f"an index in it is out of range ({error})"
    return str(error) or type(error).__name__
