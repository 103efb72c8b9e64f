"""Complaints about a crash state. For example, the kernel prints a warning, or refuses to remove a file.
Complaints are kept apart from the outcome (what bob found after the mount), because they depend on timing."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from bob.agent.inside.devices import run_anyhow, write_text

CUT = "[ cut here ]"  # the line before a warning of the kernel's own code (CUT_HERE in include/asm-generic/bug.h)
WARNED = "WARNING: "  # the beginning of the line after CUT (__warn in kernel/panic.c)
SUPPRESSED = re.compile(r"\d+ callbacks suppressed$")  # a count of lines that were not printed (lib/ratelimit.c)
OF_THE_MACHINE = re.compile(
    r"hrtimer: interrupt took |clocksource: |perf: interrupt took too long|sched: (RT throttling|DL replenish)|rcu: "
    r"|watchdog: |workqueue: .* hogged CPU|INFO: task .* blocked for more than"
)  # the kernel prints these lines in a slow guest, such as an emulated one; file systems never print them
CLEAR_WARN_ONCE = "/sys/kernel/debug/clear_warn_once"  # 1 makes the kernel repeat its warnings (kernel/panic.c)
KERNEL_MESSAGE, READ_ONLY, CHECKER, REMOVAL = "kernel-message", "read-only", "checker", "removal"
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")
MOST_LINES = 4


class Complaints:
    """The kernel's complaints about states. The complaints have numbers from 1 on, and complaints that differ only in
    digits have the same number. ``new`` has the complaints that the host does not have yet, as pairs of kind (READ_ONLY
    or KERNEL_MESSAGE) and text. Lines of the kernel that match a regular expression in ``expected`` do not count as
    complaints."""

    def __init__(self, expected: list[str], device_name: re.Pattern[str]) -> None:
        self.new: list[tuple[str, str]] = []
        self._expected = [re.compile(pattern) for pattern in expected]
        self._device_name = device_name
        self._numbers: dict[tuple[str, str], int] = {}

    def unexpected(self, lines: list[str]) -> list[str]:
        said = [line for line in lines if not (CUT in line or SUPPRESSED.search(line) or OF_THE_MACHINE.match(line))]
        said = [self._device_name.sub("loop", line) for line in said]
        return [line for line in said if not any(pattern.search(line) for pattern in self._expected)]

    def number(self, lines: list[str], *, read_only: bool, mounted: bool) -> int:
        """Return the number of the kernel's complaint about one state. ``lines`` are the lines that the kernel printed
        during the mount of the state. Return 0 if the kernel did not complain, or if it refused the mount without a
        warning. ``mounted`` says whether the state mounted, and ``read_only`` whether the kernel then made it
        read-only."""
        said = self.unexpected(lines)
        has_warned = any(line.startswith(WARNED) for line in said)
        if not (has_warned or (mounted and (said or read_only))):
            return 0
        if has_warned:
            with suppress(OSError):
                write_text(CLEAR_WARN_ONCE, "1")
        kind = READ_ONLY if read_only else KERNEL_MESSAGE
        words = "; ".join(said[:2]) or "the kernel made it read-only without a message"
        key = kind, _NUMBERS.sub("N", said[0] if said else "")
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers) + 1
            self.new.append((kind, words))
        return number


def run_checker(command: list[str], device: str) -> tuple[int, str]:
    """Run a file system's checker on ``device``; return its exit code and the first lines of its output."""
    printed = os.memfd_create("checker")
    try:
        code = run_anyhow(command, device, printed)
        text = os.pread(printed, 65536, 0).decode(errors="replace")
    finally:
        os.close(printed)
    lines = [line.strip() for line in text.replace(device, "the device").splitlines()]
    return code, "; ".join([line for line in lines if line][:MOST_LINES])
