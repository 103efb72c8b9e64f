"""Find out what a program relies on (its *reliances*), for example that one call persists before another. For this, bob
compares a crash state that the program's checker refuses with states that the checker accepts (OSDI'14, section 3).
Before all these crashes, the program had written the same output. For each call of the program, a *presence* says how
much of the call's effect is in a crash state: NONE, PARTIAL or FULL. It is UNDECIDED if the state does not show this.

Some accepted states have the effects of more calls than the refused state. bob takes the one nearest to the refused
state; its additional calls are *missing* in the refused state. Other accepted states have the effects of fewer calls.
Again, bob takes the nearest. The additional calls of the refused state persisted too early. Before both comparisons,
bob looks for groups of calls that must persist together (section 3.4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from bob.observe.observation import Presence
from bob.protocol.untold import Untold

PresenceByCall = Mapping[int, Presence]
MOST_NAMED = 3  # calls that one sentence names


class Reliance(StrEnum):
    """A kind of reliance. A reliance is something that a program needs after a crash. ORDER: some calls must persist
    before others. WHOLE: a call must persist as a whole or not at all. TOGETHER: several calls must persist together or
    not at all. DURABLE: when the program has written a certain output, some earlier calls must be durable. NOT_YET:
    when the program has written a certain output, some calls must not have persisted yet. UNCLEAR: bob does not know
    what the program needs."""

    ORDER = "order"
    WHOLE = "whole"
    TOGETHER = "together"
    DURABLE = "durable"
    NOT_YET = "not-yet"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reason why the checker refuses a crash state. The calls ``missing`` should have persisted, and the calls
    ``there`` persisted too early. ``beside`` has a phrase for each other difference between the refused state and the
    accepted states that bob compared with it."""

    reliance: Reliance
    missing: tuple[int, ...] = ()
    there: tuple[int, ...] = ()
    beside: tuple[str, ...] = ()

    @property
    def need(self) -> tuple[Reliance, frozenset[int], frozenset[int], frozenset[str]]:
        """A key for the reliance: two explanations with the same reliance have equal keys. If the reliance is TOGETHER,
        the key has the calls of ``missing`` and ``there`` as one set. Byte ranges in ``beside`` are not in the key."""
        beside = frozenset(words.partition(" (bytes ")[0] for words in self.beside)
        if self.reliance is Reliance.TOGETHER:
            return self.reliance, frozenset({*self.missing, *self.there}), frozenset(), beside
        return self.reliance, frozenset(self.missing), frozenset(self.there), beside

    def sentence(self, words: Mapping[int, str]) -> str:
        more = len(self.beside) - MOST_NAMED
        beside = ", ".join([*self.beside[:MOST_NAMED], *([f"{more} more"] if more > 0 else [])])
        if self.reliance is Reliance.UNCLEAR and self.missing:
            return f"{_NONE_ACCEPTED}: {_named(self.missing, words)}"
        if self.reliance is Reliance.UNCLEAR:
            return f"{_UNTOLD}: accepted trees differ in {beside}" if beside else _UNTOLD
        said = self._of_calls(words)
        return f"{said}; or what no traced call tells: accepted trees differ in {beside}, too" if beside else said

    def _of_calls(self, words: Mapping[int, str]) -> str:
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
            case _:
                return f"must not be there yet: {there}"


_UNTOLD = "the calls that are traced do not tell why"
_NONE_ACCEPTED = "no tree that was seen after this output is accepted; of what was done by then is missing"
_NOTHING = Untold()


@dataclass(frozen=True, slots=True)
class Contrast:
    """The difference between two crash states. ``calls`` are the calls whose effects only one of the two states has.
    ``parts`` are calls that persisted in part, but not in the same part in both states. ``beside`` has phrases for
    differences that no call explains."""

    calls: tuple[int, ...]
    beside: tuple[str, ...] = ()
    parts: tuple[int, ...] = ()


