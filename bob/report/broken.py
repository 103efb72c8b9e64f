"""Breaks lines where people would: a list of mount options is one long word, which is broken behind its commas."""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.text import Text

_ENDS = re.compile(r"[,\s]+|$")


def broken(text: Text, width: int) -> Text:
    """``text`` in lines of at most ``width`` columns, each of which ends at a blank or behind a comma where it can."""
    begins, fits, line = [], 0, 0
    for found in _ENDS.finditer(text.plain):
        if fits > line and cell_len(text.plain[line : found.end()].rstrip()) > width:
            begins.append(fits)
            line = fits
        fits = found.end()
    return Text("\n").join(text.divide(begins))
