"""A search from end to end: lot by lot, each a probe, until there are no more workloads, or no more time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from bob.answer.answer import Answer
from bob.answer.document import from_json
from bob.answer.result import Result
from bob.catalogue.request import Host, ProbeRequest, request_from_json, request_to_json
from bob.claim.verdict import Verdict
from bob.errors import StoreError, UsageError
from bob.guest.capacity import check_jobs
from bob.guest.given_machine import is_machine
from bob.judge.again import told
from bob.progress import Progress
from bob.run.agents import jobs_for
from bob.run.cluster import workers
from bob.run.parts import Here
from bob.run.planned_search import PlannedSearch, filled
from bob.run.search_parts import FinishedLot, Lots
from bob.run.shrink import shrink
from bob.run.timings import TimedWork, in_words
from bob.schema import encode
from bob.search.space import probes, still_asking
from bob.search.spaces import Search, search_in
from bob.store.files import read_document, write_document
from bob.store.lock import writing
from bob.store.run_directory import RUNS, new_identity, now
from bob.store.search_directory import SearchDirectory
from bob.text import duration, plural
from bob.version import __version__
from bob.witness import document as witness
from bob.witness.results import tell_results
from bob.workload.operations import Workload

LOT = 400
"""Workloads of a lot: some minutes of work, so that little is done again, and what was found is told soon."""
FIRST_LOT, LOT_SECONDS = 16, 60.0
"""Of a search that is given its time, the first lot has so few workloads, and later ones take so long (seconds)."""
KEPT_FOR = 20
"""What was found so far is told as one again after so many times as long as that took."""
LOTS_PER_PLACE = 4
"""On a cluster, so many lots for each that is done at a time, so that the workers end together."""
FEWEST = 2
"""A lot of fewer workloads is not begun for the time that is left."""


def search(asked: Search, request: ProbeRequest, out: Path | None, progress: Progress) -> tuple[Result, Path]:
    """Search as ``asked``, with the configuration, the image and the effort of ``request``; the result, and the run
    directory that holds everything behind it.

    Raises UsageError before anything is started for what cannot be asked, and where nothing would be tried.
    """
    if request.host.scheduler is None:
        check_jobs(request.host.jobs)
    asked = filled(asked, request, progress)
    identity = new_identity()
    planned = PlannedSearch.of(asked, request, progress)
    path = out if out is not None else RUNS / identity
    about = {
        "id": identity,
        "started": now(),
        "bob": __version__,
        "search": encode(asked),
        "request": request_to_json(request),
    }
    if planned.together and asked.seconds is None and request.host.scheduler is None:
        guests = jobs_for(request.image, request.host.jobs)
        work = TimedWork.of("search", request, guests, planned.together)
        progress.step(in_words([work]))
    directory = SearchDirectory.create(path, about)
    try:
        with writing([path]):
            return _SearchRun(directory, asked, request, planned, progress).result(), path
    except UsageError:  # mkfs refused an option, say: the corrected command has the same --out
        if not directory.results():
            directory.discard()
        raise


def resume(path: Path, host: Host, progress: Progress) -> tuple[Result, Path]:
    """Go on with the search in the run directory ``path``; what is finished is not done again.

    Raises StoreError for what is no run of a search, or is being written.
    """
    directory = SearchDirectory(path)
    if host.scheduler is None:
        check_jobs(host.jobs)
    try:
        about = directory.about()
        asked, request = search_in(about["search"]), request_from_json(about["request"], host)
    except (KeyError, TypeError) as error:
        raise StoreError(f"{path}/run.json does not say what was searched for ({error})") from None
    if "merged" in about:
        raise StoreError(f"{path} was merged of others, which are done", hint=f"bob show {path} prints what they found")
    with writing([path]):
        planned = PlannedSearch.of(asked, request, progress)
        return _SearchRun(directory, asked, request, planned, progress).result(), path


class _SearchRun:
    """Goes on with a search until it is done."""

    def __init__(
        self,
        directory: SearchDirectory,
        asked: Search,
        request: ProbeRequest,
        planned: PlannedSearch,
        progress: Progress,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory, self._asked, self._request, self._planned = directory, asked, request, planned
        self._progress, self._clock = progress, clock
        self._began = clock()
        self._spent = directory.about().get("seconds", 0.0)
        """Seconds that earlier sessions took."""
        self._tried, self._busy = 0, 1e-9
        """Workloads of whole lots that this session tried, and seconds that it took for them."""
        self._keep_again = self._began
        self._places = 1
        """So many lots are done at a time."""

    def result(self) -> Result:
        """What was found when all is done."""
        done = self._lots()
        self._directory.note(finished=now(), skipped=self._skipped())
        result = told(self._directory, done)
        if self._asked.is_drawn and is_machine(self._request.image):
            self._progress.step("the witnesses are as found: only guests that bob boots make them smaller")
        elif self._asked.is_drawn and self._request.host.scheduler is None:
            result = self._shrunk(result)
        elif self._asked.is_drawn:
            told_how = f"`bob witness shrink --in-place {self._directory.path}` makes the witnesses smaller"
            self._progress.step(told_how)
        for cell in result.subjects[0].answers:
            self._progress.judged(cell)
        return result

    def _lots(self) -> list[FinishedLot]:
        """All lots, done here or by the workers of a cluster."""
        directory, scheduler = self._directory, self._request.host.scheduler
        lots = Lots(directory, self, self._progress)
        if scheduler is None:
            Here(_OfALot(self._progress)).do(lots)
        else:
            with workers(scheduler, directory.about()["id"], directory.runs(), self._progress) as them:
                them.do(lots)
        return lots.done()

    def asks(self, lot: Sequence[Workload]) -> ProbeRequest:
        """What is asked of the workloads of a lot."""
        return replace(self._request, probes=probes(self._planned.space, lot), by_cause=True)

    def again(self, folder: Path, count: int, known: Sequence[FinishedLot]) -> tuple[Workload, ...]:
        """The workloads of the lot in ``folder``, which was begun before, when the lots ``known`` were. Raises
        StoreError where it was begun with others."""
        lot = self._next(count, known)
        _check_kept(folder, lot)
        return lot

    def more(self, known: Sequence[FinishedLot], places: int) -> tuple[Workload, ...]:
        """The next lot, for one of so many ``places`` at which lots are done side by side (0: here), when the lots
        ``known`` are done, the first ones without a gap; none where there is no more to do."""
        if known and self._is_broken(known):
            return ()
        self._places = max(1, places)
        return self._next_lot(known, places)

    def count(self, workloads: int, seconds: float, done: Sequence[FinishedLot]) -> None:
        """Note that so many ``workloads`` of a lot were done in so many ``seconds``; now these lots are ``done``."""
        self._busy += seconds
        self._tried += workloads
        self._keep(done)
        self._tell(done)

    def _keep(self, done: Sequence[FinishedLot]) -> None:
        """Keep what was found so far, unless that took long and was done a short time ago: of all lots as one, it takes
        longer and longer."""
        began = self._clock()
        if began >= self._keep_again:
            told(self._directory, done)
            self._keep_again = self._clock() + KEPT_FOR * (self._clock() - began)

    def _is_broken(self, done: Sequence[FinishedLot]) -> bool:
        """Whether every property is broken that is to be."""
        wanted = set(self._asked.props)
        return self._asked.seconds is not None and bool(wanted) and _broken(done) >= wanted

    def _shrunk(self, result: Result) -> Result:
        """``result`` with smaller witnesses: workloads that are drawn have more operations than a violation needs.

        Where properties are to be broken, only their witnesses are: all findings would take as long as the search."""
        [column] = result.subjects
        named = [cell.witness for cell in column.answers]
        if not self._asked.props:
            named += [finding.witness for finding in column.findings]
        alike = _alike([self._directory.path / path for path in named if path])
        budget, connect = self._request.budget, self._request.host.connect
        for one in shrink([*alike], image=None, connect=connect, budget=budget, progress=self._progress):
            if one.document is not None:
                for path in alike[one.path]:
                    write_document(path, one.document)
        tell_results(self._directory.path)
        return from_json(read_document(self._directory.path / "result.json"))

    def _next(self, count: int, done: Sequence[FinishedLot]) -> tuple[Workload, ...]:
        """The next ``count`` workloads, or fewer. Where properties are to be broken, only those that ask for one that
        the lots ``done`` have not broken: so it is the same ones when the search is resumed."""
        workloads = self._planned.workloads
        if self._asked.seconds is not None and self._asked.props:
            broken = _broken(done)
            workloads = still_asking(workloads, [one for one in self._planned.space.asked if one.name not in broken])
        return tuple(islice(workloads, count))

    def _skipped(self) -> list[str]:
        """One line on each answer of the kernel to operations that the file system lacks."""
        skipped, fs = self._planned.skipped, self._request.configuration.fs
        answers: dict[str, list[str]] = {}
        for word, said in fs.refusals:
            if skipped[word]:
                answers.setdefault(said, []).append(f"{word} ({plural(skipped[word], 'workload')})")
        return [f"skipped: {', '.join(words)}: the kernel says: {said}" for said, words in answers.items()]

    def _next_lot(self, done: Sequence[FinishedLot], places: int = 0) -> tuple[Workload, ...]:
        """The next workloads to be tried after the lots ``done``; none when it is over. On a cluster so many lots
        as ``places`` are done at a time; 0 is no cluster."""
        if self._asked.seconds is None:
            if not places:
                return self._next(LOT, done)
            share = -(-(self._planned.together or LOT) // (LOTS_PER_PLACE * places))
            return self._next(max(FIRST_LOT, min(LOT, share)), done)
        spent = self._spent + self._clock() - self._began
        self._directory.note(seconds=spent)
        left = self._asked.seconds - spent
        if left <= 0:
            return ()
        if not self._tried:
            return self._next(FIRST_LOT, done)
        rate = self._tried / self._busy
        size = max(FEWEST, min(LOT, int(rate * min(left, LOT_SECONDS))))
        return self._next(size, done) if rate * left >= FEWEST else ()

    def _tell(self, done: Sequence[FinishedLot]) -> None:
        """One line on how far it is, how fast it goes, and how long it will take."""
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
            left = self._asked.seconds - self._spent - (self._clock() - self._began)
            words.append(f"{duration(max(0.0, left))} left")
        self._progress.step(", ".join(words))


def _broken(done: Sequence[FinishedLot]) -> set[str]:
    """The names of the rows that are broken so far."""
    cells = chain.from_iterable(result.subjects[0].answers for _folder, result in done)
    return {cell.name for cell in cells if cell.verdict is Verdict.FAILS}


class _OfALot:
    """The progress of one lot: its cells are told when all lots are done."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.step, self.planned, self.recorded = progress.step, progress.planned, progress.recorded
        self.expected = progress.expected
        self.observed, self.finished, self.skipped = progress.observed, progress.finished, progress.skipped

    def judged(self, cell: Answer) -> None:
        """Nothing."""


def _alike(paths: Sequence[Path]) -> dict[Path, list[Path]]:
    """Of the witnesses in ``paths`` that are not shrunk yet, one of each claim and workload, with all that are of the
    same: these become the same smaller one."""
    first: dict[object, Path] = {}
    alike: dict[Path, list[Path]] = {}
    for path in paths:
        found = witness.read(path)
        if found.shrunk_from is None:
            one = first.setdefault((found.claim, found.workload), path)
            alike.setdefault(one, []).append(path)
    return alike


def _check_kept(folder: Path, lot: Sequence[Workload]) -> None:
    """Raise StoreError where the lot in ``folder`` was begun with other workloads than ``lot``: later lots would
    differ, too."""
    if not (folder / "run.json").is_file():
        return
    kept = {one["name"] for one in read_document(folder / "run.json")["workloads"]}
    if kept != {workload.name for workload in lot}:
        raise StoreError(
            f"the search makes other workloads now than when {folder} was begun",
            hint="a Python file may use a clock, a random number or the order of a set; start a new search",
        )
