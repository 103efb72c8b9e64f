"""The lots of a search on a cluster: each is a parcel, and as many are begun as there are workers for.

On one machine the workloads of a lot are chosen when all lots before it are done. Here they are chosen when some are,
the first ones without a gap; the search's directory says how many, so that they are the same when it is gone on with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Protocol

import bob
from bob.errors import BobError, UsageError
from bob.progress import Progress
from bob.request import ProbeRequest, request_of
from bob.result import Result, from_json
from bob.run.cluster import Workers
from bob.run.columns import judging, lose
from bob.run.parcels import Parcel, Piece, packed, unpack
from bob.run.prober import start, unfinished
from bob.store.run_directory import RunDirectory
from bob.store.search_directory import SearchDirectory
from bob.workload.operations import Workload

AHEAD = 2
"""So many lots are handed out for each place at which one is done: a worker need not wait for the next one."""

Done = tuple[Path, Result]


class Choosing(Protocol):
    """Who says which workloads a lot has, and is told when one is done (bob/run/search.py)."""

    def asks(self, lot: Sequence[Workload]) -> ProbeRequest:
        """What is asked of a lot."""

    def again(self, folder: Path, count: int, known: Sequence[Done]) -> tuple[Workload, ...]:
        """The workloads of a lot that was begun before."""

    def more(self, known: Sequence[Done], places: int) -> tuple[Workload, ...]:
        """Those of a new lot; none where there is no more to do."""

    def count(self, workloads: int, seconds: float, done: Sequence[Done]) -> None:
        """A lot is done."""


class Lots:
    """Hands out lots, and puts what comes back into the search's directory."""

    def __init__(self, directory: SearchDirectory, them: Workers, progress: Progress) -> None:
        self._directory, self._them, self._progress = directory, them, progress
        self._results = dict(directory.results())
        self._of: dict[str, RunDirectory] = {}

    def done(self, search: Choosing) -> list[Done]:
        """All lots, when there is no more to do. Raises UsageError where mkfs or the kernel refuse the configuration.
        However it ends, what is finished is kept."""
        try:
            lots = zip(self._directory.lots(), self._directory.known(), strict=True)
            for (folder, count), known in list(lots):
                lot = search.again(folder, count, self._known()[:known])
                if folder not in self._results:
                    self._hand(folder, search.asks(lot))
            is_over = False
            while True:
                while not is_over and self._them.in_hand < AHEAD * self._them.places:
                    known_now = self._known()
                    if is_over := not (lot := search.more(known_now, self._them.places)):
                        break
                    self._hand(self._directory.begin(len(lot), len(known_now)), search.asks(lot))
                if not self._them.in_hand:
                    return self._every()
                parcel, piece = self._them.finished()
                run = self._of.pop(parcel.key)
                self._take(run, parcel, piece)
                search.count(len(run.planned()), piece.seconds, self._every())
        except BaseException:
            for parcel, piece in self._them.stop():
                with suppress(BobError):  # what ended it is to be told
                    self._keep_files(self._of[parcel.key], piece)
            raise

    def _every(self) -> list[Done]:
        """The lots that are done, in their order."""
        return [(folder, self._results[folder]) for folder, _n in self._directory.lots() if folder in self._results]

    def _known(self) -> list[Done]:
        """The first of them, up to one that is not done."""
        known = []
        for folder, _count in self._directory.lots():
            if folder not in self._results:
                break
            known.append((folder, self._results[folder]))
        return known

    def _hand(self, folder: Path, request: ProbeRequest) -> None:
        """Have some worker do the lot in ``folder``, or what is left of it."""
        if not (folder / "run.json").is_file():
            rmtree(folder, ignore_errors=True)  # bob was killed while the folder was made
            start(request, folder, self._directory.about()["id"])
        run = RunDirectory(folder)
        left = unfinished(run)
        self._progress.planned(left, left * request.budget)
        self._of[folder.name] = run
        self._them.hand(
            Parcel(
                self._directory.about()["id"],
                folder.name,
                folder.name,
                bob.__version__,
                packed(folder),
                environment=run.about().get("environment"),
                jobs=request.host.jobs or 1,
                connect=request.host.connect,
            )
        )

    def _take(self, run: RunDirectory, parcel: Parcel, piece: Piece) -> None:
        if piece.refusal is not None:
            raise UsageError(piece.refusal[0], hint=piece.refusal[1])
        self._keep_files(run, piece)
        if piece.failure is None:
            self._results[run.path] = from_json(run.result())
            return
        self._progress.step(f"unknown: {parcel.title}: {piece.failure}")
        workloads = run.planned()
        lose(run, dict(enumerate(workloads)), piece.failure)
        self._results[run.path] = judging(run, request_of(run), self._progress).result(0)

    def _keep_files(self, run: RunDirectory, piece: Piece) -> None:
        if piece.files and piece.environment is not None:
            unpack(piece.files, run.path)


def environment_of(directory: SearchDirectory) -> Mapping[str, str] | None:
    """What the lots of a search were measured on so far; None where there is none yet."""
    found = (run.about().get("environment") for run in directory.runs())
    return next((one for one in found if one), None)
