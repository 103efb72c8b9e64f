"""Reports on the progress of long work. :mod:`bob.cli.display` shows the reports, and tests collect them."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bob.answer.answer import Answer


@dataclass(frozen=True, slots=True)
class EarlierPart:
    """The time of one part of the work in an earlier run: the part took ``seconds``, and had this number of
    ``workloads``. A part is, for example, a configuration of a matrix."""

    workloads: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Earlier:
    """The time that the same work took in an earlier run. ``seconds`` is the time of all the work; it is None if the
    earlier run was on another machine. ``recording`` is the share of the time (0 to 1) that recording took. The
    ``parts`` are in the order of the work; their seconds per workload may differ tenfold. The seconds of a part do not
    count the time of recording, since bob records one part while it observes the previous part."""

    seconds: float | None
    recording: float
    parts: tuple[EarlierPart, ...] = ()

    def observed(self, count: float, of: int) -> float:
        """Return which share (0 to 1) of the time of observing has passed when ``count`` workloads are done. All the
        work has ``of`` workloads. The times of the ``parts`` give the share. If the parts do not have ``of`` workloads
        in all, each workload counts the same."""
        seconds = sum(part.seconds for part in self.parts)
        if not seconds or sum(part.workloads for part in self.parts) != of:
            return count / of
        taken = 0.0
        for part in self.parts:
            taken += part.seconds * min(1.0, count / part.workloads)
            count = max(0.0, count - part.workloads)
        return taken / seconds


@runtime_checkable
class Progress(Protocol):
    """A watcher of long work, such as the display of a command. Several threads call it. Each call is short and never
    raises."""

    def step(self, text: str) -> None:
        """Take a line for the user about a step, such as the build of an image or the start of a guest."""

    def planned(self, workloads: int, states: int) -> None:
        """Take the number of workloads, and the highest number of crash states that bob will try one by one."""

    def expected(self, guests: int, earlier: Earlier | None) -> None:
        """Take the number of guests that run side by side, and the time of an earlier run, if known."""

    def recorded(self, workload: str) -> None:
        """Count a workload that was recorded and passed its self-check."""

    def observed(self, workload: str, states: int) -> None:
        """Count ``states`` more crash states of a workload. bob has tried each of them by itself, or knows that it
        never will. A negative number takes states back, since their guest was lost and bob tries them again."""

    def finished(self, workload: str, unused: int) -> None:
        """Count a workload as done. A workload has a budget of crash states that bob may try; ``unused`` of them are
        left."""

    def skipped(self, workloads: int, states: int) -> None:
        """Subtract workloads and crash states from the plan, since bob will not do them."""

    def judged(self, cell: Answer) -> None:
        """Take a cell of the result table: the answer for one property of one configuration, with its verdict."""


class Silent:
    def step(self, text: str) -> None: ...
    def planned(self, workloads: int, states: int) -> None: ...
    def expected(self, guests: int, earlier: Earlier | None) -> None: ...
    def recorded(self, workload: str) -> None: ...
    def observed(self, workload: str, states: int) -> None: ...
    def finished(self, workload: str, unused: int) -> None: ...
    def skipped(self, workloads: int, states: int) -> None: ...
    def judged(self, cell: Answer) -> None: ...
