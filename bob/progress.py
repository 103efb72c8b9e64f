"""Reports on the progress of long work. :mod:`bob.cli.display` shows the reports, and tests collect them."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bob.answer.answer import Answer


@dataclass(frozen=True, slots=True)
class EarlierPart:
    """One part of the work in an earlier run. ``workloads`` counts its workloads (operations, or a program, that bob
    records). ``seconds`` is the time that bob took to observe their crash states. For example, if the work is a table
    of results for several file systems, a part is one file system."""

    workloads: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Earlier:
    """The time that the same work took in an earlier run. ``seconds`` is the time of all the work (None: the earlier
    run was on another machine). ``recording`` is the share of the time (0 to 1) that recording took. The ``parts`` are
    in the order of bob's work. Each part has its own numbers, because a workload of one part may take ten times as long
    as a workload of another part. The seconds of a part do not include the recording of its workloads, since bob
    records one part while it observes the crash states of the previous part."""

    seconds: float | None
    recording: float
    parts: tuple[EarlierPart, ...] = ()

    def observed(self, count: float, of: int) -> float:
        """Predict how far the observation is when ``count`` workloads are done, as a share (0 to 1) of its time. ``of``
        is the number of all workloads. Assume that each part takes as long as in the earlier run. If the sum of the
        workloads of all ``parts`` is not ``of``, assume that each workload takes the same time."""
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
        """Tell the user in one line that a step begins, such as the build of an image or the start of a guest."""

    def planned(self, workloads: int, states: int) -> None:
        """Take the number of workloads, and the highest number of crash states that bob will try one by one."""

    def expected(self, guests: int, earlier: Earlier | None) -> None:
        """Take the number of guests that run side by side, and the time of an earlier run, if known."""

    def recorded(self, workload: str) -> None:
        """Count a workload whose recording is complete and consistent."""

    def observed(self, workload: str, states: int) -> None:
        """Add ``states`` to the number of a workload's crash states that are done. A state is done when bob has tried
        it, or knows that it need not try it. If a guest was lost, bob must try again some states that it counted as
        done. Then ``states`` is negative."""

    def finished(self, workload: str, unused: int) -> None:
        """Count a workload as done. bob may try a limited number of crash states for each workload; ``unused`` says how
        many of them it did not try."""

    def skipped(self, workloads: int, states: int) -> None:
        """Subtract ``workloads`` and ``states`` from the numbers of :meth:`planned`, because bob leaves out this many
        workloads and crash states."""

    def judged(self, cell: Answer) -> None:
        """Take a cell of the result table. It has the verdict on one property (a claim about what survives a crash) for
        one configuration (a file system with its options)."""


class Silent:
    def step(self, text: str) -> None: ...
    def planned(self, workloads: int, states: int) -> None: ...
    def expected(self, guests: int, earlier: Earlier | None) -> None: ...
    def recorded(self, workload: str) -> None: ...
    def observed(self, workload: str, states: int) -> None: ...
    def finished(self, workload: str, unused: int) -> None: ...
    def skipped(self, workloads: int, states: int) -> None: ...
    def judged(self, cell: Answer) -> None: ...
