"""Findings of a search. All violations with the same cause are one finding. A finding shows the smallest workload that
has a violation with this cause (docs/search.md).

bob derives the cause of a violation from one violating state, the state with the *smallest loss*. This state lacks the
fewest of the writes that were sent to the disk before the crash. The cause consists of two facts about the lost write
that was sent last: the kind of block that it wrote, and the reason why no flush saved it. Crashes at different times
can leave the same state, and bob assumes the earliest of them. So a write does not count as lost if it was sent after
all writes that the state has."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any

from bob.answer.result import Cause, Finding
from bob.blocks.naming import BlockKind, BlockName
from bob.claim.property.judged_case import JudgedCase, WorkloadVerdict, failing
from bob.claim.property.of_property import OfProperty
from bob.claim.property.rules import Property, Rule
from bob.claim.property.vocabulary import Call
from bob.crash.case import Case
from bob.crash.neighbours import causes
from bob.crash.plan import after_return
from bob.crash.state import CrashState, TornWrites, departure
from bob.observe.observations import ExploredState
from bob.story.timeline import Fate
from bob.witness import document as witness
from bob.witness.document import ShownState
from bob.workload.kinds import changes
from bob.workload.language import write_one
from bob.workload.operations import At

Keep = Callable[[str, Mapping[str, Any]], str]  # (name, witness) -> the path of the witness in the run directory
# Each ``BlockName`` is the name of a write of the case.
WitnessWriter = Callable[[ShownState, Sequence[BlockName]], dict[str, Any]]
_VERBS = {"rename-over": "rename", "truncate-down": "truncate", "truncate-up": "truncate"}
"""Kinds of changes that a cause does not distinguish."""


class Flushing(StrEnum):
    """The reason why no flush saved a write. bob considers the flushes that were sent before the crash. If all crashes
    come after the workload's last call has returned, bob considers the flushes before that return instead."""

    NONE = "none"
    UNDER_WAY = "under-way"
    NOT_DONE = "not-done"
    UNSENT = "unsent"

    @property
    def words(self) -> str:
        return _FLUSHING[self]


_FLUSHING = {
    Flushing.NONE: "no flush was sent after it",
    Flushing.UNDER_WAY: "a flush was sent while the write was under way",
    Flushing.NOT_DONE: "the flush after it was not complete",
    Flushing.UNSENT: "it was sent to the disk only after the call had returned",
}


@dataclass(slots=True)
class _Found:
    rank: tuple[int, int, str, tuple[int, int]]
    finding: Finding
    document: Mapping[str, Any]
    rows: dict[str, None] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    workloads: set[tuple[str, str]] = field(default_factory=set)


class Findings:
    def __init__(self, write: WitnessWriter) -> None:
        self._write = write
        self._found: dict[Cause, _Found] = {}
        self._case: Case | None = None
        self._names: tuple[BlockName, ...] = ()

    def add(self, case: Case, bench: JudgedCase, prop: Property, judged: WorkloadVerdict) -> None:
        losses = Losses(case)
        seen = losses.smallest(judged.showing)
        numbers = bench.blamed(prop, seen)
        missing = tuple(sorted({change.kind.value for change in changes(bench.history) if change.number in numbers}))
        cause = cause_of(losses, prop, seen.state, missing, lambda: self._named(case))
        workload, operations = case.workload, case.workload.operations
        text = "; ".join(map(write_one, operations))
        rank = len(operations), len(text), text, departure(seen.state)
        found = self._found.get(cause)
        if found is None or rank < found.rank:
            evidence = bench.evidence(prop, seen)
            shown, there = evidence.violation, bench.observation(evidence.outcome)
            claim = OfProperty(prop.name, shown.question, prop)
            decide = causes(case.plan.points, seen.state, partial(claim.kept_in, bench))
            all_lost = _all_lost(case, bench, prop, judged)
            showing = ShownState(case, seen.state, claim, shown.evidence, decide, all_lost, there)
            document = self._write(showing, self._named(case))
            name, finish = workload.name, workload.finish.name
            finding = Finding(cause, in_words(cause), (), (), 0, name, finish, len(operations), shown.evidence)
            others = (found.rows, found.missing, found.workloads) if found else ()
            self._found[cause] = found = _Found(rank, finding, document, *others)
        found.rows[prop.name] = None
        found.missing.update(missing)
        found.workloads.add((workload.name, workload.finish.name))

    def kept(self, keep: Keep) -> tuple[Finding, ...]:
        """Return the findings, with the smallest workloads first. ``keep`` saves the witness of each finding, a file
        about a crash state with the violation."""
        made = sorted(self._found.values(), key=lambda found: found.finding.size)
        return tuple(
            replace(
                found.finding,
                rows=tuple(found.rows),
                missing=tuple(sorted(found.missing)),
                shown_by=len(found.workloads),
                witness=keep(f"finding-{number}", found.document),
            )
            for number, found in enumerate(made, start=1)
        )

    def _named(self, case: Case) -> Sequence[BlockName]:
        if self._case is not case:
            self._case, self._names = case, witness.named(case)
        return self._names


