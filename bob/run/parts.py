"""A run in parts, each with its run directory: columns of a matrix, lots of a search, or a program by file system and
pace. This machine does them one after the other, or the workers of a cluster do them (bob/run/cluster.py)."""

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
    """A part of a run: the directory ``run`` has the question, and keeps the results. ``numbers`` chooses some of its
    workloads; None means all, and then they are judged."""

    run: RunDirectory
    title: str
    host: Host
    numbers: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class PartEnd:
    """A part's end: ``refusal`` has words and hint of mkfs, kernel or script, ``failure`` why no worker did it."""

    seconds: float = 0.0
    refusal: tuple[str, str | None] | None = None
    failure: str | None = None


class Doer(Protocol):
    """Does parts, ``places`` of them in parallel (0: here, one by one). ``in_hand`` counts those being done."""

    @property
    def places(self) -> int: ...

    @property
    def in_hand(self) -> int: ...


class PartedRun(Protocol):
    def ready(self, doer: Doer) -> Iterator[RunPart]:
        """Yield the parts that can be done now, each once."""

    def take(self, part: RunPart, ended: PartEnd) -> None:
        """Note that a part has ended."""


class Here:
    """Does parts one after the other, in guests of this machine."""

    places = in_hand = 0

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def do(self, parts: PartedRun) -> None:
        """Do ``parts`` until none is ready. Raise as :func:`bob.run.prober.resume` does."""
        while (part := next(parts.ready(self), None)) is not None:
            began = time.monotonic()
            prober.resume(part.run.path, part.host, self._progress)
            parts.take(part, PartEnd(time.monotonic() - began))


def give_up(run: RunDirectory, numbers: Iterable[int], reason: str) -> None:
    """Mark those of the workloads ``numbers`` that are not done as lost, so ``--resume`` tries them again."""
    workloads = run.planned()
    for number in numbers:
        if not run.is_done(folder := run.folder(number, workloads[number])):
            run.save_loss(folder, workloads[number], reason)


def judged(run: RunDirectory) -> Result:
    """Return the result of ``run``, judged from the files in its directory. Raise GuestError if no worker began it."""
    if "environment" not in run.about():
        raise GuestError(f"no worker could begin {run.path.name}", hint="--resume tries again")
    run.note(finished=now())
    return judge_run(run)
