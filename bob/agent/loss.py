"""A lost guest: not a command that failed, but a machine that no longer answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from bob.errors import GuestError

# What the kernel prints before it gives up: panic(), die(), BUG().
PANIC = re.compile(r"Kernel panic|Oops:|\bBUG: |kernel BUG at|general protection fault")


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


_VERBS = {
    Cause.PANICKED: "panicked",
    Cause.HUNG: "hangs",
    Cause.VANISHED: "vanished",
    Cause.DISCONNECTED: "broke off",
}


def _hint(loss: Loss) -> str:
    if loss.cause is Cause.PANICKED and (
        said := [line for line in loss.console_tail.splitlines() if PANIC.search(line)]
    ):
        return f"its console says: {said[0].strip()}"
    last = loss.console_tail.rstrip().rpartition("\n")[2].strip()
    return f"the last line on its console: {last}" if last else "its console is empty"
