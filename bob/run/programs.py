"""A program under test: bob records its workload, explores its crash states, and runs its checker on them. A *pace*
says how fast the program runs: undisturbed, or slowed down.

A *window* has the crashes between two outputs of the program (:mod:`bob.program.transcript`); bob explores each window
like any workload. The checker gets the tree after a crash, and the output before the crash. bob runs it once for each
such pair. It also runs the checker on a sample of other crash states with the same tree."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from bob.agent.shared import ROOT
from bob.answer.answer import Answer
from bob.answer.result import AskedProgram, Checks, ClusterTuples, Environment, Result, SubjectResult
from bob.apm.builtin import SOFT
from bob.apm.derive import was_derived_of
from bob.apm.model import Model
from bob.catalogue.request import Host, ProbeRequest
from bob.claim.checking import CheckerClaim
from bob.claim.verdict import Verdict
from bob.crash.case import Case
from bob.crash.coverage import NOTHING
from bob.errors import StoreError, UsageError
from bob.guest.capacity import check_jobs, guests_that_fit, memory_for
from bob.guest.hypervisor import Hypervisor
from bob.image import Image, check_kernel, check_subject, ensure
from bob.judge.again import keep_result
from bob.judge.looked import Looked
from bob.judge.modelled import crossed
from bob.judge.programs import CHECKER, EasiestCrash, as_question, judge, with_its_write
from bob.judge.reliance import Explaining, Reliances
from bob.program.program import MOMENTS, Pace, Program, ProgramDocument
from bob.program.strace import SystemCall
from bob.program.transcript import ProgramCase, Transcript
from bob.program.untraced import not_followed, unpaced
from bob.progress import Progress
from bob.protocol.diagram import DiagramStep, Protocol
from bob.protocol.moments import moment_files
from bob.protocol.unsynced import unsynced_in_words
from bob.run.agents import KeptGuests
from bob.run.cluster_windows import explore_cluster
from bob.run.pool import ProgramGuests
from bob.run.prober import begin, environment_of, note_environment
from bob.run.program_models import UNKNOWN, Allows, ModelAnswer, allowed_by_models, hold_against, unasked, unpredicted
from bob.run.program_parts import AskedOfProgram, asked_of, is_program, spread
from bob.run.program_protocol import moments_of
from bob.run.program_recording import (
    Preflight,
    frames_of,
    kept_case,
    preflight_of,
    record_program_run,
    tellings,
    validate_checker,
)
from bob.run.program_windows import WindowStore, explore_windows
from bob.run.timings import TimedProgress, TimedWork, in_words, timed
from bob.run.tuple_checks import checks_of_window
from bob.schema import decode, encode
from bob.store.files import checksum_in, read_document, reading, write_document, write_whole
from bob.store.lock import writing
from bob.store.new_folder import withdrawn_if_refused
from bob.store.run_directory import FRAMES, RunDirectory, now
from bob.store.run_documents import RefusedWorkload
from bob.store.run_kind import continued_by, is_cluster, kind_of
from bob.story.timeline import ProgramCallEvent
from bob.text import duration, printable
from bob.witness import document as witness
from bob.witness.document import ShownState

_TRUSTED = "trusted.json"  # a recording with this file has a checker that bob has tried


def try_program(
    program: Program,
    requests: Sequence[ProbeRequest],
    out: Path | None,
    progress: Progress,
    models: Sequence[Model] = (),
    *,
    explores: bool = True,
    numbers: Sequence[int] | None = None,
    answers: bool = True,
) -> tuple[Result, Path]:
    """Return the answers for ``program``, and the run directory. There is an answer for each requested configuration,
    and an answer for each of ``models``. A model predicts from the calls that bob recorded on the first configuration.

    If ``explores`` is false, only the models answer. If ``answers`` is false, bob does not ask the models whether the
    program is safe. It only asks whether they allow the trees that file systems leave. ``numbers`` are the indexes of
    the configurations in the user's list. The names of files in the run directory contain them. Raise UsageError,
    before exploring, if the program cannot be run, or its checker cannot be trusted."""
    numbers = range(len(requests)) if numbers is None else numbers
    asked = AskedOfProgram(dict(zip(numbers, requests, strict=True)), models, explores, answers)
    image = _image(requests, progress) if requests[0].host.scheduler is None else None
    folder, about = begin(out)
    about |= {"program": encode(ProgramDocument.of(program)), **asked.document}
    with withdrawn_if_refused(folder, "result.json"):
        run = RunDirectory.create(folder, about)
        with writing([run.path]):
            return _tried(program, asked, run, image, progress), run.path


def resume(path: Path, host: Host, progress: Progress, *, of_cluster: bool = False) -> tuple[Result, Path]:
    """Resume the test of a program, or of a cluster of nodes, whose run directory is ``path``. Keep its recordings and
    its explored windows. Raise StoreError if ``path`` is not such a run, or another process is writing it."""
    run = RunDirectory(path)
    about, verb = run.about(), "cluster" if of_cluster else "app"
    if not is_program(run):
        raise StoreError(f"{path} is a run of bob {kind_of(about)}, not of bob {verb}")
    if is_cluster(about) != of_cluster:
        other = "app" if of_cluster else "cluster"
        raise StoreError(f"{path} is a run of bob {other}, not of bob {verb}", hint=continued_by(path, about))
    if host.scheduler is None:
        check_jobs(host.jobs)
    with writing([path]):
        go_on(run, host, progress)
        return run.result(), path


def go_on(run: RunDirectory, host: Host, progress: Progress) -> None:
    """Continue a program's run, or the part of one on a worker of a cluster. The directory ``run`` says what is asked.
    Raise the errors of :func:`try_program`."""
    asked = asked_of(run, host)
    if run.is_finished():
        return
    image = None if host.scheduler else _image(list(asked.requests.values()), progress)
    _tried(decode(ProgramDocument, run.about()["program"]).program, asked, run, image, progress)


def _tried(
    program: Program, asked: AskedOfProgram, run: RunDirectory, image: Image | None, progress: Progress
) -> Result:
    """Answer what is ``asked``: on this machine with ``image``, or on a cluster's workers if ``image`` is None."""
    run.reopen()
    if image is None:
        parts = asked.requests if asked.explores else dict([*asked.requests.items()][:1])
        return spread(program, parts, run, asked.models, progress, explores=asked.explores)
    return _tried_here(program, asked, run, image, progress)


