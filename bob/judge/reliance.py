"""A program's reliance on its system calls. A program relies on a call if its checker refuses a tree because the tree
lacks the effect of that call. To find such calls, bob compares trees that the checker refuses with trees that it
accepts. An *outcome* is what a mount of a crash state showed, above all its tree. A *window* is the time between two
outputs of the program."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate, islice
from types import MappingProxyType
from typing import TypeVar

from bob.answer.answer import CallWords, ReliedOn
from bob.judge.looked import AnsweredTrees, Looked, Unmade
from bob.observe.observation import Node, Presence
from bob.program.stack import source_line
from bob.program.strace import SystemCall
from bob.protocol.contrast import (
    CallGroup,
    Explanation,
    PresenceByCall,
    Presences,
    by_then,
    explain,
    folded,
    missing_by_then,
    nearer,
)
from bob.protocol.diagram import DiagramStep, steps_of
from bob.protocol.effects import Effects
from bob.protocol.kinds import kind_of
from bob.protocol.presence import cleared, locate, signs_of
from bob.protocol.protocol import protocol
from bob.protocol.unsynced import names_kept
from bob.protocol.untold import Untold, untold
from bob.story.timeline import ProgramCallEvent

T = TypeVar("T")
U = TypeVar("U")
# bob explains at most this many trees with one consequence. It compares them with at most twice as many accepted trees
# after the same output.
MOST_TREES = 200
_AS_TOLD: Mapping[Presence | None, str] = {
    Presence.FULL: "there",
    Presence.PARTIAL: "partly",
    Presence.NONE: "missing",
}


class Explaining:
    """A runner of functions that make explanations. If such a function fails by a mistake in bob, the run goes on
    without this explanation. ``keep`` saves the first traceback, and returns the name of its file."""

    def __init__(self, keep: Callable[[str], str] | None = None) -> None:
        self._keep = keep
        self._broken: dict[str, None] = {}
        self._where = ""

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._broken)

    def made(self, make: Callable[[], T], otherwise: U) -> T | U:
        try:
            return make()
        except Exception as broken:
            self._broken[f"some explanations are missing: {self.broke(broken)}"] = None
            return otherwise

    def broke(self, broken: Exception) -> str:
        """Return a message that bob itself failed. The message names the file of the first traceback. ``broken`` is the
        error."""
        if not self._where and self._keep is not None:
            self._where = f", traceback in {self._keep(''.join(traceback.format_exception(broken)))}"
        return f"bob itself failed ({' '.join(f'{type(broken).__name__}: {broken}'.split())}{self._where})"


class Reliances:
    """The reasons why a checker refuses trees: the trees lack effects of the program's system ``calls``. If the
    ``effects`` of the calls are not known, bob gives no reasons.

    Each of ``windows`` has the trees that crashes leave between one output of the program and the next. Each of
    ``groups`` has calls that must persist together. For trees that bob itself built, the function ``known`` returns how
    much of each call's effect is in the tree of an outcome. The tree alone does not show this: if two calls wrote the
    same data, the tree does not tell which of the calls persisted. ``tellings`` maps the number of a call to the output
    that this call wrote. The function ``unmade`` gets a window and an outcome, and returns the calls that had not begun
    at that crash."""

    def __init__(
        self,
        windows: Sequence[AnsweredTrees],
        calls: Sequence[SystemCall],
        effects: Effects | None,
        groups: Sequence[CallGroup] = (),
        known: Callable[[int], PresenceByCall] | None = None,
        tellings: Mapping[int, bytes] = MappingProxyType({}),
        explaining: Explaining | None = None,
        unmade: Callable[[int, int], Collection[int]] = lambda _place, _outcome: (),
    ) -> None:
        self.explaining = explaining or Explaining()
        self._known, self._tellings, self._unmade = known, tellings, unmade
        self._windows, self._calls, self._effects, self._groups = windows, calls, effects, groups
        # For each window: by the trees alone, and with ``known``.
        self._accepted: dict[int, tuple[Presences, Presences]] = {}
        self._kept_names: dict[int, frozenset[int]] = {}
        self.shown: list[tuple[int, int]] = []  # the first tree (window, outcome) of each kind of each way so far

    @classmethod
    def of_looked(
        cls,
        looked: Sequence[Looked],
        calls: Sequence[SystemCall],
        root: str,
        tellings: Mapping[int, bytes],
        explaining: Explaining,
        offset: float | None = None,
    ) -> Reliances:
        """Return the reliances of the windows ``looked``. The tree below ``root`` before all calls is from the first
        control state, which lacks all writes of the program. The tree after all calls is from the last control state,
        which has all writes. ``offset`` is the number of seconds to add to the time of a call to get the time in the
        recordings (None: not known)."""
        effects = explaining.made(lambda: effects_of(calls, root, looked[0].control(0), looked[-1].control(-1)), None)
        unmade = Unmade(looked, calls, offset).of
        windows = [one.answered for one in looked]
        return cls(windows, calls, effects, tellings=tellings, explaining=explaining, unmade=unmade)

    def steps(self) -> tuple[DiagramStep, ...]:
        effects = self._effects
        if effects is None:
            return ()
        return self.explaining.made(lambda: steps_of(self._calls, effects, self._tellings), ())

    def relied_on(self, refused: Iterable[tuple[int, int]]) -> tuple[ReliedOn, ...]:
        """Return the reasons why the checker refuses the trees ``refused``, each given as (window, outcome). The first
        reason explains the largest number of trees."""
        effects = self._effects
        return () if effects is None else self.explaining.made(lambda: self._relied_on(effects, refused), ())

    def _relied_on(self, effects: Effects, refused: Iterable[tuple[int, int]]) -> tuple[ReliedOn, ...]:
        found: dict[Explanation, int] = {}
        alike: dict[object, Explanation] = {}
        shown: dict[Explanation, tuple[int, int]] = {}
        for place, outcome in islice(dict.fromkeys(refused), MOST_TREES):
            there, own = self._presence(effects, place, outcome)
            accepted, accepted_known = self._those_accepted(effects, place)
            explanation = explain(there, accepted, own)
            if self._known is not None:
                known = explain(cleared(there, self._known(outcome)), accepted_known, own)
                explanation = nearer(explanation, known)
            told_by = self._told_by(place)
            explanation = by_then(folded(explanation, there, self._groups), told_by)
            if not self._windows[place].accepted:
                explanation = missing_by_then(there, told_by)
            first = alike.setdefault(explanation.need, explanation)
            found[first] = found.get(first, 0) + 1
            shown.setdefault(first, (place, outcome))
        ordered = sorted(found.items(), key=lambda one: (-one[1], one[0].missing, one[0].there))
        told = tuple(self._told(effects, one, trees, self._told_by(shown[one][0])) for one, trees in ordered)
        of_kinds = {one.kind: shown[one.explanation] for one in reversed(told)}
        self.shown += of_kinds.values()
        return told

    def calls_up_to(self, place: int, outcome: int, offset: float) -> list[ProgramCallEvent]:
        """Return the calls as events of a time line, the list of all events of a crash. Each event says how much of the
        call's effect is in the tree of ``outcome`` in window number ``place``. ``offset`` seconds are added to the time
        of each call."""
        effects = self._effects
        if effects is None:
            return []
        return self.explaining.made(
            lambda: calls_with_effects(self._calls, effects, self._presence(effects, place, outcome)[0], offset), []
        )

    def _those_accepted(self, effects: Effects, place: int) -> tuple[Presences, Presences]:
        if place not in self._accepted:
            some = self._windows[place].accepted[: 2 * MOST_TREES]
            each = [self._presence(effects, place, outcome) for outcome in some]
            told = Presences([presence for presence, _untold in each], [untold for _presence, untold in each])
            known = told if self._known is None else told.cleared(Presences(map(self._known, some)))
            self._accepted[place] = told, known
        return self._accepted[place]

    def _presence(self, effects: Effects, place: int, outcome: int) -> tuple[PresenceByCall, Untold]:
        tree = self._windows[place].tree(outcome)
        located = locate(effects, tree)
        signs = signs_of(effects, tree, located, self._unmade(place, outcome), self._kept(effects, place))
        return signs.presences(), untold(effects, tree, located, signs.parts())

    def _kept(self, effects: Effects, place: int) -> frozenset[int]:
        if place not in self._kept_names:
            self._kept_names[place] = names_kept(effects, self._told_by(place))
        return self._kept_names[place]

    def _told_by(self, place: int) -> int | None:
        """Return the number of the call that wrote the last part of the output before window ``place``. Return None if
        that output is empty."""
        numbers = sorted(self._tellings)
        lengths = accumulate(len(self._tellings[number]) for number in numbers)
        told = len(self._windows[place].told)
        return next((number for number, length in zip(numbers, lengths, strict=True) if length == told), None)

    def _told(self, effects: Effects, explanation: Explanation, trees: int, told_by: int | None) -> ReliedOn:
        numbers = sorted({*explanation.missing, *explanation.there})
        calls = tuple(self._call(one, effects) for one in numbers)
        sentence = explanation.sentence(effects.words)
        # The calls that are in fact missing may be others than those in the explanation.
        kind = "" if explanation.beside else kind_of(explanation, effects, told_by)
        return ReliedOn(explanation, sentence, calls, trees, kind)

    def _call(self, number: int, effects: Effects) -> CallWords:
        stack = self._calls[number].stack
        return CallWords(number, effects.words.get(number, ""), stack, source_line(stack))


def calls_with_effects(
    calls: Sequence[SystemCall], effects: Effects, there: PresenceByCall, offset: float
) -> list[ProgramCallEvent]:
    """Return those ``calls`` that have an effect on the files, as events of a crash's time line. Each event says how
    much of the call's effect is in the tree after the crash. ``there`` maps the number of a call to this share.
    ``offset`` seconds are added to the time of each call."""
    return [
        ProgramCallEvent(round(calls[number].seconds + offset, 6), words, _AS_TOLD.get(there.get(number), ""))
        for number, words in sorted(effects.words.items())
    ]


def effects_of(
    calls: Sequence[SystemCall], root: str, before: Mapping[str, Node] | None, after: Mapping[str, Node] | None
) -> Effects | None:
    """Return the effects of ``calls``, which changed the tree ``before`` into the tree ``after``. Return None if bob
    did not see one of the trees, or cannot replay the calls on ``before``."""
    if before is None or after is None:
        return None
    try:
        return protocol(calls, root, before, after)
    except (ValueError, IndexError):
        return None
