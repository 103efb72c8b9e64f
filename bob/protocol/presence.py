"""Decide which calls have their effects in a crash state, in part or whole. This is their *presence*. If a name is
missing in the state, it may not exist yet, or be gone already. Other names of the same call or file, and syncs of the
directory, often decide between the two."""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from bob.observe.observation import Node, Presence
from bob.protocol.effects import AT_FIRST, ROOT_FILE, DirectoryEntry, Effects, TracedFile, Version
from bob.protocol.signs import Signs, file_signs, made_by_then, presence_at


def presence(
    effects: Effects, tree: Mapping[str, Node], unmade: Collection[int] = (), kept: Collection[int] = ()
) -> dict[int, Presence]:
    """Return, by the number of a call, how much of the call's effect is in ``tree``. ``unmade`` are calls that had not
    begun when the crash came. ``kept`` are calls whose changes of names were durable when the crash came."""
    return signs_of(effects, tree, locate(effects, tree), unmade, kept).presences()


def signs_of(
    effects: Effects,
    tree: Mapping[str, Node],
    located: Mapping[int, str],
    unmade: Collection[int] = (),
    kept: Collection[int] = (),
) -> Signs:
    """Return what every unit (name, size, range of contents) in ``tree`` says about the calls that change the unit.
    ``located`` has the path in the tree of each file, by the number of the file. ``unmade`` are calls that had not
    begun by the crash, and ``kept`` calls whose changes of names were durable by then."""
    signs = Signs(effects.changing, unmade)
    for unit in names_shown(effects, tree, located, unmade, kept):
        signs.take(unit.calls, [place in unit.shown for place in range(len(unit.calls))])
    for number, file in enumerate(effects.files):
        if file.followed:
            node = tree.get(located[number]) if number in located else None
            file_signs(signs, effects, number, file, node)
    return signs


def cleared(told: Mapping[int, Presence], known: Mapping[int, Presence]) -> dict[int, Presence]:
    """Return the presences ``told``, by call, but use those in ``known`` for calls that are undecided in ``told``."""
    return {call: known.get(call, effect) if effect is Presence.UNDECIDED else effect for call, effect in told.items()}


def parts_of_calls(operations: Sequence[int], calls: Sequence[int]) -> dict[int, int]:
    """Return, for each call, its operations as a bit mask. ``operations`` are the numbers of the operations that have a
    bit, and bit i stands for ``operations[i]``. Operation k is a part of call ``calls[k - 1]``."""
    parts: dict[int, int] = {}
    for bit, operation in enumerate(operations):
        call = calls[operation - 1]
        parts[call] = parts.get(call, 0) | 1 << bit
    return parts


def known_presence(parts: Mapping[int, int], there: int) -> dict[int, Presence]:
    return {
        call: Presence.NONE if not there & of else Presence.FULL if there & of == of else Presence.PARTIAL
        for call, of in parts.items()
    }


def strange_names(effects: Effects, after: Mapping[str, Node]) -> set[DirectoryEntry]:
    """Return the names whose state in the tree ``after`` is not what the last call on the name left. Something that bob
    does not know has changed them."""
    located = locate(effects, after)
    found: set[DirectoryEntry] = set()
    for entry, history in effects.entries.items():
        if entry.folder in located:
            node, left = after.get(path_in(located[entry.folder], entry.name)), history[-1:]
            is_as_left = left[0].value is None if node is None else bool(candidates(effects, left, node))
            found |= set() if is_as_left else {entry}
    return found


def unexplained(effects: Effects, after: Mapping[str, Node]) -> tuple[int, ...]:
    """Return the numbers of the files that the calls do not explain: in the tree ``after``, the size, the contents or
    the mode is not what the last call left."""
    located = locate(effects, after)
    found = []
    for number, file in enumerate(effects.files):
        if file.followed and number in located:
            signs = Signs(file.calls)
            file_signs(signs, effects, number, file, after[located[number]])
            if signs.said() & {Presence.NONE, Presence.PARTIAL}:
                found.append(number)
    return tuple(found)


def locate(effects: Effects, tree: Mapping[str, Node]) -> dict[int, str]:
    found = {ROOT_FILE: "/"}
    waiting = [ROOT_FILE]
    inside: dict[int, list[DirectoryEntry]] = {}
    for entry in effects.entries:
        inside.setdefault(entry.folder, []).append(entry)
    while waiting:
        folder = waiting.pop()
        for entry in inside.get(folder, []):
            path = path_in(found[folder], entry.name)
            if path not in tree:
                continue
            file = only(effects, candidates(effects, effects.entries[entry], tree[path]), tree[path])
            if file is not None and file not in found:
                found[file] = path
                waiting.append(file)
    return found


