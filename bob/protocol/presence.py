"""Find out how much of each call's effect is in a crash state: nothing, a part, or everything (the call's *presence*).
A state may leave the presence of a call unclear. For example, if a name is missing in the state, then either the call
that makes the name has not persisted, or the call that removes it has persisted, too. Often, other facts
decide this: other names that these calls changed, other names of the file, or syncs of the directory."""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from bob.observe.observation import Node, Presence
from bob.protocol.effects import AT_FIRST, ROOT_FILE, DirectoryEntry, Effects, TracedFile, Version
from bob.protocol.signs import Signs, file_signs, made_by_then, presence_at


def presence(
    effects: Effects, tree: Mapping[str, Node], unmade: Collection[int] = (), kept: Collection[int] = ()
) -> dict[int, Presence]:
    """Return for each call (by its number) how much of the call's effect is in ``tree``. ``unmade`` has the calls that
    began after the crash. ``kept`` has the calls that changed names, if these changes were durable before the crash."""
    return signs_of(effects, tree, locate(effects, tree), unmade, kept).presences()


def signs_of(
    effects: Effects,
    tree: Mapping[str, Node],
    located: Mapping[int, str],
    unmade: Collection[int] = (),
    kept: Collection[int] = (),
) -> Signs:
    """Return the signs in ``tree`` that a call has persisted, or that it has not. A sign is the value of a unit (a
    name, a size, or a range of contents) that the call changes. ``located`` maps the number of each file to the file's
    path in ``tree``. ``unmade`` and ``kept`` are as in :func:`presence`."""
    signs = Signs(effects.changing, unmade)
    for unit in names_shown(effects, tree, located, unmade, kept):
        signs.take(unit.calls, [place in unit.shown for place in range(len(unit.calls))])
    for number, file in enumerate(effects.files):
        if file.followed:
            node = tree.get(located[number]) if number in located else None
            file_signs(signs, effects, number, file, node)
    return signs


def cleared(told: Mapping[int, Presence], known: Mapping[int, Presence]) -> dict[int, Presence]:
    """Return a copy of ``told`` (presences of calls in one crash state). Replace each undecided presence by the
    presence of the same call from ``known``, if there is one. ``known`` is about the same state."""
    return {call: known.get(call, effect) if effect is Presence.UNDECIDED else effect for call, effect in told.items()}


def parts_of_calls(operations: Sequence[int], calls: Sequence[int]) -> dict[int, int]:
    """Return a bit mask for each call: its members among ``operations``. Bit i is set if the operation with the number
    ``operations[i]`` is a part of the call. The operation with the number k is a part of call ``calls[k - 1]``. A call
    without an operation in ``operations`` gets no mask."""
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
    """Return each name whose state in the tree ``after`` contradicts the effects of the calls. Such a name is missing,
    should be missing, or leads to a wrong file. A change unknown to bob must have affected it."""
    located = locate(effects, after)
    found: set[DirectoryEntry] = set()
    for entry, history in effects.entries.items():
        if entry.folder in located:
            node, left = after.get(path_in(located[entry.folder], entry.name)), history[-1:]
            is_as_left = left[0].value is None if node is None else bool(candidates(effects, left, node))
            found |= set() if is_as_left else {entry}
    return found


def unexplained(effects: Effects, after: Mapping[str, Node]) -> tuple[int, ...]:
    """Return the numbers of the files that the calls do not explain. In the tree ``after``, such a file has another
    size, other contents or another mode than the last call left."""
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
    """A name in a tree leads to ``node``. Return the numbers of the files that ``node`` may be. Such a file meets two
    conditions. According to the ``history`` of the name, the name led to this file at some time. The file has the kind
    and the inode number of ``node``. File systems reuse inode numbers, so there may be several. A file with an unknown
    inode number fits any node."""
    files = dict.fromkeys(change.value for change in history if change.value is not None)
    return [file for file in files if _is_like(effects.files[file], node)]


def only(effects: Effects, files: Sequence[int], node: Node) -> int | None:
    """Return which of ``files`` is ``node``, a file in a tree. If there are several ``files``, compare their contents
    with the content of ``node``. Return None unless exactly one file is possible."""
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
    """The history of a name, and the values of this history that the name may have in a crash state. ``calls`` are the
    calls that change the name, in order. Each call gives the name one value. ``shown`` has the index in ``calls`` of
    each call whose value is possible. bob also makes such a unit for each file that a call made. Its history has two
    values: that the file does not exist, and that it exists."""

    calls: tuple[int, ...]
    shown: set[int]


def names_shown(
    effects: Effects,
    tree: Mapping[str, Node],
    located: Mapping[int, str],
    unmade: Collection[int],
    kept: Collection[int] = (),
) -> list[NameUnit]:
    """Return a :class:`NameUnit` for each name that calls change. It says which of these calls may have made the name's
    value in ``tree``. Leave out a name if bob does not know whether its directory is in ``tree``. Also return a unit
    for each file in ``located`` that a call made. That unit says only that the file exists. ``located`` maps the number
    of each file to its path in ``tree``. ``unmade`` and ``kept`` are as in :func:`presence`."""
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
    """Remove values from ``shown`` of the units that contradict another unit. If a call changes several names (such as
    a rename), and one of the names clearly shows whether the call has persisted, then the others cannot show the
    opposite."""
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
