"""The functions and source lines below a call, without strace's wrong names. strace (libunwind) names a frame after the
nearest symbol before it. In a library that keeps only exported names, a static function gets another one's name."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bob.program.binary import MAGIC, Binary
from bob.program.program import Program
from bob.program.stack import INTERPRETERS, PLUMBING
from bob.program.strace import SystemCall

_NAMED = re.compile(r"^( > (?P<file>[^()\n]*)\().+\+0x(?P<distance>[0-9a-f]+)(\) \[0x(?P<offset>[0-9a-f]+)\])$", re.M)


def files_with_names(calls: str) -> list[str]:
    """Return the files with named frames in ``calls`` (strace's text), without plumbing and interpreters."""
    found = dict.fromkeys(frame["file"] for frame in _NAMED.finditer(calls))
    return [path for path in found if not _is_passed_over(path)]


def without_wrong_names(calls: str, files: Mapping[str, bytes]) -> str:
    """Return ``calls`` without names of other functions in frames; ``files`` are :func:`files_with_names` with data."""
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
    # Both point behind the call, maybe behind the function's end: the byte before belongs to the call.
    offset, distance = int(frame["offset"], 16) - 1, int(frame["distance"], 16) - 1
    return distance >= 0 and frame["file"] in binaries and binaries[frame["file"]].is_in_function(offset, distance)


def _is_passed_over(path: str) -> bool:
    name = posixpath.basename(path)
    return bool(PLUMBING.match(name) or INTERPRETERS.match(name))


_PLACE = re.compile(r"(?P<file>[^()]*)\(.*\) \[0x(?P<offset>[0-9a-f]+)\]")


def located(calls: Sequence[SystemCall], program: Program, home: str) -> tuple[SystemCall, ...]:
    """Return ``calls`` with source lines for frames in binaries of the ``program``, whose files were below ``home``."""
    binaries = {file.path: Binary(file.data) for file in program.files if file.data.startswith(MAGIC)}
    if not binaries:
        return tuple(calls)
    return tuple(replace(call, stack=tuple(_with_line(one, binaries, home) for one in call.stack)) for call in calls)


def _with_line(frame: str, binaries: Mapping[str, Binary], home: str) -> str:
    found = _PLACE.fullmatch(frame)
    if found is None:
        return frame
    binary = binaries.get(found["file"].partition(f"{home}/")[2])
    # The offset of a caller points behind its call: the byte before belongs to the calling line.
    place = binary.line(int(found["offset"], 16) - 1) if binary else ""
    return f"{frame} {place}" if place else frame
