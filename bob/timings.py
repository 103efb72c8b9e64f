"""How long work took, so that bob can say beforehand how long the same will take.

A small file in bob's cache, ``timings.json``, has what was finished last on this machine. It may be removed at any
time. Nothing else depends on it, so that where it cannot be read or written it is as if it were empty.

Of work that was never timed here, ``usual_timings.json`` beside this file says how long it took on another machine. Of
two file systems that are probed together, each takes about the same share of the time there and here.
bench/usual_timings.py makes that file.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bob import documents
from bob.fields import UNREADABLE
from bob.progress import Earlier, EarlierPart, Progress
from bob.report.counts import duration, plural
from bob.request import ProbeRequest
from bob.result import PropertyResult
from bob.settings import cache_home
from bob.typed import typed

SCHEMA = "bob.timings/1"
USUAL = Path(__file__).with_name("usual_timings.json")
MOST = 300
"""So many timings are kept."""
USUAL_SHARE = 0.25
"""Of all work, recording takes about such a part where it is not known: from 4 % (ext2) to half (reiserfs)."""
_SEVERAL = 10
"""Of so many workloads the start of the guests is a small part."""


@dataclass(frozen=True, slots=True)
class Work:
    """Something that takes its time: a ``kind`` (``probe``, ``search``, ``try``, ``app``) of ``workloads`` on ``what``,
    a file system (or a program on one), by so many ``guests``; ``budget`` is in mounts per workload. ``configuration``
    is the file system with its options, where it is known."""

    kind: str
    what: str
    image: str
    guests: int
    budget: int
    workloads: int
    configuration: str = ""

    @classmethod
    def of(cls, kind: str, request: ProbeRequest, guests: int, workloads: int) -> Work:
        """So many workloads of what is asked."""
        made = request.configuration
        return cls(kind, made.fs.name, request.image, guests, request.budget, workloads, made.name)


@dataclass(frozen=True, slots=True)
class Timing:
    """What some work took: ``seconds``, of which recording was the share ``recording`` (0 to 1)."""

    work: Work
    seconds: float
    recording: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long work will take, from ``low`` to ``high`` seconds; ``earlier`` is what is most likely. ``here`` tells
    whether all of it was timed on this machine. If not, ``earlier`` has ``seconds`` where other work was."""

    earlier: Earlier
    low: float
    high: float
    here: bool = True

    @property
    def words(self) -> str:
        """As a sentence."""
        took = f"between {duration(self.low)} and {duration(self.high)}"
        if self.high < 1.2 * self.low:
            took = f"about {duration(self.earlier.seconds or self.low)}"
        if self.earlier.seconds is None:
            return f"{_SHOWS}; it took {took} where bob was measured, in emulated guests"
        if not self.here:
            return f"this takes {took}, if this machine is as fast with it as it was with other work"
        if self.high < 1.2 * self.low:
            return f"this takes {took}, as earlier runs on this machine did"
        return f"this takes {took}: earlier runs on this machine had another budget"


_SHOWS = "how long this takes here shows when a twentieth of it is done"


def estimate(parts: Sequence[Work], timings: Sequence[Timing], usual: Sequence[Timing] = ()) -> Estimate | None:
    """How long all of ``parts`` take together, by ``timings`` of this machine, the oldest first, and what they do not
    have by the ``usual`` ones, of another; None where of one of them nothing is known.

    Of the timings of one kind of work on one file system the one counts that is most like it. Only where the other
    machine does not know, one of few workloads tells of many: the guests' start was most of it. Time grows with the
    number of workloads, and shrinks with that of guests. What recording takes is the same with any budget. The rest
    grows with the budget between not at all, where no workload needs more mounts, and as the budget does, where all
    take as many as they may.
    """
    slowness = _slowness(timings, usual)
    low = high = recording = 0.0
    taken: list[EarlierPart] = []
    here = True
    for part in parts:
        there = _most_like(part, usual)
        best, factor = _most_like(part, timings), 1.0
        if there is not None and (best is None or best.work.workloads < min(_SEVERAL, part.workloads / 4)):
            best, factor, here = there, slowness or 1.0, False
        if best is None:
            return None
        seconds = factor * _taken_by(part, best)
        budgets = part.budget / best.work.budget
        made = best.recording * seconds
        low += made + (seconds - made) * min(1.0, budgets)
        high += made + (seconds - made) * max(1.0, budgets)
        recording += made
        taken.append(EarlierPart(part.workloads, made + (seconds - made) * math.sqrt(budgets)))
    likely = sum(one.seconds for one in taken)
    if not likely:
        return None
    share = recording / likely if len(taken) == 1 else 0.0
    known = likely if here or slowness else None
    return Estimate(Earlier(known, share, tuple(taken)), low, high, here)


