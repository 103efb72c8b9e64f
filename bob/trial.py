"""A quick question from end to end: one workload, recorded, its crash states explored, and what is expected of them.

The run directory has what a probe's has of one workload, with the answers (``bob.try/1``) as its result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import bob
from bob import witness
from bob.crash.neighbours import causes
from bob.crash.plan import Plan
from bob.crash.state import CrashState, departure
from bob.expect.answers import Answer, answers
from bob.expect.document import Trial, Tried, to_json
from bob.expect.evaluate import holds
from bob.guest.hypervisor import Hypervisor
from bob.guest.spec import Clock
from bob.guest.with_agent import agent_in
from bob.image import Image, ensure
from bob.judge.verdicts import Bench
from bob.observe.explore import explore
from bob.observe.observation import Observation
from bob.prober import RUNS, environment_of, new_identity, now
from bob.progress import Progress
from bob.record.base import make_base
from bob.record.check import checked
from bob.record.recorder import record
from bob.request import configuration_to_json
from bob.result import Environment, Run, Unmountable
from bob.store import Observed, RunDirectory, workload_to_json
from bob.trace.base import Base
from bob.trace.recording import Recording
from bob.witness import Showing

ATTEMPTS = 2
"""A guest that dies while it observes may be the machine's fault; a second one gets the same work."""


def try_out(trial: Trial, out: Path | None, progress: Progress) -> tuple[Tried, Path]:
    """The answers to ``trial``, and the run directory with everything behind them: ``out``, or a new one in ./bob-runs.

    Raises UsageError in the machine's own words when mkfs or the kernel refuse the configuration or an operation,
    RecordingError where the recording cannot be believed, GuestLost when the guest is lost that records.
    """
    request, identity, started = trial.request, new_identity(), now()
    about = {
        "id": identity,
        "started": started,
        "bob": bob.__version__,
        "configuration": configuration_to_json(request.configuration),
        "workloads": [workload_to_json(trial.workload)],
        "expectations": [expectation.text for expectation in trial.expectations],
        "at": trial.at.value,
    }
    run = RunDirectory.create(out if out is not None else RUNS / identity, about)
    image = ensure(request.image, progress.step)
    with Hypervisor.open(request.host.connect, progress.step) as hypervisor:
        environment = environment_of(hypervisor, image, request)
        run.note(environment=asdict(environment))
        progress.planned(1, request.budget)
        taken = _record(hypervisor, image, trial, run, progress)
        observed = taken.observe(hypervisor, image, progress)
    run.save_observed(taken.folder, observed)
    found = Run(identity, started, now(), bob.__version__, request.seed, request.budget)
    tried = taken.judge(observed, found, environment, run)
    run.save_result(to_json(tried))
    run.note(finished=found.finished)
    return tried, run.path


def _record(hypervisor: Hypervisor, image: Image, trial: Trial, run: RunDirectory, progress: Progress) -> _Taken:
    """Record the workload, and keep the recording."""
    made, workload = trial.request.configuration, trial.workload
    with agent_in(hypervisor, image, Clock.VIRTUAL) as agent:
        base = make_base(agent, made, workload.setup)
        recording = record(agent, made, base, workload, virtual=True)
    taken = _Taken(trial, base, recording, run.folder(0, workload))
    run.save_base(base)
    run.save_recording(taken.folder, workload, base, recording)
    progress.recorded(workload.title)
    return taken


