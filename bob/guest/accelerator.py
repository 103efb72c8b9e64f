"""Choose the accelerator (KVM or TCG) for guests on this machine: try to boot a guest under KVM, and remember the
result."""

import hashlib
import json
import os
import platform
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bob.errors import UsageError
from bob.guest.spec import Accelerator
from bob.settings import cache_folder

VARIABLE = "BOB_ACCELERATOR"  # its value, "kvm" or "tcg", decides for every guest that could use either

KVM_DEADLINE = 20.0  # seconds until a guest under KVM must be ready; a working guest takes two or three

_DEVICE = Path("/dev/kvm")


@dataclass(frozen=True, slots=True)
class Acceleration:
    accelerator: Accelerator
    reason: str


def choose(versions: str, kvm_boots: Callable[[], bool]) -> Acceleration:
    """Return the accelerator for guests on this machine. On some machines no guest boots under KVM although
    ``/dev/kvm`` opens (facts.md, "Guests"). So ``kvm_boots()`` tries to boot a guest. The result is remembered for this
    kernel, this processor and these ``versions`` of QEMU and libvirt. Raises UsageError if ``BOB_ACCELERATOR`` is
    neither kvm nor tcg."""
    forced = os.environ.get(VARIABLE)
    if forced:
        if forced not in {accelerator.value for accelerator in Accelerator}:
            raise UsageError(f"invalid {VARIABLE}={forced}", hint="expected kvm or tcg")
        return Acceleration(Accelerator(forced), f"{VARIABLE} says so")
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        return Acceleration(
            Accelerator.TCG, f"bob cannot open {_DEVICE}" if _DEVICE.exists() else f"{_DEVICE} does not exist"
        )
    digest = hashlib.sha256("\0".join((*host(), versions)).encode()).hexdigest()[:16]
    memory = cache_folder("accelerator") / f"{digest}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        return _choice(bool(json.loads(memory.read_text())["kvm_boots"]))
    boots = kvm_boots()
    part = memory.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps({"kvm_boots": boots, "host": host(), "versions": versions}) + "\n")
    part.rename(memory)
    return _choice(boots)


def _choice(kvm_boots: bool) -> Acceleration:
    if kvm_boots:
        return Acceleration(Accelerator.KVM, "a guest boots under KVM")
    return Acceleration(
        Accelerator.TCG, f"/dev/kvm opens, but a guest under KVM was not ready after {KVM_DEADLINE:.0f} s"
    )


def host() -> list[str]:
    """Return the kernel and the processor of this machine."""
    model = ""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return [platform.release(), model]
