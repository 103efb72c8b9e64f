"""The kernel's block tracepoints, read through an instance of tracefs. With one CPU, the buffer has the events in the
order of time."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Any

from bob.agent.inside.devices import opened, read_text, write_text
from bob.agent.inside.frames import Denial
from bob.agent.inside.ring_buffer import layout

TRACING = "/sys/kernel/tracing"
PROBES = f"{TRACING}/kprobe_events"


def kernel_device(device: int) -> int:
    """Return the device number ``device``, which has the form of ``st_rdev``, in the form that the kernel's filters use
    (MAJOR << 20 | MINOR, include/linux/kdev_t.h)."""
    return os.major(device) << 20 | os.minor(device)


class Instance:
    """A trace buffer of ``kib`` KiB in the kernel. The kernel puts the ``events`` into it, which are given as
    {"block/NAME": filter}. A ``with`` block turns the trace on at its beginning, and off at its end."""

    def __init__(self, name: str, events: dict[str, str], kib: int) -> None:
        self.path = f"{TRACING}/instances/{name}"
        self.events = events
        if not os.path.isdir(f"{TRACING}/events"):
            raise Denial("tracefs is not mounted at /sys/kernel/tracing in the guest")
        os.makedirs(self.path, exist_ok=True)
        self.write("tracing_on", "0")
        self.write("trace_clock", "mono")
        # The kernel says of a new instance's buffer, for example, "7 (expanded: 1408)".
        if re.split(r"\D", read_text(f"{self.path}/buffer_size_kb").strip())[0] != str(kib):
            self.write("buffer_size_kb", str(kib))
        self._marker = os.open(f"{self.path}/trace_marker", os.O_WRONLY)

    def write(self, file: str, text: str) -> None:
        write_text(f"{self.path}/{file}", text)

    def __enter__(self) -> Instance:
        self.write("trace", "")
        for event, condition in self.events.items():
            self.write(f"events/{event}/filter", condition)
            self.write(f"events/{event}/enable", "1")
        self.write("tracing_on", "1")
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._marker)
        self.stop()

    def stop(self) -> None:
        self.write("tracing_on", "0")
        for event in self.events:
            self.write(f"events/{event}/enable", "0")

    def layouts(self) -> dict[str, Any]:
        """Return the layout of each event in the buffer (:func:`bob.agent.inside.ring_buffer.layout`), by the event's
        NAME."""
        formats = {event: read_text(f"{self.path}/events/{event}/format") for event in self.events}
        return {os.path.basename(event): layout(text) for event, text in formats.items()}

    def mark(self, text: str) -> None:
        os.write(self._marker, f"bob: {text}".encode())

    def text(self) -> str:
        if self.lost():
            raise Denial("the guest's trace buffer overflowed: events are lost")
        return read_text(f"{self.path}/trace")

    def lost(self) -> int:
        return self._total("overrun", "commit overrun", "dropped events")

    def has_more(self) -> bool:
        return self._total("entries") > 0

    def _total(self, *what: str) -> int:
        processors = f"{self.path}/per_cpu"
        statistics = "".join(read_text(f"{processors}/{name}/stats") for name in os.listdir(processors))
        return sum(int(n) for n in re.findall(rf"^(?:{'|'.join(what)}): (\d+)", statistics, re.M))


def make_probes(probes: tuple[str, ...]) -> bool:
    """Make the kprobe events ``probes`` (Documentation/trace/kprobetrace.rst) unless they exist; return False if the
    kernel refuses."""
    try:
        for probe in probes:
            name = probe.partition(" ")[0].partition(":")[2]
            if not os.path.isdir(f"{TRACING}/events/{name}"):
                _append_probes(probe)
    except OSError:
        return False
    return True


def clear_instances() -> None:
    with suppress(FileNotFoundError):
        for name in os.listdir(f"{TRACING}/instances"):
            if name.startswith("bob-"):
                os.rmdir(f"{TRACING}/instances/{name}")


def clear_probes() -> None:
    text = read_text(PROBES) if os.path.exists(PROBES) else ""
    _append_probes(*(f"-:{name}" for name in re.findall(r"^[pr]\d*:(bob/\S+)", text, re.M)))


def _append_probes(*lines: str) -> None:
    for line in lines:
        with opened(PROBES, os.O_WRONLY | os.O_APPEND) as fd:  # open() would seek, which this file does not allow
            os.write(fd, line.encode())
