"""What a guest should be, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from bob.errors import UsageError
from bob.image import Image


class Clock(Enum):
    """What time is in a guest.

    VIRTUAL: time is the count of executed instructions, and jumps to the next timer when the guest has nothing to do,
    so that waiting is free and a recording repeats itself. REAL: the host's.
    """

    VIRTUAL = "virtual"
    REAL = "real"


class Accelerator(Enum):
    """Who executes the guest's instructions: the processor (KVM) or QEMU (TCG)."""

    KVM = "kvm"
    TCG = "tcg"


class NetworkKind(Enum):
    """By which network bob talks to a guest, see :mod:`bob.guest.network`."""

    PRIVATE = "private"
    USER = "user"


@dataclass(frozen=True, slots=True)
class GuestSpec:
    """One guest: its image, its clock, its memory in MiB, its accelerator (None: whichever boots here), and the disk
    with a world for programs (None: it has none).

    Virtual time exists only under TCG; asking for both VIRTUAL and KVM is a UsageError.
    """

    image: Image
    clock: Clock = Clock.REAL
    memory_mib: int = 2048
    accelerator: Accelerator | None = None
    world: Path | None = None

    def __post_init__(self) -> None:
        if self.clock is Clock.VIRTUAL and self.accelerator is Accelerator.KVM:
            raise UsageError("virtual time needs emulation (TCG), not KVM", hint="leave the accelerator out")
