"""The columns of a matrix on a cluster: which parcels they make, and how the pieces become one run directory.

A column is one parcel where there are as few workers as that; else it is cut into some workloads each. A base image is
made once for a run, as another one would differ in what the kernel draws at random: so the first parcel of a column
that is cut has one workload for each initial tree, and those that come after it are given the bases that it made. The
last parcel of a column has all of it: recoveries are crashed, where that was asked for, and the column is judged, which
would be too much for the machine that asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

import bob
from bob.errors import BobError, GuestError, StoreError
from bob.progress import Progress
from bob.record.base import base_name
from bob.report.counts import plural
from bob.request import Host, ProbeRequest, request_of
from bob.result import Environment, Result, from_json
from bob.run.cluster import Workers, workers
from bob.run.parcels import Parcel, Piece, is_of, packed, unpack
from bob.run.prober import Asked, Prober, now, unfinished
from bob.store.matrix_directory import MatrixDirectory
from bob.store.run_directory import RunDirectory
from bob.timings import Timed
from bob.workload.operations import Workload

PARCELS_PER_PLACE = 4
"""So many parcels for each that is done at a time: where some take longer than others, the workers end together."""
FEWEST = 8
"""A parcel has so many workloads at the least: it takes a guest that records and one that observes first."""


def spread(directory: MatrixDirectory, host: Host, progress: Progress) -> Result:
    """Go on with the matrix in ``directory`` on the cluster of ``host``; what is finished is not done again.

    Raises what :func:`bob.run.cluster.workers` and :meth:`bob.run.cluster.Workers.finished` raise. However it ends,
    what is finished is kept.
    """
    columns = [_Column(run, request_of(run, host)) for run in directory.columns()]
    environment = next((one.environment for one in columns if one.environment), None)
    left = [unfinished(column.run) for column in columns]
    progress.planned(sum(left), sum(count * column.request.budget for count, column in zip(left, columns, strict=True)))
    assert host.scheduler is not None
    with workers(host.scheduler, directory.about["id"], environment, progress) as them:
        return _Spread(directory, columns, them, progress).result()


@dataclass(slots=True, eq=False)
class _Column:
    """A column of the table: the numbers of the workloads that no worker was given (``waiting``), whether some of it
    was given up, and its ``result`` when there is one."""

    run: RunDirectory
    request: ProbeRequest
    result: Result | None = None
    is_given_up: bool = False
    workloads: tuple[Workload, ...] = field(init=False)
    waiting: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.workloads = tuple(self.run.planned())
        if self.run.is_finished():
            self.result = from_json(self.run.result())
        every = range(len(self.workloads))
        self.waiting = [number for number in every if not self.run.is_done(self.folder(number))]

    @property
    def environment(self) -> Mapping[str, str] | None:
        """What it was measured on so far."""
        found: Mapping[str, str] | None = self.run.about().get("environment")
        return found

    def folder(self, number: int) -> Path:
        """The folder of a workload."""
        return self.run.folder(number, self.workloads[number])

    def without_base(self, numbers: Sequence[int]) -> list[int]:
        """One workload, among those with these ``numbers``, for each initial tree that has no base image yet."""
        first: dict[str, int] = {}
        for number in numbers:
            workload = self.workloads[number]
            first.setdefault(base_name(self.request.configuration, workload.setup, workload.pattern), number)
        return [number for name, number in first.items() if not self.run.has_base(name)]


class _Spread:
    """Hands out the parcels of columns, and puts the pieces together."""

    def __init__(
        self, directory: MatrixDirectory, columns: Sequence[_Column], them: Workers, progress: Progress
    ) -> None:
        self._directory, self._columns, self._them, self._progress = directory, columns, them, progress
        self._parcels = max(1, PARCELS_PER_PLACE * them.places // max(1, sum(one.result is None for one in columns)))
        self._of: dict[str, _Column] = {}

    def result(self) -> Result:
        """The table, when all is done."""
        try:
            for column in self._columns:
                self._go_on(column)
            while self._them.in_hand:
                parcel, piece = self._them.finished()
                column = self._of.pop(parcel.key)
                self._take(column, parcel, piece)
                if column not in self._of.values():
                    self._go_on(column)
            return self._kept()
        except BaseException:
            for parcel, piece in self._them.stop():
                with suppress(BobError):  # what ended it is to be told
                    self._keep_files(self._of[parcel.key], parcel, piece)
            raise

    def _go_on(self, column: _Column) -> None:
        """Hand out what can be done now of a column of which no parcel is under way."""
        if column.result is None and column.is_given_up and not column.waiting:
            column.result = judging(column.run, column.request, self._progress).result(0)  # a worker would try it again
        if column.result is None:
            self._hand_out(column)
            return
        if self._columns[0].result is not None:
            self._kept()

    def _hand_out(self, column: _Column) -> None:
        """Hand out what waits of a column, or as much of it as can be done before its base images are there."""
        waiting = list(column.waiting)
        size = max(FEWEST, -(-len(column.workloads) // self._parcels))
        if not waiting or self._parcels == 1 or len(column.workloads) <= size:
            self._hand(column, None)
        elif first := column.without_base(waiting):
            others = [number for number in waiting if number not in first]
            self._hand(column, sorted([*first, *others[: max(0, size - len(first))]]))
        else:
            for place in range(0, len(waiting), size):
                self._hand(column, waiting[place : place + size])

    def _hand(self, column: _Column, numbers: Sequence[int] | None) -> None:
        """Have some worker do the workloads with these ``numbers``; of None all, and judge them."""
        run, host = column.run, column.request.host
        key = title = run.path.name
        if numbers is None:
            title += "" if column.waiting else " (to be judged)"
            column.waiting.clear()
            given = packed(run.path)
        else:
            column.waiting = [number for number in column.waiting if number not in numbers]
            key, title = f"{key}-from-{numbers[0]}", f"{key} ({plural(len(numbers), 'workload')})"
            theirs = is_of(column.folder(number).name for number in numbers)
            given = packed(run.path, lambda path: path == PurePosixPath("run.json") or theirs(path))
        self._of[key] = column
        parcel = Parcel(self._directory.about["id"], key, title, bob.__version__, given)
        self._them.hand(
            replace(
                parcel,
                numbers=None if numbers is None else tuple(numbers),
                environment=column.environment,
                jobs=host.jobs or 1,
                connect=host.connect,
            )
        )

    def _take(self, column: _Column, parcel: Parcel, piece: Piece) -> None:
        """Keep a piece that came back. What was given up is lost, so that it is tried again some day."""
        if column.result is not None:  # another parcel of it was refused
            return
        self._keep_files(column, parcel, piece)
        if piece.refusal is not None and piece.environment is not None:
            self._skip(column, piece.refusal[0], piece.environment)
        elif piece.failure is not None:
            self._progress.step(f"unknown: {parcel.title}: {piece.failure}")
            column.is_given_up = True
            numbers = range(len(column.workloads)) if parcel.numbers is None else parcel.numbers
            lose(column.run, {number: column.workloads[number] for number in numbers}, piece.failure)
        elif parcel.numbers is None:
            column.result = from_json(column.run.result())

    def _keep_files(self, column: _Column, parcel: Parcel, piece: Piece) -> None:
        run = column.run
        if not piece.files or piece.environment is None:
            return
        if parcel.numbers is None:
            unpack(piece.files, run.path)
            return
        _note(run, piece.environment)
        theirs = is_of(column.folder(number).name for number in parcel.numbers)
        unpack(piece.files, run.path, lambda path: theirs(path) and not _is_kept_base(run, path))

    def _skip(self, column: _Column, reason: str, environment: Mapping[str, str]) -> None:
        self._progress.step(f"{column.request.configuration.name} is skipped: {reason}")
        left = unfinished(column.run)
        self._progress.skipped(left, left * column.request.budget)
        _note(column.run, environment)
        column.waiting.clear()
        column.result = judging(column.run, column.request, self._progress).skipped(0, reason)

    def _kept(self) -> Result:
        """Keep the columns that are done as one result: the first ones, as far as they are, so that each has its
        place."""
        done = []
        for column in self._columns:
            if column.result is None:
                break
            done.append((column.run.path, column.result))
        return self._directory.save_result(done)


def judging(run: RunDirectory, request: ProbeRequest, progress: Progress) -> Prober:
    """Who judges a run by what its directory has. Raises GuestError where no worker came to it."""
    if (environment := run.about().get("environment")) is None:
        raise GuestError(f"no worker could begin {run.path.name}", hint="--resume tries again")
    asked = Asked(run, request, Environment(**environment), None, fresh=False)
    return Prober([asked], _Kept(), Timed(progress), lambda *_: None)


def lose(run: RunDirectory, workloads: Mapping[int, Workload], reason: str) -> None:
    """Those of ``workloads``, by their numbers, that are not done are lost, so that they are tried again some day."""
    for number, workload in workloads.items():
        if not run.is_done(folder := run.folder(number, workload)):
            run.save_loss(folder, workload, reason)


class _Kept:
    """In the place of guests: all is in the run directory."""

    def result(self, _task: int, _number: int) -> None:
        """Nothing."""


def _note(run: RunDirectory, environment: Mapping[str, str]) -> None:
    """Take note of what a run was measured on. Raises StoreError where that is not what it was begun on."""
    known = run.about().get("environment")
    if known is None:
        run.note(environment=dict(environment), started=now())
    elif known != environment:
        raise StoreError(f"{run.path} was begun on another machine or image", hint="probe anew, with --out")


def _is_kept_base(run: RunDirectory, path: PurePosixPath) -> bool:
    return path.parts[0] == "bases" and run.has_base(path.stem)