class Losses:
    """The writes that crash states of ``case`` have lost. A case is one recording of a workload, with all its crash
    states."""

    def __init__(self, case: Case) -> None:
        workload, self._trace, self._points = case.workload, case.plan.trace, case.plan.points
        self._earliest = self._trace.start.time
        self.returned: int | None = None  # time of the last operation's return, if no crash comes earlier
        if workload.at is At.END:
            self.returned = self._earliest = after_return(self._trace, len(workload.operations)).start.time

    def crash(self, state: CrashState) -> int:
        """Return the earliest time of a crash that can have left ``state``. Times are positions in the guest's trace
        buffer, not seconds."""
        before = self._points[state.point - 1].time + 1 if state.point else self._earliest
        there = (self._trace.writes[index].submitted.time for index in (*state.kept, *(one for one, _ in state.torn)))
        return max(before, self._earliest, *there)

    def of(self, state: CrashState) -> tuple[int, ...]:
        """Return the indexes of the lost writes of ``state``, in order. A lost write was sent before the crash, and is
        not whole on the disk."""
        kept, until = set(state.kept), self.crash(state)
        pending = (index for index in self._points[state.point].pending if index not in kept)
        return tuple(index for index in pending if self._trace.writes[index].submitted.time <= until)

    def smallest(self, showing: Iterable[ExploredState]) -> ExploredState:
        """Return the state with the fewest lost writes. Among equals, take the state with the fewest torn writes, then
        the state whose last lost write is the latest."""

        def rank(seen: ExploredState) -> tuple[int, int, int, tuple[int, int], int, tuple[int, ...], TornWrites]:
            state = seen.state
            lost = self.of(state)
            last = max(lost, default=0)
            return len(lost), len(state.torn), -last, departure(state), state.point, state.kept, state.torn

        return min(showing, key=rank)

    def flushing(self, index: int, state: CrashState) -> Flushing:
        write = self._trace.writes[index]
        until = self.crash(state) if self.returned is None else self.returned
        if write.submitted.time > until:
            return Flushing.UNSENT
        sent = [
            flush.submitted.time
            for flush in self._trace.flushes
            if flush.device == write.device and write.submitted.time <= flush.submitted.time <= until
        ]
        if not sent:
            return Flushing.NONE
        return Flushing.NOT_DONE if max(sent) >= write.completed.time else Flushing.UNDER_WAY


def cause_of(
    losses: Losses, prop: Property, state: CrashState, kinds: tuple[str, ...], named: Callable[[], Sequence[BlockName]]
) -> Cause:
    """Return the cause of a breach of ``prop`` by ``state``, the violating state with the smallest loss. ``kinds`` has
    the kinds of operations (such as rename) whose effects ``state`` lacks. ``named`` returns a name for each write of
    the recording, which says what the written block contains."""
    call = "" if prop.call is None else prop.call.value
    lost, apart = losses.of(state), tuple(dict.fromkeys(_VERBS.get(kind, kind) for kind in kinds))
    if not lost:
        return Cause(prop.rule.value, call=call, kinds=apart)
    index = lost[-1]
    fate = Fate.TORN if any(torn == index for torn, _units in state.torn) else Fate.LOST
    block = named()[index].sort
    cause = Cause(prop.rule.value, block, fate.value, losses.flushing(index, state).value)
    return replace(cause, call=call, kinds=apart) if block == BlockKind.UNKNOWN else cause


def cause_states(properties: Sequence[Property], bench: JudgedCase, case: Case) -> set[CrashState]:
    """Return the crash states that bob derives the causes of violations from: one state for each of ``properties`` that
    is broken. ``bench`` has the verdicts on ``case``."""
    losses = Losses(case)
    return {losses.smallest(said.showing).state for said in failing(properties, bench)}


def _all_lost(case: Case, bench: JudgedCase, prop: Property, judged: WorkloadVerdict) -> bool | None:
    """Return whether ``prop`` also fails if the crash comes when the last operation has just returned, and the disk
    loses all pending writes. Return None if bob does not know that."""
    if case.workload.at is not At.END:
        return None
    if any(seen.state == bench.bare for seen in judged.showing):
        return True
    return False if bench.satisfies(prop, bench.bare) else None


def in_words(cause: Cause) -> str:
    said = "the disk lost no write that it had been sent"
    if cause.fate:
        block = "a block that bob cannot name" if cause.block == BlockKind.UNKNOWN else cause.block
        said = f"{block} was {cause.fate}: {Flushing(cause.flush).words}"
        if cause.block != BlockKind.UNKNOWN:
            return said
    if cause.rule == Rule.COLLATERAL:
        beside = f", beside {', '.join(cause.kinds)}" if cause.kinds else ""
        return f"{said}; something that no operation should change is damaged{beside}"
    when = f"after {Call(cause.call).words} " if cause.call else ""
    return f"{said}; {when}{', '.join(cause.kinds) or 'something'} is not there as it should be"
