"""A probe from end to end: record -> enumerate -> observe -> judge -> report, each phase kept before the next."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import bob
from bob.config import DEFAULT_BUDGET, Configuration
from bob.crash.device import DeviceModel, WriteCache
from bob.guest.hypervisor import Hypervisor
from bob.guest.spec import Clock, GuestSpec
from bob.image import Image, ensure, load_recipe
from bob.judge.column import Column
from bob.pipeline import Explored, Pipeline, Task
from bob.probe_files import shipped_probes
from bob.progress import Progress
from bob.result import Environment, Result, Run, to_json
from bob.store import RunDirectory, workload_to_json
from bob.workload.operations import Workload

RUNS = Path("bob-runs")


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """What ``bob probe`` was asked: a configuration, properties (none: all), and how deep to look.

    ``budget`` is in crash states per workload; ``atomic_write_bytes`` is what the device writes whole; ``out`` the run
    directory (None: a new one below ./bob-runs).
    """

    configuration: Configuration
    properties: tuple[str, ...] = ()
    image: str = "debian-bookworm"
    connect: str | None = None
    budget: int = DEFAULT_BUDGET
    seed: int = 1
    write_cache: str = "volatile"
    atomic_write_bytes: int = 512
    out: Path | None = None

    @property
    def model(self) -> DeviceModel:
        """The device that is assumed."""
        return DeviceModel(WriteCache(self.write_cache), self.atomic_write_bytes)


def probe(request: ProbeRequest, progress: Progress) -> tuple[Result, Path]:
    """Probe ``request.configuration``; the result, and the run directory that holds everything behind it.

    Raises UsageError before anything is started for what cannot be asked, and in the machine's own words when mkfs or
    the kernel refuse the configuration.
    """
    probes = shipped_probes(request.properties)
    load_recipe(request.image)
    workloads = distinct(workload for probe in probes for workload in probe.workloads)
    task = Task(request.configuration, request.model, request.budget, request.seed)
    identity = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"
    started = now()
    out = request.out if request.out is not None else RUNS / identity
    about: dict[str, Any] = {
        "id": identity,
        "started": started,
        "bob": bob.__version__,
        "request": request_to_json(request),
    }
    about["workloads"] = [workload_to_json(workload) for workload in workloads]
    run = RunDirectory.create(out, about)
    image = ensure(request.image, progress.step)
    with Hypervisor.open(request.connect, progress.step) as hypervisor:
        environment = _environment(hypervisor, image, request)
        run.note(environment=asdict(environment))
        progress.planned(len(workloads), len(workloads) * request.budget)
        properties = [probe.property for probe in probes]
        column = Column(request.configuration, request.model, properties, asdict(environment), run.save_witness)
        with Pipeline(hypervisor, image, task, run, workloads, progress) as pipeline:
            for item in pipeline:
                if isinstance(item, Explored):
                    recorded = item.recorded
                    column.add(recorded.workload, recorded.base, recorded.recording, recorded.plan, item.observed)
                else:
                    column.refuse(item.workload, item.reason)
    finished = now()
    run.note(finished=finished)
    cells = column.cells()
    for cell in cells:
        progress.judged(cell)
    result = Result(
        run=Run(identity, started, finished, bob.__version__, request.seed, request.budget),
        environment=environment,
        write_cache=request.write_cache,
        atomic_write_bytes=request.atomic_write_bytes,
        configurations=(column.result(cells),),
    )
    run.save_result(to_json(result))
    return result, run.path


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


def request_to_json(request: ProbeRequest) -> dict[str, Any]:
    """What was asked, as a plain document."""
    made = request.configuration
    return {
        "fs": made.fs.name,
        "mkfs_options": made.mkfs_options,
        "mount_options": made.mount_options,
        "device": made.device,
        "properties": list(request.properties),
        "image": request.image,
        "budget": request.budget,
        "seed": request.seed,
        "write_cache": request.write_cache,
        "atomic_write_bytes": request.atomic_write_bytes,
    }


def _environment(hypervisor: Hypervisor, image: Image, request: ProbeRequest) -> Environment:
    accelerator = hypervisor.choice(GuestSpec(image, Clock.REAL)).accelerator
    package = request.configuration.fs.package
    return Environment(
        kernel=image.kernel_release,
        image=f"{image.name} ({image.key})",
        accelerator=accelerator.value,
        clock=Clock.VIRTUAL.value,
        qemu=hypervisor.versions.qemu,
        libvirt=hypervisor.versions.libvirt,
        mkfs_version=f"{package} {image.tools.get(package, '(unknown version)')}",
    )
