"""The places in its history at which each name of a tree may be.

A missing name may not have been made yet, or be gone already. Another name often tells: a call that changes two names
changes both or none. What a sync of its directory made durable was made. So was a file that is there by any name. A
directory that was never made has no names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bob.observe.observation import Node, Presence
from bob.protocol.effects import AT_FIRST, DirectoryEntry, Effects
from bob.protocol.locations import candidates, only, path_in
from bob.protocol.signs import made_by_then, presence_at


@dataclass(slots=True)
class NameUnit:
    """The ``calls`` that change a name, or make a file, in order (:data:`bob.protocol.effects.AT_FIRST`: initial), and
    the places among them that the tree may show."""

    calls: tuple[int, ...]
    shown: set[int]


def names_shown(
    effects: Effects,
    tree: Mapping[str, Node],
    located: Mapping[int, str],
    unmade: Collection[int],
    kept: Collection[int] = (),
) -> list[NameUnit]:
    """Return the names that calls change, as far as ``tree`` tells, in which files are ``located``. The ``unmade``
    calls had not begun by the crash; what those in ``kept`` did was durable."""
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
    """Rule out, for each unclear name, what another name of the same call rules out."""
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
