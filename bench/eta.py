"""Is the time that bob says is left the time that it takes?

``record FILE -- ARGUMENTS OF bob``: runs bob, and writes each thing that a Progress is told into FILE, a line each,
with the seconds since the beginning.

``show [--earlier FACTOR] PATH ...``: has the tally of today (:mod:`bob.cli.tally`) count each run again, and prints
what it said was left at some parts of the time, beside what was. A PATH is a FILE, or the run directory of a probe that
two guests made: the times of its files say when what was done, to a workload. With --earlier the tally knows an earlier
run: the same one, as if it had taken FACTOR times as long; where FACTOR is the name of a configuration, what bob's own
timings say of that. No guest is needed, so that another way to estimate can be tried on runs of before.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, TextIO

from bob.cli import display, main
from bob.cli.tally import Tally
from bob.progress import Earlier, Progress, Silent
from bob.run.timings import TimedProgress, usual

SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""When to look: parts of the whole time."""
RIGHT = 1.5
"""By so much an estimate may be too high or too low."""
GUESTS = 2
"""By so many guests run directories are taken to be made: they do not say it."""


class Recorder:
    """Writes down what a Progress is told, and tells the Progress behind it."""

    def __init__(self, file: TextIO, behind: Progress) -> None:
        self._file, self._behind = file, behind
        self._lock = threading.Lock()
        self._began = time.monotonic()

    def __getattr__(self, name: str) -> Callable[..., None]:
        told = getattr(self._behind, name)

        def tell(*what: Any) -> None:
            with self._lock:
                plain = [one if isinstance(one, str | int) else "" for one in what]
                self._file.write(json.dumps([round(time.monotonic() - self._began, 3), name, *plain]) + "\n")
                self._file.flush()
            told(*what)

        return tell


def record(path: Path, arguments: list[str]) -> int:
    """Run ``bob ARGUMENTS``; its exit code."""
    watching = display.watching

    @contextmanager
    def recorded(*, quiet: bool = False) -> Iterator[Progress]:
        with path.open("a") as file, watching(quiet=quiet) as behind:
            yield Recorder(file, behind)

    for module in list(sys.modules.values()):
        if getattr(module, "watching", None) is watching:
            module.watching = recorded  # type: ignore[attr-defined]
    return int(main.run(arguments))


def events_of(path: Path) -> list[list[Any]]:
    """What a Progress was told in a run, each with its time: (seconds, method, arguments)."""
    if path.is_file():
        return [json.loads(line) for line in path.read_text().splitlines()]
    told = []
    for folder in sorted((path / "workloads").iterdir()):
        for name, kind in (("recorded.json", "recorded"), ("observed.json", "observed")):
            if (folder / name).is_file():
                told.append((((folder / name).stat().st_mtime), kind, folder.name))
    told.sort()
    start = told[0][0] - 0.5
    count = sum(kind == "recorded" for _at, kind, _name in told)
    events: list[list[Any]] = [[0.0, "expected", GUESTS, ""], [0.0, "planned", count, count * 100]]
    for at, kind, name in told:
        events.append([at - start, kind, name, *([50] if kind == "observed" else [])])
        if kind == "observed":
            events.append([at - start, "finished", name, 50])
    return events


def took(events: list[list[Any]]) -> Earlier:
    """What a run took, and which part of it was recording, as bob notes it."""
    now = 0.0
    watcher = TimedProgress(Silent(), lambda: now)
    for at, name, *what in events:
        now = at
        if name == "recorded":
            watcher.recorded(what[0])
        elif name == "finished":
            watcher.finished(*what)
    return Earlier(now, watcher.share(watcher.done))


def known(events: list[list[Any]], word: str | None) -> Earlier | None:
    """What the tally knows of a run: nothing, the same run in another time, or what was measured on another machine."""
    if word is None:
        return None
    if shipped := [one for one in usual() if one.work.configuration == word]:
        return Earlier(None, shipped[0].recording)
    own = took(events)
    return replace(own, seconds=float(word) * (own.seconds or 0.0))


def said(events: list[list[Any]], earlier: Earlier | None) -> Iterator[tuple[float, float, float | None]]:
    """At each of SHARES: the seconds since the beginning, what was left, and what the tally said (None: nothing)."""
    end, now = events[-1][0], 0.0
    tally = Tally(lambda: now)
    tally.expect(earlier)
    moments = [share * end for share in SHARES]
    for at, name, *what in events:
        while moments and moments[0] <= at:
            now = moments.pop(0)
            yield now, end - now, tally.seconds_left
        now = at
        if name == "expected":
            tally.expect(earlier)
        elif name == "planned":
            tally.plan(*what)
        elif name == "skipped":
            tally.plan(-what[0], -what[1])
        elif name == "recorded":
            tally.record()
        elif name == "observed":
            tally.observe(*what)
        elif name == "finished":
            tally.finish(*what)


def show(paths: list[Path], word: str | None) -> None:
    """Print a line for each run, and below them how many are right at each moment."""
    ratios: dict[float, list[float]] = {share: [] for share in SHARES}
    for path in paths:
        events = events_of(path)
        parts = [f"{path.stem:<22}"]
        for share, (_at, left, told) in zip(SHARES, said(events, known(events, word)), strict=False):
            ratios[share].append((told or 0.0) / left)
            parts.append(f"{share:.0%}: {left:.0f} s left, said {'nothing' if told is None else f'{told:.0f}'}")
        print(", ".join(parts))
    for share, found in ratios.items():
        spoke = [one for one in found if one]
        right = sum(1 / RIGHT <= one <= RIGHT for one in spoke)
        spread = f", said / left from {min(spoke):.2f} to {max(spoke):.2f}, median {median(spoke):.2f}" if spoke else ""
        print(f"at {share:.0%}: {len(spoke)} of {len(found)} said something, {right} right within {RIGHT}{spread}")


if __name__ == "__main__":
    verb, *rest = sys.argv[1:]
    if verb == "record":
        for command in ("probe", "matrix", "search", "try_"):
            import_module(f"bob.cli.{command}")

        sys.exit(record(Path(rest[0]), rest[2:]))
    given = rest[1] if rest[0] == "--earlier" else None
    show([Path(one) for one in (rest if given is None else rest[2:])], given)
