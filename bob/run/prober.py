"""A *probe*, an experiment that tests the properties of a file system. From end to end: record workloads, enumerate
their crash states, mount these states and observe the trees, judge, and report. Each phase stores its output before the
next phase starts.

A user may also ask a question about a single workload (:func:`try_out`), with the same phases. For this, bob makes a
recording for each *finish* (a way to end the workload, such as with an fsync). The result is a list of answers. The
result of a probe is a table with a column for each configuration (a file system with its options) and a row for each
property."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bob.answer.answer import Answer
from bob.answer.result import Environment, Result, Run, SubjectResult
from bob.catalogue.request import Host, ProbeRequest, request_to_json
from bob.catalogue.workloads import asked_workloads
from bob.claim.expectation.syntax import Expectation
from bob.claim.property.judged_case import JudgedCase, evidence_states
from bob.claim.verdict import Verdict
from bob.crash.case import Case
from bob.crash.coverage import NOTHING
from bob.crash.state import CrashState
from bob.errors import RecordingError, StoreError, UsageError
from bob.guest.capacity import check_jobs
from bob.guest.given_machine import NO_ACCELERATOR, GivenMachine
from bob.guest.spec import Clock, GuestSpec
from bob.image import Image, check_kernel, check_subject
from bob.judge.again import add_kept, column_of, keep_result
from bob.judge.column import Column, claim_words
from bob.judge.expectations import expectation_states
from bob.judge.findings import cause_states
from bob.judge.question import Trial, judge_question
from bob.judge.recoveries import add_recoveries
from bob.memory import give_back_now
from bob.observe.observations import Observations
from bob.progress import Progress
from bob.run.agents import GuestSource, check_image, guests_of, image_called, jobs_for
from bob.run.pipeline import LARGE_LOG_BYTES, ExploredCase, Pipeline, Task, ViolatingStates
from bob.run.recoveries import crash_recoveries
from bob.run.timings import TimedProgress, TimedWork, timed
from bob.schema import decode, encode
from bob.store.lock import writing
from bob.store.matrix_directory import MatrixDirectory
from bob.store.new_folder import withdrawn_if_refused
from bob.store.run_directory import RUNS, RunDirectory, new_identity, now, request_of
from bob.subject.subject import ConfigurationDocument
from bob.text import plural
from bob.trace.outside import Outside
from bob.version import __version__
from bob.workload.operations import Workload
from bob.workload.plain import workload_to_json

_OF_ONE_SESSION = "are --base and --final the drive just before and after the log's session, and did QEMU quit?"


def begin(out: Path | None) -> tuple[Path, dict[str, Any]]:
    """Return the path for a new run directory (``out``, or a new one in ./bob-runs). Return also the fields that
    run.json has for every kind of run."""
    identity = new_identity()
    return out or RUNS / identity, {"id": identity, "started": now(), "bob": __version__}


def probe(request: ProbeRequest, out: Path | None, progress: Progress) -> tuple[Result, Path]:
    """Probe ``request.configuration``. Return the result and the run directory. Raise UsageError before a guest starts
    if the request is impossible. Raise UsageError with the message of mkfs or the kernel if it refuses the
    configuration."""
    request.check()
    check_jobs(request.host.jobs)
    image = asked_image(request, progress)
    path, about = begin(out)
    with withdrawn_if_refused(path, "workloads/*"):
        run = start(request, path, about["id"])
        progress.step(f"{plural(len(run.about()['workloads']), 'workload')} ask for {_named(request)}")
        with writing([path]), prober([(run, request)], progress, image) as machine:
            return machine.result(0), path


def try_out(trial: Trial, out: Path | None, progress: Progress) -> tuple[Result, Path]:
    """Return the answers to the questions of ``trial`` about a workload, and the run directory: ``out``, or a new one
    in ./bob-runs. If only some recordings fail, and an expectation of the user holds in all others, the answer about
    this expectation is unknown. Raise UsageError before a guest starts if the kernel lacks the file system. Raise
    UsageError later if mkfs or the kernel refuses the configuration. Raise RecordingError if all recordings fail."""
    return _asked(trial, out, progress, {})


def try_import(
    trial: Trial, outside: Outside, about: Mapping[str, Any], out: Path | None, progress: Progress
) -> tuple[Result, Path]:
    """Return the answers to the questions of ``trial`` about a recording from ``outside``, and the run directory. bob
    records nothing, and explores the crash states of this recording. ``about`` says in run.json where the recording
    came from. Raise RecordingError if the recording contradicts itself, and the errors of :func:`try_out`."""
    return _asked(trial, out, progress, {"imported": about}, outside)


def _asked(
    trial: Trial, out: Path | None, progress: Progress, more: Mapping[str, Any], outside: Outside | None = None
) -> tuple[Result, Path]:
    request = trial.request
    path, about = begin(out)
    if outside is not None:
        [workload] = trial.workloads
        try:  # before any guest starts: a log that does not give the drive after the session is refused
            Case.of(request.configuration, workload, outside.base, outside.recording, request.model)
        except RecordingError as error:
            raise RecordingError(error.message, hint=_OF_ONE_SESSION) from error
    image = asked_image(request, progress)
    asked = {
        **more,
        "configuration": encode(ConfigurationDocument.of(request.configuration)),
        "workloads": [workload_to_json(workload) for workload in trial.workloads],
        "expectations": [expectation.text for expectation in trial.expectations],
        "at": trial.workloads[0].at.value,
    }
    with withdrawn_if_refused(path, "workloads/*"):
        run = RunDirectory.create(path, {**about, **asked})
        with writing([path]):
            if outside is not None:
                run.save_base(outside.base)
                run.save_recording(run.folder(0, workload), workload, outside.base, outside.recording)
            with prober([(run, request)], progress, image, "try", trial.expectations) as machine:
                environment = machine.explore(0)
            found = Run(about["id"], about["started"], now(), __version__, request.seed, request.budget)
            result = judge_question(trial, run, found, environment)
            run.save_result(result)
            run.note(finished=found.finished)
        return result, path


def asked_image(request: ProbeRequest, progress: Progress) -> Image:
    """Return the guest image that ``request`` names. Build the image if it is missing. Raise UsageError if the image
    cannot do what is requested."""
    image = image_called(request.image, progress.step, request.host.connect)
    check_kernel(image)
    _check_file_system(image, request)
    return image


def resume(path: Path, host: Host, progress: Progress) -> tuple[Result, Path]:
    """Resume the probe whose run directory is ``path``. Raise StoreError if ``path`` is not a probe's run directory, or
    another process is writing it."""
    if MatrixDirectory.is_one(path):
        raise StoreError(f"{path} is the run of a matrix", hint=f"bob matrix --resume {path} continues it")
    run = RunDirectory(path)
    check_jobs(host.jobs)
    with writing([path]), prober([(run, request_of(run, host))], progress) as machine:
        return machine.result(0), path


def start(request: ProbeRequest, path: Path, identity: str) -> RunDirectory:
    """Make the run directory ``path`` for ``request``. ``identity`` is the name of the run in its results. No guest
    runs yet."""
    check_image(request.image)
    about = {
        "id": identity,
        "started": now(),
        "bob": __version__,
        "request": request_to_json(request),
        "workloads": [workload_to_json(workload) for workload in asked_workloads(request)],
    }
    return RunDirectory.create(path, about)


def _named(request: ProbeRequest) -> str:
    names = [probe.property.name for probe in request.asked]
    return names[0] if len(names) == 1 else f"{len(names)} properties"


def unfinished(run: RunDirectory) -> int:
    """Return the number of workloads that are still to be done. It is 0 for a run that is finished or was skipped."""
    planned = [] if run.is_finished() else run.planned()
    return sum(not run.is_done(run.folder(number, workload)) for number, workload in enumerate(planned))


@dataclass(frozen=True, slots=True)
class AskedColumn:
    """A column of the table that the user asked for: a configuration with its run directory. ``refusal`` is the reason
    why the guest image cannot test the configuration (None: it can). ``fresh`` is True if the run directory does not
    have workloads yet. ``expectations`` are those of ``bob try``."""

    run: RunDirectory
    request: ProbeRequest
    environment: Environment
    refusal: UsageError | None
    fresh: bool
    expectations: Sequence[Expectation] = ()

    @property
    def task(self) -> Task:
        request, is_left = self.request, self.refusal is None and not self.run.is_finished()
        workloads = tuple(self.run.planned() if is_left else [])
        evidence = evidence_of(request, self.expectations)
        return Task(request.configuration, request.model, request.effort, self.run, workloads, evidence=evidence)


def evidence_of(request: ProbeRequest, expectations: Sequence[Expectation] = ()) -> ViolatingStates:
    """Return a function that chooses the crash states that a result shows as violations. The result is about
    ``expectations`` if there are some, and otherwise about the properties of ``request``."""
    properties = () if expectations else tuple(probe.property for probe in request.asked)

    def evidence(bench: JudgedCase, case: Case, observed: Observations) -> set[CrashState]:
        shown = evidence_states(properties, bench)
        shown |= expectation_states(expectations, bench, observed, case.complete)
        return shown | (cause_states(properties, bench, case) if request.by_cause else set())

    return evidence


@dataclass(frozen=True, slots=True)
class Prober:
    """The probe of several columns of the table. The caller must call :meth:`result` or :meth:`explore` for one column
    after the other, from left to right."""

    columns: Sequence[AskedColumn]
    pipeline: Pipeline
    progress: TimedProgress
    guests: GuestSource
    image: Image

    def result(self, place: int) -> Result:
        """Wait until the column at index ``place`` is done, write its result into its run directory, and return the
        result. Raise UsageError if the image lacks the file system, or if mkfs or the kernel refuses the
        configuration."""
        asked = self.columns[place]
        run, request = asked.run, asked.request
        if run.is_finished():
            return run.result()
        if asked.refusal is not None:
            raise asked.refusal
        if asked.fresh:
            run.note(started=now())

        def broke(title: str, trace: str) -> None:
            path = run.save_traceback(title, trace)
            self.progress.step(f"unknown: {title}: bob itself failed to judge it ({path})")

        column = column_of(run, request, asked.environment, broke)
        workloads = run.planned()
        for number, workload in enumerate(workloads):
            if self._judge(column, place, number, workload) > LARGE_LOG_BYTES:
                give_back_now()
        if request.recovery_crashes:
            crash_recoveries(self.guests, self.image, run, request, workloads, self.progress)
            add_recoveries(column, run, workloads, request)
        cells = column.cells()
        self.progress.lap()
        for cell in (
            () if request.by_cause else cells
        ):  # the search reports the cells of its lots when all lots are done
            self.progress.judged(cell)
        result = keep_result(run, request, asked.environment, [column.result(cells)], finished := now())
        run.note(finished=finished)
        if losses := run.losses():
            name = request.configuration.name
            self.progress.step(f"lost {plural(losses, 'workload')} of {name} on the way; --resume tries again")
        return result

    def explore(self, place: int) -> Environment:
        """Explore the workloads of the column at index ``place``, but do not judge them. The run directory keeps the
        observations. Return the environment (the machine and the tools)."""
        asked = self.columns[place]
        for number in range(len(asked.run.planned())):
            self.pipeline.result(place, number)
        return asked.environment

    def _judge(self, column: Column, place: int, number: int, workload: Workload) -> int:
        """Wait until a workload is done, and add its result to ``column``. Return the size of the workload's log in
        bytes if the log is in memory. Otherwise return 0."""
        asked = self.columns[place]
        if (item := self.pipeline.result(place, number)) is None:
            add_kept(column, asked.run, number, workload, asked.request)
        elif isinstance(item, ExploredCase):
            column.add(item.case, item.observed, item.readings)
            return item.case.recording.log_bytes
        else:
            column.refuse(workload, item.reason, item.fall)
        return 0


def skipped(run: RunDirectory, request: ProbeRequest, reason: str) -> Result:
    """Return the result of a column that bob could not test, and write it into the run directory. ``reason`` says why
    bob could not test it."""
    made, environment = request.configuration, decode(Environment, run.about()["environment"])
    cells = [Answer(claim_words(probe.property), Verdict.SKIPPED, NOTHING, reason=reason) for probe in request.asked]
    column = replace(SubjectResult.of(made, mkfs_version=environment.mkfs_version), answers=tuple(cells))
    run.note(skipped=reason)
    result = keep_result(run, request, environment, [column], finished := now())
    run.note(finished=finished)
    return result


@contextmanager
def prober(
    columns: Sequence[tuple[RunDirectory, ProbeRequest]],
    progress: Progress,
    image: Image | None = None,
    kind: str = "probe",
    expectations: Sequence[Expectation] = (),
) -> Iterator[Prober]:
    """Open a prober that finishes the unfinished ``columns`` while the ``with`` block is open. All columns use the host
    of the first column, and the guest image ``image``. If ``image`` is None, they use the image of the first column.
    From earlier work of the same ``kind``, bob estimates how long this work will take
    (:class:`bob.run.timings.TimedWork`). The ``expectations`` are those of ``bob try``. Raise StoreError if a run began
    on another machine or with another image. Raise UsageError if bob cannot use the kernel."""
    first = columns[0][1]
    image = image or image_called(first.image, progress.step, first.host.connect)
    check_kernel(image)
    with guests_of(image, first.host.connect, progress.step) as guests:
        asked = [
            AskedColumn(
                run,
                request,
                environment_of(guests, image, request),
                _refusal(image, request),
                not run.workloads(),
                expectations,
            )
            for run, request in columns
        ]
        for one in asked:
            note_environment(one.run, asdict(one.environment))
            if not one.run.is_finished():
                one.run.reopen()
        left = [unfinished(run) for run, _request in columns]
        states = sum(count * request.budget for count, (_run, request) in zip(left, columns, strict=True))
        progress.planned(sum(left), states)
        jobs = jobs_for(image.name, first.host.jobs)
        parts = [_work(kind, one.request, jobs, count) for one, count in zip(asked, left, strict=True)]
        with (
            timed(parts, progress, silently=first.by_cause) as watcher,
            Pipeline(guests, image, [one.task for one in asked], watcher, jobs) as pipeline,
        ):
            yield Prober(asked, pipeline, watcher, guests, image)


def note_environment(run: RunDirectory, environment: Mapping[str, str]) -> None:
    """Write the environment into run.json. Raise StoreError if run.json already has another environment."""
    if run.about().get("environment", environment) != environment:
        raise StoreError(f"{run.path} began on another machine or image", hint="start a new probe, with --out")
    run.note(environment=dict(environment))


def _work(kind: str, request: ProbeRequest, guests: int, workloads: int) -> TimedWork:
    kind = "search" if request.by_cause else kind
    if request.recovery_crashes:
        kind = f"{kind}, {request.recovery_crashes * request.recovery_depth} recoveries crashed"
    return TimedWork.of(kind, request, guests, workloads)


def _check_file_system(image: Image, request: ProbeRequest) -> None:
    check_subject(image, request.configuration.modules, request.configuration.packages)


def _refusal(image: Image, request: ProbeRequest) -> UsageError | None:
    try:
        _check_file_system(image, request)
    except UsageError as refusal:
        return refusal
    return None


def environment_of(guests: GuestSource, image: Image, request: ProbeRequest) -> Environment:
    package = request.configuration.fs.package
    mkfs = f"{package} {image.tools.get(package, '(unknown version)')}"
    if isinstance(guests, GivenMachine):
        return Environment(image.kernel_release, image.named, NO_ACCELERATOR, Clock.REAL.value, "", "", mkfs)
    accelerator = guests.choice(GuestSpec(image, Clock.REAL)).accelerator.value
    versions = guests.versions
    return Environment(
        image.kernel_release, image.named, accelerator, Clock.VIRTUAL.value, versions.qemu, versions.libvirt, mkfs
    )
