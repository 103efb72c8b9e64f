"""A program under test, from end to end: record its workload, explore what a crash may leave, have its checker look.

The recording is cut into windows by what the program had told (:mod:`bob.program.transcript`). Each window's legal
crash states are explored as those of any workload: most outcomes are predicted, and what was mounted for one window
need not be mounted for another. The checker runs once for each tree that can be seen with each output, and on a sample
of others with the same tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from bob.agent.shared import ROOT
from bob.answer.answer import Answer
from bob.answer.result import AskedProgram, Checks, Environment, Result, Run, SubjectResult
from bob.apm.derive import was_derived_of
from bob.apm.model import Model
from bob.catalogue.request import Host, ProbeRequest
from bob.claim.checking import CheckerClaim
from bob.claim.verdict import Verdict
from bob.crash.case import Case
from bob.crash.coverage import NOTHING
from bob.crash.device import DeviceModelDocument
from bob.errors import UsageError
from bob.guest.capacity import check_jobs, guests_that_fit
from bob.guest.hypervisor import Hypervisor
from bob.image import Image, check_file_system, check_kernel, ensure
from bob.judge.explaining import Explaining
from bob.judge.hanging import causes_of, with_its_write
from bob.judge.looked import Looked
from bob.judge.modelled import crossed
from bob.judge.programs import CHECKER, EasiestCrash, judge
from bob.judge.reliance import Reliances
from bob.program.case import ProgramCase
from bob.program.program import Pace, Program, ProgramDocument
from bob.program.strace import SystemCall
from bob.program.transcript import Transcript
from bob.program.untraced import not_followed, unpaced
from bob.progress import Progress
from bob.protocol.diagram import DiagramStep, Protocol
from bob.protocol.unsynced import unsynced
from bob.run.agents import KeptGuests
from bob.run.pool import ProgramGuests
from bob.run.prober import environment_of
from bob.run.program_models import UNKNOWN, Allows, allowed_by_models, hold_against, unasked, unpredicted
from bob.run.program_parts import asked_of, spread
from bob.run.program_recording import Preflight, frames_of, preflight_of, record_program_run, tellings, validate_checker
from bob.run.program_windows import explore_windows
from bob.run.timings import TimedWork, timed
from bob.schema import decode, encode
from bob.store.lock import writing
from bob.store.new_folder import withdrawn_if_refused
from bob.store.run_directory import RUNS, RunDirectory, new_identity, now
from bob.story.timeline import ProgramCallEvent
from bob.text import printable
from bob.version import __version__
from bob.witness import document as witness
from bob.witness.document import ShownState


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
    """Return the answers for ``program`` on each requested configuration, and by each of ``models``; and the run
    directory with everything behind them.

    Models are held against the calls that were recorded on the first configuration. Where bob does not explore
    (``explores``), only they have an answer. ``numbers`` are those of the configurations among all
    that are asked about, where these are some of them, by which what is kept is named. Where models have their answer
    elsewhere (``answers`` is False), only what the file systems leave is held against them.

    Raises UsageError where the program cannot be run, or its checker cannot be trusted: with its own words, and before
    anything is explored.
    """
    first = requests[0]
    numbers = range(len(requests)) if numbers is None else numbers
    image = _image(requests, progress) if first.host.scheduler is None else None
    identity, started = new_identity(), now()
    folder = out if out is not None else RUNS / identity
    about = {"id": identity, "started": started, "bob": __version__, "program": encode(ProgramDocument.of(program))}
    with withdrawn_if_refused(folder, "result.json"):
        run = RunDirectory.create(folder, {**about, "numbers": list(numbers)})
        if image is not None:
            return _tried(program, requests, run, image, progress, models, explores, numbers, answers), run.path
        by_number = dict(zip(numbers, requests, strict=True)) if explores else {numbers[0]: first}
        with writing([run.path]):
            return spread(program, by_number, run, models, progress, explores=explores), run.path


def _tried(
    program: Program,
    requests: Sequence[ProbeRequest],
    run: RunDirectory,
    image: Image,
    progress: Progress,
    models: Sequence[Model],
    explores: bool,
    numbers: Sequence[int],
    has_answers: bool,
) -> Result:
    """Return the answers as :func:`try_program` has them, by the guests of this machine."""
    first = requests[0]
    with (
        writing([run.path]),
        Hypervisor.open(first.host.connect, progress.step) as hypervisor,
        KeptGuests(hypervisor) as kept,
    ):
        guests = ProgramGuests(kept, image, progress)
        environment = environment_of(hypervisor, image, first)
        run.note(environment=asdict(environment))
        jobs = first.host.jobs or guests_that_fit()
        results: dict[int, SubjectResult] = {}
        every: dict[int, ProgramCase] = {}
        steps: dict[int, tuple[DiagramStep, ...]] = {}
        frames: Sequence[SystemCall] | None = None
        held = numbers[0] if models and has_answers else None
        for number, request in zip(numbers, requests, strict=True):
            try:
                like = next(iter(every.values()), None)
                case = record_program_run(guests, program, request, run, number, stores=bool(models), like=like)
                validate_checker(guests, case)
            except UsageError as refused:
                if request.pace is Pace.UNDISTURBED or number == held:
                    raise
                results[number] = _not_at_this_pace(request, refused)
            else:
                if frames is None:
                    frames = frames_of(guests, case)
                every[number] = replace(case, transcript=case.transcript.with_frames(frames))
        modelled = [unasked(model) for model in models]
        if held is not None:
            by = partial(_explaining, run, program)
            modelled, steps[held] = hold_against(guests, every[held], first, models, jobs, by)
        by_models = [one.result for one in modelled]
        for refused_at_pace in results.values() if explores else ():  # what is predicted is open there
            by_models = [crossed(answer, refused_at_pace, {}) for answer in by_models]
        explored = every if explores else {}
        asked = dict(zip(numbers, requests, strict=True))
        work = [_work(case, asked[number], jobs) for number, case in explored.items()]
        if explored:
            progress.planned(sum(one.workloads for one in work), sum(one.workloads * one.budget for one in work))

        def save(finished: str = "") -> Result:
            subjects = (*_in_order(results), *by_models)
            result = result_of(run, program, environment, first, subjects, _protocols(every, steps), finished)
            run.save_result(result)
            return result

        if by_models:
            save()
        with timed(work, progress) as watcher:
            watched = replace(guests, progress=watcher)
            for number, case in explored.items():
                looked = explore_windows(watched, case, asked[number], jobs)
                watcher.lap()
                explaining = _explaining(run, program, case.name)
                said = case.transcript
                reliances = Reliances.of_looked(looked, said.calls, ROOT, said.tellings, explaining, said.offset)
                steps[number] = reliances.steps() or steps.get(number, ())
                subject = SubjectResult.of(case.subject, case.recording.effective_options, environment.mkfs_version)
                notes = explaining.made(partial(_notes, case), ())
                subject, easiest = judge(replace(subject, name=case.name), looked, notes, reliances, _doubts(case))
                subject = _with_witnesses(subject, easiest, case, looked, reliances, run, environment, number)
                results[number] = subject = replace(subject, notes=(*subject.notes, *explaining.notes))
                save()
                beside = _explaining(run, program, f"{case.name} by models")
                allows = [one.allows for one in modelled]
                if models and number != held and subject.answer.ways:
                    foreseen = partial(allowed_by_models, watched, case, models)
                    allows = beside.made(foreseen, [UNKNOWN] * len(models))
                held_each = [
                    beside.made(partial(_held, answer, model, each, subject, looked, case, environment.kernel), answer)
                    for answer, model, each in zip(by_models, models if by_models else (), allows, strict=True)
                ]
                by_models = [replace(answer, notes=(*answer.notes, *beside.notes)) for answer in held_each]
                save()
        run.note(finished=(finished := now()))
        return save(finished)


def result_of(
    run: RunDirectory,
    program: Program,
    environment: Environment,
    request: ProbeRequest,
    subjects: Sequence[SubjectResult],
    protocols: Sequence[Protocol],
    finished: str,
) -> Result:
    """Return what is known by now of ``program``, which ``run`` is about; ``finished`` is empty if it goes on."""
    about = run.about()
    return Result(
        Run(about["id"], about["started"], finished, about["bob"], request.seed, request.budget),
        environment,
        DeviceModelDocument.of(request.model),
        tuple(subjects),
        AskedProgram(program.name, program.about, program.digest, program.must_fail),
        protocols=tuple(protocols),
    )


def _held(
    answer: SubjectResult,
    model: Model,
    allows: Allows,
    result: SubjectResult,
    looked: Sequence[Looked],
    case: ProgramCase,
    kernel: str,
) -> SubjectResult:
    """Return the answer of a ``model``, which ``allows`` some trees, beside the ``result`` of a real file system, of
    which ``looked`` was seen."""
    missing, undecided = unpredicted(allows, looked)
    if undecided:
        words = f"refused trees of {case.name} of which it is not known whether the model allows them: {undecided}"
        answer = replace(answer, notes=(*answer.notes, words))
    is_its_own = was_derived_of(model, case.subject, kernel)
    kernels = model.source.get("kernels", ())
    if is_its_own and missing and kernel not in kernels:
        words = f"the model was derived on Linux {', '.join(kernels)}, this is {kernel}, another package of the series"
        answer = replace(answer, notes=(*answer.notes, words))
    return crossed(answer, result, missing, is_its_own=is_its_own)


def _in_order(results: Mapping[int, SubjectResult]) -> tuple[SubjectResult, ...]:
    return tuple(result for _number, result in sorted(results.items()))


def _work(case: ProgramCase, request: ProbeRequest, guests: int) -> TimedWork:
    """What there is to explore of a program on one configuration, as it is timed."""
    what = f"{case.work.name} on {case.work.pace.of(case.subject.fs.name)}"
    return TimedWork("app", what, request.image, guests, request.budget, len(case.windows))


def go_on(run: RunDirectory, host: Host, progress: Progress) -> None:
    """Try the program of ``run``, a part of a run on a cluster. Raises as :func:`try_program` does."""
    asked, program, numbers = (
        asked_of(run, host),
        decode(ProgramDocument, run.about()["program"]).program,
        run.about()["numbers"],
    )
    image, requests = _image([asked.request], progress), [asked.request]
    _tried(program, requests, run, image, progress, asked.models, asked.explores, numbers, asked.answers)


def preflight(program: Program, requests: Sequence[ProbeRequest], progress: Progress) -> list[Preflight]:
    """All but exploring: the program is recorded on each configuration, and its checker tried.

    Raises as :func:`try_program` does.
    """
    image = _image(requests, progress)
    with Hypervisor.open(requests[0].host.connect, progress.step) as hypervisor:
        guests = ProgramGuests(hypervisor, image, progress)
        cases = [record_program_run(guests, program, request) for request in requests]
        for case in cases:
            validate_checker(guests, case)
    return list(map(preflight_of, cases))


def _image(requests: Sequence[ProbeRequest], progress: Progress) -> Image:
    check_jobs(requests[0].host.jobs)
    names = [request.pace.of(request.configuration.name) for request in requests]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(
            f"two file systems are called {twice!r}", hint="a file system of one's own has its file's name"
        )
    image = ensure(requests[0].image, progress.step)
    check_kernel(image)
    for request in requests:
        check_file_system(image, request.configuration.fs.module, request.configuration.fs.package)
    return image


def _not_at_this_pace(request: ProbeRequest, refused: UsageError) -> SubjectResult:
    """Return the answer of a program that can be run, but not at this pace: it may give up waiting."""
    reason = f"cannot be explored at this pace: {refused.message}"
    answer = Answer(CHECKER, Verdict.UNKNOWN, NOTHING, reason=reason)
    made = SubjectResult.of(request.configuration)
    return replace(made, name=request.pace.of(made.name), answers=(answer,), checks=Checks(0, 0, 0))


def _protocols(every: Mapping[int, ProgramCase], steps: Mapping[int, tuple[DiagramStep, ...]]) -> tuple[Protocol, ...]:
    """What the program did, in each case of which that is known by now."""
    return tuple(Protocol(case.name, steps[number]) for number, case in every.items() if steps.get(number))


def _explaining(run: RunDirectory, program: Program, on: str) -> Explaining:
    """What makes the explanations of a ``program`` ``on`` a configuration, or by a model: it keeps the traceback of one
    that breaks in ``run``."""

    def keep(trace: str) -> str:
        return run.save_traceback(f"{program.name} {on}", trace).name

    return Explaining(keep)


def _notes(case: ProgramCase) -> tuple[str, ...]:
    found, said = [case.subject.note], case.transcript
    if not case.work.must_fail:
        found.append("the checker was never seen to refuse anything: must_fail is empty")
    if never := unsynced(said.calls, said.pipe, ROOT):
        found.append(f"changed, and not synced when the program last told something: {', '.join(never)}")
    if unfollowed := not_followed(said.calls, ROOT):
        found.append(f"not traced: {', '.join(unfollowed)}")
    if said.calls and not any(call.stack for call in said.calls):
        found.append("the frames of the calls are not known: no function is named")
    return tuple(printable(note) for note in found if note)


def _doubts(case: ProgramCase) -> tuple[str, ...]:
    left = () if case.work.pace is Pace.UNDISTURBED else unpaced(case.transcript.calls)
    return (f"this pace could not be kept: nothing came between {', '.join(left)}",) if left else ()


def _with_witnesses(
    subject: SubjectResult,
    easiest: Sequence[EasiestCrash],
    taken: ProgramCase,
    looked: Sequence[Looked],
    reliances: Reliances,
    run: RunDirectory,
    environment: Environment,
    number: int,
) -> SubjectResult:
    """Return ``subject`` with a witness of each way, by its ``easiest`` crash, kept in ``run``, and with the write that
    it hangs on if no call tells why."""
    shown = []
    writes = witness.named(looked[0].case) if easiest else ()
    for place, (way, crash) in enumerate(zip(subject.answer.ways, easiest, strict=True), start=1):
        assert way.consequence is not None
        window = looked[crash.place]
        case, causes = window.case, causes_of(window, crash.state)
        showing = ShownState(case, crash.state, CheckerClaim(taken.work, crash.told), way.evidence, causes)
        document: Mapping[str, Any] = witness.write(
            showing,
            environment=asdict(environment),
            calls=_calls(taken.transcript, case, reliances, crash),
            writes=writes,
        )
        path = run.save_witness(f"{number:02d}-{place}-{way.consequence.value}", document)
        told = with_its_write(way, witness.timeline_of(case, crash.state, causes, writes))
        shown.append(replace(told, witness=path))
    return replace(subject, answers=(replace(subject.answer, ways=tuple(shown)),))


def _calls(said: Transcript, case: Case, reliances: Reliances, easiest: EasiestCrash) -> list[ProgramCallEvent]:
    """Return what the program did, and told, on the clock of the time line of ``case``."""
    if said.offset is None:
        return []
    start = case.plan.trace.start.seconds
    calls = reliances.calls_up_to(easiest.place, easiest.outcome, said.offset - start)
    return [*calls, *tellings(said, start)]
