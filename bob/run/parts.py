"""A run divided into parts, each with a run directory. A part of a matrix is a column of its table, or some workloads
of a column. A part of a search (a run that chooses its workloads itself) is a batch of workloads. A part of a
program's run covers one file system and one pace (how fast the program runs). This machine does the parts one after the
other, or the workers of a cluster do them (bob/run/dask_workers.py)."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from bob.answer.result import Result
from bob.catalogue.request import Host
from bob.errors import GuestError
from bob.judge.again import judge_run
from bob.progress import Progress
from bob.run import prober
from bob.store.run_directory import RunDirectory, now


@dataclass(frozen=True, slots=True)
class RunPart:
    """A part of a run. The directory ``run`` says what to do, and keeps the results. ``numbers`` are the numbers of the
    part's workloads. None stands for all workloads of the directory; then bob also judges the recordings, and writes
    the result."""

    run: RunDirectory
    title: str
    host: Host
    numbers: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class PartEnd:
    """The end of a part. ``refusal`` has the message and the hint if mkfs or the kernel refused the configuration, or
    if a script of the program under test failed. ``failure`` is the reason if no worker could do the part."""

    seconds: float = 0.0
    refusal: tuple[str, str | None] | None = None
    failure: str | None = None


class Doer(Protocol):
    """An object that does the parts of a run. On a cluster, ``places`` is the number of parts that it does at the same
    time. On this machine, it does one part after the other, and ``places`` is 0. ``in_hand`` is the number of parts
    that it is doing now."""

    @property
    def places(self) -> int: ...

    @property
    def in_hand(self) -> int: ...


class PartedRun(Protocol):
    def ready(self, doer: Doer) -> Iterator[RunPart]:
        """Yield the parts that ``doer`` can do now. Over all calls, yield each part only once."""

    def take(self, part: RunPart, ended: PartEnd) -> None:
        """Note that ``part`` has ended, and add its results to those of the run. ``ended`` says how it ended."""


class Here:
    """An object that does the parts of a run one after the other, in guests on this machine."""

    places = in_hand = 0

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def do(self, parts: PartedRun) -> None:
        """Do all parts of the run ``parts``, until :meth:`PartedRun.ready` yields no further part. Raise the errors of
        :func:`bob.run.prober.resume`."""
        while (part := next(parts.ready(self), None)) is not None:
            began = time.monotonic()
            prober.resume(part.run.path, part.host, self._progress)
            parts.take(part, PartEnd(time.monotonic() - began))


def give_up(run: RunDirectory, numbers: Iterable[int], reason: str) -> None:
    """Mark all workloads with one of ``numbers`` as lost, except for the finished workloads. ``--resume`` tries lost
    workloads again. ``reason`` says why they are lost."""
    workloads = run.planned()
    for number in numbers:
        if not run.is_done(folder := run.folder(number, workloads[number])):
            run.save_loss(folder, workloads[number], reason)


def judged(run: RunDirectory) -> Result:
    """Judge from the files of ``run`` whether the properties hold. Write the result into the run directory, and return
    it. Raise GuestError if no worker could begin the run."""
    if "environment" not in run.about():
        raise GuestError(f"no worker could begin {run.path.name}", hint="--resume tries again")
    run.note(finished=now())
    return judge_run(run)
