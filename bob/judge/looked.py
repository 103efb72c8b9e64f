"""The observed crash states of a program, with the answers of the program's checker (a command that accepts or refuses
the files after a crash). An *outcome* is what bob observes after it mounts a crash state, above all the tree of files.
bob numbers the outcomes. Several states may have the same outcome."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf

from bob.crash.case import Case
from bob.crash.neighbours import causes
from bob.crash.state import CrashState
from bob.observe.observation import Node
from bob.observe.observations import Observations
from bob.program.answer import CheckerAnswer
from bob.program.strace import SystemCall
from bob.protocol.arguments import STORE

NOTHING_TOLD = (
    "the program wrote nothing to its standard output, so bob tried no crash after which anything has to be durable"
)
"""A note for a program that wrote nothing to its output: its checker says only that the states are consistent."""
# Seconds from a write to a call that surely came later, since the clocks of strace and of the kernel differ.
SURELY = 0.25


def places_in_rank(behind: tuple[int, ...] | None, place: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return what comes before and after the crash state itself in the rank of a program's crash
    (:func:`bob.observe.easiest.rank`). In a cluster, the fewer nodes are ``behind``, the easier (None: not a cluster).
    Among equals, the latest window is the easiest; ``place`` is the window's number."""
    return () if behind is None else (len(behind),), (-place,)


@dataclass(frozen=True, slots=True)
class AnsweredTrees:
    """The trees of files that crashes can leave after the program has written the output ``told`` and before its next
    output. ``tree`` returns the tree of an outcome, given the outcome's number. ``accepted`` lists the outcomes that
    the program's checker accepts."""

    told: bytes
    accepted: list[int]
    tree: Callable[[int], Mapping[str, Node]]


@dataclass(frozen=True, slots=True)
class Looked:
    """The crash states of a program if a crash comes after its output ``told`` and before its next output. ``answers``
    maps each outcome's number to the checker's answer. bob ran the checker ``checks`` times for these answers. If the
    checker gave different answers on the same tree, ``disagreed`` describes them (None: it did not). For a cluster,
    ``behind`` maps each outcome to the nodes that are behind (:mod:`bob.crash.tuples`), and ``late`` to the node that
    started late in the check (-1: all nodes started together)."""

    told: bytes
    case: Case
    observed: Observations
    answers: Mapping[int, CheckerAnswer]
    checks: int = 0
    disagreed: str | None = None
    behind: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    late: Mapping[int, int] = field(default_factory=dict)

    @property
    def answered(self) -> AnsweredTrees:
        accepted = [outcome for outcome, answer in self.answers.items() if answer.consequence is None]
        return AnsweredTrees(self.told, accepted, self.tree)

    def tree(self, outcome: int) -> Mapping[str, Node]:
        return self.observed.findings.observation(outcome).tree or {}

    def control(self, which: int) -> Mapping[str, Node] | None:
        """Return the tree of a control state. Control state 0 has only the writes that were durable at the start of the
        window (the time from ``told`` to the next output). Control state -1 has every write. Return None if bob did not
        observe the state, or if it does not mount."""
        state = self.case.plan.controls[which]
        for seen in self.observed.states:
            if seen.state == state and seen.outcome is not None:
                observation = self.observed.findings.observation(seen.outcome)
                return observation.tree if observation.mounted else None
        return None

    def causes(self, state: CrashState) -> tuple[int, ...]:
        """Return the indexes of the writes that decide whether the checker accepts. For each of these writes, the
        checker refuses ``state``, but accepts the state that differs from it only in this write. bob does not look for
        them in a cluster, where each disk may be at another moment."""
        if self.case.subject.nodes:
            return ()
        accepted = set(self.answered.accepted)
        fine = {seen.state for seen in self.observed.states if seen.outcome in accepted}
        return causes(self.case.plan.points, state, fine.__contains__)

    def last_sent(self) -> dict[int, float]:
        """Return a time (seconds of the guest) for each outcome: when the last of the writes in its crash state was
        sent to the disk. If several states have the outcome, take the earliest of their times."""
        plan = self.case.plan
        sent = [write.submitted.seconds for write in plan.trace.writes]
        durable = [max((sent[index] for index in point.durable), default=-inf) for point in plan.points]
        found: dict[int, float] = {}
        for seen in self.observed.states:
            if seen.outcome is not None:
                state = seen.state
                there = [*state.kept, *(index for index, _ranges in state.torn)]
                last = max([durable[state.point], *(sent[index] for index in there)])
                found[seen.outcome] = min(last, found.get(seen.outcome, last))
        return found


class Unmade:
    """The *unmade* calls of crash states. Such a call began only after the kernel had sent the last write that the
    crash state has. So the state lacks every effect of the call.

    The calls and the recordings have different clocks. ``offset`` is the number of seconds to add to the time of a call
    to get the time in the recordings. Without ``offset`` (None), no call counts as unmade. A store to a mapping never
    counts as unmade, since strace does not time it. ``looked`` has the crash states of each window, the time between
    two outputs of the program."""

    def __init__(self, looked: Sequence[Looked], calls: Sequence[SystemCall], offset: float | None) -> None:
        self._looked, self._calls, self._offset = looked, calls, offset
        self._last: dict[int, dict[int, float]] = {}
        self._later = lru_cache(maxsize=1024)(self._begun_after)

    def of(self, place: int, outcome: int) -> frozenset[int]:
        if self._offset is None:
            return frozenset()
        if place not in self._last:
            self._last[place] = self._looked[place].last_sent()
        last = self._last[place].get(outcome)
        return frozenset() if last is None else self._later(last - self._offset + SURELY)

    def _begun_after(self, seconds: float) -> frozenset[int]:
        return frozenset(
            number for number, call in enumerate(self._calls) if call.seconds > seconds and call.name != STORE
        )