def _tried_here(program: Program, asked: AskedOfProgram, run: RunDirectory, image: Image, progress: Progress) -> Result:
    number, first = next(iter(asked.requests.items()))
    models, explores = asked.models, asked.explores
    held = number if models and asked.answers else None
    memory = memory_for(one.configuration for one in asked.requests.values())
    with (
        Hypervisor.open(first.host.connect, progress.step, memory_mib=memory) as hypervisor,
        KeptGuests(hypervisor) as kept,
    ):
        environment = environment_of(hypervisor, image, first)
        note_environment(run, asdict(environment))
        jobs = first.host.jobs or guests_that_fit()
        guests = ProgramGuests(kept, image, progress)
        tried = _ProgramRun(program, asked.requests, run, environment, models, guests, jobs, held)
        tried.record()
        tried.ask_models(explores)
        cases = tried.cases if explores else {}
        work = [_work(case, asked.requests[number], jobs) for number, case in cases.items()]
        if cases:
            progress.planned(sum(one.workloads for one in work), sum(one.workloads * one.budget for one in work))
        if models:
            tried.save()
        with timed(work, progress) as watcher:
            for number in cases:
                with tried.spending(number):
                    tried.explore(number, watcher)
        run.note(finished=(finished := now()))
        return tried.save(finished)


