"""The specification of a guest, as plain data."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from bob.errors import UsageError
from bob.image import Image


class Clock(Enum):
    """The guest's time. VIRTUAL counts executed instructions and jumps to the next timer when the guest is idle: waits
    take no time, and the same work gives the same recording. REAL is the host's time."""

    VIRTUAL = "virtual"
    REAL = "real"


class Accelerator(Enum):
    KVM = "kvm"
    TCG = "tcg"


class NetworkKind(Enum):
    PRIVATE = "private"
    USER = "user"


@dataclass(frozen=True, slots=True)
class GuestSpec:
    """A guest: memory in MiB, accelerator (None: whichever boots here), the disk with a world for programs (or None).
    Raises UsageError for VIRTUAL with KVM: virtual time exists only under TCG."""

    image: Image
    clock: Clock = Clock.REAL
    memory_mib: int = 2048
    accelerator: Accelerator | None = None
    world: Path | None = None

    def __post_init__(self) -> None:
        if self.clock is Clock.VIRTUAL and self.accelerator is Accelerator.KVM:
            raise UsageError("virtual time needs emulation (TCG), not KVM", hint="leave the accelerator out")
