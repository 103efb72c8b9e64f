"""A quick question from end to end: some operations, recorded once for each way to finish, their crash states explored,
and what is expected of them.

The run directory has what a probe's has, with the answers (``bob.try/1``) as its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from bob.claim.claim import AfterMount, Claim, context_of
from bob.claim.expectation.expected import ExpectationClaim
from bob.claim.mounting import Mountable
from bob.claim.property.judged_case import JudgedCase
from bob.claim.verdict import Verdict
from bob.crash.coverage import NOTHING, total
from bob.crash.neighbours import causes
from bob.crash.state import CrashState
from bob.errors import RecordingError
from bob.image import Image, check_file_system, check_kernel
from bob.judge.answers import Answer, answers, together
from bob.judge.tried import Finished, Trial, Tried, to_json
from bob.observe.easiest import easiest
from bob.observe.observations import Observations, StateTrouble, TroubleKind, alike
from bob.progress import Progress
from bob.result import Environment, Run, Unmountable
from bob.run.agents import check_image, guests_of, image_called, jobs_for
from bob.run.pipeline import Pipeline
from bob.run.prober import environment_of
from bob.run.tasks import Task
from bob.run.timings import TimedWork, timed
from bob.schema import encode
from bob.store.lock import writing
from bob.store.new_folder import withdrawn_if_refused
from bob.store.run_directory import RUNS, RunDirectory, new_identity, now
from bob.subject.subject import ConfigurationDocument
from bob.version import __version__
from bob.witness import document as witness
from bob.witness.document import ShownState
from bob.workload.operations import Workload
from bob.workload.plain import workload_to_json


def try_out(trial: Trial, out: Path | None, progress: Progress) -> tuple[Tried, Path]:
    """The answers to ``trial``, and the run directory with everything behind them: ``out``, or a new one in ./bob-runs.

    Raises UsageError before anything is started for a file system that the image's kernel does not have, and in the
    machine's own words when mkfs or the kernel refuse the configuration; RecordingError where no recording can be had,
    or none can be believed. Where that is so of some, what does not break in the others is unknown.
    """
    request, identity, started = trial.request, new_identity(), now()
    check_image(request.image)
    image = image_called(request.image, progress.step, request.host.connect)
    check_kernel(image)
    check_file_system(image, request.configuration.fs.module, request.configuration.fs.package)
    about = {
        "id": identity,
        "started": started,
        "bob": __version__,
        "configuration": encode(ConfigurationDocument.of(request.configuration)),
        "workloads": [workload_to_json(workload) for workload in trial.workloads],
        "expectations": [expectation.text for expectation in trial.expectations],
        "at": trial.at.value,
    }
    path = out if out is not None else RUNS / identity
    with withdrawn_if_refused(path, "workloads/*"):
        return _tried(trial, RunDirectory.create(path, about), image, progress), path


def _tried(trial: Trial, run: RunDirectory, image: Image, progress: Progress) -> Tried:
    """The answers to ``trial``, with everything behind them in ``run``."""
    request, about = trial.request, run.about()
    with writing([run.path]), guests_of(image, request.host.connect, progress.step) as hypervisor:
        environment = environment_of(hypervisor, image, request)
        run.note(environment=asdict(environment))
        progress.planned(len(trial.workloads), len(trial.workloads) * request.budget)
        task = Task(request.configuration, request.model, request.effort, run, trial.workloads)
        guests, count = jobs_for(image.name, request.host.jobs), len(trial.workloads)
        work = TimedWork.of("try", request, guests, count)
        with timed([work], progress) as watcher, Pipeline(hypervisor, image, [task], watcher, guests) as pipeline:
            for number in range(len(trial.workloads)):
                pipeline.result(0, number)  # which the run directory keeps
        found = Run(about["id"], about["started"], now(), __version__, request.seed, request.budget)
        tried = judge(trial, run, found, environment)
        run.save_result(to_json(tried))
        run.note(finished=found.finished)
    return tried


def judge(trial: Trial, run: RunDirectory, about: Run, environment: Environment) -> Tried:
    """The answers by what ``run`` has kept; their witnesses are kept there, too. No guest is needed."""
    kept = [_Kept(trial, number, workload, run) for number, workload in enumerate(trial.workloads)]
    if not any(one.taken or one.fall for one in kept):
        raise RecordingError(kept[0].refused or "nothing was recorded", hint=f"the run directory is {run.path}")
    each = [one.answers() for one in kept]
    names = [workload.finish.name for workload in trial.workloads]
    found = tuple(together(names, answers) for answers in zip(*each, strict=True))

    def keep(name: str, place: int, state: CrashState, evidence: str, claim: Claim) -> str:
        return run.save_witness(name, kept[place].witness(state, evidence, claim, environment))

    parts: list[Finished] = []
    for place, one in enumerate(kept):
        unmountable = one.unmountable
        if one.refusing is not None:
            name = "unmountable" if not any(part.unmountable.states for part in parts) else f"unmountable-{place + 1}"
            path = keep(name, place, one.refusing, unmountable.error or "", Mountable())
            unmountable = replace(unmountable, witness=path)
        parts.append(Finished(trial.workloads[place].finish, one.states, unmountable, one.refused, one.fall))
    losses = (one.earlier_loss for one in kept)
    notes = (trial.request.configuration.fs.note, *losses, *(line for one in kept for line in one.troubles))
    return Tried(
        run=about,
        environment=environment,
        model=trial.request.model,
        configuration=trial.request.configuration,
        mount=next((one.mount for one in kept if one.taken), trial.request.configuration.mount_options),
        workload=trial.workloads[0],
        at=trial.at,
        states=total([one.states for one in kept]),
        unmountable=_unmountable(parts),
        answers=found,
        witnesses=tuple(_keep(trial, number, answer, keep) for number, answer in enumerate(found, start=1)),
        finishes=tuple(parts),
        notes=tuple(dict.fromkeys(note for note in notes if note)),
    )


def _keep(
    trial: Trial, number: int, answer: Answer, keep: Callable[[str, int, CrashState, str, Claim], str]
) -> tuple[str, ...]:
    """Keep witnesses of an answer; their paths."""
    return tuple(
        keep(
            f"expectation-{number}-{place}",
            way.place,
            way.easiest,
            way.evidence,
            ExpectationClaim(answer.expectation.text),
        )
        for place, way in enumerate(answer.ways[: trial.most_witnesses], start=1)
        if way.easiest is not None
    )


def _unmountable(parts: Sequence[Finished]) -> Unmountable:
    """What could not be mounted after any of the finishes, with the first one's witness."""
    found = [part.unmountable for part in parts if part.unmountable.states]
    return replace(found[0], states=sum(one.states for one in found)) if found else Unmountable()


