"""Which calls' effects a crash state has: there, missing, or partly there (:mod:`bob.protocol.signs`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bob.observe.observation import Node, Presence
from bob.protocol.contents import file_signs
from bob.protocol.effects import DirectoryEntry, Effects
from bob.protocol.locations import candidates, locate, path_in
from bob.protocol.names import names_shown
from bob.protocol.signs import Signs


def presence(
    effects: Effects, tree: Mapping[str, Node], unmade: Collection[int] = (), kept: Collection[int] = ()
) -> dict[int, Presence]:
    """Return how much of each changing call is in ``tree``. The ``unmade`` calls had not begun by the crash; the names
    of those in ``kept`` were durable."""
    return signs_of(effects, tree, locate(effects, tree), unmade, kept).presences()


def signs_of(
    effects: Effects,
    tree: Mapping[str, Node],
    located: Mapping[int, str],
    unmade: Collection[int] = (),
    kept: Collection[int] = (),
) -> Signs:
    """Return what all units show in ``tree``, in which files are ``located``; else as :func:`presence`."""
    signs = Signs(effects.changing, unmade)
    for unit in names_shown(effects, tree, located, unmade, kept):
        signs.take(unit.calls, [place in unit.shown for place in range(len(unit.calls))])
    for number, file in enumerate(effects.files):
        if file.followed:
            node = tree.get(located[number]) if number in located else None
            file_signs(signs, effects, number, file, node)
    return signs


def cleared(told: Mapping[int, Presence], known: Mapping[int, Presence]) -> dict[int, Presence]:
    """Return what a tree has ``told`` of each call, with what is ``known`` otherwise in place of undecided ones."""
    return {call: known.get(call, effect) if effect is Presence.UNDECIDED else effect for call, effect in told.items()}


def parts_of_calls(operations: Sequence[int], calls: Sequence[int]) -> dict[int, int]:
    """Return, by call, its parts as a bit mask: bit i is a part of operation ``operations[i]`` (from 1). Operation k is
    call number ``calls[k - 1]``. Calls without a part are left out."""
    parts: dict[int, int] = {}
    for bit, operation in enumerate(operations):
        call = calls[operation - 1]
        parts[call] = parts.get(call, 0) | 1 << bit
    return parts


def known_presence(parts: Mapping[int, int], there: int) -> dict[int, Presence]:
    """Return the presences where it is known which ``parts`` of calls are ``there`` (bit masks)."""
    return {
        call: Presence.NONE if not there & of else Presence.FULL if there & of == of else Presence.PARTIAL
        for call, of in parts.items()
    }


def strange_names(effects: Effects, after: Mapping[str, Node]) -> set[DirectoryEntry]:
    """Return the names that are not in ``after`` as the last call left them."""
    located = locate(effects, after)
    found: set[DirectoryEntry] = set()
    for entry, history in effects.entries.items():
        if entry.folder in located:
            node, left = after.get(path_in(located[entry.folder], entry.name)), history[-1:]
            is_as_left = left[0].value is None if node is None else bool(candidates(effects, left, node))
            found |= set() if is_as_left else {entry}
    return found


def unexplained(effects: Effects, after: Mapping[str, Node]) -> tuple[int, ...]:
    """Return the files that are not in ``after`` as the last call left them."""
    located = locate(effects, after)
    found = []
    for number, file in enumerate(effects.files):
        if file.followed and number in located:
            signs = Signs(file.calls)
            file_signs(signs, effects, number, file, after[located[number]])
            if signs.said() & {Presence.NONE, Presence.PARTIAL}:
                found.append(number)
    return tuple(found)
