"""A lost guest: not a command that failed, but a machine that no longer answers. And why."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from bob.errors import GuestError
from bob.guest.console import Console

_TAIL_LINES = 30
_PANIC_LINES = 60

# What the kernel prints before it gives up: panic(), die(), BUG().
_PANIC = re.compile(r"Kernel panic|Oops:|\bBUG: |kernel BUG at|general protection fault")

# QEMU's sockets close before the process is gone: after a connection broke, it gets this many seconds to be gone.
_LAST_BREATH = 2.0


class Cause(Enum):
    """How a guest was lost.

    PANICKED: its console says so. HUNG: a deadline passed. VANISHED: its QEMU is gone. DISCONNECTED: its QEMU runs, but
    the connection ended, or the program at the other end of it.
    """

    PANICKED = "panicked"
    HUNG = "hung"
    VANISHED = "vanished"
    DISCONNECTED = "disconnected"


@dataclass(frozen=True, slots=True)
class Loss:
    """Why a guest was lost, with the last lines of its console, or of a panic the first."""

    cause: Cause
    console_tail: str


class GuestLost(GuestError):
    """The guest is gone, or may as well be. ``cause`` and ``console_tail`` say what is known."""

    def __init__(self, loss: Loss, message: str) -> None:
        super().__init__(f"the guest {_VERBS[loss.cause]}: {message}", hint=_hint(loss))
        self.loss = loss

    @property
    def cause(self) -> Cause:
        """How it was lost."""
        return self.loss.cause

    @property
    def console_tail(self) -> str:
        """The last lines of its console, or of a panic the first."""
        return self.loss.console_tail


class Suspect(Protocol):
    """What :func:`diagnose` looks at; a :class:`bob.guest.machine.Guest` is one."""

    @property
    def console(self) -> Console:
        """Its console."""

    @property
    def running(self) -> bool:
        """Whether its QEMU runs."""


def diagnose(guest: Suspect, *, disconnected: bool = False) -> Loss:
    """Why ``guest`` does not answer. ``disconnected``: a connection broke, so it is probably about to be gone."""
    deadline = time.monotonic() + (_LAST_BREATH if disconnected else 0)
    while (running := guest.running) and time.monotonic() < deadline:
        time.sleep(0.01)
    if panic := _PANIC.search(text := guest.console.text()):
        # What it says is above a long call trace: keep that, and the line before, which often says what led to it.
        first = text[: panic.start()].count("\n")
        return Loss(Cause.PANICKED, "\n".join(text.splitlines()[max(0, first - 1) :][:_PANIC_LINES]))
    cause = Cause.DISCONNECTED if disconnected else Cause.HUNG
    return Loss(cause if running else Cause.VANISHED, guest.console.tail(_TAIL_LINES))


_VERBS = {
    Cause.PANICKED: "panicked",
    Cause.HUNG: "hangs",
    Cause.VANISHED: "vanished",
    Cause.DISCONNECTED: "broke off",
}


def _hint(loss: Loss) -> str:
    if loss.cause is Cause.PANICKED and (
        said := [line for line in loss.console_tail.splitlines() if _PANIC.search(line)]
    ):
        return f"its console says: {said[0].strip()}"
    last = loss.console_tail.rstrip().rpartition("\n")[2].strip()
    return f"the last line on its console: {last}" if last else "its console is empty"
