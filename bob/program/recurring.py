"""What recurs of a path in another run of a program: all but numbers, hashes, and names that are drawn at random."""

from __future__ import annotations

import re

_HASH = re.compile(r"[0-9a-f]\d|\d[0-9a-f]|[0-9a-f]{7,}")
_SHORT_HASH = re.compile(r"[0-9a-f]{2}")
_DRAWN = re.compile(r"(?<=^tmp)[a-z0-9_]{8}$|(?<=-)[a-z0-9_]{8}(?=~$)|(?<=^tmp_obj_)\w{6}$")
"""What Python's tempfile draws, by itself and for Mercurial; and what mkstemp(3) draws for git."""
_SIX = re.compile(r"[A-Za-z0-9]{6}(?=(\.[a-z]+)?$)")
_WORD = re.compile(r"[A-Z]?[a-z]*\d*|[A-Z]+\d*")
"""mkstemp(3) draws six letters and digits. One in fifty looks like the end of a name that somebody chose."""


def recurring(path: str) -> str:
    """The ``path`` with a # for each part that is made anew each time. Two letters at its end may be a name that
    somebody chose."""
    *folders, last = path.split("/")
    return "/".join([*("#" if _SHORT_HASH.fullmatch(one) else _plain(one) for one in folders), _plain(last)])


def _plain(name: str) -> str:
    if _HASH.fullmatch(name):
        return "#"
    plain = _DRAWN.sub("#", name)
    if plain == name and (drawn := _SIX.search(name)) and not _WORD.fullmatch(drawn[0]):
        plain = name[: drawn.start()] + "#" + name[drawn.end() :]
    return re.sub(r"\d+", "#", plain)
