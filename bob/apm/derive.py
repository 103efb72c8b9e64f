"""Derive a model from observations. The model allows every observation. It makes as many promises (clauses) as this
permits, but leaves out clauses that the observations do not support well enough. An *outcome* is what a mount of a
crash state showed.

At first all clauses are promised. Observations refute some of them for certain (:func:`bob.apm.allowed.refuted`). If
several clauses forbid an observation together, but no single clause does, bob must choose which of them to drop. It
drops those that it would not promise anyway, because a similar clause is refuted. If there are no such clauses, it
drops those clauses that promise an order of two changes. If no clause promises an order either, it drops the clauses
that do not forbid stale data (old contents of the disk's blocks). If all of them forbid stale data, it drops them all.

A clause that no observation refutes is not yet a promise of the model. The workloads must also have tested the clause
in so many ways that bob can expect it to hold for other workloads, too (docs/models.md)."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from bob.apm import clauses
from bob.apm.allowed import Conflict, Implications, forbidding, refuted, what_shows
from bob.apm.circumstances import OFTEN, RARE, RARE_CLAUSES, Circumstance, how_tried, needed
from bob.apm.clauses import Clause
from bob.apm.evidence import ObservedCase, OutcomeConstraints
from bob.apm.model import ClauseFinding, ClauseStatus, Model, Refutation
from bob.catalogue.request import request_from_json
from bob.claim.property.vocabulary import Unit, What
from bob.crash.device import DeviceModelDocument
from bob.errors import BobError
from bob.kernel_series import is_same_series
from bob.schema import ShapeError, decode, encode
from bob.store.run_directory import RunDirectory
from bob.subject import Subject
from bob.subject.subject import ConfigurationDocument
from bob.workload.kinds import Relation
from bob.workload.operations import At, Operation, Workload


class Trust(StrEnum):
    """The choice of clauses to promise. EXHAUSTIVE takes only clauses that held when bob explored all legal crash
    states of a workload (all that the disk may leave). SAMPLED also takes clauses that held on a sample of the crash
    states."""

    EXHAUSTIVE = "exhaustive"
    SAMPLED = "sampled"


def held_out(workloads: Iterable[Workload], seed: int) -> frozenset[str]:
    """Return the titles of the workloads that are held out to check a model: a third of ``workloads``, chosen by
    ``seed``. Workloads that differ only in their finish (how they end) are chosen together or not at all."""
    alike: dict[object, list[str]] = {}
    for one in workloads:
        alike.setdefault((one.setup, one.operations), []).append(one.title)
    order = sorted(map(sorted, alike.values()))
    Random(seed).shuffle(order)
    return frozenset(title for titles in order[: len(order) // 3] for title in titles)


@dataclass(frozen=True, slots=True)
class DerivedModel:
    """A derived model. ``shown`` has, for each refuted clause, the workload and the outcome that refuted it."""

    model: Model
    shown: Mapping[Clause, tuple[ObservedCase, OutcomeConstraints]]


def derive(
    workloads: Sequence[ObservedCase],
    trust: Trust = Trust.EXHAUSTIVE,
    seed: int | None = None,
    *,
    refuting: Sequence[ObservedCase] = (),
    progress: Callable[[], None] = lambda: None,
) -> DerivedModel:
    """Return the model of one configuration (file system and disks), from at least one observed workload. With a
    ``seed``, only two thirds of ``workloads`` are used; the others are held out to check the model.

    ``refuting`` has further workloads, whose observations may refute any clause. These workloads are evidence for a
    clause in two cases only. First, no other workload tests the clause, and it is in ``RARE_CLAUSES`` (about names in a
    log of synced files). Second, these workloads test the clause under a circumstance in ``RARE``, such as writeback
    shortly before a commit. Then the clause counts as tested under this circumstance (:mod:`bob.apm.circumstances`)."""
    out = frozenset() if seed is None else held_out([one.workload for one in workloads], seed)
    used = [one for one in workloads if one.workload.title not in out]
    weakening = _WeakeningClauses()
    for workload in (*used, *refuting):
        weakening.add(workload)
        progress()
    weakening.settle()
    counts = _ClauseCounts(used, refuting)
    findings = tuple(_finding(clause, counts, weakening.refutations, trust) for clause in clauses.every_clause())
    runs = list(dict.fromkeys(workload.run.path for workload in (*workloads, *refuting)))
    abouts = [RunDirectory(run).about() for run in runs]
    request = request_from_json(abouts[0]["request"])
    configuration = request.configuration
    kernels = list(dict.fromkeys(about["environment"]["kernel"] for about in abouts))
    source = {
        "runs": [about["id"] for about in abouts],
        "bob": abouts[0]["bob"],
        "kernels": kernels,
        "configuration": encode(ConfigurationDocument.of(configuration)),
        "device_model": encode(DeviceModelDocument.of(request.model)),
        "trust": trust.value,
        "workloads": len(used),
        **({"refuting": len(refuting)} if refuting else {}),
        "held_out_seed": seed,
        "held_out": sorted(out),
    }
    words = f"{configuration.name} on Linux {', '.join(kernels)}, derived from {len(used)} workloads"
    return DerivedModel(Model(configuration.name, words, findings, source), weakening.shown)


def was_derived_of(model: Model, configuration: Subject, kernel: str) -> bool:
    """Return whether ``model`` was derived from ``configuration``, on a kernel of the same series as the release
    ``kernel``."""
    of = model.source.get("configuration")
    if of is None or not any(is_same_series(kernel, each) for each in model.source.get("kernels", ())):
        return False
    try:
        derived = decode(ConfigurationDocument, of).configuration
    except (ShapeError, BobError):  # this bob does not know the file system
        return False
    return _what_is_crashed(derived) == _what_is_crashed(configuration)


def _what_is_crashed(subject: Subject) -> tuple[object, ...]:
    """Return everything about a configuration that can matter to a crash: its file system, options and disks. If two
    configurations have the same result, they differ at most in their names and sizes."""
    return subject.fs, subject.mkfs_options, subject.options, subject.layers, subject.missing, subject.lost


class _WeakeningClauses:
    """The clauses that are still promised. At first these are all clauses, and each observation may take some away."""

    def __init__(self) -> None:
        self.promised = set(clauses.every_clause())
        self.refutations: dict[Clause, Refutation] = {}
        self.shown: dict[Clause, tuple[ObservedCase, OutcomeConstraints]] = {}
        self._ambiguous: list[tuple[ObservedCase, OutcomeConstraints]] = []
        self._knows_orders = False  # until then OWN_FIRST is not refuted: an order may be false without it
        self._asked: tuple[ObservedCase, frozenset[Clause], Implications] | None = None

    def add(self, workload: ObservedCase) -> None:
        self._ambiguous += [(workload, sight) for sight in workload.sights if not self._weaken(workload, sight)]

    def settle(self) -> None:
        self._knows_orders = True
        for workload, sight in self._ambiguous:
            self._settle(workload, sight)

    def _settle(self, workload: ObservedCase, sight: OutcomeConstraints) -> None:
        while not self._weaken(workload, sight):
            conflict = forbidding(workload.graph, self.promised, sight.constraints, sight.returned)
            if not conflict.clauses:
                raise BobError(
                    f"no model allows a crash state of {workload.folder.name}: {encode(sight.state)}",
                    hint="bob's own reading of it is wrong: please report it",
                )
            self._refute(
                workload,
                sight,
                replace(conflict, clauses=self._doubtful(conflict.clauses)),
                alone=len(conflict.clauses) == 1,
            )

    def _doubtful(self, together: frozenset[Clause]) -> frozenset[Clause]:
        """Return those of the clauses ``together`` that bob gives up, because all of them jointly forbid an
        observation. (No single clause forbids the observation.)"""
        unpromised = frozenset(one for one in together if any(other in self.refutations for other in _alike(one)))
        orders = frozenset(one for one in together if isinstance(one, clauses.Ordered | clauses.InTurn))
        garbage = frozenset(
            one for one in together if isinstance(one, clauses.Never) and one.fill is clauses.Fill.STALE
        )
        return unpromised or orders or together - garbage or together

    def _weaken(self, workload: ObservedCase, sight: OutcomeConstraints) -> bool:
        """Give up clauses that the observation ``sight`` refutes, until the remaining clauses allow it, and return
        True. Return False if the clauses still forbid the observation, although it refutes no single clause any
        more."""
        while not self._implications(workload).is_allowed(sight.constraints, sight.returned):
            conflicts = [
                conflict
                for conflict in refuted(workload.graph, self.promised, sight.constraints, sight.returned)
                if self._knows_orders or clauses.OWN_FIRST not in conflict.clauses
            ]
            for conflict in conflicts:
                self._refute(workload, sight, conflict)
            if not conflicts:
                return False
        return True

    def _implications(self, workload: ObservedCase) -> Implications:
        if self._asked is None or self._asked[0] is not workload or self._asked[1] != self.promised:
            promised = frozenset(self.promised)
            self._asked = workload, promised, Implications(workload.graph, promised)
        return self._asked[2]

    def _refute(
        self, workload: ObservedCase, sight: OutcomeConstraints, conflict: Conflict, *, alone: bool = True
    ) -> None:
        more = {more for clause in conflict.clauses for more in clauses.saying_more(clause)}
        for clause in conflict.clauses | (more & self.promised):
            self.promised.discard(clause)
            self.shown.setdefault(clause, (workload, sight))
            self.refutations.setdefault(
                clause,
                Refutation(
                    run=str(workload.run.path.name),
                    workload=workload.workload.name,
                    finish=workload.workload.finish.name,
                    folder=workload.folder.name,
                    state=sight.state,
                    evidence=what_shows(workload.graph, conflict),
                    there=None if conflict.there is None else workload.graph.operation(conflict.there),
                    missing=None if conflict.missing is None else workload.graph.operation(conflict.missing),
                    alone=alone,
                ),
            )


MetCircumstance = tuple[
    Circumstance, tuple[Operation, ...]
]  # a circumstance, and the operations of a workload that met it


@dataclass(frozen=True, slots=True)
class _ClauseCount:
    """The knowledge from all tests of one clause. ``workloads`` is the number of workloads that test it. ``states`` is
    the number of their observed crash states. ``exhaustive`` counts only those workloads whose outcome is known for
    every legal crash state. ``tried`` has the circumstances of all tests, such as a sync of one file. ``surely`` has
    the circumstances of tests by the exhaustive workloads only."""

    workloads: int = 0
    exhaustive: int = 0
    states: int = 0
    tried: frozenset[MetCircumstance] = frozenset()
    surely: frozenset[MetCircumstance] = frozenset()


class _ClauseCounts:
    def __init__(self, workloads: Iterable[ObservedCase], refuting: Iterable[ObservedCase]) -> None:
        self._counts: dict[Clause, _ClauseCount] = {}
        self._rare = _ClauseCounts(refuting, ()) if refuting else None
        for workload in workloads:
            orders, tested = how_tried(workload.workload, workload.graph, workload.commit), workload.graph.clauses
            if workload.workload.at is At.END:  # bob explored only crashes after the end
                tested = frozenset(clause for clause in tested if isinstance(clause, clauses.Durable))
            for clause in tested:
                was, own = self._counts.get(clause, _ClauseCount()), workload.workload.operations
                tried = frozenset((one, own) for one in orders.get(clause, frozenset()))
                self._counts[clause] = _ClauseCount(
                    was.workloads + 1,
                    was.exhaustive + workload.exhaustive,
                    was.states + sum(sight.states for sight in workload.sights),
                    was.tried | tried,
                    was.surely | tried if workload.exhaustive else was.surely,
                )

    def of(self, clause: Clause) -> _ClauseCount:
        if clause in RARE_CLAUSES and clause not in self._counts and self._rare is not None:
            return self._rare.of(clause)
        return self._counts.get(clause, _ClauseCount())

    def circumstances(self, clause: Clause) -> tuple[frozenset[Circumstance], frozenset[Circumstance]]:
        """Return two sets of circumstances (such as a sync of one file): those of all tests of a clause, and those of
        exhaustive tests only. Some other clauses stand or fall with this one (:func:`_alike`), so their tests count,
        too."""
        like = [self.of(other) for other in (clause, *_alike(clause))]
        tried, surely = _often(one.tried for one in like), _often(one.surely for one in like)
        if self._rare is not None:
            rarely, rarely_surely = self._rare.circumstances(clause)
            return tried | rarely & RARE, surely | rarely_surely & RARE
        return tried, surely


def _often(met: Iterable[frozenset[MetCircumstance]]) -> frozenset[Circumstance]:
    often = Counter(circumstance for circumstance, _operations in frozenset[MetCircumstance]().union(*met))
    return frozenset(circumstance for circumstance, times in often.items() if times >= OFTEN.get(circumstance, 1))


def _finding(
    clause: Clause, counts: _ClauseCounts, refutations: dict[Clause, Refutation], trust: Trust
) -> ClauseFinding:
    count = counts.of(clause)
    numbers = (count.workloads, count.exhaustive, count.states)
    if clause in refutations:
        return ClauseFinding(clause, ClauseStatus.REFUTED, False, *numbers, refutations[clause])
    if not count.workloads:
        return ClauseFinding(clause, ClauseStatus.ASSUMED, promised=False, reason="no workload tests it")
    asked = needed(clause)
    tried, surely = counts.circumstances(clause)
    status = ClauseStatus.EXHAUSTIVE if count.exhaustive and asked <= surely else ClauseStatus.SAMPLED
    reason = None
    if isinstance(clause, clauses.Whole) and clause.unit is Unit.WHOLE and clause.kind in clauses.DATA_KINDS:
        reason = "nothing is known about larger writes than those tested"
    elif trust is Trust.EXHAUSTIVE and (untried := sorted(asked - tried)):
        reason = f"it was not tested {' or '.join(untried)}"
    elif trust is Trust.EXHAUSTIVE and status is ClauseStatus.SAMPLED:
        reason = "no workload that tests it in this way was explored exhaustively"
    elif lucky := next((other for other in _alike(clause) if other in refutations), None):
        reason = f"«{lucky.name}», which holds by the same means, is refuted"
    elif alone := next((other for other in _with(clause) if not counts.of(other).workloads), None):
        reason = f"«{alone.name}», which belongs with it, was never tested"
    return ClauseFinding(clause, status, reason is None, *numbers, reason=reason)


def _alike(clause: Clause) -> tuple[Clause, ...]:
    """Return the clauses that a file system keeps by the same means as ``clause``. For example, it may write both kinds
    of changes with its journal. If a crash state refutes such a clause, ``clause`` has held by luck. For an order of
    changes of one file (such as a rename after an append to it), the result is empty. File systems often have a special
    rule for such an order."""
    if isinstance(clause, clauses.Whole) and clause.kind in clauses.RENAMES:
        return tuple(clauses.Whole(kind, Unit.WHOLE) for kind in clauses.RENAMES)
    if not isinstance(clause, clauses.Ordered) or clause.relation is Relation.SAME_FILE:
        return _with(clause)
    before, after = (clauses.written_by(clauses.means_of(kind)) for kind in (clause.before, clause.after))
    return clauses.orders(before, after, (Relation.SAME_DIRECTORY, Relation.OTHER_DIRECTORY))


def _with(clause: Clause) -> tuple[Clause, ...]:
    """Return the clauses that must all have been tested before ``clause`` is promised. The result is empty, unless
    ``clause`` says that a sync of one file also persists data of other files. One such clause is about overwrites,
    another about appends, and both must have been tested."""
    others = (What.OTHER_OVERWRITES, What.OTHER_APPENDS)
    if not isinstance(clause, clauses.Durable) or clause.what not in others:
        return ()
    return clauses.durable((clause.call,), others)
