"""What a long piece of work tells whoever watches; :mod:`bob.cli.display` shows it, tests collect it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bob.answer.answer import Answer


@dataclass(frozen=True, slots=True)
class EarlierPart:
    """What one part of the work, a configuration of a matrix, took before: ``seconds`` for so many ``workloads``."""

    workloads: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Earlier:
    """What the same work took before, in all: ``seconds``, of which recording was the share ``recording`` (0 to 1).
    ``seconds`` is None where another machine did it, so that only the shares are known: how long it takes here, its
    pace tells.

    Several ``parts`` are done in their order; a workload of one may take ten times what one of another does. One is
    recorded while the one before it is observed, so that recording is no share of its own."""

    seconds: float | None
    recording: float
    parts: tuple[EarlierPart, ...] = ()

    def observed(self, count: float, of: int) -> float:
        """Which share (0 to 1) of all observing it is to observe the first ``count`` of so many workloads; all count
        the same where the parts are of more or of fewer."""
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
    """Told from several threads; each call is short and never raises."""

    def step(self, text: str) -> None:
        """One line on what is being set up (an image is built, a guest restored, ...)."""

    def planned(self, workloads: int, states: int) -> None:
        """How many workloads there are, and how many crash states will be tried one by one at the most."""

    def expected(self, guests: int, earlier: Earlier | None) -> None:
        """So many guests work side by side on what is planned; and what that took earlier, where anything is known."""

    def recorded(self, workload: str) -> None:
        """A workload was recorded and passed its self-check."""

    def observed(self, workload: str, states: int) -> None:
        """So many more crash states of a workload were tried one by one (or never will be)."""

    def finished(self, workload: str, unused: int) -> None:
        """A workload is done; ``unused`` is by how many states it stayed below its budget."""

    def skipped(self, workloads: int, states: int) -> None:
        """So much of what was planned will not be done."""

    def judged(self, cell: Answer) -> None:
        """A cell has its verdict."""


class Silent:
    """Tells nothing."""

    def step(self, text: str) -> None: ...
    def planned(self, workloads: int, states: int) -> None: ...
    def expected(self, guests: int, earlier: Earlier | None) -> None: ...
    def recorded(self, workload: str) -> None: ...
    def observed(self, workload: str, states: int) -> None: ...
    def finished(self, workload: str, unused: int) -> None: ...
    def skipped(self, workloads: int, states: int) -> None: ...
    def judged(self, cell: Answer) -> None: ...
