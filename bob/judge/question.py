"""A quick question, which ``bob try`` asks: what is asked, and the answers by what its run directory has kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bob.answer.answer import Way
from bob.answer.result import UNMOUNTABLE, Environment, Result, Run, SubjectResult, beside
from bob.catalogue.request import ProbeRequest
from bob.claim.claim import AfterMount, Claim, context_of
from bob.claim.expectation.expected import ExpectationClaim
from bob.claim.expectation.syntax import Expectation
from bob.claim.mounting import Mountable
from bob.claim.property.judged_case import JudgedCase
from bob.crash.device import DeviceModelDocument
from bob.crash.neighbours import causes
from bob.crash.state import CrashState
from bob.errors import RecordingError
from bob.judge.expectations import SaidByRecording, refused, said_by, together
from bob.observe.easiest import Easiest, easiest
from bob.observe.observations import ExploredState, Observations, StateTrouble, TroubleKind, alike
from bob.store.run_directory import RunDirectory
from bob.witness import document as witness
from bob.witness.document import ShownState
from bob.workload.operations import Workload
from bob.workload.plain import WorkloadDocument


@dataclass(frozen=True, slots=True)
class Trial:
    """What is asked: of ``request`` how and where, what is done, when the crash comes, and what is expected then.

    ``workloads`` differ in how they finish, and in nothing else. Of each expectation that breaks, up to
    ``most_witnesses`` ways are kept as witnesses.
    """

    request: ProbeRequest
    workloads: tuple[Workload, ...]
    expectations: tuple[Expectation, ...]
    most_witnesses: int


def judge_question(trial: Trial, run: RunDirectory, about: Run, environment: Environment) -> Result:
    """Return the answers to ``trial`` by what ``run`` has kept, which keeps their witnesses, too.

    Raise RecordingError if nothing was recorded.
    """
    kept = [_Kept(trial, number, workload, run) for number, workload in enumerate(trial.workloads)]
    if not any(one.taken or one.fall for one in kept):
        raise RecordingError(kept[0].refused or "nothing was recorded", hint=f"the run directory is {run.path}")

    def keep(name: str, place: int, state: CrashState, evidence: str, claim: Claim) -> str:
        return run.save_witness(name, kept[place].witness(state, evidence, claim, environment))

    answers = []
    each = zip(*(one.said() for one in kept), strict=True)
    for number, (expectation, said) in enumerate(zip(trial.expectations, each, strict=True), start=1):
        answer, easiest_states = together(expectation, said)
        ways = list(answer.ways)
        for place, shown in enumerate(easiest_states[: trial.most_witnesses]):
            name, told = f"expectation-{number}-{place + 1}", ways[place].evidence
            path = keep(name, shown.place, shown.state, told, ExpectationClaim(expectation.text))
            ways[place] = replace(ways[place], witness=path)
        answers.append(replace(answer, ways=tuple(ways)))
    unmountable: list[Way] = []
    for place, one in enumerate(kept):
        if one.refusing is not None:
            name = UNMOUNTABLE if not unmountable else f"{UNMOUNTABLE}-{place + 1}"
            path = keep(name, place, one.refusing.shown.state, one.error, Mountable())
            unmountable.append(Way(one.error, one.refusing.states, path, place))
    made = trial.request.configuration
    notes = (made.fs.note, *(one.earlier_loss for one in kept), *(line for one in kept for line in one.troubles))
    mounted = next((one.mount for one in kept if one.taken), made.mount_options)
    subject = replace(
        SubjectResult.of(made, mounted, environment.mkfs_version),
        answers=tuple(answers),
        beside=(beside(UNMOUNTABLE, UNMOUNTABLE, unmountable),) if unmountable else (),
        notes=tuple(dict.fromkeys(note for note in notes if note)),
    )
    model, workload = DeviceModelDocument.of(trial.request.model), WorkloadDocument.of(trial.workloads[0])
    return Result(about, environment, model, (subject,), workload=workload)


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
    ``troubles`` are what is wrong with states that mount, in lines. ``refusing`` are the states that could not be
    mounted, and ``error`` says of the easiest why.
    """

    def __init__(self, trial: Trial, number: int, workload: Workload, run: RunDirectory) -> None:
        self._trial, self._workload = trial, workload
        folder = run.folder(number, workload)
        refusal = run.unobserved(folder)
        self.refused = None if refusal is None else refusal.reason
        self.fall = None if refusal is None else refusal.fall
        self.taken = refusal is None
        self.refusing: Easiest[ExploredState] | None = None
        self.mount = self.earlier_loss = self.error = ""
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
        found = easiest(self._bench.unmountable)
        if found and found.shown.outcome is not None:
            self.refusing = found
            self.error = observed.findings.observation(found.shown.outcome).error or ""

    def said(self) -> Sequence[SaidByRecording]:
        """What this recording alone says of each expectation."""
        expectations = self._trial.expectations
        if not self.taken:
            return [refused(self._workload, self.refused or "", self.fall)] * len(expectations)
        return said_by(expectations, self._bench, self._observed, self._case.complete)

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