class Presences:
    """A table of crash states (rows) and calls (columns). Each entry is a presence: how much of the call's effect is in
    the state. For each row, ``untold`` has those properties of the state's files that no call of the program
    explains."""

    def __init__(self, states: Iterable[PresenceByCall], untold: Sequence[Untold] = ()) -> None:
        self._untold = untold
        self._calls: tuple[int, ...] = ()
        rows = []
        for state in states:
            self._calls = self._calls or tuple(sorted(state))
            rows.append(bytes(state[call].value for call in self._calls))
        self._table = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), len(self._calls))

    def cleared(self, known: Presences) -> Presences:
        """Return a copy of this table, but replace each undecided entry by the entry of the table ``known`` for the
        same call in the same row."""
        made = Presences((), self._untold)
        made._calls = self._calls
        made._table = self._table.copy()
        at = {call: place for place, call in enumerate(known._calls)}
        places = [place for place, call in enumerate(self._calls) if call in at]
        columns = [at[self._calls[place]] for place in places]
        if len(self._table) and places:
            told = self._table[:, places]
            made._table[:, places] = np.where(told == Presence.UNDECIDED.value, known._table[:, columns], told)
        return made

    def nearest(
        self, state: PresenceByCall, own: Untold = _NOTHING
    ) -> tuple[Contrast | None, Contrast | None, Contrast | None]:
        """Return how ``state`` differs from three rows of the table. The first row has the effects of the same calls as
        ``state``. Such a row can still differ from ``state`` in properties that no call explains (``untold``), or in
        the part of a call's effect that persisted. The second row has the effects of more calls, and the third row
        those of fewer calls. If several rows fit a description, bob takes the row with the fewest differences. If no
        row fits, the result has None in its place. ``own`` has the properties of ``state`` that no call explains.

        A call that is undecided only in ``state``, or only in the row, is a difference, too. The result names the calls
        whose presence certainly differs. If there are no such calls, it names the calls whose presence may differ."""
        mine = np.frombuffer(bytes(state[call].value for call in self._calls), dtype=np.uint8)
        differ = np.flatnonzero((self._table != mine).any(axis=0))  # usually a few among thousands of calls
        few = Presences((), self._untold)
        few._calls, few._table = tuple(self._calls[place] for place in differ), self._table[:, differ]
        torn = [call for call, effect in state.items() if effect is Presence.PARTIAL]
        return few._nearest(mine[differ], own, torn)

    def _nearest(
        self, mine: np.ndarray[Any, np.dtype[np.uint8]], own: Untold, torn: Sequence[int]
    ) -> tuple[Contrast | None, Contrast | None, Contrast | None]:
        tells, told = self._table != Presence.UNDECIDED.value, mine != Presence.UNDECIDED.value
        more, less = tells & told & (self._table > mine), tells & told & (self._table < mine)
        has_more, has_less, maybe = more.any(axis=1), less.any(axis=1), tells & ~told
        others = (tells != told).sum(axis=1) + np.array([len(one.differing(own)) for one in self._untold] or 0)
        alike = ~(has_more | has_less | maybe.any(axis=1))
        lacking = np.where(has_more[:, None], more, maybe & (self._table != Presence.NONE.value))
        beyond = np.where(has_less[:, None], less, maybe & (self._table != Presence.FULL.value))
        return (
            self._first(alike, others, np.zeros_like(more), own, torn),
            self._first(lacking.any(axis=1) & ~has_less, more.sum(axis=1) + others, lacking, own, torn),
            self._first(beyond.any(axis=1) & ~has_more, less.sum(axis=1) + others, beyond, own, torn),
        )

    def _first(
        self, fits: _Bits, costs: np.ndarray[Any, np.dtype[np.int_]], named: _Bits, own: Untold, torn: Sequence[int]
    ) -> Contrast | None:
        """Return the difference between a state and the nearest row among those that ``fits`` marks. The nearest row
        has the lowest of the ``costs``. If several rows have the lowest cost, bob compares the numbers of the calls
        that ``named`` marks in each row, and takes the row with the lowest numbers. If these are equal, too, bob
        compares the ``torn`` calls in the same way. It takes only the torn calls whose effect persisted in different
        parts in the row and in the state."""
        if not fits.any():
            return None
        nearest: list[tuple[tuple[int, ...], tuple[int, ...], int]] = []
        for row in map(int, np.flatnonzero(fits & (costs == costs[fits].min()))):
            other = self._untold[row].parts if self._untold else {}
            parts = tuple(call for call in torn if call not in own.parts or own.parts[call] != other.get(call))
            calls = tuple(self._calls[place] for place in np.flatnonzero(named[row]))
            nearest.append((calls, parts, row))
        calls, parts, row = min(nearest)
        return Contrast(calls, own.words(self._untold[row]) if self._untold else (), parts)


_Bits = np.ndarray[Any, np.dtype[np.bool_]]


