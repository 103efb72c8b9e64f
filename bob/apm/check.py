"""A model against observations: does it allow all of them (sound), and how much more (tight)?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bob.apm.allowed import Implications, forbidding, refuted, what_shows
from bob.apm.evidence import ObservedCase, OutcomeConstraints
from bob.apm.model import Model
from bob.apm.tightness import TreeCounts, count
from bob.crash.state import CrashState
from bob.schema import Document, adapt

SCHEMA = "bob.apm-check/1"
DEFAULT_LIMIT = 2000
"""Tightness leaves out workloads that may leave more states."""


class UnsoundDocument(Document, frozen=True):
    """A crash state that was observed and that the model forbids; so many operations had ``returned``."""

    state: CrashState
    returned: int
    clauses: tuple[str, ...]
    evidence: str


class CheckedDocument(Document, frozen=True):
    """A workload held against the model. ``held_out``: the model was not derived from it. ``observed`` counts its
    outcomes, each at every number of operations that had returned."""

    title: str
    folder: str
    held_out: bool
    observed: int
    unsound: tuple[UnsoundDocument, ...]


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """All workloads of a run, held against a model that promises so many clauses. ``states`` counts what the model
    allows and what of it was seen, of the workloads that could be counted."""

    model: str
    run: str
    promised: int
    workloads: tuple[CheckedDocument, ...]
    states: tuple[TreeCounts, ...]

    def unsound(self, *, held_out: bool = False) -> int:
        """Return how many observed outcomes the model forbids, of all workloads or the held-out ones."""
        return sum(len(one.unsound) for one in self.workloads if one.held_out or not held_out)

    def observed(self, *, held_out: bool = False) -> int:
        """Return how many outcomes were held against it."""
        return sum(one.observed for one in self.workloads if one.held_out or not held_out)

    @property
    def tightness(self) -> float | None:
        """The share of the allowed states that were observed, in the counted workloads."""
        allowed = sum(one.allowed for one in self.states)
        return sum(one.seen for one in self.states) / allowed if allowed else None

    @property
    def counted(self) -> int:
        """In how many workloads the allowed states were counted."""
        return sum(len(one.folders) for one in self.states)


def check(
    model: Model,
    run: str,
    workloads: Sequence[ObservedCase],
    limit: int | None = DEFAULT_LIMIT,
    *,
    progress: Callable[[], None] = lambda: None,
) -> ModelCheck:
    """Hold ``model`` against the workloads of ``run``. Without a ``limit``, do not count allowed states. ``progress``
    is called after each workload."""
    held_out = frozenset(model.source.get("held_out", ()))
    found = []
    for workload in workloads:
        found.append(_check(model, workload, held_out=workload.workload.title in held_out))
        progress()
    states = () if limit is None else count(model.promised, workloads, limit)
    return ModelCheck(model.name, run, len(model.promised), tuple(found), states)


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


class Outcomes(Document, frozen=True):
    """How many outcomes were observed, and how many of them the model forbids."""

    observed: int
    unsound: int


class CheckDocument(Outcomes, frozen=True, tag_field="schema", tag=SCHEMA, kw_only=True):
    """A check, as ``bob apm check --json`` writes it."""

    model: str
    run: str
    promised: int
    held_out: Outcomes
    tightness: float | None
    counted_workloads: int
    states: tuple[TreeCounts, ...]
    workloads: tuple[CheckedDocument, ...]

    @classmethod
    def of(cls, check: ModelCheck) -> CheckDocument:
        """Return the document of ``check``."""
        return adapt(
            cls,
            check,
            observed=check.observed(),
            unsound=check.unsound(),
            held_out=Outcomes(check.observed(held_out=True), check.unsound(held_out=True)),
            counted_workloads=check.counted,
        )
