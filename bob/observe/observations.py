"""The observed crash states of one workload. An *outcome* is what a mount of a crash state showed. A *trouble* is
something wrong with a state that mounts, such as a warning of the kernel."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from bob.counts import Count
from bob.crash.coverage import States
from bob.crash.cubes import Cube
from bob.crash.state import CrashState
from bob.observe.observation import OutcomeTable
from bob.observe.unknown_torn import CauseCount


class TroubleKind(StrEnum):
    KERNEL_MESSAGE = "kernel-message"
    READ_ONLY = "read-only"
    CHECKER = "checker"
    REMOVAL = "removal"
    LAYER = "layer"

    @property
    def said(self) -> str:
        """The trouble in words. They complete a sentence that begins with "a crash state" or "3 crash states"."""
        return _SAID[self]


_SAID = {
    TroubleKind.KERNEL_MESSAGE: "mounted, but the kernel warned",
    TroubleKind.READ_ONLY: "mounted, but the kernel made the file system read-only",
    TroubleKind.CHECKER: "mounted, but the file system's checker found errors afterwards",
    TroubleKind.REMOVAL: "mounted, but not everything in it could be removed",
    TroubleKind.LAYER: "mounted, but a check of its layers found a fault",
}


class ExploredState(NamedTuple):
    """A crash state that represents several legal states (states that the disk may be in after a crash). ``states`` is
    their number. The represented states have the same ``outcome`` (None: unknown). No state is represented twice, so
    these numbers can be added. ``whole`` is the number of represented states without torn writes; None if bob did not
    count them."""

    state: CrashState
    outcome: int | None
    states: Count = 1
    whole: Count | None = None

    @property
    def whole_states(self) -> int:
        """The number of represented states without torn writes. If they were not counted, it is a lower bound."""
        return self.whole if self.whole is not None else min(self.states, int(not self.state.torn))


class KnownCube(NamedTuple):
    """The legal states of whole writes in ``cube``. All have the same ``outcome``."""

    cube: Cube
    outcome: int


class MixedStates(NamedTuple):
    """Torn states of one mixture (:mod:`bob.observe.mixtures`). ``states`` is their number. States that an explored
    state represents are not counted again. ``rows`` are the indexes of two or more explored states. The torn states
    have the same tree as these explored states, except for the data in files. In this data, each sector is equal to
    that sector in state ``rows[0]`` or in state ``rows[1]``."""

    states: Count
    rows: tuple[int, ...]


class Complaint(NamedTuple):
    """A trouble of a state that mounts, such as a warning of the kernel or an error that the checker found. ``kind`` is
    the value of a :class:`TroubleKind`."""

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
    """Each explored state of a workload with its outcome. If bob does not know some outcomes, ``lost`` is the reason.

    ``predicted`` has the indexes of states that were not mounted. ``died`` is True if the guest was lost; a new
    exploration in another guest may then succeed. ``earlier_loss`` says why an earlier guest was lost. ``final`` is
    True if another guest would not help: a mount contradicted a prediction or another mount, or bob could not see an
    outcome completely. ``normal`` has troubles that also occur on a disk without any write of the recording.
    ``passing`` has complaints that the kernel did not repeat on another mount.

    ``coverage`` counts the legal states that ``states`` represent. The states of ``mixtures`` are not in it, since bob
    cannot judge every claim (what each crash state should satisfy) on them. ``unknown_torn`` says why bob does not know
    the outcomes of torn states in a random sample. It is empty if ``states`` represent at least three quarters of all
    legal torn states, counting only those that mount. If bob knows the outcome of each legal state of whole writes,
    ``cubes`` has these states as sets. Otherwise, and in stored observations, ``cubes`` is empty."""

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
    cubes: tuple[KnownCube, ...] = ()
