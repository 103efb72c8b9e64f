"""A probe from end to end: record -> enumerate -> observe -> judge -> report, each phase kept before the next."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import bob
from bob.errors import StoreError, UsageError
from bob.guest.hypervisor import Hypervisor
from bob.guest.spec import Clock, GuestSpec
from bob.image import Image, ensure, load_recipe
from bob.judge.again import add_kept
from bob.judge.column import Column
from bob.pipeline import Explored, Pipeline, Task
from bob.probe_files import shipped_probes
from bob.progress import Progress
from bob.request import ProbeRequest, request_from_json, request_to_json
from bob.result import Environment, Result, Run, from_json, to_json
from bob.store import RunDirectory, workload_from_json, workload_to_json
from bob.workload.operations import Workload

RUNS = Path("bob-runs")


def probe(request: ProbeRequest, out: Path | None, progress: Progress) -> tuple[Result, Path]:
    """Probe ``request.configuration``; the result, and the run directory that holds everything behind it.

    The run directory is ``out``, or a new one below ./bob-runs. Raises UsageError before anything is started for what
    cannot be asked, and in the machine's own words when mkfs or the kernel refuse the configuration.
    """
    identity = new_identity()
    run = start(request, out if out is not None else RUNS / identity, identity)
    return _probe_one(run, request, progress)


def resume(path: Path, connect: str | None, progress: Progress) -> tuple[Result, Path]:
    """Go on with the probe in the run directory ``path``, which was stopped; what is finished is not done again.

    Raises StoreError for what is no run directory.
    """
    run = RunDirectory(path)
    return _probe_one(run, request_of(run, connect), progress)


def _probe_one(run: RunDirectory, request: ProbeRequest, progress: Progress) -> tuple[Result, Path]:
    left = unfinished(run)
    with prober(request.image, request.connect, progress) as machine:
        progress.planned(left, left * request.budget)
        return machine.probe(run, request), run.path


def start(request: ProbeRequest, path: Path, identity: str) -> RunDirectory:
    """A new run directory for ``request``, with everything in it that is known before a guest runs."""
    probes = shipped_probes(request.properties)
    load_recipe(request.image)
    workloads = distinct(workload for probe in probes for workload in probe.workloads)
    about = {
        "id": identity,
        "started": now(),
        "bob": bob.__version__,
        "request": request_to_json(request),
        "workloads": [workload_to_json(workload) for workload in workloads],
    }
    return RunDirectory.create(path, about)


def request_of(run: RunDirectory, connect: str | None) -> ProbeRequest:
    """What a run was asked, to go on with it. Raises StoreError where it does not say."""
    try:
        return request_from_json(run.about()["request"], connect)
    except (KeyError, TypeError, UsageError):
        raise StoreError(f"{run.path} was made by another version of bob", hint="probe again") from None


def unfinished(run: RunDirectory) -> int:
    """How many workloads of a run are still to be done."""
    planned = map(workload_from_json, run.about()["workloads"])
    return sum(not run.is_done(run.folder(number, workload)) for number, workload in enumerate(planned))


class Prober:
    """An image and a hypervisor to probe with, for any number of configurations one after the other."""

    def __init__(self, hypervisor: Hypervisor, image: Image, progress: Progress) -> None:
        self._hypervisor = hypervisor
        self._image = image
        self._progress = progress

    def probe(self, run: RunDirectory, request: ProbeRequest) -> Result:
        """Do what is left to do of ``run``, and judge all of it.

        Raises UsageError in the machine's own words when mkfs or the kernel refuse the configuration.
        """
        about = run.about()
        if "finished" in about:
            return from_json(run.result())
        environment = self.environment(request)
        if about.setdefault("environment", asdict(environment)) != asdict(environment):
            raise StoreError(f"{run.path} was made on another machine or image", hint="probe anew, with --out")
        run.note(environment=asdict(environment))
        workloads = [workload_from_json(document) for document in about["workloads"]]
        properties = [probe.property for probe in shipped_probes(request.properties)]
        column = Column(request.configuration, request.model, properties, asdict(environment), run.save_witness)
        task = Task(request.configuration, request.model, request.budget, request.seed)
        with Pipeline(self._hypervisor, self._image, task, run, workloads, self._progress) as pipeline:
            for number, workload in enumerate(workloads):
                if (item := pipeline.result(number)) is None:
                    add_kept(column, run, number, workload, request.model)
                elif isinstance(item, Explored):
                    recorded = item.recorded
                    column.add(recorded.workload, recorded.base, recorded.recording, recorded.plan, item.observed)
                else:
                    column.refuse(item.workload, item.reason)
        finished = now()
        cells = column.cells()
        for cell in cells:
            self._progress.judged(cell)
        result = Result(
            run=Run(about["id"], about["started"], finished, about["bob"], request.seed, request.budget),
            environment=environment,
            write_cache=request.write_cache,
            atomic_write_bytes=request.atomic_write_bytes,
            configurations=(column.result(cells),),
        )
        run.save_result(to_json(result))
        run.note(finished=finished)
        return result

    def environment(self, request: ProbeRequest) -> Environment:
        """What ``request`` is measured on."""
        accelerator = self._hypervisor.choice(GuestSpec(self._image, Clock.REAL)).accelerator
        package = request.configuration.fs.package
        return Environment(
            kernel=self._image.kernel_release,
            image=f"{self._image.name} ({self._image.key})",
            accelerator=accelerator.value,
            clock=Clock.VIRTUAL.value,
            qemu=self._hypervisor.versions.qemu,
            libvirt=self._hypervisor.versions.libvirt,
            mkfs_version=f"{package} {self._image.tools.get(package, '(unknown version)')}",
        )


@contextmanager
def prober(image: str, connect: str | None, progress: Progress) -> Iterator[Prober]:
    """A prober in the guest image called ``image`` (built if need be), on the libvirt connection ``connect``."""
    built = ensure(image, progress.step)
    with Hypervisor.open(connect, progress.step) as hypervisor:
        yield Prober(hypervisor, built, progress)


def distinct(workloads: Iterable[Workload]) -> list[Workload]:
    """``workloads`` without those that are the same but for their names, in order."""
    seen: dict[object, Workload] = {}
    for workload in workloads:
        finish = workload.finish
        key = (workload.setup, workload.operations, finish.operations, finish.natural, finish.phase)
        seen.setdefault(key, workload)
    return list(seen.values())


def now() -> str:
    """The time, ISO 8601, UTC."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def new_identity() -> str:
    """A name for a new run that no other has."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"