@dataclass(slots=True)
class _ProgramRun:
    """One run that records and explores a program. bob asks the models about one recording; ``held`` is the number of
    this recording. Without models, or if another part of the run asks them, ``held`` is None.

    ``modelled`` are the answers of the models, before bob compares them with the trees of file systems. ``by_models``
    are the same answers after that comparison. ``asked`` has the request for each recording, by its number. ``frames``
    are the calls with their stack frames (None: not yet known). ``spent`` has the seconds that each recording took,
    with the exploration of its crashes (host's clock)."""

    program: Program
    asked: Mapping[int, ProbeRequest]
    run: RunDirectory
    environment: Environment
    models: Sequence[Model]
    guests: ProgramGuests
    jobs: int
    held: int | None
    cases: dict[int, ProgramCase] = field(default_factory=dict)
    results: dict[int, SubjectResult] = field(default_factory=dict)
    steps: dict[int, tuple[DiagramStep, ...]] = field(default_factory=dict)
    modelled: list[ModelAnswer] = field(default_factory=list)
    by_models: list[SubjectResult] = field(default_factory=list)
    frames: Sequence[SystemCall] | None = None
    spent: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self.spent = dict(self.run.about().get("spent", {}))

    @contextmanager
    def spending(self, number: int) -> Iterator[None]:
        """Add the time of the with block to what the recording with this number has taken, also in earlier sessions."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.spent[str(number)] = round(self.spent.get(str(number), 0.0) + time.monotonic() - began, 3)
            self.run.note(spent=self.spent)

    def record(self) -> None:
        """Record the program on each configuration, and try its checker there. If the program fails only when it is
        slowed down, its answer at this pace is "unknown", with the reason. Raise UsageError if the program fails at
        full speed. Also raise it if the program fails in the recording that the models need."""
        began = time.monotonic()
        for done, (number, request) in enumerate(self.asked.items()):
            if done:
                each = (time.monotonic() - began) / done
                self.guests.progress.step(self._left(done, each))
            with self.spending(number):
                self._record(number, request)

    def _record(self, number: int, request: ProbeRequest) -> None:
        folder = self.run.folder(number, self.program)
        if (earlier := self.run.refusal(folder)) is not None:
            self.results[number] = _not_at_this_pace(request, earlier.reason)
            return
        try:
            case = kept_case(self.program, request, self.run, number)
            if case is None:
                like = next(iter(self.cases.values()), None)
                case = record_program_run(
                    self.guests, self.program, request, self.run, number, stores=bool(self.models), like=like
                )
            case = case if self.program.has_checker else self._by_moments(case, folder)
            if not (folder / _TRUSTED).is_file():
                validate_checker(self.guests, case)
                write_document(folder / _TRUSTED, {"recorded": checksum_in(folder / "recorded.json")})
        except UsageError as refused:
            if request.pace is Pace.UNDISTURBED or number == self.held:
                raise
            self.run.save_refusal(folder, RefusedWorkload.of(self.program, refused.message))
            self.results[number] = _not_at_this_pace(request, refused.message)
        else:
            self.frames = self._frames(case) if self.frames is None else self.frames
            self.cases[number] = replace(case, transcript=case.transcript.with_frames(self.frames))

    def _left(self, done: int, each: float) -> str:
        """Return what is left in words, after ``done`` recordings of ``each`` seconds."""
        known = [_work(case, self.asked[number], self.jobs) for number, case in self.cases.items()]
        said = (
            f"recorded {done} of {len(self.asked)}; the others take about {duration((len(self.asked) - done) * each)}"
        )
        if not known:
            return said
        # The other recordings have as many windows as those so far.
        like = [replace(known[-1], what="another pace")] * (len(self.asked) - len(known))
        return f"{said}, and then: {in_words([*known, *like])}"

    def _by_moments(self, case: ProgramCase, folder: Path) -> ProgramCase:
        """Return ``case`` with a checker that knows the moments of its recording. The run keeps what the checker
        knows."""
        path = folder / MOMENTS
        if path.is_file():
            [check, known] = moment_files(())
            with reading(path):
                files = check, replace(known, data=path.read_bytes())
        else:
            files = moments_of(self.guests, case)
            write_whole(path, files[1].data)
        return case.with_files(files)

    def _frames(self, case: ProgramCase) -> tuple[SystemCall, ...]:
        """Return the program's calls with their stack frames, as the run keeps them or a guest shows them."""
        if self.program.nodes:  # with stack frames, a node would be so slow that the cluster would choose other leaders
            return ()
        path = self.run.path / FRAMES
        if path.is_file():
            with reading(path):
                return decode(tuple[SystemCall, ...], read_document(path, required=True)["calls"])
        if frames := frames_of(self.guests, case):
            write_document(path, {"calls": encode(frames)}, compact=True)
        return frames

    def ask_models(self, explores: bool) -> None:
        """Ask the models what crashes could do to the program, for the recording with the number ``held``. Without
        ``held`` (None), another part of the run asks them, and the answers stay empty. ``explores`` says whether this
        part of the run later explores crash states."""
        self.modelled = [unasked(model) for model in self.models]
        if self.held is not None:
            case, request = self.cases[self.held], self.asked[self.held]
            self.modelled, self.steps[self.held] = hold_against(
                self.guests, case, request, self.models, self.jobs, self._explaining
            )
        self.by_models = [one.result for one in self.modelled]
        for refused_at_pace in (
            self.results.values() if explores else ()
        ):  # at such a pace, the predictions of models stay open
            self.by_models = [crossed(answer, refused_at_pace, {}) for answer in self.by_models]

    def explore(self, number: int, watcher: TimedProgress) -> None:
        case, guests = self.cases[number], replace(self.guests, progress=watcher)
        folder = self.run.folder(number, self.program)
        self.run.clear_loss(folder)
        store = WindowStore(self.run, folder)
        looked, tuples = explored_windows(guests, case, self.asked[number], self.jobs, store)
        watcher.lap()
        explaining, said = self._explaining(case.name), case.transcript
        reliances = Reliances.of_looked(looked, said.calls, ROOT, said.tellings, explaining, said.offset)
        self.steps[number] = reliances.steps() or self.steps.get(number, ())
        subject = SubjectResult.of(case.subject, case.recording.effective_options, self.environment.mkfs_version)
        notes = explaining.made(partial(_notes, case), ())
        subject, easiest = judge(replace(subject, name=case.name), looked, notes, reliances, _doubts(case))
        subject = as_question(subject) if case.work.is_by_moments else subject
        subject = self._with_witnesses(subject, easiest, number, looked, reliances)
        subject = replace(subject, tuples=tuples, notes=(*subject.notes, *explaining.notes))
        self.results[number] = subject
        self.save()
        beside = self._explaining(f"{case.name} by models")
        allows = [one.allows for one in self.modelled]
        if self.models and number != self.held and subject.answer.ways:
            foreseen = partial(allowed_by_models, guests, case, self.models)
            allows = beside.made(foreseen, [UNKNOWN] * len(self.models))
        held = [
            beside.made(partial(self._beside, answer, model, each, subject, looked, case), answer)
            for answer, model, each in zip(self.by_models, self.models, allows, strict=True)
        ]
        self.by_models = [replace(answer, notes=(*answer.notes, *beside.notes)) for answer in held]
        self.save()

    def save(self, finished: str = "") -> Result:
        """Write the result so far into the run directory, and return it. ``finished`` is the time when the run ended,
        or empty if the run goes on."""
        timed_ones = (replace(one, seconds=self.spent.get(str(n))) for n, one in sorted(self.results.items()))
        subjects = [*timed_ones, *self.by_models]
        protocols = [Protocol(case.name, self.steps[n]) for n, case in self.cases.items() if self.steps.get(n)]
        program, first = self.program, next(iter(self.asked.values()))
        asked = AskedProgram(program.name, program.about, program.digest, program.must_fail)
        return keep_result(self.run, first, self.environment, subjects, finished, asked, protocols)

    def _explaining(self, on: str) -> Explaining:
        return Explaining(lambda trace: self.run.save_traceback(f"{self.program.name} {on}", trace).name)

    def _beside(
        self,
        answer: SubjectResult,
        model: Model,
        allows: Allows,
        result: SubjectResult,
        looked: Sequence[Looked],
        case: ProgramCase,
    ) -> SubjectResult:
        if model.source.get("builtin") == SOFT:  # it says nothing of crashes of the machine
            return answer
        missing, undecided = unpredicted(allows, looked)
        if undecided:
            words = f"bob could not decide whether the model allows {undecided} of the refused trees of {case.name}"
            answer = replace(answer, notes=(*answer.notes, words))
        kernel, kernels = self.environment.kernel, model.source.get("kernels", ())
        is_its_own = was_derived_of(model, case.subject, kernel)
        if is_its_own and missing and kernel not in kernels:
            derived_on = f"the model was derived on Linux {', '.join(kernels)}"
            words = f"{derived_on}, this is {kernel}, another package of the series"
            answer = replace(answer, notes=(*answer.notes, words))
        return crossed(answer, result, missing, is_its_own=is_its_own)

    def _with_witnesses(
        self,
        subject: SubjectResult,
        easiest: Sequence[EasiestCrash],
        number: int,
        looked: Sequence[Looked],
        reliances: Reliances,
    ) -> SubjectResult:
        """Return ``subject`` with a witness (a file that shows the failure again) for each way to fail. Sometimes
        system calls alone do not explain a failure. In this case, also name the write to the disk that the failure
        depends on."""
        shown, said = [], self.cases[number].transcript
        writes = witness.named(looked[0].case) if easiest else ()
        for place, (way, crash) in enumerate(zip(subject.answer.ways, easiest, strict=True), start=1):
            assert way.consequence is not None
            window = looked[crash.place]
            case, causes = window.case, window.causes(crash.state)
            claim = CheckerClaim(replace(self.cases[number].work, late=crash.late), crash.told)
            document = witness.write(
                ShownState(case, crash.state, claim, way.evidence, causes),
                environment=asdict(self.environment),
                calls=_calls(said, case, reliances, crash),
                writes=writes,
            )
            path = self.run.save_witness(f"{number:02d}-{place}-{way.consequence.value}", document)
            told = with_its_write(way, witness.timeline_of(case, crash.state, causes, writes))
            shown.append(replace(told, witness=path))
        return replace(subject, answers=(replace(subject.answer, ways=tuple(shown)),))


