"""The progress of long work, shown on stderr: a bar on a terminal, otherwise a line every few seconds. The work reports
to a :class:`~bob.progress.Progress`."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from bob.answer.answer import Answer
from bob.claim.verdict import Verdict
from bob.cli.output import console
from bob.cli.tally import Tally
from bob.progress import Earlier, Progress, Silent
from bob.report.counts import explored
from bob.report.rows import MARKS, style
from bob.text import plural

SECONDS_BETWEEN_LINES = 5.0  # seconds, at least, between two lines with counts in a log file


@contextmanager
def watching(*, quiet: bool = False) -> Iterator[Progress]:
    """Yield a Progress. It is silent if ``quiet``, shows a bar on a terminal, and otherwise writes lines."""
    screen = console(stderr=True)
    if quiet:
        yield Silent()
    elif not screen.is_terminal or screen.is_dumb_terminal:
        yield LineDisplay(screen)
    else:
        bar = Bar(screen)
        with Live(console=screen, get_renderable=bar.renderable, transient=True, redirect_stdout=False):
            yield bar


class ProgressDisplay(ABC):
    """A thread-safe Progress that counts work. Its subclasses show the counts."""

    def __init__(self, screen: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._screen = screen
        self._lock = threading.Lock()
        self._tally = Tally(clock)

    def step(self, text: str) -> None:
        with self._lock:
            self._write(Text(text, "bob.dim"))

    def planned(self, workloads: int, states: int) -> None:
        with self._lock:
            self._tally.plan(workloads, states)
            tries = "1 crash state" if states == 1 else f"{states:,} crash states"
            self._write(Text(f"{plural(workloads, 'workload')}, at most {tries} to try", "bob.dim"))

    def expected(self, guests: int, earlier: Earlier | None) -> None:
        with self._lock:
            self._tally.expect(earlier)

    def recorded(self, workload: str) -> None:
        with self._lock:
            self._tally.record()
            self._changed()

    def observed(self, workload: str, states: int) -> None:
        with self._lock:
            self._tally.observe(workload, states)
            self._changed()

    def finished(self, workload: str, unused: int) -> None:
        with self._lock:
            self._tally.finish(workload, unused)
            self._changed()

    def skipped(self, workloads: int, states: int) -> None:
        with self._lock:
            self._tally.plan(-workloads, -states)
            self._changed()

    def judged(self, cell: Answer) -> None:
        with self._lock:
            self._write(verdict_line(cell))

    def _write(self, text: Text) -> None:
        with suppress(OSError, ValueError):  # if the reader of stderr has gone, the work goes on
            self._screen.print(text, soft_wrap=True)

    @abstractmethod
    def _changed(self) -> None:
        """Show the new counts."""


class LineDisplay(ProgressDisplay):
    """A display for log files. It writes a line for each event, and every few seconds a line with the counts."""

    def __init__(self, screen: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(screen, clock)
        self._clock = clock
        self._last = clock()

    def _changed(self) -> None:
        all_done = self._tally.done == self._tally.workloads
        if all_done or self._clock() - self._last >= SECONDS_BETWEEN_LINES:
            self._last = self._clock()
            self._write(Text(self._tally.line()))


class Bar(ProgressDisplay):
    """A display with a bar and the counts at the bottom of a terminal. The lines about steps and verdicts scroll by
    above them."""

    def __init__(self, screen: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(screen, clock)
        self._spinner = Spinner("dots", style="bob.bar")

    def renderable(self) -> RenderableType:
        """Return the bottom of the screen: the bar and the counts.

        A thread of rich calls this method while it holds rich's lock. Another thread may hold bob's lock and wait for
        rich's lock. So this method must not wait for bob's lock, and the counts that it reads may be from two different
        moments."""
        if not self._tally.states:
            return self._spinner
        bar = ProgressBar(self._tally.states, self._tally.observed, complete_style="bob.bar", finished_style="bob.bar")
        lines = Table.grid(expand=True)
        lines.add_row(bar)
        lines.add_row(Text(self._tally.line(), "bob.dim", no_wrap=True, overflow="ellipsis"))
        return lines

    def _changed(self) -> None:
        """Do nothing, since rich redraws several times a second."""


def verdict_line(cell: Answer) -> Text:
    why = explored(cell.states)
    if cell.recordings:
        why = f"{plural(len(cell.recordings), 'workload')}: {why}"
    if cell.verdict in (Verdict.UNKNOWN, Verdict.SKIPPED):
        why = cell.reason or ""
    line = Text.assemble((f"{MARKS[cell.verdict]:<5}", style(cell.verdict)), f" {cell.name}")
    return line.append(f"  {why}", "bob.dim") if why else line
