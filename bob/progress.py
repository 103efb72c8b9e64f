"""How far a long piece of work is; :mod:`bob.cli.display` shows it, tests collect it."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bob.answer.answer import Answer


@dataclass(frozen=True, slots=True)
class EarlierPart:
    """The time that a part of the work, such as a configuration of a matrix, took before, with its ``workloads``."""

    workloads: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Earlier:
    """The earlier time of the same work: ``seconds`` (None on another machine) and its share ``recording`` (0 to 1).

    The ``parts`` are in order; their workloads may differ tenfold in time. Recording does not count in them, since
    bob records one part while it observes the one before.
    """

    seconds: float | None
    recording: float
    parts: tuple[EarlierPart, ...] = ()

    def observed(self, count: float, of: int) -> float:
        """Return the share (0 to 1) of ``count`` workloads in all observing; ``parts`` count if they have ``of``."""
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
    """A watcher. Several threads call it; each call is short and never raises."""

    def step(self, text: str) -> None:
        """Take a line on the setup of an image, a guest, ..."""

    def planned(self, workloads: int, states: int) -> None:
        """Take the number of workloads, and the most crash states that are tried one by one."""

    def expected(self, guests: int, earlier: Earlier | None) -> None:
        """Take the number of guests side by side, and the time that the same work took before, if known."""

    def recorded(self, workload: str) -> None:
        """Count a workload that was recorded and passed its self-check."""

    def observed(self, workload: str, states: int) -> None:
        """Count crash states of a workload that were tried one by one, or never will be."""

    def finished(self, workload: str, unused: int) -> None:
        """Count a workload as done, with ``unused`` states of its budget."""

    def skipped(self, workloads: int, states: int) -> None:
        """Take workloads and states out of the plan."""

    def judged(self, cell: Answer) -> None:
        """Take a cell with its verdict."""


class Silent:
    def step(self, text: str) -> None: ...
    def planned(self, workloads: int, states: int) -> None: ...
    def expected(self, guests: int, earlier: Earlier | None) -> None: ...
    def recorded(self, workload: str) -> None: ...
    def observed(self, workload: str, states: int) -> None: ...
    def finished(self, workload: str, unused: int) -> None: ...
    def skipped(self, workloads: int, states: int) -> None: ...
    def judged(self, cell: Answer) -> None: ...
