"""Which calls' effects a crash state has: there, missing, or partly there.

A unit of the effects shows one value. Where that is a value of its history, the calls up to it are there, and those
after it are missing; where the same value stands in the history twice, the calls between are unclear. A call whose
units do not agree is partly there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import pairwise

from bob.observe.observation import Node
from bob.protocol.effects import AT_FIRST, ROOT_FILE, DirectoryEntry, Effects, File, Stored, Version

BLOCK = 4096
SECTOR = 512


class Persisted(Enum):
    """How much of what a call changes is there."""

    MISSING = 0
    PARTLY = 1
    THERE = 2
    UNCLEAR = 3


Signs = dict[int, set[Persisted]]
"""By call, what its units say."""


def presence(effects: Effects, tree: Mapping[str, Node]) -> dict[int, Persisted]:
    """Of each call that changes something, how much of it is in ``tree``."""
    signs: Signs = {call: set() for call in effects.changing}
    located = locate(effects, tree)
    for entry, history in effects.entries.items():
        if entry.folder in located and len(history) > 1:
            _entry_signs(signs, effects, history, tree.get(f"{located[entry.folder].rstrip('/')}/{entry.name}"))
    for number, file in enumerate(effects.files):
        if file.followed:
            node = tree.get(located[number]) if number in located else None
            _file_signs(signs, effects, number, file, node)
    return {call: _together(said) for call, said in signs.items()}


def cleared(told: Mapping[int, Persisted], known: Mapping[int, Persisted]) -> dict[int, Persisted]:
    """What a tree has ``told`` of each call; what is ``known`` otherwise of those of which the tree does not tell."""
    return {call: known.get(call, effect) if effect is Persisted.UNCLEAR else effect for call, effect in told.items()}


def parts_of_calls(operations: Sequence[int], calls: Sequence[int]) -> dict[int, int]:
    """By call its parts, as a bit mask: bit i is a part of operation ``operations[i]`` (from 1). Operation k is call
    number ``calls[k - 1]``. A call without a part is not told of."""
    parts: dict[int, int] = {}
    for bit, operation in enumerate(operations):
        call = calls[operation - 1]
        parts[call] = parts.get(call, 0) | 1 << bit
    return parts


def known_presence(parts: Mapping[int, int], there: int) -> dict[int, Persisted]:
    """The same where it is known which ``parts`` of calls are ``there`` (bit masks)."""
    return {
        call: Persisted.MISSING if not there & of else Persisted.THERE if there & of == of else Persisted.PARTLY
        for call, of in parts.items()
    }


def unexplained(effects: Effects, after: Mapping[str, Node]) -> tuple[int, ...]:
    """The files that are not in ``after`` as the last call left them."""
    located = locate(effects, after)
    found = []
    for number, file in enumerate(effects.files):
        signs: Signs = {call: set() for call in effects.changing}
        if file.followed and number in located:
            _file_signs(signs, effects, number, file, after[located[number]])
        if any(says & {Persisted.MISSING, Persisted.PARTLY} for says in signs.values()):
            found.append(number)
    return tuple(found)


def _together(said: set[Persisted]) -> Persisted:
    clear = said - {Persisted.UNCLEAR}
    if not clear:
        return Persisted.UNCLEAR
    return clear.pop() if len(clear) == 1 else Persisted.PARTLY


def locate(effects: Effects, tree: Mapping[str, Node]) -> dict[int, str]:
    """The path at which each file is in ``tree``, of those that are there."""
    found = {ROOT_FILE: "/"}
    waiting = [ROOT_FILE]
    inside: dict[int, list[DirectoryEntry]] = {}
    for entry in effects.entries:
        inside.setdefault(entry.folder, []).append(entry)
    while waiting:
        folder = waiting.pop()
        for entry in inside.get(folder, []):
            path = f"{found[folder].rstrip('/')}/{entry.name}"
            if path not in tree:
                continue
            file = _only(effects, _candidates(effects, effects.entries[entry], tree[path]), tree[path])
            if file is not None and file not in found:
                found[file] = path
                waiting.append(file)
    return found


def _only(effects: Effects, files: Sequence[int], node: Node) -> int | None:
    """Which of ``files`` a node is: where a file system has given an inode number twice, the one of which it may be the
    content; None where that does not tell."""
    if len(files) > 1:
        files = [number for number in files if _may_be(effects, number, node)]
    return files[0] if len(files) == 1 else None


def _may_be(effects: Effects, number: int, node: Node) -> bool:
    file = effects.files[number]
    if not file.followed:
        return True
    if not file.stored and len(file.sizes) <= 1 and node.content != file.content:
        return False  # no call changes what is in it
    signs: Signs = {call: set() for call in effects.changing}
    _file_signs(signs, effects, number, file, node)
    return not any(Persisted.PARTLY in says for says in signs.values())


def _candidates(effects: Effects, history: Sequence[Version[int | None]], node: Node) -> list[int]:
    """The files that an entry may lead to where it has this node. A file system gives numbers of inodes anew, so one
    whose number is not known may have any."""
    files = dict.fromkeys(change.value for change in history if change.value is not None)
    return [file for file in files if _is_like(effects.files[file], node)]


def _is_like(file: File, node: Node) -> bool:
    return file.kind == node.kind and (not file.inode or not node.inode or file.inode == node.inode)


def _entry_signs(signs: Signs, effects: Effects, history: Sequence[Version[int | None]], node: Node | None) -> None:
    possible: set[int | None] = {None}
    if node is not None:
        likely = _candidates(effects, history, node)
        only = _only(effects, likely, node)
        possible = set(likely) if only is None else {only}
    _signs(signs, [change.call for change in history], [change.value in possible for change in history])


def _file_signs(signs: Signs, effects: Effects, number: int, file: File, node: Node | None) -> None:
    if node is None:
        made = [
            change.call
            for history in effects.entries.values()
            for change in history
            if change.value == number
        ]  # fmt: skip
        says = Persisted.UNCLEAR
        if made and AT_FIRST not in made and all(signs.get(call) == {Persisted.MISSING} for call in made):
            says = Persisted.MISSING
        for history in (file.sizes, file.stored, file.modes):
            for change in history:
                if change.call != AT_FIRST:
                    signs[change.call].add(says)
        return
    if len(file.sizes) > 1:
        _size_signs(signs, file.sizes, node.size)
    if len(file.modes) > 1 and node.mode is not None:
        calls = [change.call for change in file.modes]
        _signs(signs, calls, [change.value == node.mode for change in file.modes])
    for start, end, over in _stored_in_pieces(effects, number, file):
        _content_signs(signs, file, node.content, start, end, over)


def _size_signs(signs: Signs, sizes: Sequence[Version[int]], size: int) -> None:
    calls = [change.call for change in sizes]
    if any(change.value == size for change in sizes):
        _signs(signs, calls, [change.value == size for change in sizes])
        return
    values = [change.value for change in sizes]
    if values != sorted(values):
        _signs(signs, calls, [False] * len(calls))
        return
    later = [change.call for change in sizes if change.value > size]  # it grew: the first of these has come part of it
    for change in sizes:
        if change.call != AT_FIRST:
            is_first = bool(later) and change.call == later[0]
            says = Persisted.PARTLY if is_first else Persisted.MISSING if change.call in later else Persisted.THERE
            signs[change.call].add(says)


Piece = tuple[int, int, list[Version[Stored]]]


def _stored_in_pieces(effects: Effects, number: int, file: File) -> list[Piece]:
    """What was stored in a file, in pieces (from a byte up to another one), each with all that was stored over it."""
    key = _stored_in_pieces, number, len(file.stored)
    if key not in effects.memory:
        found: list[Piece] = [(start, end, []) for start, end in pieces(file.stored, BLOCK)]
        starts = [start for start, _end, _over in found]
        for change in file.stored:
            for place in range(bisect_left(starts, change.value.start), bisect_left(starts, change.value.end)):
                found[place][2].append(change)
        effects.memory[key] = found
    made: list[Piece] = effects.memory[key]
    return made


def _content_signs(
    signs: Signs, file: File, content: bytes, start: int, end: int, over: Sequence[Version[Stored]]
) -> None:
    """``over`` is what was stored over the piece, and nothing else."""
    history = [Version(AT_FIRST, _padded(file.content, start, end))]
    history += [Version(call, _cut(stored, start, end)) for call, stored in over]
    there = _padded(content, start, end)
    matches = [value == there for _call, value in history]
    if not any(matches) and end - start > SECTOR:
        for first in range(start, end, SECTOR):
            _content_signs(signs, file, content, first, min(first + SECTOR, end), over)
        return
    _signs(signs, [call for call, _value in history], matches)


def pieces(stored: Iterable[Version[Stored]], grain: int) -> Iterator[tuple[int, int]]:
    """What was stored, cut where a store begins or ends, and at multiples of ``grain`` (bytes)."""
    edges: set[int] = set()
    begins = Counter[int]()  # how many stores begin there, less those that end
    for change in stored:
        start, end = change.value.start, change.value.end
        edges.update((start, end), range(start - start % grain + grain, end, grain))
        begins.update({start: 1})
        begins.subtract({end: 1})
    inside = 0
    for start, end in pairwise(sorted(edges)):
        inside += begins[start]
        if inside:
            yield start, end


def _padded(content: bytes, start: int, end: int) -> bytes:
    """What is read there, with zeros where the file has ended: a byte that is not there yet is as good as a zero."""
    return content[start:end].ljust(end - start, b"\0")


def _cut(stored: Stored, start: int, end: int) -> bytes:
    if stored.data is None:
        return bytes(end - start)
    return stored.data[start - stored.start : end - stored.start]


def _signs(signs: Signs, calls: Sequence[int], matches: Sequence[bool]) -> None:
    """Take in that a unit shows those values of its history that are among the ``matches``."""
    places = [place for place, is_match in enumerate(matches) if is_match]
    for place, call in enumerate(calls):
        if call == AT_FIRST:
            continue
        if not places:
            says = Persisted.PARTLY
        elif places[0] >= place:
            says = Persisted.THERE
        elif places[-1] < place:
            says = Persisted.MISSING
        else:
            says = Persisted.UNCLEAR
        signs[call].add(says)
