"""What was seen of the crash states of one workload."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from bob.counts import Count
from bob.crash.coverage import States
from bob.crash.state import CrashState
from bob.observe.observation import OutcomeTable


class TroubleKind(StrEnum):
    """What can be wrong with a crash state that mounts: the kernel warned of it, or made it read-only; the file
    system's checker finds fault with what recovery left; or not all that is there can be removed."""

    KERNEL_MESSAGE = "kernel-message"
    READ_ONLY = "read-only"
    CHECKER = "checker"
    REMOVAL = "removal"

    @property
    def said(self) -> str:
        """After a number of crash states, what is wrong with them."""
        return _SAID[self]


_SAID = {
    TroubleKind.KERNEL_MESSAGE: "mounted, but the kernel warned",
    TroubleKind.READ_ONLY: "mounted, but the kernel made the file system read-only",
    TroubleKind.CHECKER: "mounted, but the file system's checker found fault afterwards",
    TroubleKind.REMOVAL: "mounted, but not all that was there could be removed",
}


class ExploredState(NamedTuple):
    """A crash state with its ``outcome`` (None: never known), and for how many legal ``states`` it speaks.

    For itself, and for those in which recovery takes a course with the same outcome, unless another one speaks for
    them: so the numbers of all that was seen add up to those of the legal states whose outcome is known. ``whole`` is
    how many of them have no torn write; None where they were not counted, see :attr:`whole_states`.
    """

    state: CrashState
    outcome: int | None
    states: Count = 1
    whole: Count | None = None

    @property
    def whole_states(self) -> int:
        """For how many states without torn writes it speaks; where they were not counted, at least for so many."""
        return self.whole if self.whole is not None else min(self.states, int(not self.state.torn))


class StateTrouble(NamedTuple):
    """Something that is wrong with a crash state that mounts, number ``state`` of those that were seen: its ``kind`` is
    that of a :class:`TroubleKind`."""

    state: int
    kind: str
    words: str


class Worded(Protocol):
    """Has a kind and words."""

    @property
    def kind(self) -> str: ...

    @property
    def words(self) -> str: ...


def alike(trouble: Worded) -> tuple[str, str]:
    """Troubles of one kind whose words differ in numbers only have the same."""
    return trouble.kind, without_numbers(trouble.words)


def without_numbers(words: str) -> str:
    """Words that differ from others in numbers only are the same in this form."""
    return re.sub(r"0x[0-9a-f]+|\d+", "N", words)


@dataclass(frozen=True, slots=True)
class Observations:
    """What was seen of a workload: each explored state with its outcome; ``lost`` says why one was never known.

    ``predicted`` has the indexes of the states that were not mounted: their outcomes were predicted from what recovery
    read in others. ``died`` says that it was the guest that was lost, so that another one may do better;
    ``earlier_loss`` how one was lost before this one came back with everything. Where a loss is ``final``, what was
    seen contradicts itself: it is not to be tried again. ``troubles`` are what is wrong with states that mount, but for
    what is ``normal``: wrong, too, where nothing of the recording was written, and what was ``passing``: said once by
    the kernel, and not again. ``examined`` are the numbers of the outcomes that had a closer look.
    """

    states: tuple[ExploredState, ...]
    findings: OutcomeTable
    coverage: States
    lost: str | None = None
    predicted: frozenset[int] = frozenset()
    died: bool = False
    earlier_loss: str | None = None
    final: bool = False
    troubles: tuple[StateTrouble, ...] = ()
    normal: tuple[str, ...] = ()
    passing: tuple[str, ...] = ()
    examined: tuple[int, ...] = ()
