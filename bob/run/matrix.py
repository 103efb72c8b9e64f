"""A matrix: a probe (an experiment) of each configuration in a set. A configuration is a file system with its options.
bob probes the configurations one after the other, or side by side on a cluster. Each gives a column of the result
table.

On a cluster, bob divides the workloads of a column into parts. The number of parts that a worker can do at the same
time is the number of its places. There are about PARTS_PER_PLACE parts for each place. A base image is a file system
with the initial tree of a workload. The kernel writes random data into a base image, so all workloads with the same
initial tree must use the same image. Therefore the first part of a column has one workload for each initial tree, and
makes the base images. Later parts get these images from bob. In the last part, a worker judges from the work of all
parts whether the properties hold. If the user asks for crashes during the recovery from a crash, this worker also tests
these."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bob.answer.result import Result
from bob.catalogue.request import Host, ProbeRequest
from bob.errors import UsageError
from bob.guest.capacity import check_jobs
from bob.progress import Progress
from bob.record.base import base_name
from bob.run.dask_workers import workers
from bob.run.parts import Doer, PartEnd, RunPart, give_up, judged
from bob.run.prober import begin, prober, skipped, start, unfinished
from bob.store.lock import writing
from bob.store.matrix_directory import MatrixDirectory
from bob.store.run_directory import RunDirectory, request_of
from bob.subject import ConfigurationSet
from bob.text import plural
from bob.workload.operations import Workload

PARTS_PER_PLACE = 4  # parts for each place; with several, all workers end at about the same time
FEWEST = 8  # fewest workloads of a part, since each part first starts two guests, to record and to observe


def matrix(
    chosen: ConfigurationSet, request: ProbeRequest, out: Path | None, progress: Progress
) -> tuple[Result, Path]:
    """Probe each configuration of ``chosen``, and return the result with the run directory. Skip a configuration that
    mkfs or the kernel refuses; the result has the reason. Raise UsageError before a guest starts if the request is
    impossible."""
    request.check()
    if request.host.scheduler is None:
        check_jobs(request.host.jobs)
    path, about = begin(out)
    about |= {"set": chosen.name, "about": chosen.about}
    about |= {} if chosen.shard == (1, 1) else {"shard": list(chosen.shard)}
    directory = MatrixDirectory.create(path, about, [configuration.name for configuration in chosen.configurations])
    for folder, configuration in zip(directory.folders, chosen.configurations, strict=True):
        asks = chosen.asks.get(configuration.name)
        probes = tuple(one for one in request.probes if asks is None or one.property.name in asks)
        start(replace(request, configuration=configuration, probes=probes), folder, about["id"])
    return resume(directory.path, request.host, progress)


def resume(path: Path, host: Host, progress: Progress) -> tuple[Result, Path]:
    """Resume the matrix whose run directory is ``path``. Raise StoreError if ``path`` is not a matrix's run directory,
    or another process is writing it."""
    directory = MatrixDirectory(path)
    if host.scheduler is None:
        check_jobs(host.jobs)
    with writing(directory.written):
        go_on = _on_this_machine if host.scheduler is None else spread
        return go_on(directory, host, progress), path


def _on_this_machine(directory: MatrixDirectory, host: Host, progress: Progress) -> Result:
    columns = [(run, request_of(run, host)) for run in directory.columns()]
    done: list[tuple[Path, Result]] = []
    with prober(columns, progress) as machine:
        for place, (run, request) in enumerate(columns):
            if unfinished(run):
                progress.step(f"{request.configuration.name}: configuration {place + 1} of {len(columns)}")
            try:
                result = machine.result(place)
            except UsageError as refusal:
                result = _skip(run, request, str(refusal), progress)
            done.append((run.path, result))
            together = directory.save_columns(done)
    return together


def _skip(run: RunDirectory, request: ProbeRequest, reason: str, progress: Progress) -> Result:
    progress.step(f"{request.configuration.name} is skipped: {reason}")
    left = unfinished(run)
    progress.skipped(left, left * request.budget)
    return skipped(run, request, reason)


def spread(directory: MatrixDirectory, host: Host, progress: Progress) -> Result:
    """Resume a matrix on the cluster of ``host``. If an error ends this function, ``directory`` still keeps all
    finished workloads. Raise the errors of :func:`bob.run.dask_workers.workers` and of
    :meth:`bob.run.dask_workers.Workers.do`."""
    columns = [_MatrixColumn(run, request_of(run, host)) for run in directory.columns()]
    left = [unfinished(column.run) for column in columns]
    progress.planned(sum(left), sum(count * column.request.budget for count, column in zip(left, columns, strict=True)))
    assert host.scheduler is not None
    with workers(host.scheduler, directory.about()["id"], directory.columns(), progress) as them:
        them.do(_MatrixParts(directory, columns, progress))
    return _kept(directory, columns)


@dataclass(slots=True, eq=False)
class _MatrixColumn:
    """A column of the table. ``waiting`` lists the numbers of the workloads that bob has not yet given to a worker.
    ``in_hand`` is the number of parts that workers are doing."""

    run: RunDirectory
    request: ProbeRequest
    result: Result | None = None
    in_hand: int = 0
    is_given_up: bool = False
    workloads: tuple[Workload, ...] = field(init=False)
    waiting: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.workloads = tuple(self.run.planned())
        if self.run.is_finished():
            self.result = self.run.result()
        else:
            self.run.reopen()
        every = enumerate(self.workloads)
        self.waiting = [number for number, one in every if not self.run.is_done(self.run.folder(number, one))]

    def cut(self, parts: int) -> Iterator[RunPart]:
        waiting, size = self.waiting, max(FEWEST, -(-len(self.workloads) // parts))
        if not waiting or parts == 1 or len(self.workloads) <= size:
            title = self.run.path.name + ("" if waiting else " (to be judged)")
            self.waiting = []
            yield RunPart(self.run, title, self.request.host)
            return
        chosen = [waiting[place : place + size] for place in range(0, len(waiting), size)]
        if first := self._without_base(waiting):
            others = [number for number in waiting if number not in first]
            chosen = [sorted([*first, *others[: max(0, size - len(first))]])]
        self.waiting = [number for number in waiting if not any(number in numbers for numbers in chosen)]
        for numbers in chosen:
            title = f"{self.run.path.name} ({plural(len(numbers), 'workload')})"
            yield RunPart(self.run, title, self.request.host, tuple(numbers))

    def _without_base(self, numbers: Sequence[int]) -> list[int]:
        """``numbers`` are numbers of workloads. Return the numbers of the workloads that still lack a base image. If
        several workloads need the same base image, return only the number of the first."""
        first: dict[str, int] = {}
        for number in numbers:
            workload = self.workloads[number]
            first.setdefault(base_name(self.request.configuration, workload.setup, workload.pattern), number)
        return [number for name, number in first.items() if not self.run.has_base(name)]


class _MatrixParts:
    def __init__(self, directory: MatrixDirectory, columns: Sequence[_MatrixColumn], progress: Progress) -> None:
        self._directory, self._columns, self._progress = directory, columns, progress

    def ready(self, doer: Doer) -> Iterator[RunPart]:
        unfinished_columns = sum(one.result is None for one in self._columns)
        parts = max(1, PARTS_PER_PLACE * doer.places // max(1, unfinished_columns))
        for column in self._columns:
            if column.result is not None or column.in_hand:
                continue
            if column.is_given_up and not column.waiting:  # a worker would try the lost workloads again
                self._end(column, judged(column.run))
                continue
            for part in column.cut(parts):
                column.in_hand += 1
                yield part

    def take(self, part: RunPart, ended: PartEnd) -> None:
        """Take over the result of ``part``, which has ended. If no worker could do the part, the answers of its
        workloads are unknown. ``--resume`` can then try these workloads again. ``ended`` says how the part ended."""
        [column] = [one for one in self._columns if one.run.path == part.run.path]
        column.in_hand -= 1
        if column.result is not None:  # the configuration was refused in another part
            return
        if ended.refusal is not None:
            column.waiting.clear()
            self._end(column, _skip(column.run, column.request, ended.refusal[0], self._progress))
        elif ended.failure is not None:
            self._progress.step(f"unknown: {part.title}: {ended.failure}")
            column.is_given_up = True
            numbers = range(len(column.workloads)) if part.numbers is None else part.numbers
            give_up(column.run, numbers, ended.failure)
        elif part.numbers is None:
            self._end(column, column.run.result())

    def _end(self, column: _MatrixColumn, result: Result) -> None:
        column.result = result
        if self._columns[0].result is not None:
            _kept(self._directory, self._columns)


def _kept(directory: MatrixDirectory, columns: Sequence[_MatrixColumn]) -> Result:
    """Combine the finished columns into one result. Write the result into ``directory``, and return it. Leave out all
    columns after the first unfinished column, so that the columns stay in order."""
    done = []
    for column in columns:
        if column.result is None:
            break
        done.append((column.run.path, column.result))
    return directory.save_columns(done)
