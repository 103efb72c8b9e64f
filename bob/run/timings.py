"""The times of past work, for estimates. The file ``timings.json`` in bob's cache has the times of this machine. You
may remove it, and bob ignores it if it is damaged. The file ``usual_timings.json`` beside this module, made by
bench/usual_timings.py, has the times of another machine."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from bob import documents
from bob.catalogue.request import ProbeRequest
from bob.fields import UNREADABLE
from bob.progress import Earlier, EarlierPart, Progress
from bob.schema import Document, decode, encode, older
from bob.settings import cache_home
from bob.text import duration, plural

SCHEMA = "bob.timings/1"
USUAL = Path(__file__).with_name("usual_timings.json")
MOST = 300
USUAL_SHARE = 0.25  # share of recording in the work, if unknown; measured: 4 % (ext2) to one half (reiserfs)
_PROGRAMS = "app"  # the kind of work of a program under test
_ENOUGH_OTHERS = 5  # programs timed on this machine that say how long another one takes
Some = Annotated[int, Meta(ge=1)]


@dataclass(frozen=True, slots=True)
class TimedWork:
    """Work whose time bob estimates. ``kind`` is the command (``probe``, ``search``, ``try``, ``app``). ``what`` names
    a file system, or a program and a file system. ``configuration`` is empty in old files; otherwise it names the file
    system with its options. ``budget`` is the largest number of mounts for a workload."""

    kind: str
    what: str
    image: str
    guests: Some
    budget: Some
    workloads: Some
    configuration: str = field(default_factory=older(""))

    @classmethod
    def of(cls, kind: str, request: ProbeRequest, guests: int, workloads: int) -> TimedWork:
        made = request.configuration
        return cls(kind, made.fs.name, request.image, guests, request.budget, workloads, made.name)


@dataclass(frozen=True, slots=True)
class Timing:
    """The time that some work took. ``seconds`` is the whole time, and ``recording`` is the part of it (0 to 1) that
    bob spent on recording."""

    work: TimedWork
    seconds: Annotated[float, Meta(gt=0)]
    recording: Annotated[float, Meta(ge=0, le=1)]

    def scaled_to(self, part: TimedWork) -> tuple[float, float]:
        """Return the seconds to record ``part``, and the seconds to observe it. bob assumes that each workload of the
        part takes as long as a workload in this timing.

        If ``part`` has another budget (number of mounts per workload) than this timing, only the time to observe
        changes. With twice the budget, this time stays the same if no workload needs more mounts. It doubles if all
        workloads need more. bob does not know how many do, so it multiplies the time by the square root of the ratio of
        the budgets."""
        seconds = self.seconds * part.workloads / self.work.workloads * self.work.guests / part.guests
        observing = (1 - self.recording) * seconds * math.sqrt(part.budget / self.work.budget)
        return self.recording * seconds, observing


class TimingsDocument(Document, frozen=True, tag_field="schema", tag=SCHEMA):
    """The document with all timings, the oldest first."""

    timings: tuple[Timing, ...]


def estimate(
    parts: Sequence[TimedWork], here: Sequence[Timing], usual: Sequence[Timing] = ()
) -> tuple[Earlier | None, str]:
    """Return the time that all ``parts`` took in earlier runs, or None if it is unknown. Also return an estimate in
    words. ``here`` has the timings of this machine, and ``usual`` has the timings of another machine.

    For each part, bob takes the most similar work in ``here``. If some part has no similar work there, or only work
    with far fewer workloads, bob takes the times of all parts from ``usual``, if it has them. Small work is mostly the
    start of guests, so its time says little about larger work."""
    own, there = _all_most_similar(parts, here), _all_most_similar(parts, usual)
    few = own is not None and any(one.work.workloads < part.workloads / 4 for one, part in zip(own, parts, strict=True))
    found = there if own is None or (few and there is not None) else own
    if not found:
        return _by_others(parts, here, usual) or (None, f"bob cannot estimate the time: {_unknown(parts)}")
    took = [one.scaled_to(part) for part, one in zip(parts, found, strict=True)]
    taken = tuple(EarlierPart(part.workloads, sum(each)) for part, each in zip(parts, took, strict=True))
    seconds = sum(one.seconds for one in taken)
    share = took[0][0] / seconds if len(parts) == 1 else 0.0
    if found is there:
        said = "an estimate for this machine comes when a twentieth is done"
        elsewhere = f"it took about {duration(seconds)} on the machine where bob was measured, in emulated guests"
        return Earlier(None, share, taken), f"{said}; {elsewhere}"
    same = all(one.work.budget == part.budget for part, one in zip(parts, found, strict=True))
    why = ", as earlier runs on this machine did" if same else ": earlier runs on this machine had another budget"
    return Earlier(seconds, share, taken), f"this takes about {duration(seconds)}{why}"


def _by_others(
    parts: Sequence[TimedWork], here: Sequence[Timing], usual: Sequence[Timing]
) -> tuple[Earlier, str] | None:
    """Return an estimate for a program that was never timed, from other programs' times for as many windows, and the
    same in words. Return None if ``parts`` are not of a program, or no program was timed."""
    if parts[0].kind != _PROGRAMS:
        return None
    some = [one for one in here if one.work.kind == _PROGRAMS]
    is_here = len({one.work.what for one in some}) >= _ENOUGH_OTHERS
    some = some if is_here else [one for one in usual if one.work.kind == _PROGRAMS]
    if not some:
        return None
    each = sorted((tuple(sum(one.scaled_to(part)) for part in parts) for one in some), key=sum)
    few, most = (duration(sum(each[place])) for place in (len(each) // 4, 3 * len(each) // 4))
    middle = each[len(each) // 2]
    taken = tuple(EarlierPart(part.workloads, seconds) for part, seconds in zip(parts, middle, strict=True))
    where = "this machine" if is_here else "the machine where bob was measured, in emulated guests"
    words = f"most programs took {few} to {most} for as many windows on {where}"
    return Earlier(sum(middle), 0.0, taken), f"{words}; this program's own time counts from the first ones on"


def _all_most_similar(parts: Sequence[TimedWork], timings: Sequence[Timing]) -> list[Timing] | None:
    found = [one for part in parts if (one := _most_similar(part, timings)) is not None]
    return found if len(found) == len(parts) else None


def _most_similar(part: TimedWork, timings: Sequence[Timing]) -> Timing | None:
    """Return the timing that is most similar to ``part``. If several are equally similar, return the newest of them. If
    ``part`` runs on a machine that the user gives, use only timings of that machine. If it runs in bob's own guests,
    leave out the timings of such machines. These machines work in real time, so their times are unlike the times of
    bob's guests."""
    given = part.image if _is_given(part.image) else ""
    same = [
        one
        for one in timings
        if (one.work.kind, one.work.what) == (part.kind, part.what)
        and (one.work.image if _is_given(one.work.image) else "") == given
    ]
    return min(reversed(same), key=lambda one: _distance(one.work, part), default=None)


