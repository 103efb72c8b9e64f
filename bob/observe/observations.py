"""The observed crash states of one workload."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from bob.counts import Count
from bob.crash.coverage import States
from bob.crash.state import CrashState
from bob.observe.observation import OutcomeTable
from bob.observe.unknown_torn import CauseCount


class TroubleKind(StrEnum):
    KERNEL_MESSAGE = "kernel-message"
    READ_ONLY = "read-only"
    CHECKER = "checker"
    REMOVAL = "removal"

    @property
    def said(self) -> str:
        """The trouble in words. They go on a sentence that begins with "a crash state" or "3 crash states"."""
        return _SAID[self]


_SAID = {
    TroubleKind.KERNEL_MESSAGE: "mounted, but the kernel warned",
    TroubleKind.READ_ONLY: "mounted, but the kernel made the file system read-only",
    TroubleKind.CHECKER: "mounted, but the file system's checker found errors afterwards",
    TroubleKind.REMOVAL: "mounted, but not everything in it could be removed",
}


class ExploredState(NamedTuple):
    """A crash state with its ``outcome`` (None: unknown), and the number of legal ``states`` that it represents. The
    represented states have the same outcome. No other state represents them, so the numbers add up. ``whole`` is how
    many of them have no torn write; None if not counted."""

    state: CrashState
    outcome: int | None
    states: Count = 1
    whole: Count | None = None

    @property
    def whole_states(self) -> int:
        """The number of represented states without torn writes. If they were not counted, it is a lower bound."""
        return self.whole if self.whole is not None else min(self.states, int(not self.state.torn))


class MixedStates(NamedTuple):
    """Torn ``states`` of one mixture (:mod:`bob.observe.mixtures`), without those that an explored state already stands
    for. ``rows`` are the indexes of explored states. Each of the torn states has the tree of these explored states.
    Each sector of data in it is as in the first or as in the second of ``rows``."""

    states: Count
    rows: tuple[int, ...]


class Complaint(NamedTuple):
    """A complaint about a state that mounts: a trouble of this ``kind``."""

    kind: str
    words: str


class StateTrouble(NamedTuple):
    """A trouble of crash state number ``state``."""

    state: int
    kind: str
    words: str


def alike(trouble: Complaint | StateTrouble) -> tuple[str, str]:
    """Return a key that is equal for two troubles if they have one kind, and their words differ only in numbers."""
    return trouble.kind, without_numbers(trouble.words)


def without_numbers(words: str) -> str:
    return re.sub(r"0x[0-9a-f]+|\d+", "N", words)


@dataclass(frozen=True, slots=True)
class Observations:
    """Each explored state of a workload with its outcome. ``lost`` says why bob does not know some outcomes.

    ``predicted`` has the indexes of states that were not mounted. If the guest ``died``, another guest may do better.
    ``earlier_loss`` says why an earlier guest was lost. A ``final`` loss is a contradiction between mounts, so another
    guest does not help. ``normal`` has troubles that also occur without any write of the recording on the disk.
    ``passing`` has complaints that the kernel did not repeat on another mount. ``coverage`` lacks the ``mixtures``:
    only claims that bob judges sector by sector may count them. ``unknown_torn`` has the causes why torn states are
    unknown, from a sample; it is empty if ``coverage`` has most torn states."""

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
    mixtures: tuple[MixedStates, ...] = ()
    unknown_torn: tuple[CauseCount, ...] = ()