def _troubles(observed: Observations) -> Iterator[str]:
    """What is wrong with states that mount, a line for each thing."""
    found: dict[tuple[str, str], list[StateTrouble]] = {}
    for trouble in observed.troubles:
        found.setdefault(alike(trouble), []).append(trouble)
    for (kind, _words), troubles in found.items():
        states = f"{len(troubles):,} crash state{'' if len(troubles) == 1 else 's'}"
        yield f"{states} {TroubleKind(kind).said}: {troubles[0].words}"


class _Kept:
    """The recording of a trial with one finish, and what was seen of it, as the run directory has them.

    ``refused`` says why there is none, where there is none; else it is ``taken``. ``fall`` is how the kernel fell then.
    ``troubles`` are what is wrong with states that mount, in lines. ``refusing`` is the easiest of the states that
    could not be mounted.
    """

    def __init__(self, trial: Trial, number: int, workload: Workload, run: RunDirectory) -> None:
        self._trial = trial
        folder = run.folder(number, workload)
        refusal = run.unobserved(folder)
        self.refused = None if refusal is None else refusal.reason
        self.fall = None if refusal is None else refusal.fall
        self.taken = refusal is None
        self.states, self.unmountable = NOTHING, Unmountable()
        self.refusing: CrashState | None = None
        self.mount = self.earlier_loss = ""
        self.troubles: tuple[str, ...] = ()
        if self.taken:
            self._take(run, folder)

    def _take(self, run: RunDirectory, folder: Path) -> None:
        # Its plan is of the whole recording; the crash states that were asked for are told as states of that.
        self._case = run.case(folder, self._trial.request.configuration, self._trial.request.model)
        self._observed = observed = run.observed(folder)
        self.mount = self._case.recording.effective_options
        self.troubles = tuple(_troubles(observed))
        if observed.earlier_loss:
            self.earlier_loss = f"{observed.earlier_loss}; another guest began anew"
        self._bench = JudgedCase.of(self._case, observed)
        self.states = self._bench.coverage
        found = easiest(self._bench.unmountable)
        if found and (refused := found.shown).outcome is not None:
            error = observed.findings.observation(refused.outcome).error or ""
            self.refusing = refused.state
            self.unmountable = Unmountable(found.states, None, error)

    def answers(self) -> tuple[Answer, ...]:
        """The answer to each expectation by this recording alone."""
        if not self.taken:
            asked = self._trial.expectations
            return tuple(Answer(expectation, Verdict.UNKNOWN, reason=self.refused) for expectation in asked)
        return answers(self._trial.expectations, self._bench, self._observed, self._case.complete)

    def _keeps(self, claim: Claim, state: CrashState) -> bool:
        """Whether ``state`` is known to keep a claim."""
        if (outcome := self._bench.outcome(state)) is None:
            return False
        return claim.kept(AfterMount(self._observed.findings.observation(outcome)), context_of(self._case))

    def witness(self, state: CrashState, evidence: str, claim: Claim, environment: Environment) -> Mapping[str, Any]:
        """The witness of a state of this recording."""
        found = causes(self._case.plan.points, state, partial(self._keeps, claim))
        return witness.write(
            ShownState(self._case, state, claim, evidence, found),
            environment=asdict(environment),
        )
