"""A set of configurations, probed one after the other, or side by side on a cluster: the table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bob.answer.result import Result
from bob.catalogue.request import Host, ProbeRequest
from bob.errors import UsageError
from bob.guest.capacity import check_jobs
from bob.progress import Progress
from bob.run.matrix_parts import spread
from bob.run.prober import Prober, prober, skipped, start, unfinished
from bob.store.lock import writing
from bob.store.matrix_directory import MatrixDirectory
from bob.store.run_directory import RUNS, RunDirectory, new_identity, now, request_of
from bob.subject import ConfigurationSet
from bob.version import __version__


def matrix(
    chosen: ConfigurationSet, request: ProbeRequest, out: Path | None, progress: Progress
) -> tuple[Result, Path]:
    """Probe all of ``chosen``, each as ``request`` asks; the result, and the run directory with everything behind it.

    A configuration that mkfs or the kernel refuse is skipped, with their words as the reason. Raises UsageError before
    anything is started for what cannot be asked.
    """
    request.check()
    if request.host.scheduler is None:
        check_jobs(request.host.jobs)
    identity = new_identity()
    about = {"id": identity, "started": now(), "bob": __version__, "set": chosen.name, "about": chosen.about}
    part = {} if chosen.shard == (1, 1) else {"shard": list(chosen.shard)}
    names = [configuration.name for configuration in chosen.configurations]
    directory = MatrixDirectory.create(out if out is not None else RUNS / identity, {**about, **part}, names)
    for folder, configuration in zip(directory.folders, chosen.configurations, strict=True):
        start(replace(request, configuration=configuration), folder, identity)
    return resume(directory.path, request.host, progress)


def resume(path: Path, host: Host, progress: Progress) -> tuple[Result, Path]:
    """Go on with the matrix in the run directory ``path``; what is finished is not done again.

    Raises StoreError for what is no run of a matrix, or is being written.
    """
    directory = MatrixDirectory(path)
    if host.scheduler is not None:
        with writing(directory.written):
            return spread(directory, host, progress), path
    check_jobs(host.jobs)
    with writing(directory.written):
        return _go_on(directory, host, progress), path


def _go_on(directory: MatrixDirectory, host: Host, progress: Progress) -> Result:
    columns = [(run, request_of(run, host)) for run in directory.columns()]
    done: list[tuple[Path, Result]] = []
    with prober(columns, progress) as machine:
        for place, (run, request) in enumerate(columns):
            if unfinished(run):
                progress.step(f"{request.configuration.name}: configuration {place + 1} of {len(columns)}")
            done.append((run.path, _result(machine, place, run, request, progress)))
            result = directory.save_columns(done)
    return result


def _result(machine: Prober, place: int, run: RunDirectory, request: ProbeRequest, progress: Progress) -> Result:
    try:
        return machine.result(place)
    except UsageError as refusal:
        progress.step(f"{request.configuration.name} is skipped: {refusal}")
        left = unfinished(run)
        progress.skipped(left, left * request.budget)
        return skipped(run, request, str(refusal))
