"""Copy stack frames from the calls of one run of a program to the calls of another run. bob lets strace collect frames
only in the other run. That slows the program down, so in the other run timers fire at other times, and processes run in
another order. As long as a process makes the same calls in both runs, each call gets the frames of its counterpart.
After the first difference, a call gets only the frames that are common to all similar calls of the other run."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from bob.program.recurring import recurring
from bob.program.stack import function_of, without_line
from bob.program.strace import EXECUTES, FORKS, PASSING, WRITES, SystemCall, unescaped

_WATCHED = "store", "munmap"
"""Calls that only runs with watched mappings have (:mod:`bob.agent.inside.stores`). In these runs ``mmap`` is called
``mapped``."""
WITHOUT_FRAMES = (*PASSING, "umask", "lseek", "dup", "dup2", "dup3", "fcntl", "ioctl", "fadvise64")
"""Calls that the run with frames does not record (``TRACED`` in :mod:`bob.agent.inside.traced_calls`)."""
_ESCAPED = re.compile(r'(?:\d+(?=<))?(?P<begin>[<"])(?P<text>[\\x0-9a-f]*)(?=[>"])')
"""A string as strace writes it, or the path that it writes behind a descriptor's number."""
_OF_THE_RUN = re.compile(r"0x[0-9a-f]{5,}|tv_n?sec=\d+")  # addresses and times, which differ between runs
_NUMBER = re.compile(r"\\x3[0-9](?:\\x3[0-9])*+")

Stack = tuple[str, ...]
CallPlace = tuple[str, str, tuple[str, ...]]  # the calling program, the call's name, and its paths


def with_stacks_of(calls: Sequence[SystemCall], others: Sequence[SystemCall]) -> tuple[SystemCall, ...]:
    """Return ``calls`` with the frames of ``others``, which are the calls of another run of the same program. Processes
    of the two runs match by descent, such as the third child of the first process.

    As long as both processes make the same calls, each call gets the frames of its counterpart. If the processes make
    different calls later, only calls up to their last common write or exec get frames in this way.

    Any other call gets the innermost frames that are common to all similar calls of the other run. Two calls are
    similar if the same program makes them, and if their names and paths are the same. If one of the similar calls
    writes the same data as the call, bob ignores similar calls that write more or fewer bytes. Numbers, hashes and
    random names in paths and data do not matter. If the similar calls have different innermost functions, the call gets
    no frames."""
    found = list(calls)
    shared = _SharedFrames(others)
    for number, (place, data) in enumerate(_places(calls)):
        found[number] = replace(calls[number], stack=shared.stack(place, data))
    descents: dict[tuple[int, int], int] = {}
    mine, theirs = _by_descent(calls, descents), _by_descent(others, descents)
    for descent in mine.keys() & theirs.keys():
        pairs = list(zip(mine[descent], theirs[descent], strict=False))
        alike = sum(1 for _pair in takewhile(lambda pair: _same(calls[pair[0]]) == _same(others[pair[1]]), pairs))
        known = [place for place, (number, _other) in enumerate(pairs[:alike]) if _tells(calls[number])]
        is_all = alike == len(mine[descent]) == len(theirs[descent])
        for number, other in pairs[: (alike if is_all else known[-1] + 1) if known else 0]:
            found[number] = replace(calls[number], stack=others[other].stack)
    return tuple(found)


def _tells(call: SystemCall) -> bool:
    """Return whether a call is a successful write or exec. Two processes that make an equal write or exec are probably
    at the same point of the program."""
    return call.result is not None and (call.name in WRITES or call.name in EXECUTES)


