"""What a program relies on and a crash did not leave, by contrast: a crash state that its checker refuses, beside those
that it accepts after the same output.

Of the accepted states that have all that the refused one has, the nearest says what is missing: with that, all is
well. Of the accepted states that have nothing else than the refused one, the nearest says what is there too early:
without it, all is well. Both together are the order that the program relies on: a *vulnerability*, as ALICE has it
(OSDI'14, section 3).

Before all that come the calls that must be there together or not at all (section 3.4: atomicity across system calls).
Where the checker refuses what is there after some of the first calls, with nothing missing and nothing reordered, no
order of single calls would help. What else is wrong inside of such a group is wrong because it is not one step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from bob.protocol.presence import Persisted

Presence = Mapping[int, Persisted]
MOST_NAMED = 3
"""So many calls are named in a sentence."""


class Reliance(StrEnum):
    """What the program relies on."""

    ORDER = "order"
    WHOLE = "whole"
    TOGETHER = "together"
    DURABLE = "durable"
    NOT_YET = "not-yet"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a crash state is refused: the calls ``missing`` from it, and those ``there`` too early, by their numbers."""

    reliance: Reliance
    missing: tuple[int, ...] = ()
    there: tuple[int, ...] = ()

    @property
    def need(self) -> tuple[Reliance, frozenset[int], frozenset[int]]:
        """What is relied on: of calls that must be there together, one state may lack these, and another one those."""
        if self.reliance is Reliance.TOGETHER:
            return self.reliance, frozenset({*self.missing, *self.there}), frozenset()
        return self.reliance, frozenset(self.missing), frozenset(self.there)

    def sentence(self, words: Mapping[int, str]) -> str:
        """What the program relies on; ``words`` are those of its calls."""
        missing, there = _named(self.missing, words), _named(self.there, words)
        match self.reliance:
            case Reliance.ORDER:
                return f"must be there first: {missing}; then {there}"
            case Reliance.WHOLE:
                return f"must be there whole or not at all: {missing}"
            case Reliance.TOGETHER:
                return f"must be there together or not at all: {there}, {missing}"
            case Reliance.DURABLE:
                return f"must be durable by then: {missing}"
            case Reliance.NOT_YET:
                return f"must not be there yet: {there}"
            case Reliance.UNCLEAR:
                return "the calls that are traced do not tell why"


class Presences:
    """Those of several states, as a table: a row for each of them, a column for each call. All tell of the same
    calls."""

    def __init__(self, states: Iterable[Presence]) -> None:
        self._calls: tuple[int, ...] = ()
        rows = []
        for state in states:
            self._calls = self._calls or tuple(sorted(state))
            rows.append(bytes(state[call].value for call in self._calls))
        self._table = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), len(self._calls))

    def cleared(self, known: Presences) -> Presences:
        """With what is ``known`` otherwise, row by row, where these do not tell."""
        made = Presences(())
        made._calls = self._calls
        made._table = self._table.copy()
        at = {call: place for place, call in enumerate(known._calls)}
        places = [place for place, call in enumerate(self._calls) if call in at]
        columns = [at[self._calls[place]] for place in places]
        if len(self._table) and places:
            told = self._table[:, places]
            made._table[:, places] = np.where(told == Persisted.UNCLEAR.value, known._table[:, columns], told)
        return made

    def nearest(self, state: Presence) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
        """What a ``state`` has less than the nearest of these that has all of it; and what it has more than the nearest
        of these that has nothing else. Each the fewest calls, the first ones of as many; None where there is no such
        row."""
        own = np.frombuffer(bytes(state[call].value for call in self._calls), dtype=np.uint8)
        clear = (self._table != Persisted.UNCLEAR.value) & (own != Persisted.UNCLEAR.value)
        more, less = clear & (self._table > own), clear & (self._table < own)
        return self._fewest(more[~less.any(axis=1)]), self._fewest(less[~more.any(axis=1)])

    def _fewest(self, rows: np.ndarray[Any, np.dtype[np.bool_]]) -> tuple[int, ...] | None:
        if not len(rows):
            return None
        counts = rows.sum(axis=1)
        nearest = {row.tobytes(): row for row in rows[counts == counts.min()]}.values()
        return min(tuple(self._calls[place] for place in np.flatnonzero(row)) for row in nearest)


