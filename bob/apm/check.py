"""Check a model against observations: does it allow all of them (is it sound), and how much more does it allow (is it
tight)? A model is a set of clauses (promises about crash states). An *outcome* is what a mount of a crash state showed.
A *micro-operation* is a step that persists as a whole or not at all."""

from collections.abc import Callable, Sequence

from bob.apm.allowed import Implications, forbidding, refuted, what_shows
from bob.apm.evidence import ObservedCase, OutcomeConstraints
from bob.apm.model import Model
from bob.apm.tightness import TreeCounts, count
from bob.crash.state import CrashState
from bob.schema import Document

SCHEMA = "bob.apm-check/1"
DEFAULT_LIMIT = 2000  # sets of micro-operations; a workload with more is left out of tightness


class UnsoundDocument(Document, frozen=True):
    """An observed crash state that the model forbids, so the model is not sound. ``returned`` is the number of
    operations that had returned before the crash, and ``clauses`` are the clauses that forbid the state."""

    state: CrashState
    returned: int
    clauses: tuple[str, ...]
    evidence: str


class CheckedDocument(Document, frozen=True):
    """The check of one workload against a model. ``observed`` is the number of the workload's outcomes, and ``unsound``
    lists those that the model forbids. ``held_out`` says that the workload was not used to derive the model."""

    title: str
    folder: str
    held_out: bool
    observed: int
    unsound: tuple[UnsoundDocument, ...]


class Outcomes(Document, frozen=True):
    observed: int
    unsound: int


class CheckDocument(Outcomes, frozen=True, tag_field="schema", tag=SCHEMA, kw_only=True):
    """The check of all workloads of a run against a model. ``bob apm check --json`` prints it. ``promised`` is the
    number of clauses that the model promises. ``tightness`` is the share of the allowed states that were observed. It
    covers only workloads whose allowed states bob could count."""

    model: str
    run: str
    promised: int
    held_out: Outcomes
    tightness: float | None
    counted_workloads: int
    states: tuple[TreeCounts, ...]
    workloads: tuple[CheckedDocument, ...]


def check(
    model: Model,
    run: str,
    workloads: Sequence[ObservedCase],
    limit: int | None = DEFAULT_LIMIT,
    *,
    progress: Callable[[], None] = lambda: None,
) -> CheckDocument:
    """Return the check of ``model`` against the workloads of ``run``. The tightness takes much work, and ``limit``
    bounds this work: the tightness leaves out workloads with more than ``limit`` closed sets of micro-operations (sets
    that may persist without anything else). If ``limit`` is None, the check leaves out the tightness altogether."""
    held_out = frozenset(model.source.get("held_out", ()))
    found = []
    for workload in workloads:
        found.append(_check(model, workload, held_out=workload.workload.title in held_out))
        progress()
    states = () if limit is None else count(model.promised, workloads, limit)
    allowed = sum(one.allowed for one in states)
    return CheckDocument(
        *_counts(found),
        model=model.name,
        run=run,
        promised=len(model.promised),
        held_out=Outcomes(*_counts([one for one in found if one.held_out])),
        tightness=sum(one.seen for one in states) / allowed if allowed else None,
        counted_workloads=sum(len(one.folders) for one in states),
        states=states,
        workloads=tuple(found),
    )


def _counts(workloads: Sequence[CheckedDocument]) -> tuple[int, int]:
    return sum(one.observed for one in workloads), sum(len(one.unsound) for one in workloads)


def _check(model: Model, workload: ObservedCase, *, held_out: bool) -> CheckedDocument:
    implications = Implications(workload.graph, model.promised)
    unsound = tuple(
        _unsound(model, workload, sight)
        for sight in workload.sights
        if not implications.is_allowed(sight.constraints, sight.returned)
    )
    return CheckedDocument(workload.workload.title, workload.folder.name, held_out, len(workload.sights), unsound)


def _unsound(model: Model, workload: ObservedCase, sight: OutcomeConstraints) -> UnsoundDocument:
    asked = workload.graph, model.promised, sight.constraints, sight.returned
    conflicts = refuted(*asked) or [forbidding(*asked)]
    clauses = sorted({clause.name for conflict in conflicts for clause in conflict.clauses})
    evidence = "; ".join(dict.fromkeys(what_shows(workload.graph, conflict) for conflict in conflicts[:2]))
    return UnsoundDocument(sight.state, sight.returned, tuple(clauses), evidence)