def explored_windows(
    guests: ProgramGuests, case: ProgramCase, request: ProbeRequest, jobs: int, store: WindowStore
) -> tuple[list[Looked], ClusterTuples | None]:
    """Explore the windows of ``case``. If it is a cluster, also return the numbers of its tuples. bob keeps each window
    in ``store`` as soon as it is done, but does not keep those of a cluster."""
    if case.subject.nodes:
        return explore_cluster(guests, case, request, jobs)
    return explore_windows(guests, case, request, jobs, store), None


def _work(case: ProgramCase, request: ProbeRequest, guests: int) -> TimedWork:
    what = f"{case.work.name} on {case.work.pace.of(case.subject.fs.name)}"
    budget = checks_of_window(case, request) if case.subject.nodes else request.budget
    return TimedWork("app", what, request.image, guests, budget, len(case.windows))


def preflight(program: Program, requests: Sequence[ProbeRequest], progress: Progress) -> list[Preflight]:
    """Record the program on each configuration, and try its checker. Return numbers about each recording. Raise the
    errors of :func:`try_program`."""
    image = _image(requests, progress)
    with Hypervisor.open(requests[0].host.connect, progress.step) as hypervisor:
        guests = ProgramGuests(hypervisor, image, progress)
        cases = [record_program_run(guests, program, request) for request in requests]
        if not program.has_checker:
            cases = [case.with_files(moments_of(guests, case)) for case in cases]
        for case in cases:
            validate_checker(guests, case)
    return list(map(preflight_of, cases))


