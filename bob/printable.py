"""Names and words of others in a sentence of bob's: in one line, and with nothing that a terminal would obey."""

from __future__ import annotations


def printable(text: str) -> str:
    """``text`` with each letter that is not to be seen as Python writes it: a line's end as ``\\n``, an escape as
    ``\\x1b``, a byte of a file's name that is no UTF-8 as ``\\xff``."""
    return text if text.isprintable() else "".join(map(_letter, text))


def _letter(letter: str) -> str:
    if letter.isprintable():
        return letter
    if "\udc80" <= letter <= "\udcff":  # as surrogateescape has it
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode()
