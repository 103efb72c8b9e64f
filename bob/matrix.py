"""A set of configurations, probed one after the other: the table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import bob
from bob.columns import MatrixDirectory
from bob.config import ConfigurationSet
from bob.errors import UsageError
from bob.probe_files import shipped_probes
from bob.prober import RUNS, Prober, new_identity, now, prober, request_of, start, unfinished
from bob.progress import Progress
from bob.request import ProbeRequest
from bob.result import ConfigurationResult, PropertyResult, Result, Run, States, Verdict, to_json
from bob.store import RunDirectory


def matrix(
    chosen: ConfigurationSet, request: ProbeRequest, out: Path | None, progress: Progress
) -> tuple[Result, Path]:
    """Probe all of ``chosen``, each as ``request`` asks; the result, and the run directory with everything behind it.

    A configuration that mkfs or the kernel refuse is skipped, with their words as the reason. Raises UsageError before
    anything is started for what cannot be asked.
    """
    identity = new_identity()
    about = {"id": identity, "started": now(), "bob": bob.__version__, "set": chosen.name, "about": chosen.about}
    names = [configuration.name for configuration in chosen.configurations]
    shipped_probes(request.properties)
    directory = MatrixDirectory.create(out if out is not None else RUNS / identity, about, names)
    for folder, configuration in zip(directory.folders, chosen.configurations, strict=True):
        start(replace(request, configuration=configuration), folder, identity)
    return resume(directory.path, request.connect, progress)


def resume(path: Path, connect: str | None, progress: Progress) -> tuple[Result, Path]:
    """Go on with the matrix in the run directory ``path``; what is finished is not done again.

    Raises StoreError for what is no run of a matrix.
    """
    directory = MatrixDirectory(path)
    columns = [(run, request_of(run, connect)) for run in directory.columns()]
    left = [unfinished(run) for run, _request in columns]
    done: list[tuple[Path, Result]] = []
    with prober(columns[0][1].image, connect, progress) as machine:
        progress.planned(sum(left), sum(left) * columns[0][1].budget)
        for number, (run, request) in enumerate(columns, 1):
            if left[number - 1]:
                progress.step(f"{request.configuration.name}: configuration {number} of {len(columns)}")
            done.append((run.path, _column(machine, run, request, progress)))
            directory.save_result(done)
    return directory.save_result(done, finished=now()), path


def _column(machine: Prober, run: RunDirectory, request: ProbeRequest, progress: Progress) -> Result:
    try:
        return machine.probe(run, request)
    except UsageError as refusal:
        progress.step(f"{request.configuration.name} is skipped: {refusal}")
        left = unfinished(run)
        progress.skipped(left, left * request.budget)
        return _skipped(machine, run, request, str(refusal))


def _skipped(machine: Prober, run: RunDirectory, request: ProbeRequest, reason: str) -> Result:
    """The result of a configuration that could not be tested."""
    about, made, environment = run.about(), request.configuration, machine.environment(request)
    properties = [probe.property for probe in shipped_probes(request.properties)]
    cells = [PropertyResult(prop.name, prop.family, Verdict.SKIPPED, States(), reason=reason) for prop in properties]
    column = ConfigurationResult(
        name=made.name,
        fs=made.fs.name,
        mkfs_options=made.mkfs_options,
        mount_options=made.mount_options,
        effective_mount_options="",
        properties=tuple(cells),
        mkfs_version=environment.mkfs_version,
    )
    result = Result(
        run=Run(about["id"], about["started"], now(), about["bob"], request.seed, request.budget),
        environment=environment,
        write_cache=request.write_cache,
        atomic_write_bytes=request.atomic_write_bytes,
        configurations=(column,),
    )
    run.save_result(to_json(result))
    run.note(finished=result.run.finished)
    return result