def explain(refused: PresenceByCall, accepted: Presences, own: Untold = _NOTHING) -> Explanation:
    """Return why the checker refuses the state ``refused`` although it accepts the states ``accepted``. ``own`` has the
    properties of the refused state that no call explains."""
    alike, missing, there = accepted.nearest(refused, own)
    if alike is not None and alike.parts:  # the states differ only in the part of a call that persisted
        return Explanation(Reliance.WHOLE, alike.parts, alike.parts, alike.beside)
    others = [one for one in (missing, there) if one is not None]
    if alike is not None and not (alike.beside and any(not one.beside for one in others)):
        return Explanation(Reliance.UNCLEAR, beside=alike.beside)
    if not others:
        return Explanation(Reliance.UNCLEAR)
    lacks, has = (() if one is None else one.calls for one in (missing, there))
    beside = tuple(dict.fromkeys(words for one in others for words in one.beside))
    return Explanation(_reliance(lacks, has), lacks, has, beside)


def by_then(explanation: Explanation, told_by: int | None) -> Explanation:
    """Return ``explanation``. Change it only if it says that calls must be durable when an output is written. Then keep
    only the calls before ``told_by``, the call that wrote the output. (Accepted states often have later calls, but only
    because these persisted together with earlier calls.) If no call is before ``told_by``, keep all calls."""
    if explanation.reliance is not Reliance.DURABLE or told_by is None:
        return explanation
    earlier = tuple(call for call in explanation.missing if call < told_by)
    return replace(explanation, missing=earlier or explanation.missing)


def missing_by_then(refused: PresenceByCall, told_by: int | None) -> Explanation:
    """Return an explanation of the crash state ``refused``. Use this if the checker accepts no other crash state after
    the same output of the program. The explanation names the calls before ``told_by`` (the call that wrote the output)
    whose effects are missing in the state, in part or whole. If ``told_by`` is None, the explanation names no calls."""
    lacking = {Presence.NONE, Presence.PARTIAL}
    missing = (call for call, effect in sorted(refused.items()) if effect in lacking)
    return Explanation(Reliance.UNCLEAR, tuple(call for call in missing if told_by is not None and call < told_by))


def nearer(one: Explanation, other: Explanation) -> Explanation:
    """Return the one of two explanations that names fewer calls. If one explanation is UNCLEAR, return the other."""
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


CallGroup = tuple[int, ...]  # numbers of calls, ascending
_OF_CALLS = Reliance.ORDER, Reliance.WHOLE, Reliance.TOGETHER  # reliances that concern calls, and not an output


def groups(accepted: Sequence[bool | None], calls: Sequence[int], changing: Collection[int]) -> tuple[CallGroup, ...]:
    """Return groups of calls that must persist together. ``accepted[k]`` says whether the checker accepts the result of
    the first k operations (None: unknown). ``calls[k - 1]`` is the call of operation k. If the checker accepts a state
    before and after some operations, but no state between, their calls are a group. The group has only the calls in
    ``changing``, which change files. The operations make no group if the first or the last of them is from a call that
    is not in ``changing``, such as an output."""
    found: list[CallGroup] = []
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
                found.append(members)
            begun = None
    return tuple(found)


def folded(explanation: Explanation, refused: PresenceByCall, found: Iterable[CallGroup]) -> Explanation:
    """Return ``explanation``, or in its place the explanation that all calls of a group in ``found`` must persist
    together. The latter is better if ``explanation`` names only calls of the group, or if the crash came between the
    first and the last call of the group. If ``explanation`` says that calls must be durable when an output has been
    written, always return ``explanation`` itself."""
    if explanation.reliance is Reliance.DURABLE:
        return explanation
    said = {*explanation.missing, *explanation.there}
    cut = _cut(refused)
    for group in found:
        is_inside = explanation.reliance in _OF_CALLS and said <= set(group)
        if is_inside or (cut is not None and group[0] <= cut < group[-1]):
            return Explanation(Reliance.TOGETHER, group[1:], group[:1])
    return explanation


def _cut(refused: PresenceByCall) -> int | None:
    """Return the number of the last call in the ``refused`` state if the state is a clean prefix. Such a state has the
    whole effects of all calls up to a certain call, and nothing of later calls. Otherwise return None. Ignore calls
    whose presence is undecided."""
    clear = [(call, effect) for call, effect in sorted(refused.items()) if effect is not Presence.UNDECIDED]
    there = [call for call, effect in clear if effect is Presence.FULL]
    prefix = [Presence.FULL] * len(there) + [Presence.NONE] * (len(clear) - len(there))
    return there[-1] if there and [effect for _call, effect in clear] == prefix else None
