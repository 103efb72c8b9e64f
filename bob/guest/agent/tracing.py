"""The kernel's block tracepoints, through a tracefs instance of bob's own.

The guest has one CPU, so the order of lines in the buffer is the order of events.
"""

from __future__ import annotations

import os
import re

from bob.guest.agent.devices import read_text, write_text
from bob.guest.agent.frames import Refused

TRACING = "/sys/kernel/tracing"


def kernel_device(device: int) -> int:
    """``st_rdev`` as the kernel's filters count it (MAJOR << 20 | MINOR, include/linux/kdev_t.h)."""
    return os.major(device) << 20 | os.minor(device)


class Instance:
    """One trace buffer with the events ``{"block/NAME": filter}`` on; ``with`` turns it off again."""

    def __init__(self, name: str, events: dict[str, str], kib: int) -> None:
        self.path = f"{TRACING}/instances/{name}"
        self.events = events
        if not os.path.isdir(f"{TRACING}/events"):
            os.makedirs(TRACING, exist_ok=True)
            raise Refused("tracefs is not mounted at /sys/kernel/tracing in the guest")
        os.makedirs(self.path, exist_ok=True)
        write_text(f"{self.path}/tracing_on", "0")
        write_text(f"{self.path}/trace_clock", "mono")
        if int(re.split(r"\D", read_text(f"{self.path}/buffer_size_kb").strip())[0]) < kib:
            write_text(f"{self.path}/buffer_size_kb", str(kib))

    def __enter__(self) -> Instance:
        write_text(f"{self.path}/trace", "")
        for event, condition in self.events.items():
            write_text(f"{self.path}/events/{event}/filter", condition)
            write_text(f"{self.path}/events/{event}/enable", "1")
        write_text(f"{self.path}/tracing_on", "1")
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Record no more events; what was recorded stays readable."""
        write_text(f"{self.path}/tracing_on", "0")
        for event in self.events:
            write_text(f"{self.path}/events/{event}/enable", "0")

    def mark(self, text: str) -> None:
        """Put ``bob: TEXT`` into the buffer at this moment."""
        write_text(f"{self.path}/trace_marker", f"bob: {text}")

    def text(self) -> str:
        """The whole buffer as text; refused when the buffer was too small for the events."""
        if self.lost():
            raise Refused("the guest's trace buffer overflowed: events are lost")
        return read_text(f"{self.path}/trace")

    def lost(self) -> int:
        """How many events were overwritten."""
        statistics = read_text(f"{self.path}/per_cpu/cpu0/stats")
        return sum(int(n) for n in re.findall(r"^(?:overrun|commit overrun|dropped events): (\d+)", statistics, re.M))
