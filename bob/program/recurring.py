"""Find the parts of a path that are the same in each run of a program. Numbers, hashes and random names differ between
runs."""

import re

_DRAWN = re.compile(
    r"(?<=^sed)[A-Za-z0-9]{6}$"  # mkstemp(3), in GNU sed
    r"|(?<=^tmp_obj_)[A-Za-z0-9]{6}$|(?<=^tmp_pack_)[A-Za-z0-9]{6}$|(?<=^tmp_idx_)[A-Za-z0-9]{6}$"  # in git
    r"|(?<=^tmp\.)[A-Za-z0-9]{10}$"  # mktemp(1)
    r"|(?<=^tmp)(?=\w*[\d_])[a-z0-9_]{8}(?=\.|$)"  # tempfile of Python
    r"|(?<=-)[a-z0-9_]{8}(?=~$)"  # the same in Mercurial
    r"|(?<=-mj)[0-9A-F]{9}$"  # SQLite's super-journal (sqlite3VdbeCommit, vdbeCommit)
)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_HASH = re.compile(r"(?<![A-Za-z0-9])(?=[A-Fa-f]*\d)[0-9A-Fa-f]{7,}(?![A-Za-z0-9])")
_SHORT = re.compile(r"[0-9a-f]{2}")
_REST = re.compile(r"(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{7,}|tmp_obj_\w+")
"""The name of a file in a folder that is named by the first two letters of a hash, as in git. The name of the file is
the other part of the hash."""
_SIX = re.compile(r"(?<![A-Z0-9])[A-Za-z0-9]{6}(?=(\.[a-z]+)?$)")
_WORDS = re.compile(r"[a-z]*([A-Z][a-z]+)*[A-Z]*\d*")
"""Six letters and digits that look like the end of a chosen name. Letters that mkstemp(3) draws at random look like
that in one case of six."""


def recurring(path: str) -> str:
    """Return ``path`` with a # in place of each part that differs between runs."""
    names = path.split("/")
    around = zip(["", *names], names, [*names[1:], ""], strict=False)
    return "/".join(
        "#" if _SHORT.fullmatch(name) and (before == "objects" or _REST.fullmatch(after)) else _plain(name)
        for before, name, after in around
    )


def _plain(name: str) -> str:
    plain = _DRAWN.sub("#", name)
    if plain == name:
        plain = _HASH.sub("#", _UUID.sub("#", name))
    if plain == name and (drawn := _SIX.search(name)) and not _WORDS.fullmatch(drawn[0]):
        plain = name[: drawn.start()] + "#" + name[drawn.end() :]
    return re.sub(r"\d+", "#", plain)
