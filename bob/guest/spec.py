"""The guest that is wanted, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from bob.errors import UsageError
from bob.image import Image


class Clock(Enum):
    """The time in a guest. VIRTUAL: the count of executed instructions, which jumps to the next timer when the guest is
    idle, so that waiting is free and a recording repeats itself. REAL: the host's."""

    VIRTUAL = "virtual"
    REAL = "real"


class Accelerator(Enum):
    """The executor of the guest's instructions: the processor (KVM) or QEMU (TCG)."""

    KVM = "kvm"
    TCG = "tcg"


class NetworkKind(Enum):
    """The kind of network between bob and a guest, see :mod:`bob.guest.network`."""

    PRIVATE = "private"
    USER = "user"


@dataclass(frozen=True, slots=True)
class GuestSpec:
    """One guest: its image, its clock, its memory in MiB, its accelerator (None: whichever boots here), and the disk
    with a world for programs (or None). VIRTUAL and KVM together are a UsageError: virtual time exists only under TCG.
    """

    image: Image
    clock: Clock = Clock.REAL
    memory_mib: int = 2048
    accelerator: Accelerator | None = None
    world: Path | None = None

    def __post_init__(self) -> None:
        if self.clock is Clock.VIRTUAL and self.accelerator is Accelerator.KVM:
            raise UsageError("virtual time needs emulation (TCG), not KVM", hint="leave the accelerator out")