class _Taken:
    """The recording of a trial: ``whole`` has all its crash states, ``asked`` those at the time that was asked for."""

    def __init__(self, trial: Trial, base: Base, recording: Recording, folder: Path) -> None:
        self.folder = folder
        self._trial, self._base, self._recording = trial, base, recording
        trace, model = checked(recording, base), trial.request.model
        self.whole = Plan(trace, base, model)
        self.asked = self.whole.asked(trial.at, len(trial.workload.operations))
        self._complete = self.whole.controls[-1]

    def observe(self, hypervisor: Hypervisor, image: Image, progress: Progress) -> Observed:
        """What is seen of the crash states that were asked for, as states of the whole recording."""
        title, budget = self._trial.workload.title, self._trial.request.budget
        earlier_loss = None
        for attempt in range(ATTEMPTS):
            told: list[int] = []

            def tell(states: int, told: list[int] = told) -> None:
                told.append(states)
                progress.observed(title, states)

            observed = replace(self._explore(hypervisor, image, tell), earlier_loss=earlier_loss)
            if not observed.died or attempt + 1 == ATTEMPTS:
                break
            progress.step(f"{observed.lost}; another guest begins anew")
            progress.observed(title, -sum(told))
            earlier_loss = observed.lost
        progress.finished(title, budget - sum(told))
        return observed

    def _explore(self, hypervisor: Hypervisor, image: Image, tell: Callable[[int], None]) -> Observed:
        request = self._trial.request
        with agent_in(hypervisor, image, Clock.REAL) as agent:
            return explore(
                agent,
                request.configuration,
                self._base,
                self.asked,
                budget=request.budget,
                seed=request.seed,
                audit=request.audit,
                observed=tell,
            )

    def judge(self, observed: Observed, run: Run, environment: Environment, folder: RunDirectory) -> Tried:
        """The answers; their witnesses are kept in ``folder``."""
        trial, recording = self._trial, self._recording
        inodes = (recording.inodes_before, recording.inodes_after)
        observations = observed.findings.observations()
        asked = replace(trial.workload, at=trial.at)
        bench = Bench(asked, inodes, observed.states, observations, observed.coverage, observed.lost, self._complete)
        found = answers(trial.expectations, bench, observed, self._complete)
        unmountable = Unmountable()
        if bench.unmountable:
            easiest = min(bench.unmountable, key=lambda seen: departure(seen.state))
            assert easiest.outcome is not None
            error = observations[easiest.outcome].error or ""
            mounts = partial(bench.satisfies, None)
            path = folder.save_witness("unmountable", self._witness(easiest.state, error, None, environment, mounts))
            unmountable = Unmountable(sum(seen.states for seen in bench.unmountable), path, error)
        lost = f"{observed.earlier_loss}; another guest began anew" if observed.earlier_loss else ""
        return Tried(
            run=run,
            environment=environment,
            model=trial.request.model,
            configuration=trial.request.configuration,
            mount=recording.effective_options,
            workload=trial.workload,
            at=trial.at,
            states=bench.coverage,
            unmountable=unmountable,
            answers=found,
            witnesses=tuple(
                self._keep(number, answer, bench, observations, environment, folder)
                for number, answer in enumerate(found, start=1)
            ),
            notes=tuple(note for note in (trial.request.configuration.fs.note, lost) if note),
        )

    def _keep(
        self,
        number: int,
        answer: Answer,
        bench: Bench,
        observations: Sequence[Observation],
        environment: Environment,
        folder: RunDirectory,
    ) -> tuple[str, ...]:
        """Keep witnesses of an answer; their paths."""

        def holds_in(state: CrashState) -> bool:
            """Whether the expectation is known to hold in ``state``."""
            if not bench.satisfies(None, state) or (outcome := bench.outcome(state)) is None:
                return False
            return holds(answer.expectation.test, observations[outcome], bench.history)

        return tuple(
            folder.save_witness(
                f"expectation-{number}-{place}",
                self._witness(way.easiest, way.evidence, answer.expectation.text, environment, holds_in),
            )
            for place, way in enumerate(answer.ways[: self._trial.most_witnesses], start=1)
        )

    def _witness(
        self,
        state: CrashState,
        evidence: str,
        expectation: str | None,
        environment: Environment,
        is_fine: Callable[[CrashState], bool],
    ) -> Mapping[str, Any]:
        """The witness of ``state``; ``is_fine`` says of others that they do not show what it shows."""
        trial, found = self._trial, causes(self.whole.points, state, is_fine)
        return witness.write(
            None,
            Showing(trial.workload, self._base, self._recording, self.whole, state, None, evidence, expectation, found),
            environment=asdict(environment),
            configuration=trial.request.configuration,
            model=trial.request.model,
        )
