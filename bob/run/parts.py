"""A run in parts: each part has a run directory of its own, and is done as the command by itself would do it.

A part is a column of a matrix, a lot of a search, or a program on one file system at one pace. The run says which parts
can be done now, and puts them together. This machine does them one after the other, or the workers of a cluster do them
(bob/run/cluster.py).
"""

from __future__ import annotations

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
    """A part of a run: the directory ``run`` says what is asked, and keeps what is done.

    ``numbers`` chooses some of its workloads; None means all, and then they are judged, too. ``title`` is for people.
    ``host`` says where guests run, and how many.
    """

    run: RunDirectory
    title: str
    host: Host
    numbers: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class PartEnd:
    """How a part ended, after so many ``seconds``. Its run directory has the results.

    ``refusal`` has the words and the hint if mkfs, the kernel or a program's script refused it. ``failure`` says why no
    worker could do it.
    """

    seconds: float = 0.0
    refusal: tuple[str, str | None] | None = None
    failure: str | None = None


class Doer(Protocol):
    """Does parts, ``places`` of them side by side (0: here, one after the other). ``in_hand`` counts them."""

    @property
    def places(self) -> int: ...

    @property
    def in_hand(self) -> int: ...


class PartedRun(Protocol):
    """A run in parts."""

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
        """Do ``parts`` until none is ready. Raises as :func:`bob.run.prober.resume` does."""
        while (part := next(parts.ready(self), None)) is not None:
            began = time.monotonic()
            prober.resume(part.run.path, part.host, self._progress)
            parts.take(part, PartEnd(time.monotonic() - began))


def give_up(run: RunDirectory, numbers: Iterable[int], reason: str) -> None:
    """Mark as lost the workloads with these ``numbers`` that are not done: ``--resume`` tries them again."""
    workloads = run.planned()
    for number in numbers:
        if not run.is_done(folder := run.folder(number, workloads[number])):
            run.save_loss(folder, workloads[number], reason)


def judged(run: RunDirectory) -> Result:
    """Return the result of ``run``, judged by the files in its directory. Raises GuestError if no worker began it."""
    if "environment" not in run.about():
        raise GuestError(f"no worker could begin {run.path.name}", hint="--resume tries again")
    run.note(finished=now())
    return judge_run(run)
