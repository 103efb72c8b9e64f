"""A lost guest: a machine that no longer answers, as opposed to a command that failed."""

import re
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from bob.errors import Exit, GuestError

# The kernel prints these before it gives up: panic(), die(), BUG(). A program's fault has its address behind it
# ("traps: python3[7] general protection fault ip:").
PANIC = re.compile(r"Kernel panic|Oops:|\bBUG: |kernel BUG at|general protection fault(?! ip:)")
# It prints these about a task that hangs in it: kernel/hung_task.c, kernel/rcu/tree_stall.h. The first line comes after
# 120 s, which an fsync on a slow disk may take. Later lines say how long it is by then.
HANG = re.compile(
    r"INFO: task .* blocked for more than (?:[3-9]\d\d|\d{4,}) seconds|rcu: INFO: .* detected (?:expedited )?stalls?"
)
# It prints these where a program made it panic, by sysrq or by taking all of its memory.
_MADE_TO = re.compile(r"sysrq triggered|deadlocked on memory|[Oo]ut of memory|Attempted to kill init")
_STAMP = re.compile(r"^\[ *\d+\.\d+\] ?")
STEP = re.compile(r"bob: at (.+)")  # a narrating recording prints this on the console before each step


class LossCause(Enum):
    """How a guest was lost. PANICKED: its console says so. HUNG: a deadline passed. VANISHED: its QEMU is gone.
    DISCONNECTED: its QEMU runs, but the connection or the program at its end has ended."""

    PANICKED = "panicked"
    HUNG = "hung"
    VANISHED = "vanished"
    DISCONNECTED = "disconnected"


@dataclass(frozen=True, slots=True)
class Loss:
    """Why a guest was lost, with the console's last lines (a panic: the first) and the last narrated ``step``."""

    cause: LossCause
    console: str
    step: str = ""

    @property
    def said(self) -> str:
        """The kernel's line about the fault, without its time; may be empty."""
        mark = HANG if self.cause is LossCause.HUNG else PANIC
        line = next(filter(mark.search, self.console.splitlines()), "")
        return _STAMP.sub("", line).strip()

    @property
    def is_by_kernel(self) -> bool:
        """Whether the kernel panicked by itself, or a task hangs in it."""
        is_told = bool(self.said) and not _MADE_TO.search(self.said)
        return self.cause in (LossCause.PANICKED, LossCause.HUNG) and is_told

    @property
    def lines(self) -> tuple[str, ...]:
        """The console from the kernel's line about the fault on, without bob's own lines."""
        every = [_STAMP.sub("", line).rstrip() for line in self.console.splitlines() if not STEP.search(line)]
        first = next((place for place, line in enumerate(every) if line.strip() == self.said), 0)
        return tuple(line for line in every[first:] if line.strip())


class GuestLost(GuestError):
    where: ClassVar[str] = "guest"

    def __init__(self, loss: Loss, message: str) -> None:
        super().__init__(f"the {self.where} {_VERBS[loss.cause]}: {message}", hint=_hint(loss))
        self.loss = loss


class SandboxLost(GuestLost):
    """A sandbox on the host was lost in place of a guest (:mod:`bob.sandbox`); ``message`` says why."""

    where = "sandbox"

    def __init__(self, message: str, cause: LossCause = LossCause.DISCONNECTED) -> None:
        GuestError.__init__(self, message)
        self.loss = Loss(cause, "")


class KernelFell(GuestError):
    """The guest's kernel panicked or hung at the same request twice: a finding about that kernel."""

    exit_code = Exit.DIFFERENT


_VERBS = {
    LossCause.PANICKED: "panicked",
    LossCause.HUNG: "hangs",
    LossCause.VANISHED: "vanished",
    LossCause.DISCONNECTED: "disconnected",
}


def _hint(loss: Loss) -> str:
    if loss.said:
        return f"its console says: {loss.said}"
    last = loss.console.rstrip().rpartition("\n")[2].strip()
    return f"the last line on its console: {last}" if last else "its console is empty"