def path_in(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"


def candidates(effects: Effects, history: Sequence[Version[int | None]], node: Node) -> list[int]:
    """Return which files ``node``, an entry of a tree, may be. Only files to which its name led at some time come into
    question; ``history`` has them. File systems reuse inode numbers, so several files may fit. A file with an unknown
    inode number fits any node."""
    files = dict.fromkeys(change.value for change in history if change.value is not None)
    return [file for file in files if _is_like(effects.files[file], node)]


def only(effects: Effects, files: Sequence[int], node: Node) -> int | None:
    """Return which of ``files`` the entry ``node`` of a tree is, or None if that is not clear. If there are several,
    their contents decide."""
    if len(files) > 1:
        files = [number for number in files if _may_be(effects, number, node)]
    return files[0] if len(files) == 1 else None


def _is_like(file: TracedFile, node: Node) -> bool:
    return file.kind == node.kind and (not file.inode or not node.inode or file.inode == node.inode)


def _may_be(effects: Effects, number: int, node: Node) -> bool:
    file = effects.files[number]
    if not file.followed:
        return True
    if not file.stored and len(file.sizes) <= 1 and node.content != file.content:
        return False  # calls do not change the contents of the file
    signs = Signs(file.calls)
    file_signs(signs, effects, number, file, node)
    return Presence.PARTIAL not in signs.said()


@dataclass(slots=True)
class NameUnit:
    """The history of a name, or of whether a file was made. ``calls`` are the calls that change it, in order; each
    makes one value. ``shown`` has the indexes in ``calls`` of the values that the tree may show."""

    calls: tuple[int, ...]
    shown: set[int]


def names_shown(
    effects: Effects,
    tree: Mapping[str, Node],
    located: Mapping[int, str],
    unmade: Collection[int],
    kept: Collection[int] = (),
) -> list[NameUnit]:
    """Return a unit for each name that calls change, and for each file that calls make. Leave out units whose value
    ``tree`` does not show. The arguments are as in :func:`signs_of`."""
    units: dict[DirectoryEntry, NameUnit] = {}
    made = [
        NameUnit((AT_FIRST, call), {1})
        for number in located
        if (call := effects.made_by(number)) is not None and call not in unmade
    ]
    several = ((entry, history) for entry, history in effects.entries.items() if len(history) > 1)
    changed = {entry: history for entry, history in several if entry not in effects.strange}
    for entry, history in changed.items():
        if entry.folder in located:
            calls = tuple(change.call for change in history)
            node = tree.get(path_in(located[entry.folder], entry.name))
            possible: set[int | None] = {None}
            if node is not None:
                likely = candidates(effects, history, node)
                sure = only(effects, likely, node)
                possible = set(likely) if sure is None else {sure}
            shown = {place for place, change in enumerate(history) if change.value in possible}
            least = max(place for place, call in enumerate(calls) if call in kept or place == 0)
            shown = {place for place in shown if place >= least} or shown
            units[entry] = NameUnit(calls, made_by_then(calls, shown, unmade))
    _agree([*made, *units.values()])
    elsewhere = {entry.folder for entry in changed} - located.keys()
    while never := {folder for folder in elsewhere if _was_never_made(effects, folder, units)}:
        elsewhere -= never
        for entry, history in changed.items():
            if entry.folder in never:
                units[entry] = NameUnit(tuple(change.call for change in history), {0})
        _agree([*made, *units.values()])
    return [*made, *units.values()]


def _was_never_made(effects: Effects, folder: int, units: Mapping[DirectoryEntry, NameUnit]) -> bool:
    return all(
        call != AT_FIRST and entry in units and presence_at(place, units[entry].shown) is Presence.NONE
        for entry, place, call in effects.leading_to(folder)
    )


def _agree(units: Collection[NameUnit]) -> None:
    """Let the names that one call changes decide for each other. Suppose that one of these names clearly shows whether
    the call has persisted. Then the other names cannot show the opposite, so remove the values that would show it."""
    of_call: dict[int, list[tuple[NameUnit, int]]] = {}
    for unit in units:
        for place, call in enumerate(unit.calls):
            if call != AT_FIRST:
                of_call.setdefault(call, []).append((unit, place))
    waiting = deque(sorted(call for call, several in of_call.items() if len(several) > 1))
    queued = set(waiting)
    while waiting:
        call = waiting.pop()
        queued.discard(call)
        said = {presence_at(place, unit.shown) for unit, place in of_call[call]} - {Presence.UNDECIDED}
        if len(said) != 1 or said == {Presence.PARTIAL}:
            continue
        is_there = said == {Presence.FULL}
        for unit, place in of_call[call]:
            left = {one for one in unit.shown if (one >= place) is is_there}
            if left and left != unit.shown:
                unit.shown = left
                again = {one for one in unit.calls if len(of_call.get(one, ())) > 1} - queued
                waiting.extend(sorted(again))
                queued |= again