def _most_like(part: Work, timings: Sequence[Timing]) -> Timing | None:
    """Of what is known of such work on such a file system, what is most like ``part``, and newest. A machine that is
    given works in real time, and tells of nothing but itself."""
    same = [one for one in timings if (one.work.kind, one.work.what) == (part.kind, part.what)]
    if _is_given(part.image):
        same = [one for one in same if one.work.image == part.image]
    else:
        same = [one for one in same if not _is_given(one.work.image)]
    return min(reversed(same), key=lambda one: _distance(one.work, part), default=None)


def _is_given(image: str) -> bool:
    """Whether an image is the address of a machine, as of ``--guest``: the name of no other has a colon."""
    return ":" in image


def _taken_by(part: Work, like: Timing) -> float:
    """How long ``part`` takes if its budget is that of the work that it is ``like``."""
    return like.seconds * part.workloads / like.work.workloads * like.work.guests / part.guests


def _slowness(timings: Sequence[Timing], usual: Sequence[Timing]) -> float | None:
    """How many times as long work takes on this machine as it did on the other: the median of what both know; None
    where they know nothing that is alike."""
    newest = {(one.work.kind, one.work.what): one for one in timings if one.work.workloads >= _SEVERAL}
    ratios = [
        here.seconds / _taken_by(here.work, there)
        for here in newest.values()
        if (there := _most_like(here.work, usual)) and 0.5 <= here.work.budget / there.work.budget <= 2
    ]
    return median(ratios) if ratios else None


def _distance(one: Work, other: Work) -> float:
    """How unlike two pieces of work are, of one kind on one file system."""
    pairs = ((one.budget, other.budget), (one.guests, other.guests), (one.workloads, other.workloads))
    others = 0.1 * (one.image != other.image) + (one.configuration != other.configuration)
    return sum(abs(math.log(a / b)) for a, b in pairs) + others


@contextmanager
def timed(parts: Sequence[Work], progress: Progress, *, silently: bool = False) -> Iterator[Timed]:
    """Tells ``progress`` how long all of ``parts`` take, as far as that is known (in words, too, but ``silently``), and
    notes how long they take; what is planned is told to ``progress`` before, what is done to what this yields."""
    parts = [part for part in parts if part.workloads]
    if parts:
        known = estimate(parts, read(), usual())
        progress.expected(parts[0].guests, known.earlier if known else None)
        if not silently:
            progress.step(in_words(parts, known))
    watcher = Timed(progress)
    yield watcher
    if len(parts) == 1 and watcher.done >= parts[0].workloads:
        note([Timing(parts[0], watcher.seconds, watcher.share(parts[0].workloads))])
    elif watcher.laps and len(watcher.laps) == len(parts):
        note([Timing(part, lap, _usual_share(part)) for part, lap in zip(parts, watcher.laps, strict=True)])


def _usual_share(part: Work) -> float:
    """Which part of some work recording is, where it was not seen."""
    known = _most_like(part, usual())
    return known.recording if known else USUAL_SHARE


