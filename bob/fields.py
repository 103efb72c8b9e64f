"""The exceptions that Python raises for damaged documents, and a message for each."""

import lzma
import struct
import zlib

from bob.errors import BobError

MISSHAPEN: tuple[type[Exception], ...] = (
    *(LookupError, TypeError, AttributeError, ValueError, ArithmeticError, EOFError),
    *(struct.error, zlib.error, lzma.LZMAError),
)  # Reading a damaged document may raise these.
UNREADABLE: tuple[type[Exception], ...] = (OSError, *MISSHAPEN)  # Reading a file that may be missing may raise these.


def said(error: Exception) -> str:
    """Return a message for ``error``, an exception from reading a document."""
    match error:
        case BobError():
            return error.message
        case KeyError(args=[str(name)]):
            return f"{name[:80]!r} is missing"
        case IndexError():
            return f"an index in it is out of range ({error})"
    return str(error) or type(error).__name__
