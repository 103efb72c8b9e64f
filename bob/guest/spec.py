"""The specification of a guest."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from bob.errors import UsageError
from bob.image import Image

MEMORY_MIB = 2048


class Clock(Enum):
    """The time in the guest. VIRTUAL time counts executed instructions, and jumps to the next timer when the guest is
    idle. So waits take no real time, and the same work gives the same recording of disk writes. REAL time is the host's
    time."""

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
    """A description of a guest to start. It has the image, the memory in MiB and the accelerator (None: bob chooses).
    ``world`` is the disk with the user space of a program under test (None: there is no such disk). Raises UsageError
    for VIRTUAL time with KVM, because virtual time exists only under TCG."""

    image: Image
    clock: Clock = Clock.REAL
    memory_mib: int = MEMORY_MIB
    accelerator: Accelerator | None = None
    world: Path | None = None

    def __post_init__(self) -> None:
        if self.clock is Clock.VIRTUAL and self.accelerator is Accelerator.KVM:
            raise UsageError("virtual time needs emulation (TCG), not KVM", hint="leave the accelerator out")
