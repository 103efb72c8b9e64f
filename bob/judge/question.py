"""The answers to a question of ``bob try``, from the files in the question's run directory. A question has a workload,
and expectations (conditions on the tree after a crash). A *witness* is a file about one crash state that breaks an
expectation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bob.answer.answer import Way
from bob.answer.result import UNMOUNTABLE, Environment, Result, Run, SubjectResult, beside
from bob.catalogue.request import ProbeRequest
from bob.claim.claim import AfterMount, Claim, Context
from bob.claim.expectation.expected import ExpectationClaim
from bob.claim.expectation.syntax import Expectation
from bob.claim.mounting import unmountable
from bob.claim.property.judged_case import JudgedCase
from bob.crash.device import DeviceModelDocument
from bob.crash.neighbours import causes
from bob.crash.state import CrashState
from bob.errors import RecordingError
from bob.judge.expectations import SaidByRecording, refused, said_by, together
from bob.observe.observations import StateTrouble, TroubleKind, alike
from bob.schema import adapt
from bob.store.run_directory import RunDirectory
from bob.store.run_documents import RefusedWorkload
from bob.witness import document as witness
from bob.witness.document import ShownState
from bob.workload.operations import Workload
from bob.workload.plain import WorkloadDocument


@dataclass(frozen=True, slots=True)
class Trial:
    """A question of ``bob try``. All ``workloads`` have the same operations, but different ends, such as an fsync or a
    sync. ``request`` says how and where they run. For each expectation, bob keeps witnesses of up to ``most_witnesses``
    ways to break it."""

    request: ProbeRequest
    workloads: tuple[Workload, ...]
    expectations: tuple[Expectation, ...]
    most_witnesses: int


def judge_question(trial: Trial, run: RunDirectory, about: Run, environment: Environment) -> Result:
    """Return the answers, and keep their witnesses in ``run``. Raises RecordingError if nothing was recorded."""
    folders = [run.folder(number, workload) for number, workload in enumerate(trial.workloads)]
    kept = [run.unobserved(folder) or _Recorded(trial.request, run, folder) for folder in folders]
    recorded = {place: one for place, one in enumerate(kept) if isinstance(one, _Recorded)}
    refusals = [one for one in kept if isinstance(one, RefusedWorkload)]
    if not recorded and not any(one.fall for one in refusals):
        raise RecordingError(refusals[0].reason or "bob recorded nothing", hint=f"the run directory is {run.path}")

    def keep(name: str, place: int, state: CrashState, evidence: str, claim: Claim) -> str:
        return run.save_witness(name, recorded[place].witness(state, evidence, claim, environment))

    answers = []
    each = zip(*(_said(trial, one, workload) for one, workload in zip(kept, trial.workloads, strict=True)), strict=True)
    for number, (expectation, said) in enumerate(zip(trial.expectations, each, strict=True), start=1):
        answer, easiest_states = together(expectation, said)
        ways = list(answer.ways)
        for place, state in enumerate(easiest_states[: trial.most_witnesses]):
            name, way = f"expectation-{number}-{place + 1}", ways[place]
            path = keep(name, way.place, state, way.evidence, ExpectationClaim(expectation.text))
            ways[place] = replace(way, witness=path)
        answers.append(replace(answer, ways=tuple(ways)))
    refusing: list[Way] = []
    for place, one in recorded.items():
        breach, states = unmountable(one.bench.unmountable, one.bench.observation)
        if breach is not None:
            name = f"{UNMOUNTABLE}-{place + 1}" if refusing else UNMOUNTABLE
            path = keep(name, place, breach.state, breach.evidence, breach.claim)
            refusing.append(Way(breach.evidence, states, path, place))
    made = trial.request.configuration
    losses = (one.observed.earlier_loss for one in recorded.values())
    notes = (
        made.fs.note,
        *(f"{loss}; another guest started again" for loss in losses if loss),
        *(line for one in recorded.values() for line in one.troubles()),
    )
    mounted = next((one.case.recording.effective_options for one in recorded.values()), made.mount_options)
    subject = replace(
        SubjectResult.of(made, mounted, environment.mkfs_version),
        answers=tuple(answers),
        beside=(beside(UNMOUNTABLE, UNMOUNTABLE, refusing),) if refusing else (),
        notes=tuple(dict.fromkeys(note for note in notes if note)),
    )
    model, workload = DeviceModelDocument.of(trial.request.model), WorkloadDocument.of(trial.workloads[0])
    return Result(about, environment, model, (subject,), workload=workload)


def _said(trial: Trial, kept: _Recorded | RefusedWorkload, workload: Workload) -> Sequence[SaidByRecording]:
    if isinstance(kept, RefusedWorkload):
        return [refused(workload, kept.reason, kept.fall)] * len(trial.expectations)
    return said_by(trial.expectations, kept.bench, kept.observed, kept.case.complete)


class _Recorded:
    """The recording of one of the question's workloads, and its observations. They are in a ``folder`` of ``run``."""

    def __init__(self, request: ProbeRequest, run: RunDirectory, folder: Path) -> None:
        # The plan of the case is of the whole recording. The crash states that the workload asks for are states of that
        # plan.
        self.case = run.case(folder, request.configuration, request.model)
        self.observed = run.observed(folder)
        self.bench = JudgedCase.of(self.case, self.observed)

    def troubles(self) -> Iterator[str]:
        found: defaultdict[tuple[str, str], list[StateTrouble]] = defaultdict(list)
        for trouble in self.observed.troubles:
            found[alike(trouble)].append(trouble)
        for (kind, _words), troubles in found.items():
            states = f"{len(troubles):,} crash state{'' if len(troubles) == 1 else 's'}"
            yield f"{states} {TroubleKind(kind).said}: {troubles[0].words}"

    def _keeps(self, claim: Claim, state: CrashState) -> bool:
        if (outcome := self.bench.outcome(state)) is None:
            return False
        return claim.kept(AfterMount(self.bench.observation(outcome)), adapt(Context, self.case))

    def witness(self, state: CrashState, evidence: str, claim: Claim, environment: Environment) -> Mapping[str, Any]:
        found = causes(self.case.plan.points, state, partial(self._keeps, claim))
        return witness.write(ShownState(self.case, state, claim, evidence, found), environment=asdict(environment))