def _by_descent(calls: Sequence[SystemCall], descents: dict[tuple[int, int], int]) -> dict[int, list[int]]:
    """Return for each process the indexes of its calls. Leave out the kinds of calls that bob records in only one of
    the two runs. A process is identified by its descent (such as "third child of the first process"), so that the same
    process of another run gets the same key. The key is a number for the descent. ``descents`` has the numbers so far;
    each new descent gets the next number there."""
    children = Counter[int]()
    parents: dict[int, tuple[int, int]] = {}
    for call in calls:
        if call.name in FORKS and call.result:
            parents.setdefault(call.result, (call.pid, children[call.pid]))
            children[call.pid] += 1
    eldest = dict.fromkeys(call.pid for call in calls if call.pid not in parents)
    known = {pid: descents.setdefault((-1, number), len(descents)) for number, pid in enumerate(eldest)}

    def descent(pid: int) -> int:
        line: dict[int, None] = {}
        while pid in parents and pid not in known and pid not in line:
            line[pid] = None
            pid, _number = parents[pid]
        known.setdefault(pid, -2)  # the pid was reused, so the process seems to be its own ancestor
        for one in reversed(line):
            parent, number = parents[one]
            known[one] = descents.setdefault((known[parent], number), len(descents))
            pid = one
        return known[pid]

    found: dict[int, list[int]] = {}
    for place, call in enumerate(calls):
        if call.name not in (*_WATCHED, *WITHOUT_FRAMES):
            found.setdefault(call.pid, []).append(place)
    return {descent(pid): places for pid, places in found.items()}


class _SharedFrames:
    def __init__(self, calls: Sequence[SystemCall]) -> None:
        every: dict[tuple[CallPlace, int | None], dict[Stack, None]] = {}
        self._written = set()
        for call, (place, data) in zip(calls, _places(calls), strict=True):
            self._written.add((place, data))
            for key in ((place, None), (place, len(data))):
                every.setdefault(key, {})[call.stack] = None
        self._stacks = {key: _shared(stacks) for key, stacks in every.items()}

    def stack(self, place: CallPlace, data: str) -> Stack:
        return self._stacks.get((place, len(data) if (place, data) in self._written else None), ())


def _shared(stacks: Iterable[Stack]) -> Stack:
    """Return the innermost frames that are in all ``stacks``. A frame keeps its source line if all stacks agree on
    it."""
    first, *others = stacks
    for other in others:
        pairs = takewhile(lambda pair: function_of(pair[0]) == function_of(pair[1]), zip(first, other, strict=False))
        first = tuple(mine if mine == theirs else without_line(mine) for mine, theirs in pairs)
    return first


def _places(calls: Sequence[SystemCall]) -> Iterator[tuple[CallPlace, str]]:
    parents = {call.result: call.pid for call in calls if call.name in FORKS and call.result}
    programs: dict[int, str] = {}
    for call in calls:
        program = programs.setdefault(call.pid, programs.get(parents.get(call.pid, 0), ""))
        if call.name in EXECUTES and call.result is not None:
            program = programs[call.pid] = next(map(_recurring, _texts(call, '<"')), "")
        if call.name in FORKS and call.result:
            programs.setdefault(call.result, program)
        writes = call.name in WRITES
        paths = tuple(_recurring(text) for text in _texts(call, "<" if writes else '<"'))
        yield (program, _name(call), paths), _NUMBER.sub("#", "".join(_texts(call, '"'))) if writes else ""


def _texts(call: SystemCall, kinds: str) -> Iterator[str]:
    for argument in call.arguments:
        yield from (one["text"] for one in _ESCAPED.finditer(argument) if one["begin"] in kinds)


def _same(call: SystemCall) -> tuple[str, ...]:
    """Return a key that is equal for the same call in two runs of the program, although numbers and random names
    differ."""
    if call.name in FORKS:
        return (call.name,)
    texts = (_ESCAPED.sub(lambda one: _plain(call, one), argument) for argument in call.arguments)
    return (_name(call), *(_OF_THE_RUN.sub("", text) for text in texts))


def _plain(call: SystemCall, one: re.Match[str]) -> str:
    is_data = call.name in WRITES and one["begin"] == '"'
    return f"{one['begin']}{one['text'] if is_data else _recurring(one['text'])}"


def _name(call: SystemCall) -> str:
    return "mmap" if call.name == "mapped" else call.name


def _recurring(text: str) -> str:
    return recurring(unescaped(text).decode(errors="replace"))
