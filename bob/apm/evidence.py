"""Read a run of bob as evidence for models. Its workloads become micro-operations (changes that persist whole or not at
all). Its observations become constraints, which say what micro-operations may have persisted. No virtual machine is
needed. An *outcome* is what a mount of a crash state showed. A crash state is *legal* if the disk may hold it after the
crash."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from bob.apm.dependencies import Graph, graph_of_workload
from bob.apm.readings import Constraint, ObservationReader
from bob.catalogue.request import request_from_json
from bob.claim.property.judged_case import JudgedCase
from bob.claim.property.readings import inodes_of_things
from bob.crash.case import Case
from bob.crash.state import CrashState
from bob.observe.observation import Observation
from bob.observe.observations import Observations
from bob.store.run_directory import RunDirectory


@dataclass(frozen=True, slots=True)
class OutcomeConstraints:
    """An outcome (what bob found when it mounted certain crash states), and what it says about micro-operations.
    ``outcome`` is the number of the outcome. ``state`` is the first crash state with this outcome, and ``states``
    counts the legal crash states with it. All these crashes come after the same operation: ``returned`` is the number
    of the last operation that had returned (0: none had). ``constraints`` say which micro-operations may have
    persisted, given this outcome."""

    state: CrashState
    outcome: int
    returned: int
    states: int
    constraints: tuple[Constraint, ...]


class ObservedCase:
    """A case (the legal crash states of one workload) with all its observations. ``commit`` is the longest time between
    two commits of its file system, in seconds."""

    def __init__(
        self, run: RunDirectory, folder: Path, case: Case, observed: Observations, commit: float = 5.0
    ) -> None:
        self.commit = commit
        self.run, self.folder, self.case, self.workload = run, folder, case, case.workload
        self.exhaustive = observed.coverage.exhaustive is not None and observed.lost is None
        self._observed = observed

    @cached_property
    def graph(self) -> Graph:
        return graph_of_workload(self.workload)

    @cached_property
    def sights(self) -> tuple[OutcomeConstraints, ...]:
        """The outcomes of states that mounted without a repair. If crashes after different numbers of returned
        operations leave the same outcome, it occurs once for each of these numbers."""
        history = self.graph.workings.history
        reader = ObservationReader(self.graph.workings, inodes_of_things(history, *self.case.inodes))
        observations = self._observed.findings.observations()
        read: dict[int, tuple[Constraint, ...]] = {}
        found: dict[tuple[int, int], OutcomeConstraints] = {}
        for seen in self._observed.states:
            if seen.outcome is None:
                continue
            if seen.outcome not in read:
                observation = observations[seen.outcome]
                read[seen.outcome] = () if not observation.mounted else reader.read(observation)
            if not read[seen.outcome]:
                continue
            key = seen.outcome, self._returned(seen.state)
            new = OutcomeConstraints(seen.state, *key, seen.states, read[seen.outcome])
            found[key] = replace(found[key], states=found[key].states + seen.states) if key in found else new
        return tuple(found.values())

    def observation(self, sight: OutcomeConstraints) -> Observation:
        return self._observed.findings.observation(sight.outcome)

    def _returned(self, state: CrashState) -> int:
        return bisect_right(self._ends, self.case.plan.points[state.point].time)

    @cached_property
    def _ends(self) -> list[int]:
        """The times in the trace when operations returned, in order. The agent (bob's program in the virtual machine)
        marks these times in the trace. In its marks, every operation of the finish (the workload's end) has the number
        0."""
        trace, operations = self.case.plan.trace, len(self.workload.operations)
        own = {f"op {number} end" for number in range(1, operations + 1)}
        ends = [mark.at.time for mark in trace.marks if mark.text in own]
        return ends + [mark.at.time for mark in trace.marks if mark.text == "op 0 end"]


def witnessed(path: Path) -> Iterator[ObservedCase]:
    """Yield the observed workloads of the run in the folder ``path``. Leave out a workload whose observations cannot be
    trusted. To verify the observations, bob looks at two crash states whose right outcome is known: the state before
    the operations, and the state with all writes."""
    run = RunDirectory(path)
    request = request_from_json(run.about()["request"])
    subject, model = request.configuration, request.model
    for folder in run.workloads():
        if run.refusal(folder) is not None or not run.is_observed(folder):
            continue
        case, observed = run.case(folder, subject, model), run.observed(folder)
        if JudgedCase.of(case, observed).distrust is None:
            yield ObservedCase(run, folder, case, observed, subject.fs.commit)
