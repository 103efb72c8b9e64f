"""Frames that ``strace -k`` writes below a call: the program's own function that made it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

_FRAME = re.compile(r"(?P<file>[^()]*)\((?:(?P<symbol>.+)\+0x[0-9a-f]+)?\) \[0x[0-9a-f]+\](?: (?P<line>.+:\d+))?")
PLUMBING = re.compile(r"(libc|ld-linux|libpthread|libdl|linux-vdso|\[vdso\])\b")  # every program calls through these
INTERPRETERS = re.compile(r"(python3|libpython3|perl|dash|bash|sh|busybox)\b")
"""Their functions say nothing of the script that they run."""
_TAIL = re.compile(r"( (const|volatile|noexcept|&&?|\[.*\]))*")  # may follow the parameters of a C++ function


def from_chosen(stack: Sequence[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the frames from the innermost one that matches one of the shell ``patterns``; all without a match."""
    for place, frame in enumerate(stack):
        found = _FRAME.fullmatch(frame)
        names = filter(None, (found["symbol"], posixpath.basename(found["file"]))) if found else ()
        if any(fnmatchcase(name, pattern) for name in names for pattern in patterns):
            return tuple(stack[place:])
    return tuple(stack)


def caller(stack: Sequence[str]) -> str:
    """Return the innermost named function outside plumbing, with its source line (:mod:`bob.program.functions`) or its
    file. Return "" without one, or if an interpreter made the call."""
    for frame in stack:
        found = _FRAME.fullmatch(frame)
        if found is None:
            continue
        file = posixpath.basename(found["file"])
        if PLUMBING.match(file):
            continue
        if INTERPRETERS.match(file):
            return ""
        if found["symbol"]:
            return f"{_without_parameters(found['symbol'])} in {found['line'] or file}"
    return ""


def function_of(frame: str) -> tuple[str, str]:
    """Return the file and the function of a frame, or the frame itself for an unnamed function."""
    found = _FRAME.fullmatch(frame)
    return (found["file"], found["symbol"] or frame) if found else ("", frame)


def without_line(frame: str) -> str:
    found = _FRAME.fullmatch(frame)
    return frame[: found.start("line")].rstrip() if found and found["line"] else frame


def _without_parameters(function: str) -> str:
    """Return ``ns::save`` for C++'s ``ns::save(int) const``, but all of Rust's ``<Store<(u64, u8)> as Save>::save``."""
    last, depth = function.rfind(")"), 0
    if not _TAIL.fullmatch(function[last + 1 :]):
        return function
    for place in range(last, 0, -1):
        depth += {")": 1, "(": -1}.get(function[place], 0)
        if not depth:
            return function[:place]
    return function
