"""The lots of a search as parts of it: one after the other here, or as many as there are workers for.

On one machine the workloads of a lot are chosen when all lots before it are done. On a cluster they are chosen when
some are, the first ones without a gap. The search's directory says how many, so that they are the same when the search
is gone on with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import rmtree
from typing import Protocol

from bob.answer.result import Result
from bob.catalogue.request import ProbeRequest
from bob.errors import UsageError
from bob.progress import Progress
from bob.run.parts import Doer, PartEnd, RunPart, give_up, judged
from bob.run.prober import start, unfinished
from bob.store.run_directory import RunDirectory
from bob.store.search_directory import SearchDirectory
from bob.workload.operations import Workload

AHEAD = 2
"""Lots in hand for each place: no worker waits for the next one."""

FinishedLot = tuple[Path, Result]


class LotChooser(Protocol):
    """Chooses the workloads of lots, and counts the lots that are done (bob/run/search.py)."""

    def asks(self, lot: Sequence[Workload]) -> ProbeRequest:
        """Return the request for a lot."""

    def again(self, folder: Path, count: int, known: Sequence[FinishedLot]) -> tuple[Workload, ...]:
        """Return the workloads of a lot that was begun before."""

    def more(self, known: Sequence[FinishedLot], places: int) -> tuple[Workload, ...]:
        """Return the workloads of a new lot; an empty tuple ends the search."""

    def count(self, workloads: int, seconds: float, done: Sequence[FinishedLot]) -> None:
        """Note that so many workloads of a lot were done in so many seconds, and that these lots are ``done`` now."""


class Lots:
    """The lots of the search in ``directory``. Some may be begun already."""

    def __init__(self, directory: SearchDirectory, search: LotChooser, progress: Progress) -> None:
        self._directory, self._search, self._progress = directory, search, progress
        self._results = dict(directory.results())
        self._begun = list(zip(directory.lots(), directory.known(), strict=True))
        self._left: dict[Path, int] = {}
        """The number of workloads that a lot had left when it was handed out."""
        self._is_over = False

    def ready(self, doer: Doer) -> Iterator[RunPart]:
        """Yield the lots that were begun before, then new ones, a few more than are done at a time."""
        while self._begun:
            (folder, count), known = self._begun.pop(0)
            lot = self._search.again(folder, count, self._known()[:known])
            if folder not in self._results:
                yield self._part(folder, lot, doer)
        while not self._is_over and doer.in_hand < max(1, AHEAD * doer.places):
            known_now = self._known()
            if lot := self._search.more(known_now, doer.places):
                yield self._part(self._directory.begin(len(lot), len(known_now)), lot, doer)
            else:
                self._is_over = True

    def take(self, part: RunPart, ended: PartEnd) -> None:
        """Note that a lot has ended. Raises UsageError if mkfs or the kernel refused the configuration."""
        run = part.run
        if ended.refusal is not None:
            raise UsageError(ended.refusal[0], hint=ended.refusal[1])
        if ended.failure is None:
            self._results[run.path] = run.result()
        else:
            self._progress.step(f"unknown: {part.title}: {ended.failure}")
            give_up(run, range(len(run.planned())), ended.failure)
            self._results[run.path] = judged(run)
        self._search.count(self._left[run.path], ended.seconds, self.done())

    def done(self) -> list[FinishedLot]:
        """Return the lots that are done, in their order."""
        return [(folder, self._results[folder]) for folder, _n in self._directory.lots() if folder in self._results]

    def _known(self) -> list[FinishedLot]:
        """Return the lots before the first one that is not done."""
        known = []
        for folder, _count in self._directory.lots():
            if folder not in self._results:
                break
            known.append((folder, self._results[folder]))
        return known

    def _part(self, folder: Path, lot: Sequence[Workload], doer: Doer) -> RunPart:
        """Return the lot in ``folder`` as a part."""
        request = self._search.asks(lot)
        if not (folder / "run.json").is_file():
            rmtree(folder, ignore_errors=True)  # bob was killed while the folder was made
            start(request, folder, self._directory.about()["id"])
        run = RunDirectory(folder)
        run.reopen()
        left = self._left[folder] = unfinished(run)
        if doer.places:  # here, the lot itself reports it
            self._progress.planned(left, left * request.budget)
        return RunPart(run, folder.name, request.host)
