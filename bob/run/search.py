"""A search from end to end. It tries its workloads in *lots* (batches). For each lot, bob runs a probe (an experiment
on one file system) with the workloads of the lot. The results of earlier lots decide which workloads a new lot has.

On this machine, bob finishes all earlier lots before it chooses a new lot. On a cluster, some earlier lots may still be
at work when bob chooses. Therefore the run directory keeps how many lots were finished at each choice, so that
``--resume`` chooses the same workloads."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, takewhile
from pathlib import Path
from shutil import rmtree

from bob.answer.result import Result
from bob.catalogue.request import Host, ProbeRequest, request_from_json, request_to_json
from bob.claim.verdict import Verdict
from bob.errors import StoreError, UsageError
from bob.guest.capacity import check_jobs
from bob.guest.given_machine import is_machine
from bob.guest.spec import Clock
from bob.judge.again import told
from bob.progress import Progress
from bob.record.base import room
from bob.run.agents import agent_in, guests_of, image_called, jobs_for
from bob.run.dask_workers import workers
from bob.run.parts import Doer, Here, PartEnd, RunPart, give_up, judged
from bob.run.prober import begin, start, unfinished
from bob.run.shrink import shrink
from bob.run.timings import TimedWork, in_words
from bob.schema import encode
from bob.search.bounds import FILLER, parsed
from bob.search.space import Space, possible, probes, still_asking
from bob.search.spaces import Search, search_in
from bob.store.files import read_document, write_document
from bob.store.lock import writing
from bob.store.run_directory import RunDirectory, now
from bob.store.search_directory import SearchDirectory
from bob.text import duration, plural
from bob.witness import document as witness
from bob.witness.results import tell_results
from bob.workload.operations import Workload

LOT = 400  # workloads of a lot, which take some minutes: a resumed search repeats little, and findings show soon
FIRST_LOT, LOT_SECONDS = (
    16,
    60.0,
)  # in a search with a time limit: workloads of the first lot, seconds of each later lot
KEPT_FOR = 20  # writing the result takes a while; before the next time, bob waits so many times as long
LOTS_PER_PLACE = 4  # lots for each place of a cluster; with several, all workers end at about the same time
AHEAD = 2  # lots handed out for each place of a cluster, so that workers do not wait for the next lot
FEWEST = 2  # bob does not begin a smaller lot in the remaining time

FinishedLot = tuple[Path, Result]


def search(asked: Search, request: ProbeRequest, out: Path | None, progress: Progress) -> tuple[Result, Path]:
    """Run the search ``asked``. ``request`` has the configuration, the image, and limits such as the number of mounts.
    Return the result and the run directory. Raise UsageError before a lot starts if the request is impossible, or no
    workload remains to try."""
    if request.host.scheduler is None:
        check_jobs(request.host.jobs)
    asked = filled(asked, request, progress)
    planned = PlannedSearch.of(asked, request, progress)
    path, about = begin(out)
    about |= {"search": encode(asked), "request": request_to_json(request)}
    if planned.together and asked.seconds is None and request.host.scheduler is None:
        guests = jobs_for(request.image, request.host.jobs)
        work = TimedWork.of("search", request, guests, planned.together)
        progress.step(in_words([work]))
    directory = SearchDirectory.create(path, about)
    try:
        with writing([path]):
            return _SearchRun(directory, asked, request, planned, progress).result(), path
    except UsageError:  # for example, mkfs refused an option; the corrected command may use the same --out
        if not directory.results():
            directory.discard()
        raise


def resume(path: Path, host: Host, progress: Progress) -> tuple[Result, Path]:
    """Resume the search whose run directory is ``path``. Raise StoreError if ``path`` is not a search's run directory,
    or another process is writing it."""
    directory = SearchDirectory(path)
    if host.scheduler is None:
        check_jobs(host.jobs)
    try:
        about = directory.about()
        asked, request = search_in(about["search"]), request_from_json(about["request"], host)
    except (KeyError, TypeError) as error:
        raise StoreError(f"{path}/run.json does not say what was searched for ({error})") from None
    if "merged" in about:
        raise StoreError(f"{path} is merged from finished searches", hint=f"bob show {path} prints their findings")
    with writing([path]):
        planned = PlannedSearch.of(asked, request, progress)
        return _SearchRun(directory, asked, request, planned, progress).result(), path


class _SearchRun:
    """The run of a search, which continues until the search is done. The lots are the parts of this run
    (:class:`bob.run.parts.PartedRun`). ``asked`` is the search that the user asked for."""

    def __init__(
        self,
        directory: SearchDirectory,
        asked: Search,
        request: ProbeRequest,
        planned: PlannedSearch,
        progress: Progress,
    ) -> None:
        self._directory, self._asked, self._request, self._planned = directory, asked, request, planned
        self._progress = progress
        self._results = dict(directory.results())
        self._begun = list(zip(directory.lots(), directory.known(), strict=True))
        self._left: dict[Path, int] = {}  # by lot: its unfinished workloads when it was handed out
        self._is_over = False
        self._began = self._keep_again = time.monotonic()
        self._spent: float = directory.about().get("seconds", 0.0)  # seconds that earlier sessions took
        self._tried, self._busy = 0, 1e-9  # workloads that this session tried; seconds that their lots took
        self._places = 1

    def result(self) -> Result:
        directory, scheduler = self._directory, self._request.host.scheduler
        if scheduler is None:
            Here(self._progress).do(self)
        else:
            with workers(scheduler, directory.about()["id"], directory.runs(), self._progress) as them:
                them.do(self)
        directory.note(finished=now(), skipped=self._skipped())
        result = told(directory, self._done())
        if self._asked.is_drawn:
            result = self._shrunk(result)
        for cell in result.subjects[0].answers:
            self._progress.judged(cell)
        return result

    def ready(self, doer: Doer) -> Iterator[RunPart]:
        """Yield the lots that an earlier session of the search began, and then new lots. On a cluster, begin more lots
        than ``doer`` does at the same time. Raise StoreError if this session would choose other workloads for a lot
        than the earlier session did."""
        while self._begun:
            (folder, count), known = self._begun.pop(0)
            lot = self._next(count, self._known()[:known])
            _check_kept(folder, lot)
            if folder not in self._results:
                yield self._part(folder, lot, doer)
        while not self._is_over and doer.in_hand < max(1, AHEAD * doer.places):
            known_now = self._known()
            lot = () if known_now and self._is_broken(known_now) else self._next_lot(known_now, doer.places)
            if lot:
                yield self._part(self._directory.begin(len(lot), len(known_now)), lot, doer)
            else:
                self._is_over = True

    def take(self, part: RunPart, ended: PartEnd) -> None:
        """Take over the result of a lot, which has ended. ``part`` is the lot, and ``ended`` says how it ended. Raise
        UsageError if mkfs or the kernel refused the configuration."""
        run = part.run
        if ended.refusal is not None:
            raise UsageError(ended.refusal[0], hint=ended.refusal[1])
        if ended.failure is None:
            self._results[run.path] = run.result()
        else:
            self._progress.step(f"unknown: {part.title}: {ended.failure}")
            give_up(run, range(len(run.planned())), ended.failure)
            self._results[run.path] = judged(run)
        self._busy += ended.seconds
        self._tried += self._left[run.path]
        self._keep()
        self._tell()

    def _done(self) -> list[FinishedLot]:
        return [(folder, self._results[folder]) for folder, _n in self._directory.lots() if folder in self._results]

    def _known(self) -> list[FinishedLot]:
        """Return the finished lots whose results decide the workloads of the next lot. These are the first lots, up to
        the first one that is not finished."""
        folders = (folder for folder, _count in self._directory.lots())
        return [(folder, self._results[folder]) for folder in takewhile(self._results.__contains__, folders)]

    def _part(self, folder: Path, lot: Sequence[Workload], doer: Doer) -> RunPart:
        request = replace(self._request, probes=probes(self._planned.space, lot), by_cause=True)
        if not (folder / "run.json").is_file():
            rmtree(folder, ignore_errors=True)  # bob was killed while it made the folder
            start(request, folder, self._directory.about()["id"])
        run = RunDirectory(folder)
        run.reopen()
        left = self._left[folder] = unfinished(run)
        if doer.places:  # on this machine, the probe of the lot reports its own plan
            self._progress.planned(left, left * request.budget)
        return RunPart(run, folder.name, request.host)

    def _keep(self) -> None:
        """Combine the results of all lots so far into one result, and save it. This takes longer with each lot.
        Therefore do nothing if too little time has passed since the last call that saved a result."""
        began = time.monotonic()
        if began >= self._keep_again:
            told(self._directory, self._done())
            self._keep_again = time.monotonic() + KEPT_FOR * (time.monotonic() - began)

    def _is_broken(self, done: Sequence[FinishedLot]) -> bool:
        wanted = set(self._asked.props)
        return self._asked.seconds is not None and bool(wanted) and _broken(done) >= wanted

    def _shrunk(self, result: Result) -> Result:
        """Return ``result`` with smaller witnesses, since a workload that bob draws at random has operations that the
        violation does not need.

        Return ``result`` unchanged if the guests are on a cluster, or if the guest is a machine that the user runs. If
        the user asked for certain properties, shrink only the witnesses against these properties. Shrinking all
        witnesses would take as long as the search."""
        directory, host = self._directory, self._request.host
        if is_machine(self._request.image):
            self._progress.step("the witnesses stay as found: bob shrinks them only in guests that it boots")
            return result
        if host.scheduler is not None:
            words = f"`bob witness shrink --in-place {directory.path}` makes the witnesses smaller"
            self._progress.step(words)
            return result
        [column] = result.subjects
        named = [cell.witness for cell in column.answers]
        if not self._asked.props:
            named += [finding.witness for finding in column.findings]
        alike = _alike([directory.path / path for path in named if path])
        budget = self._request.budget
        for one in shrink([*alike], image=None, connect=host.connect, budget=budget, progress=self._progress):
            if one.document is not None:
                for path in alike[one.path]:
                    write_document(path, one.document)
        tell_results(directory.path)
        return directory.result()

    def _next(self, count: int, done: Sequence[FinishedLot]) -> tuple[Workload, ...]:
        """Return the next ``count`` workloads, or fewer at the end. A search for a given time may be for certain
        properties. Such a search drops each property that the lots ``done`` show to be broken, and leaves out workloads
        that test no other property. Results of other lots do not count, so that a resumed search chooses the same
        workloads."""
        workloads = self._planned.workloads
        if self._asked.seconds is not None and self._asked.props:
            broken = _broken(done)
            workloads = still_asking(workloads, [one for one in self._planned.space.asked if one.name not in broken])
        return tuple(islice(workloads, count))

    def _skipped(self) -> list[str]:
        skipped, fs = self._planned.skipped, self._request.configuration.fs
        answers: dict[str, list[str]] = {}
        for word, said in fs.refusals:
            if skipped[word]:
                answers.setdefault(said, []).append(f"{word} ({plural(skipped[word], 'workload')})")
        return [f"skipped: {', '.join(words)}: the kernel says: {said}" for said, words in answers.items()]

    def _next_lot(self, done: Sequence[FinishedLot], places: int) -> tuple[Workload, ...]:
        """Return the workloads of the lot that follows the lots ``done``. Return () at the end of the search.
        ``places`` is the number of lots that a cluster does at the same time; it is 0 if this machine does the lots."""
        self._places = max(1, places)
        if self._asked.seconds is None:
            if not places:
                return self._next(LOT, done)
            share = -(-(self._planned.together or LOT) // (LOTS_PER_PLACE * places))
            return self._next(max(FIRST_LOT, min(LOT, share)), done)
        spent = self._seconds_spent()
        self._directory.note(seconds=spent)
        left = self._asked.seconds - spent
        if left <= 0:
            return ()
        if not self._tried:
            return self._next(FIRST_LOT, done)
        rate = self._tried / self._busy
        size = max(FEWEST, min(LOT, int(rate * min(left, LOT_SECONDS))))
        return self._next(size, done) if rate * left >= FEWEST else ()

    def _seconds_spent(self) -> float:
        return self._spent + time.monotonic() - self._began

    def _tell(self) -> None:
        done = self._done()
        folders = {folder for folder, _result in done}
        tried = sum(count for folder, count in self._directory.lots() if folder in folders)
        rate = self._places * self._tried / self._busy
        causes = {one.cause for _folder, result in done for one in result.subjects[0].findings}
        found = f"{plural(len(_broken(done)), 'row')} broken so far, by {plural(len(causes), 'cause')}"
        words = [f"{tried:,} workloads tried", f"{60 * rate:.0f} a minute", found]
        if self._planned.together is not None:
            words[0] = f"{tried:,} of {self._planned.together:,} workloads tried"
            if tried == self._planned.together:
                return
            words.append(f"{duration((self._planned.together - tried) / rate)} left")
        elif self._asked.seconds is not None:
            words.append(f"{duration(max(0.0, self._asked.seconds - self._seconds_spent()))} left")
        self._progress.step(", ".join(words))


def _broken(done: Sequence[FinishedLot]) -> set[str]:
    cells = chain.from_iterable(result.subjects[0].answers for _folder, result in done)
    return {cell.name for cell in cells if cell.verdict is Verdict.FAILS}


def _alike(paths: Sequence[Path]) -> dict[Path, list[Path]]:
    """Group the unshrunk witnesses (files about one crash state each) by the broken claim and by workload. All
    witnesses of a group shrink to the same witness, so bob shrinks only the first one. Return a dictionary from the
    first witness of each group to all witnesses of the group."""
    first: dict[object, Path] = {}
    alike: dict[Path, list[Path]] = {}
    for path in paths:
        found = witness.read(path)
        if found.shrunk_from is None:
            one = first.setdefault((found.claim, found.workload), path)
            alike.setdefault(one, []).append(path)
    return alike


def _check_kept(folder: Path, lot: Sequence[Workload]) -> None:
    """Raise StoreError if an earlier session began a lot in the directory ``folder`` with other workloads than ``lot``.
    All later lots would then differ, too."""
    if not (folder / "run.json").is_file():
        return
    kept = {one["name"] for one in read_document(folder / "run.json")["workloads"]}
    if kept != {workload.name for workload in lot}:
        raise StoreError(
            f"the search now makes other workloads than when {folder} began",
            hint="a Python file may use a clock, a random number or the order of a set; start a new search",
        )


def filled(asked: Search, request: ProbeRequest, progress: Progress) -> Search:
    """Return ``asked`` with the size of a file that fills the device. The bounds of the search (its limits for
    workloads) say how many bytes this file leaves free. If they do not ask for a full device, return ``asked``
    unchanged. A guest measures the free space. Raise UsageError if the file does not fit, or if the file system cannot
    be filled."""
    leave, configuration = asked.leave, request.configuration
    if not leave:
        return asked
    if "keep" in configuration.fs.lacks:
        said = dict(configuration.fs.refusals)["keep"]
        hint = f"the kernel answers fallocate with FALLOC_FL_KEEP_SIZE: {said}"
        raise UsageError(f"bob cannot fill {configuration.fs.name}, as the bounds {asked.name} require", hint=hint)
    image = image_called(request.image, progress.step, request.host.connect)
    setup = parsed(asked.name, asked.text).setup
    with (
        guests_of(image, request.host.connect, progress.step) as hypervisor,
        agent_in(hypervisor, image, Clock.REAL) as agent,
    ):
        free = room(agent, configuration, setup, FILLER)
    if free <= leave:
        raise UsageError(
            f"a new {configuration.name} has {free:,} free bytes, and the bounds {asked.name} leave {leave:,} of them",
            hint="choose a larger device with --device",
        )
    progress.step(f"a file fills the device: it takes all but {leave:,} of {free:,} free bytes")
    return replace(asked, filler=free - leave)


@dataclass(slots=True)
class PlannedSearch:
    """The ``workloads`` that a search will try. ``together`` is the number of all workloads. If bob draws workloads at
    random, their number is unknown, and ``together`` is None. The workloads never use an operation that the file system
    lacks. For each such operation, ``skipped`` counts the workloads that bob changed or left out because of it."""

    space: Space
    workloads: Iterator[Workload]
    together: int | None
    skipped: Counter[str]

    @classmethod
    def of(cls, asked: Search, request: ProbeRequest, progress: Progress) -> PlannedSearch:
        """Plan the search ``asked``. Raise UsageError if no workload of this search is possible on the file system."""
        progress.step(f"making the workloads {asked.origin}")
        space, skipped = asked.space(), Counter[str]()
        made = possible(asked.workloads(space), space, request.configuration.fs.lacks, skipped)
        if asked.seconds is not None:
            if (first := next(made, None)) is None:
                raise _nothing(asked)
            return cls(space, chain([first], made), None, skipped)
        every = list(made)
        for words in space.notes:
            progress.step(words)
        if not every:
            raise _nothing(asked)
        return cls(space, iter(every), len(every), skipped)


def _nothing(asked: Search) -> UsageError:
    if asked.props:
        return UsageError(
            f"no workload of {plural(asked.length, 'operation')} {asked.origin} tests {', '.join(asked.props)}",
            hint="an order needs two operations (--ops 2), append-rename-any three; --bounds chooses the operations",
        )
    return UsageError(
        f"no workload {asked.origin} in this search tests a promise of its calls",
        hint="--count prints their number; a small --shard may be empty",
    )
