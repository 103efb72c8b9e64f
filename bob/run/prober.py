"""A probe from end to end: record -> enumerate -> observe -> judge -> report, each phase kept before the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bob.answer.answer import Answer
from bob.answer.result import Environment, Result, SubjectResult
from bob.catalogue.request import Host, ProbeRequest, request_to_json
from bob.catalogue.workloads import asked_workloads
from bob.claim.verdict import Verdict
from bob.crash.coverage import NOTHING
from bob.errors import StoreError, UsageError
from bob.guest.capacity import check_jobs
from bob.guest.given_machine import NO_ACCELERATOR, GivenMachine
from bob.guest.spec import Clock, GuestSpec
from bob.image import Image, check_file_system, check_kernel
from bob.judge.again import add_kept, column_of, keep_result
from bob.judge.column import Column, claim_words
from bob.judge.recoveries import add_recoveries
from bob.memory import give_back_now
from bob.progress import Progress
from bob.run.agents import GuestSource, check_image, guests_of, image_called, jobs_for
from bob.run.pipeline import LARGE_LOG_BYTES, Pipeline
from bob.run.recoveries import crash_recoveries
from bob.run.tasks import ExploredCase, Task
from bob.run.timings import TimedProgress, TimedWork, timed
from bob.schema import decode
from bob.store.lock import writing
from bob.store.matrix_directory import MatrixDirectory
from bob.store.new_folder import withdrawn_if_refused
from bob.store.run_directory import RUNS, RunDirectory, new_identity, now, request_of
from bob.text import plural
from bob.version import __version__
from bob.workload.operations import Workload
from bob.workload.plain import workload_from_json, workload_to_json


def probe(request: ProbeRequest, out: Path | None, progress: Progress) -> tuple[Result, Path]:
    """Probe ``request.configuration``; the result, and the run directory that holds everything behind it.

    The run directory is ``out``, or a new one below ./bob-runs. Raises UsageError before anything is started for what
    cannot be asked, such as a file system that the image's kernel does not have, and in the machine's own words when
    mkfs or the kernel refuse the configuration.
    """
    request.check()
    check_jobs(request.host.jobs)
    image = image_called(request.image, progress.step, request.host.connect)
    check_kernel(image)
    if refusal := _refusal(image, request):
        raise refusal
    identity = new_identity()
    path = out if out is not None else RUNS / identity
    with withdrawn_if_refused(path, "workloads/*"):
        run = start(request, path, identity)
        progress.step(f"{plural(len(run.about()['workloads']), 'workload')} ask for {_named(request)}")
        with writing([path]):
            return _probe_one(run, request, progress, image)


def resume(path: Path, host: Host, progress: Progress) -> tuple[Result, Path]:
    """Go on with the probe in the run directory ``path``, which was stopped or lost something; what is finished is not
    done again.

    Raises StoreError for what is no run directory, or is being written.
    """
    if MatrixDirectory.is_one(path):
        raise StoreError(f"{path} is the run of a matrix", hint=f"bob matrix --resume {path} goes on with it")
    run = RunDirectory(path)
    check_jobs(host.jobs)
    with writing([path]):
        return _probe_one(run, request_of(run, host), progress)


def _probe_one(
    run: RunDirectory, request: ProbeRequest, progress: Progress, image: Image | None = None
) -> tuple[Result, Path]:
    with prober([(run, request)], progress, image) as machine:
        return machine.result(0), run.path


def start(request: ProbeRequest, path: Path, identity: str) -> RunDirectory:
    """A new run directory for ``request``, with everything in it that is known before a guest runs."""
    check_image(request.image)
    workloads = asked_workloads(request)
    about = {
        "id": identity,
        "started": now(),
        "bob": __version__,
        "request": request_to_json(request),
        "workloads": [workload_to_json(workload) for workload in workloads],
    }
    return RunDirectory.create(path, about)


def _named(request: ProbeRequest) -> str:
    """The properties that are asked for, in a word or two."""
    names = [probe.property.name for probe in request.asked]
    return names[0] if len(names) == 1 else f"{len(names)} properties"


def unfinished(run: RunDirectory) -> int:
    """How many workloads of a run are still to be done: none of one that is finished, or was skipped."""
    planned = [] if run.is_finished() else run.planned()
    return sum(not run.is_done(run.folder(number, workload)) for number, workload in enumerate(planned))


@dataclass(frozen=True, slots=True)
class AskedColumn:
    """A column that is asked for: its ``run`` directory, the ``request``, what it is measured on, and the ``refusal``
    of an image that cannot do it. A ``fresh`` one, of which nothing was done before, begins when its turn comes."""

    run: RunDirectory
    request: ProbeRequest
    environment: Environment
    refusal: UsageError | None
    fresh: bool

    @property
    def task(self) -> Task:
        """What the pipeline is to do for it."""
        request, about = self.request, self.run.about()
        is_left = self.refusal is None and not self.run.is_finished()
        workloads = tuple(map(workload_from_json, about["workloads"] if is_left else []))
        made = request.configuration
        return Task(made, request.model, request.effort, self.run, workloads)


class Prober:
    """What is being probed; ask for the results in their order."""

    def __init__(
        self,
        columns: Sequence[AskedColumn],
        pipeline: Pipeline,
        progress: TimedProgress,
        crash_recoveries: Callable[[AskedColumn, Sequence[Workload]], None],
    ) -> None:
        self._columns = columns
        self._pipeline = pipeline
        self._progress = progress
        self._crash_recoveries = crash_recoveries

    def result(self, place: int) -> Result:
        """The result of the column at ``place``, kept in its run directory.

        Raises UsageError when the image has not got the file system, and in the machine's own words when mkfs or the
        kernel refuse the configuration.
        """
        asked = self._columns[place]
        run, request = asked.run, asked.request
        if run.is_finished():
            return run.result()
        if asked.refusal is not None:
            raise asked.refusal
        if asked.fresh:
            run.note(started=now())
        column = column_of(run, request, asked.environment, self._broke(run))
        workloads = run.planned()
        for number, workload in enumerate(workloads):
            if self._judge(column, place, number, workload) > LARGE_LOG_BYTES:
                give_back_now()
        if request.recovery_crashes:
            self._crash_recoveries(asked, workloads)
            add_recoveries(column, run, workloads, request)
        cells = column.cells()
        self._progress.lap()
        for cell in cells:
            self._progress.judged(cell)
        result = keep_result(run, request, asked.environment, column.result(cells), finished := now())
        run.note(finished=finished)
        if losses := run.losses():
            name = request.configuration.name
            self._progress.step(f"{plural(losses, 'workload')} of {name} lost on the way: --resume tries again")
        return result

    def _judge(self, column: Column, place: int, number: int, workload: Workload) -> int:
        """Add workload ``number`` to ``column`` when it is done; how long its log is that was just recorded (bytes)."""
        asked = self._columns[place]
        if (item := self._pipeline.result(place, number)) is None:
            add_kept(column, asked.run, number, workload, asked.request)
        elif isinstance(item, ExploredCase):
            column.add(item.recorded.case, item.observed)
            return item.recorded.case.recording.log_bytes
        else:
            column.refuse(item.workload, item.reason, item.fall)
        return 0

    def _broke(self, run: RunDirectory) -> Callable[[str, str], None]:
        """What is done where judging broke at a workload of ``run``, with its title and the traceback."""

        def kept(title: str, trace: str) -> None:
            path = run.save_traceback(title, trace)
            self._progress.step(f"unknown: {title}: bob's own judgement broke ({path})")

        return kept


def skipped(run: RunDirectory, request: ProbeRequest, reason: str) -> Result:
    """Return the result of a column that could not be tested, for this ``reason``; ``run`` keeps it."""
    made, environment = request.configuration, decode(Environment, run.about()["environment"])
    cells = [Answer(claim_words(probe.property), Verdict.SKIPPED, NOTHING, reason=reason) for probe in request.asked]
    column = replace(SubjectResult.of(made, mkfs_version=environment.mkfs_version), answers=tuple(cells))
    run.note(skipped=reason)
    result = keep_result(run, request, environment, column, finished := now())
    run.note(finished=finished)
    return result


@contextmanager
def prober(
    columns: Sequence[tuple[RunDirectory, ProbeRequest]], progress: Progress, image: Image | None = None
) -> Iterator[Prober]:
    """Probes what is left to do of ``columns``, all with the image and on the host of the first, while it is open; the
    ``image`` where it was looked at already.

    Raises StoreError where a run was begun on another machine or image, UsageError for a kernel that cannot do it.
    """
    first = columns[0][1]
    image = image or image_called(first.image, progress.step, first.host.connect)
    check_kernel(image)
    with guests_of(image, first.host.connect, progress.step) as hypervisor:
        asked = [
            AskedColumn(
                run, request, environment_of(hypervisor, image, request), _refusal(image, request), not run.workloads()
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
        tasks = [one.task for one in asked]
        guests = jobs_for(image.name, first.host.jobs)
        parts = [_work(one.request, guests, count) for one, count in zip(asked, left, strict=True)]

        def crash(one: AskedColumn, workloads: Sequence[Workload]) -> None:
            crash_recoveries(hypervisor, image, one.run, one.request, workloads, progress)

        with (
            timed(parts, progress, silently=first.by_cause) as watcher,
            Pipeline(hypervisor, image, tasks, watcher, guests) as pipeline,
        ):
            yield Prober(asked, pipeline, watcher, crash)


def note_environment(run: RunDirectory, environment: Mapping[str, str]) -> None:
    """Note what a run is measured on. Raises StoreError if it was begun on something else."""
    if run.about().get("environment", environment) != environment:
        raise StoreError(f"{run.path} was begun on another machine or image", hint="probe anew, with --out")
    run.note(environment=dict(environment))


def _work(request: ProbeRequest, guests: int, workloads: int) -> TimedWork:
    """What there is to do of a column, as it is timed."""
    kind = "search" if request.by_cause else "probe"
    if request.recovery_crashes:
        kind = f"{kind}, {request.recovery_crashes} recoveries crashed"
    return TimedWork.of(kind, request, guests, workloads)


def _refusal(image: Image, request: ProbeRequest) -> UsageError | None:
    """Why ``image`` cannot do what is requested, if it cannot."""
    fs = request.configuration.fs
    try:
        check_file_system(image, fs.module, fs.package)
    except UsageError as refusal:
        return refusal
    return None


def environment_of(hypervisor: GuestSource, image: Image, request: ProbeRequest) -> Environment:
    """What ``request`` is measured on."""
    package = request.configuration.fs.package
    mkfs = f"{package} {image.tools.get(package, '(unknown version)')}"
    if isinstance(hypervisor, GivenMachine):
        return Environment(image.kernel_release, image.named, NO_ACCELERATOR, Clock.REAL.value, "", "", mkfs)
    accelerator = hypervisor.choice(GuestSpec(image, Clock.REAL)).accelerator.value
    versions = hypervisor.versions
    return Environment(
        image.kernel_release, image.named, accelerator, Clock.VIRTUAL.value, versions.qemu, versions.libvirt, mkfs
    )