def explain(refused: Presence, accepted: Presences) -> Explanation:
    """Why a state is refused whose calls are there as ``refused`` says, where those of others are ``accepted``."""
    missing, there = accepted.nearest(refused)
    if missing == () or there == ():  # an accepted state has as much of each call: what matters is which part of one
        parts = tuple(call for call, effect in refused.items() if effect is Persisted.PARTLY)
        return Explanation(Reliance.WHOLE, parts, parts) if parts else Explanation(Reliance.UNCLEAR)
    if missing is None and there is None:
        return Explanation(Reliance.UNCLEAR)
    return Explanation(_reliance(missing or (), there or ()), missing or (), there or ())


def nearer(one: Explanation, other: Explanation) -> Explanation:
    """The one of two explanations of a state that names fewer calls: its accepted states are nearer."""
    if Reliance.UNCLEAR in (one.reliance, other.reliance):
        return other if one.reliance is Reliance.UNCLEAR else one
    size, another = ({*each.missing, *each.there} for each in (one, other))
    return other if len(another) < len(size) else one


def _reliance(missing: Sequence[int], there: Sequence[int]) -> Reliance:
    if not there:
        return Reliance.DURABLE
    if not missing:
        return Reliance.NOT_YET
    if set(missing) & set(there):
        return Reliance.WHOLE
    return Reliance.ORDER if max(there) > min(missing) else Reliance.TOGETHER


def _named(calls: Sequence[int], words: Mapping[int, str]) -> str:
    named = [f"‘{words.get(call, 'a call')}’" for call in calls[:MOST_NAMED]]
    if more := len(calls) - len(named):
        named.append(f"{more} more")
    return ", ".join(named)


Group = tuple[int, ...]
"""The numbers of calls, ascending."""
_OF_CALLS = Reliance.ORDER, Reliance.WHOLE, Reliance.TOGETHER
"""What is said of calls alone."""


def groups(accepted: Sequence[bool | None], calls: Sequence[int], changing: Collection[int]) -> tuple[Group, ...]:
    """The groups of calls that must be there together.

    ``accepted[k]`` says whether the checker accepts what the first k operations leave (None: not known), and
    ``calls[k - 1]`` which call operation k is. A call that is not ``changing`` anything is in no group. Where a telling
    makes the checker refuse, or accept again, it is no matter of calls alone: then there is no group.
    """
    return tuple(_groups(accepted, calls, changing))


def _groups(accepted: Sequence[bool | None], calls: Sequence[int], changing: Collection[int]) -> Iterator[Group]:
    begun: int | None = None
    for count, is_accepted in enumerate(accepted):
        if is_accepted is None:
            begun = None
        elif not is_accepted:
            is_first = count > 0 and accepted[count - 1] is True
            begun = count if is_first else begun
        elif begun is not None:
            inside = calls[begun - 1 : count]
            members = tuple(call for call in inside if call in changing)
            if {inside[0], inside[-1]} <= set(members):
                yield members
            begun = None


def folded(explanation: Explanation, refused: Presence, found: Iterable[Group]) -> Explanation:
    """The ``explanation`` of a ``refused`` state; that of a whole group where the crash came inside of it, or where all
    that is said is of its members. What was told too early is a fault of its own."""
    if explanation.reliance is Reliance.DURABLE:
        return explanation
    said = {*explanation.missing, *explanation.there}
    cut = _cut(refused)
    for group in found:
        is_inside = explanation.reliance in _OF_CALLS and said <= set(group)
        if is_inside or (cut is not None and group[0] <= cut < group[-1]):
            return Explanation(Reliance.TOGETHER, group[1:], group[:1])
    return explanation


def _cut(refused: Presence) -> int | None:
    """The last call that is there, where all up to it are and none after it is; else None."""
    clear = [(call, effect) for call, effect in sorted(refused.items()) if effect is not Persisted.UNCLEAR]
    there = [call for call, effect in clear if effect is Persisted.THERE]
    cut = len(there)
    is_prefix = all((effect is Persisted.THERE) is (place < cut) for place, (_call, effect) in enumerate(clear))
    is_whole = all(effect is not Persisted.PARTLY for _call, effect in clear)
    return there[-1] if is_prefix and is_whole and there else None
