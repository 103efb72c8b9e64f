"""The frames that ``strace -k`` writes below a call: the function of the program's own that made it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from fnmatch import fnmatchcase
from itertools import takewhile

from bob.program.strace import SystemCall

_FRAME = re.compile(r"(?P<file>[^()]*)\((?:(?P<symbol>.+)\+0x[0-9a-f]+)?\) \[0x[0-9a-f]+\](?: (?P<line>.+:\d+))?")
PLUMBING = re.compile(r"(libc|ld-linux|libpthread|libdl|linux-vdso|\[vdso\])\b")
"""Files by which everybody makes calls: a frame in them says nothing of who wanted it."""
INTERPRETERS = re.compile(r"(python3|libpython3|perl|dash|bash|sh|busybox)\b")
"""Programs whose own functions say nothing of the script that they run."""

_MAPPING = "mmap", "mapped"
_WATCHED = "store", "munmap"
"""Calls that are there only where stores through mappings are watched; ``mmap`` is called ``mapped`` then
(:mod:`bob.agent.inside.stores`)."""
MOST_COMPARED = 1_000_000
"""So many pairs of calls are compared of two runs of a process, from where they differ on."""


def from_chosen(stack: Sequence[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """The frames from the innermost one on of which the function, or the file that has it, matches one of ``patterns``
    (as of a shell); all, where none does."""
    for place, frame in enumerate(stack):
        found = _FRAME.fullmatch(frame)
        names = filter(None, (found["symbol"], posixpath.basename(found["file"]))) if found else ()
        if any(fnmatchcase(name, pattern) for name in names for pattern in patterns):
            return tuple(stack[place:])
    return tuple(stack)


def caller(stack: Sequence[str]) -> str:
    """The innermost function of a known name that is neither plumbing nor an interpreter's, with its source line where
    that is known (:mod:`bob.program.lines`), or else its file; empty where there is none.

    Where an interpreter called the system by itself, there is none.
    """
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


def _without_parameters(function: str) -> str:
    """``ns::save(int, char*) const`` is ``ns::save``; of C++ strace writes the parameters, too."""
    depth = 0
    for place in range(function.rfind(")"), 0, -1):
        depth += {")": 1, "(": -1}.get(function[place], 0)
        if not depth:
            return function[:place]
    return function


def with_stacks_of(calls: Sequence[SystemCall], others: Sequence[SystemCall]) -> tuple[SystemCall, ...]:
    """The ``calls`` with the frames of ``others``, which another run of the same program has made: process by process,
    in the order in which these begin, and as far as they make the same calls in the same folders. What is left has
    none."""
    found = list(calls)
    for mine, theirs in zip(_by_process(calls), _by_process(others), strict=False):
        pairs = _alike([_asked(calls[one]) for one in mine], [_asked(others[one]) for one in theirs])
        for place, other in pairs:
            found[mine[place]] = replace(calls[mine[place]], stack=others[theirs[other]].stack)
    return tuple(found)


def _alike(mine: Sequence[object], theirs: Sequence[object]) -> Iterator[tuple[int, int]]:
    """Places of the same in both, in order. Most runs are the same all along, and of long ones that are not, it is
    enough to know how they begin."""
    same = sum(1 for _pair in takewhile(lambda pair: pair[0] == pair[1], zip(mine, theirs, strict=False)))
    yield from ((place, place) for place in range(same))
    mine, theirs = mine[same:], theirs[same:]
    if len(mine) * len(theirs) <= MOST_COMPARED:
        for at, other, length in SequenceMatcher(None, mine, theirs, autojunk=False).get_matching_blocks():
            yield from ((same + at + place, same + other + place) for place in range(length))


def _by_process(calls: Sequence[SystemCall]) -> Iterator[list[int]]:
    """The places of the calls of each process, without those that only one of two runs has."""
    of: dict[int, list[int]] = {}
    for place, call in enumerate(calls):
        if call.name not in _WATCHED:
            of.setdefault(call.pid, []).append(place)
    yield from of.values()


def _asked(call: SystemCall) -> tuple[str, str]:
    """What two runs have in common of a call: a temporary file has another name each time."""
    if call.name in _MAPPING:
        return _MAPPING[0], ""
    return call.name, posixpath.dirname(call.path(0))
