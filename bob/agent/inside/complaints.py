"""What is wrong with a crash state though it mounts: what the kernel says, a checker, a tree that cannot be removed.

None of it is a part of an outcome. How much the kernel says depends on how fast it is asked, so its words belong to the
mounted state alone: each complaint has a number, and its words travel once.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Any

from bob.agent.inside.devices import plain_environment, write_text

CUT = "[ cut here ]"
"""The line before a warning of the kernel's own code (CUT_HERE in include/asm-generic/bug.h)."""
WARNED = "WARNING: "
"""So begins the next one (__warn in kernel/panic.c)."""
SUPPRESSED = re.compile(r"\d+ callbacks suppressed$")
"""How often the kernel did not say something (lib/ratelimit.c): of what it did say there is a line."""
OF_THE_MACHINE = re.compile(
    r"hrtimer: interrupt took |clocksource: |perf: interrupt took too long|sched: (RT throttling|DL replenish)|rcu: "
    r"|watchdog: |workqueue: .* hogged CPU|INFO: task .* blocked for more than"
)
"""So begins what the kernel says of a guest that is slow, as emulated ones are; no file system says it."""
CLEAR_WARN_ONCE = "/sys/kernel/debug/clear_warn_once"
"""What is warned of once only is warned of again after 1 is written to this (kernel/panic.c)."""
KERNEL_MESSAGE, READ_ONLY, CHECKER, REMOVAL = "kernel-message", "read-only", "checker", "removal"
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")
MOST_LINES = 4


class Complaints:
    """Numbers what the kernel says of states, from 1 on; ``new`` are (kind, words) that the host was not told of yet.

    What matches one of the ``expected`` regular expressions is none. Complaints that differ in numbers only are one.
    """

    def __init__(self, expected: list[str], device_name: re.Pattern[str]) -> None:
        self.new: list[tuple[str, str]] = []
        self._expected = [re.compile(pattern) for pattern in expected]
        self._device_name = device_name
        self._numbers: dict[tuple[str, str], int] = {}

    def unexpected(self, lines: list[str]) -> list[str]:
        """Those of these lines of the kernel's log that are not normal for a disk after a crash."""
        lines = [
            self._device_name.sub("loop", line)
            for line in lines
            if CUT not in line and not SUPPRESSED.search(line) and not OF_THE_MACHINE.match(line)
        ]
        return [line for line in lines if not any(pattern.search(line) for pattern in self._expected)]

    def number(self, lines: list[str], *, read_only: bool, mounted: bool) -> int:
        """The number of what was said while a state was mounted or refused; 0 if there is nothing to complain of.

        Of a state that was refused only warnings of the kernel's code count: a refusal is a finding of its own.
        """
        said = self.unexpected(lines)
        if not mounted and not any(line.startswith(WARNED) for line in said):
            return 0
        if not said and not read_only:
            return 0
        if any(line.startswith(WARNED) for line in said):
            with suppress(OSError):
                write_text(CLEAR_WARN_ONCE, "1")
        kind = READ_ONLY if read_only else KERNEL_MESSAGE
        words = "; ".join(said[:2]) or "the kernel made it read-only, and says nothing"
        key = kind, _NUMBERS.sub("N", said[0] if said else "")
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers) + 1
            self.new.append((kind, words))
        return number


def run_checker(command: list[str], device: str) -> tuple[int, str]:
    """Run a checker on ``device``; its exit code, and the first lines of what it printed."""
    words = [device if word == "DEVICE" else word for word in command]
    printed = os.memfd_create("checker")
    try:
        actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        actions += [(os.POSIX_SPAWN_DUP2, printed, fd) for fd in (1, 2)]
        child = os.posix_spawnp(words[0], words, plain_environment(), file_actions=actions)
        _child, status = os.waitpid(child, 0)
        text = os.pread(printed, 65536, 0).decode(errors="replace")
    finally:
        os.close(printed)
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
    lines = [line.strip() for line in text.replace(device, "the device").splitlines()]
    return code, "; ".join([line for line in lines if line][:MOST_LINES])