def _is_given(image: str) -> bool:
    """Return whether ``image`` is the address of a machine that the user gives, and not the name of an image. Only such
    an address has a colon."""
    return ":" in image


def _distance(one: TimedWork, other: TimedWork) -> float:
    pairs = ((one.budget, other.budget), (one.guests, other.guests), (one.workloads, other.workloads))
    others = 0.1 * (one.image != other.image) + (one.configuration != other.configuration)
    return sum(abs(math.log(a / b)) for a, b in pairs) + others


def _unknown(parts: Sequence[TimedWork]) -> str:
    names = list(dict.fromkeys(part.what for part in parts))
    said = ", ".join(names[:3]) + (f" and {plural(len(names) - 3, 'other')}" if len(names) > 3 else "")
    return f"no {parts[0].kind} of {said} was timed on this machine"


def in_words(parts: Sequence[TimedWork]) -> str:
    return estimate(parts, read(), usual())[1]


@contextmanager
def timed(parts: Sequence[TimedWork], progress: Progress, *, silently: bool = False) -> Iterator[TimedProgress]:
    """Estimate the time for all ``parts``, and store at the end how long they took. Report the estimate to ``progress``
    as a number, and also in words unless ``silently`` is true. Before the with block, the caller reports to
    ``progress`` what it plans. In the block, it reports its work to the yielded object."""
    parts = [part for part in parts if part.workloads]
    if parts:
        earlier, words = estimate(parts, read(), usual())
        progress.expected(parts[0].guests, earlier)
        if not silently:
            progress.step(words)
    watcher = TimedProgress(progress)
    yield watcher
    if len(parts) == 1 and watcher.done >= parts[0].workloads:
        note([Timing(parts[0], watcher.seconds, watcher.share(parts[0].workloads))])
    elif watcher.laps and len(watcher.laps) == len(parts):
        note([Timing(part, lap, _usual_share(part)) for part, lap in zip(parts, watcher.laps, strict=True)])


def _usual_share(part: TimedWork) -> float:
    known = _most_similar(part, usual())
    return known.recording if known else USUAL_SHARE


class TimedProgress:
    """A watcher of progress that counts workloads and measures times. It forwards all calls to the watcher
    ``progress``."""

    def __init__(self, progress: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress, self._clock = progress, clock
        self.step, self.planned, self.expected = progress.step, progress.planned, progress.expected
        self.observed, self.skipped, self.judged = progress.observed, progress.skipped, progress.judged
        self.done = 0
        self.laps: list[float] = []
        self._began = self._lap = clock()
        self._all_recorded = (self._began, 0)

    def recorded(self, workload: str) -> None:
        self._all_recorded = (self._clock(), self.done)
        self._progress.recorded(workload)

    def finished(self, workload: str, unused: int) -> None:
        self.done += 1
        self._progress.finished(workload, unused)

    @property
    def seconds(self) -> float:
        return self._clock() - self._began

    def lap(self) -> None:
        """Record the time of one more part, whose work is done now. A part is one of the ``parts`` of :func:`timed`."""
        now = self._clock()
        self.laps.append(now - self._lap)
        self._lap = now

    def share(self, workloads: int) -> float:
        """Return an estimate of the share (0 to 1) of bob's working time that was recording; the rest was observing.
        ``workloads`` is the number of all workloads. bob measures how long it observes a workload after the last
        recording. It assumes that observing earlier workloads took as long."""
        at, observed = self._all_recorded
        recording, rest = at - self._began, workloads - observed
        if rest <= 0 or self.seconds <= recording:
            return USUAL_SHARE
        observing = (self.seconds - recording) / rest
        made = max(0.0, recording - observed * observing)
        return made / (made + workloads * observing)


def read() -> list[Timing]:
    """Return the timings of this machine, the oldest first. Return [] if the file cannot be read."""
    try:
        return _read(_file())
    except UNREADABLE:
        return []


def usual() -> list[Timing]:
    return _read(USUAL)


def _read(file: Path) -> list[Timing]:
    return list(decode(TimingsDocument, documents.opened(file.read_bytes())).timings)


def note(more: Sequence[Timing]) -> None:
    """Add timings to the file, and keep the last :data:`MOST` of all timings in it. ``more`` has the new timings."""
    with suppress(OSError):
        every = TimingsDocument(tuple([*read(), *more][-MOST:]))
        file = _file()
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f".{file.name}.{os.getpid()}.part")
        part.write_bytes(documents.sealed(documents.text(encode(every))))
        part.replace(file)


def _file() -> Path:
    return cache_home() / "timings.json"
