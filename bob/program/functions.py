"""The functions that strace names below a call, without those that it only takes to be near.

strace (libunwind) gives a frame the name of the nearest symbol before it. Where a library keeps the names of exported
functions alone, a static function so has the name of another one.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from bob.program.binary import Binary
from bob.program.stack import INTERPRETERS, PLUMBING

_NAMED = re.compile(r"^( > (?P<file>[^()\n]*)\().+\+0x(?P<distance>[0-9a-f]+)(\) \[0x(?P<offset>[0-9a-f]+)\])$", re.M)


def files_with_names(calls: str) -> list[str]:
    """The files of which a function is named below one of the ``calls`` (what strace wrote) so that it matters: none by
    which everybody makes calls, and no interpreter."""
    found = dict.fromkeys(frame["file"] for frame in _NAMED.finditer(calls))
    return [path for path in found if not _is_passed_over(path)]


def without_wrong_names(calls: str, files: Mapping[str, bytes]) -> str:
    """The same ``calls``, where each frame has lost its name that is not the function's that it is in, by what
    ``files`` (of :func:`files_with_names`) say."""
    binaries = {path: Binary(data) for path, data in files.items()}
    known: dict[str, str] = {}

    def checked(frame: re.Match[str]) -> str:
        if frame[0] not in known:
            known[frame[0]] = frame[0] if _is_right(frame, binaries) else f"{frame[1]}{frame[4]}"
        return known[frame[0]]

    return _NAMED.sub(checked, calls)


def _is_right(frame: re.Match[str], binaries: Mapping[str, Binary]) -> bool:
    if _is_passed_over(frame["file"]):
        return True
    # Both are of what runs next, which may be behind the function's end: the byte before is of the call.
    offset, distance = int(frame["offset"], 16) - 1, int(frame["distance"], 16) - 1
    return distance >= 0 and frame["file"] in binaries and binaries[frame["file"]].is_in_function(offset, distance)


def _is_passed_over(path: str) -> bool:
    name = posixpath.basename(path)
    return bool(PLUMBING.match(name) or INTERPRETERS.match(name))
