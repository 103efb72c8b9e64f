"""The frames of a program's calls, taken from another run of it.

To look at the frames takes long, so the run that has them may go another way than the one that was recorded: what goes
by time comes sooner or later, and processes take turns otherwise. A call has the frames of the call of the other run
that is the same, as long as each process has done the same. From there on it has those that all calls like it share.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from bob.program.recurring import recurring
from bob.program.stack import function_of
from bob.program.strace import FORKS, WRITES, SystemCall, unescaped

_WATCHED = "store", "munmap"
"""Calls that are there only where stores through mappings are watched; ``mmap`` is called ``mapped`` then
(:mod:`bob.agent.inside.stores`)."""
_ESCAPED = re.compile(r'(?:\d+(?=<))?(?P<begin>[<"])(?P<text>(?:\\x[0-9a-f]{2})*)(?=[>"])')
"""A string, or a path behind the number of a descriptor, as strace writes it."""
_ADDRESS = re.compile(r"0x[0-9a-f]{5,}")

_NUMBER = re.compile(r"(?:\\x3[0-9])+")

Stack = tuple[str, ...]
Like = tuple[str, str, tuple[str, ...], str | None]
"""The program that makes a call, the call's name, the paths that it is about, and what it writes (None: whatever)."""


def with_stacks_of(calls: Sequence[SystemCall], others: Sequence[SystemCall]) -> tuple[SystemCall, ...]:
    """The ``calls`` with the frames of ``others``, which another run of the same program has made.

    Processes are held against each other by descent: the third child of the first process, say. As long as the calls of
    both are the same, with all that they write, each has the frames of the other's. Any other call has the innermost
    frames that all calls share which the same program has made by the same name and about the same paths: of those that
    write the same, if there are any. So it has none where two functions do the same thing. Numbers, hashes and drawn
    names make no difference there.
    """
    found = list(calls)
    shared = _shared_stacks(others)
    for place, likes in enumerate(_likes(calls)):
        found[place] = replace(calls[place], stack=next((shared[like] for like in likes if like in shared), ()))
    mine, theirs = _by_descent(calls), _by_descent(others)
    for descent in mine.keys() & theirs.keys():
        pairs = zip(mine[descent], theirs[descent], strict=False)
        for place, other in takewhile(lambda pair: _same(calls[pair[0]]) == _same(others[pair[1]]), pairs):
            found[place] = replace(calls[place], stack=others[other].stack)
    return tuple(found)


def _by_descent(calls: Sequence[SystemCall]) -> dict[tuple[int, ...], list[int]]:
    """The places of each process's calls, without those that only one of two runs has."""
    children = Counter[int]()
    parents: dict[int, tuple[int, int]] = {}  # by child: its parent, and how many that had before
    for call in calls:
        if call.name in FORKS and call.result:
            parents.setdefault(call.result, (call.pid, children[call.pid]))
            children[call.pid] += 1
    eldest = dict.fromkeys(call.pid for call in calls if call.pid not in parents)
    first = {pid: number for number, pid in enumerate(eldest)}

    def descent(pid: int) -> tuple[int, ...]:
        line: list[int] = []
        while pid in parents and len(line) < len(parents):  # a pid that is given anew may be its own ancestor
            pid, number = parents[pid]
            line.append(number)
        return (first.get(pid, -1), *reversed(line))

    found: dict[int, list[int]] = {}
    for place, call in enumerate(calls):
        if call.name not in _WATCHED:
            found.setdefault(call.pid, []).append(place)
    return {descent(pid): places for pid, places in found.items()}


def _shared_stacks(calls: Sequence[SystemCall]) -> dict[Like, Stack]:
    """The frames that all of the calls share that are like each other."""
    every: dict[Like, dict[Stack, None]] = {}
    for call, likes in zip(calls, _likes(calls), strict=True):
        for like in likes:
            every.setdefault(like, {})[call.stack] = None
    return {like: _shared(stacks) for like, stacks in every.items()}


def _shared(stacks: Iterable[Stack]) -> Stack:
    """The innermost frames that all ``stacks`` have, by their functions."""
    first, *others = stacks
    for other in others:
        pairs = zip(first, other, strict=False)
        same = sum(1 for _pair in takewhile(lambda pair: function_of(pair[0]) == function_of(pair[1]), pairs))
        first = first[:same]
    return first


def _likes(calls: Sequence[SystemCall]) -> Iterator[tuple[Like, Like]]:
    """What each call is like: with what it writes, and without."""
    parents = {call.result: call.pid for call in calls if call.name in FORKS and call.result}
    programs: dict[int, str] = {}
    for call in calls:
        program = programs.setdefault(call.pid, programs.get(parents.get(call.pid, 0), ""))
        if call.name == "execve" and call.result is not None:
            program = programs[call.pid] = next(map(_recurring, _texts(call, '<"')), "")
        if call.name in FORKS and call.result:
            programs.setdefault(call.result, program)
        name, paths = _name(call), tuple(_recurring(text) for text in _texts(call, "<" if _writes(call) else '<"'))
        data = _NUMBER.sub("#", "".join(_texts(call, '"'))) if _writes(call) else ""
        yield (program, name, paths, data), (program, name, paths, None)


def _texts(call: SystemCall, kinds: str) -> Iterator[str]:
    for argument in call.arguments:
        yield from (one["text"] for one in _ESCAPED.finditer(argument) if one["begin"] in kinds)


def _same(call: SystemCall) -> tuple[str, ...]:
    """What two runs have in common of a call: all but numbers of descriptors, addresses, and drawn names."""
    texts = (_ESCAPED.sub(lambda one: _plain(call, one), argument) for argument in call.arguments)
    return (_name(call), *(_ADDRESS.sub("", text) for text in texts))


def _plain(call: SystemCall, one: re.Match[str]) -> str:
    is_data = _writes(call) and one["begin"] == '"'
    return f"{one['begin']}{one['text'] if is_data else _recurring(one['text'])}"


def _writes(call: SystemCall) -> bool:
    return call.name in WRITES


def _name(call: SystemCall) -> str:
    return "mmap" if call.name == "mapped" else call.name


def _recurring(text: str) -> str:
    return recurring(unescaped(text).decode(errors="replace"))
