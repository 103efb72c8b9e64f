"""Holding a model against what was observed: does it allow all of it (sound), and how much more (tight)?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from bob.apm.allowed import Conflict, Implications, forbidding, refuted
from bob.apm.clauses import Intact, Part
from bob.apm.evidence import Sight, Witnessed
from bob.apm.model import Model
from bob.apm.states import allowed_trees
from bob.apm.trees import observed_tree
from bob.apm.words import what_shows

SCHEMA = "bob.apm-check/1"
DEFAULT_LIMIT = 2000
"""Workloads that may leave more states than this are left out of tightness."""
COUNTED_OPERATIONS = 300
"""And those of more micro-operations than this: each set of them is looked at as a whole."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A crash state that was observed and that the model forbids: by which clauses, and what shows it."""

    sight: Sight
    clauses: tuple[str, ...]
    evidence: str


@dataclass(frozen=True, slots=True)
class Checked:
    """A workload held against a model.

    ``observed`` counts the outcomes (each at the operations that had returned), ``unsound`` are those that the model
    forbids. ``allowed`` is how many trees the model allows (None: more than were counted, or without bound), ``seen``
    how many of them were found. ``held_out`` says that the model was not derived from this workload.
    """

    title: str
    folder: str
    held_out: bool
    observed: int
    unsound: tuple[Counterexample, ...]
    allowed: int | None
    seen: int


@dataclass(frozen=True, slots=True)
class Check:
    """All workloads of a run held against a model."""

    model: str
    run: str
    promised: int
    """How many clauses the model promises."""
    workloads: tuple[Checked, ...]

    def unsound(self, *, held_out: bool = False) -> int:
        """How many observed crash states the model forbids; of the held-out workloads only, or of all."""
        return sum(len(one.unsound) for one in self.workloads if one.held_out or not held_out)

    def observed(self, *, held_out: bool = False) -> int:
        """How many outcomes were held against it."""
        return sum(one.observed for one in self.workloads if one.held_out or not held_out)

    @property
    def tightness(self) -> float | None:
        """The share of the allowed states that were observed, over the workloads whose states were counted."""
        allowed = sum(one.allowed for one in self.workloads if one.allowed is not None)
        seen = sum(one.seen for one in self.workloads if one.allowed is not None)
        return seen / allowed if allowed else None

    @property
    def counted(self) -> int:
        """In how many workloads the allowed states were counted."""
        return sum(one.allowed is not None for one in self.workloads)


def check(
    model: Model,
    run: str,
    workloads: Iterable[Witnessed],
    limit: int = DEFAULT_LIMIT,
    *,
    progress: Callable[[], None] = lambda: None,
) -> Check:
    """Hold ``model`` against the workloads of ``run``; ``progress`` is called after each."""
    held_out = frozenset(model.source.get("held_out", ()))
    found = []
    for workload in workloads:
        found.append(_check(model, workload, limit, held_out=workload.workload.title in held_out))
        progress()
    return Check(model.name, run, len(model.promised), tuple(found))


def _check(model: Model, workload: Witnessed, limit: int, *, held_out: bool) -> Checked:
    promised = model.promised
    implications = Implications(workload.graph, promised)
    unsound = tuple(
        _counterexample(model, workload, sight)
        for sight in workload.sights
        if not implications.is_allowed(sight.constraints, sight.returned)
    )
    trees = None
    is_small = len(workload.graph.workings.operations) <= COUNTED_OPERATIONS
    if is_small and all(Intact(part) in promised for part in Part):  # else it allows garbage, of which there is no end
        allowed = allowed_trees(workload.graph, promised, limit)
        trees = frozenset(allowed.trees) if allowed.complete else None
    seen = {observed_tree(workload.observation(sight)) for sight in workload.sights} if trees is not None else set()
    return Checked(
        title=workload.workload.title,
        folder=workload.folder.name,
        held_out=held_out,
        observed=len(workload.sights),
        unsound=unsound,
        allowed=None if trees is None else len(trees),
        seen=len(seen & trees) if trees is not None else 0,
    )


def _counterexample(model: Model, workload: Witnessed, sight: Sight) -> Counterexample:
    conflicts = refuted(workload.graph, model.promised, sight.constraints, sight.returned)
    conflicts = conflicts or [forbidding(workload.graph, model.promised, sight.constraints, sight.returned)]
    clauses = sorted({clause.name for conflict in conflicts for clause in conflict.clauses})
    return Counterexample(sight, tuple(clauses), _evidence(workload, conflicts))


def _evidence(workload: Witnessed, conflicts: list[Conflict]) -> str:
    return "; ".join(dict.fromkeys(what_shows(workload.graph, conflict) for conflict in conflicts[:2]))


def to_json(check: Check) -> dict[str, Any]:
    """A check as a plain document."""
    return {
        "schema": SCHEMA,
        "model": check.model,
        "run": check.run,
        "promised": check.promised,
        "observed": check.observed(),
        "unsound": check.unsound(),
        "held_out": {"observed": check.observed(held_out=True), "unsound": check.unsound(held_out=True)},
        "tightness": check.tightness,
        "counted_workloads": check.counted,
        "workloads": [
            {
                "title": one.title,
                "folder": one.folder,
                "held_out": one.held_out,
                "observed": one.observed,
                "allowed": one.allowed,
                "seen": one.seen,
                "unsound": [
                    {
                        "state": counter.sight.state.to_json(),
                        "returned": counter.sight.returned,
                        "clauses": list(counter.clauses),
                        "evidence": counter.evidence,
                    }
                    for counter in one.unsound
                ],
            }
            for one in check.workloads
        ],
    }
