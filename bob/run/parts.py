"""A run in parts: each part is a run directory of its own, and somebody does it as the command by itself would.

A part is a column of a matrix, a lot of a search, or a program on one file system at one pace. Whoever has a run in
parts says which parts can be done now, and puts together what comes back. They are done here, one after the other, or
by the workers of a cluster (bob/run/cluster.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from bob.errors import GuestError
from bob.judge.again import judge_run
from bob.progress import Progress
from bob.request import Host
from bob.result import Result
from bob.run import prober
from bob.store.run_directory import RunDirectory


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a run: the directory ``run``, which says what is asked and has what was done before.

    Of its workloads only those with these ``numbers`` are done (None: all, and they are judged). ``title`` is for
    people. ``host`` says how many guests do it, and where.
    """

    run: RunDirectory
    title: str
    host: Host
    numbers: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a part ended, after so many ``seconds``; its run directory has what was made.

    ``refusal`` has the words and the hint with which mkfs, the kernel or a program's script refused it. ``failure``
    says why nobody could do it.
    """

    seconds: float = 0.0
    refusal: tuple[str, str | None] | None = None
    failure: str | None = None


class Doer(Protocol):
    """Who does parts: at so many ``places`` side by side (0: here), and so many are ``in_hand``."""

    @property
    def places(self) -> int: ...

    @property
    def in_hand(self) -> int: ...


class Parts(Protocol):
    """A run in parts."""

    def ready(self, doer: Doer) -> Iterator[Part]:
        """Yield the parts that can be done now, each once."""

    def take(self, part: Part, ended: Ended) -> None:
        """Note that a part has ended."""


class Here:
    """Does parts one after the other, in guests of this machine."""

    places = in_hand = 0

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def do(self, parts: Parts) -> None:
        """Do ``parts`` until none is ready. Raises as :func:`bob.run.prober.resume` does."""
        while (part := next(parts.ready(self), None)) is not None:
            began = time.monotonic()
            prober.resume(part.run.path, part.host, self._progress)
            parts.take(part, Ended(time.monotonic() - began))


def give_up(run: RunDirectory, numbers: Iterable[int], reason: str) -> None:
    """Mark as lost the workloads with these ``numbers`` that are not done: ``--resume`` tries them again."""
    workloads = run.planned()
    for number in numbers:
        if not run.is_done(folder := run.folder(number, workloads[number])):
            run.save_loss(folder, workloads[number], reason)


def judged(run: RunDirectory) -> Result:
    """Return the result of ``run`` by what its directory has. Raises GuestError if no worker came to it."""
    if "environment" not in run.about():
        raise GuestError(f"no worker could begin {run.path.name}", hint="--resume tries again")
    run.note(finished=prober.now())
    return judge_run(run)