def _image(requests: Sequence[ProbeRequest], progress: Progress) -> Image:
    check_jobs(requests[0].host.jobs)
    names = [request.pace.of(request.configuration.name) for request in requests]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(
            f"two file systems have the name {twice!r}", hint="your own file system has the name of its file"
        )
    image = ensure(requests[0].image, progress.step)
    check_kernel(image)
    for request in requests:
        check_subject(image, request.configuration.modules, request.configuration.packages)
    return image


def _not_at_this_pace(request: ProbeRequest, refused: str) -> SubjectResult:
    """Return the answer "unknown", with the reason, for a program that fails only at this pace. For example, a program
    that is slowed down may give up waiting."""
    reason = f"cannot be explored at this pace: {refused}"
    answer = Answer(CHECKER, Verdict.UNKNOWN, NOTHING, reason=reason)
    made = SubjectResult.of(request.configuration)
    return replace(made, name=request.pace.of(made.name), answers=(answer,), checks=Checks(0, 0, 0))


def _notes(case: ProgramCase) -> tuple[str, ...]:
    found, said = [case.subject.note], case.transcript
    if not (case.work.must_fail or case.work.is_by_moments):
        found.append("bob never saw the checker refuse anything, as must_fail is empty")
    found += unsynced_in_words(said.calls, said.pipe, ROOT)
    if unfollowed := not_followed(said.calls, ROOT):
        found.append(f"not traced: {', '.join(unfollowed)}")
    if said.calls and not any(call.stack for call in said.calls):
        found.append("the stack frames of the calls are not known, so bob cannot name functions")
    return tuple(printable(note) for note in found if note)


def _doubts(case: ProgramCase) -> tuple[str, ...]:
    left = () if case.work.pace is Pace.UNDISTURBED else unpaced(case.transcript.calls)
    return (f"bob could not keep this pace: nothing came between {', '.join(left)}",) if left else ()


def _calls(said: Transcript, case: Case, reliances: Reliances, easiest: EasiestCrash) -> list[ProgramCallEvent]:
    """Return the program's system calls and outputs, each with its time in the recording ``case``."""
    if said.offset is None:
        return []
    start = case.plan.trace.start.seconds
    calls = reliances.calls_up_to(easiest.place, easiest.outcome, said.offset - start)
    return [*calls, *tellings(said, start)]