def in_words(parts: Sequence[Work], known: Estimate | None) -> str:
    """How long ``parts`` take, in a line."""
    return known.words if known else f"how long this takes is not known: {_unknown(parts)}"


def _unknown(parts: Sequence[Work]) -> str:
    names = list(dict.fromkeys(part.what for part in parts))
    said = ", ".join(names[:3]) + (f" and {plural(len(names) - 3, 'other')}" if len(names) > 3 else "")
    return f"no {parts[0].kind} of {said} was timed on this machine"


@dataclass(slots=True)
class Timed:
    """A progress that counts what it tells another one."""

    progress: Progress
    clock: Callable[[], float] = time.monotonic
    recorded_count: int = 0
    done: int = 0
    laps: list[float] = field(default_factory=list)
    _began: float = field(init=False)
    _lap: float = field(init=False)
    _all_recorded: tuple[float, int] = field(init=False)

    def __post_init__(self) -> None:
        self._began = self._lap = self.clock()
        self._all_recorded = (self._began, 0)

    @property
    def seconds(self) -> float:
        """Since it began."""
        return self.clock() - self._began

    def lap(self) -> None:
        """One more part is done."""
        now = self.clock()
        self.laps.append(now - self._lap)
        self._lap = now

    def share(self, workloads: int) -> float:
        """Which part of the work recording was. When the last recording was made, some were observed already; all that
        came later was observing. So it is known what observing takes, and from that what recording took."""
        at, observed = self._all_recorded
        recording, rest = at - self._began, workloads - observed
        if rest <= 0 or self.seconds <= recording:
            return USUAL_SHARE
        observing = (self.seconds - recording) / rest
        made = max(0.0, recording - observed * observing)
        return made / (made + workloads * observing)

    def step(self, text: str) -> None:
        """See :class:`bob.progress.Progress`, as of all below."""
        self.progress.step(text)

    def planned(self, workloads: int, states: int) -> None:
        self.progress.planned(workloads, states)

    def expected(self, guests: int, earlier: Earlier | None) -> None:
        self.progress.expected(guests, earlier)

    def recorded(self, workload: str) -> None:
        self.recorded_count += 1
        self._all_recorded = (self.clock(), self.done)
        self.progress.recorded(workload)

    def observed(self, workload: str, states: int) -> None:
        self.progress.observed(workload, states)

    def finished(self, workload: str, unused: int) -> None:
        self.done += 1
        self.progress.finished(workload, unused)

    def skipped(self, workloads: int, states: int) -> None:
        self.progress.skipped(workloads, states)

    def judged(self, cell: PropertyResult) -> None:
        self.progress.judged(cell)


def read() -> list[Timing]:
    """What is known of this machine, the oldest first."""
    try:
        return _read(_file())
    except UNREADABLE:
        return []


def usual() -> list[Timing]:
    """What work took on the machine that bob was measured on."""
    return _read(USUAL)


def _read(file: Path) -> list[Timing]:
    document = documents.opened(file.read_bytes())
    if document["schema"] != SCHEMA:
        raise ValueError(f"{file} is of another version of bob")
    return [_from_json(one) for one in document["timings"]]


def note(more: Sequence[Timing]) -> None:
    """Keep what some work took."""
    with suppress(OSError):
        every = [asdict(one) for one in [*read(), *more][-MOST:]]
        file = _file()
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f".{file.name}.{os.getpid()}.part")
        part.write_bytes(documents.sealed(documents.text({"schema": SCHEMA, "timings": every})))
        part.replace(file)


def _file() -> Path:
    return cache_home() / "timings.json"


def _from_json(document: dict[str, Any]) -> Timing:
    made = typed(Timing(typed(Work(**document["work"])), document["seconds"], document["recording"]))
    counts = (made.work.guests, made.work.budget, made.work.workloads)
    if not (all(type(one) is int and one > 0 for one in counts) and made.seconds > 0 and 0 <= made.recording <= 1):
        raise ValueError("it is no timing")
    return made
