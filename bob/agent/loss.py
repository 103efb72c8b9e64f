"""The loss of a guest. bob has lost a guest when the guest no longer answers. (If a command in the guest fails, the
guest is not lost.)"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from bob.errors import Exit, GuestError

# The kernel prints these before it gives up: panic(), die(), BUG(). A line about a fault of a program does not match,
# because the program's address follows ("traps: python3[7] general protection fault ip:").
PANIC = re.compile(r"Kernel panic|Oops:|\bBUG: |kernel BUG at|general protection fault(?! ip:)")
# The kernel prints these about a task that hangs in it: kernel/hung_task.c, kernel/rcu/tree_stall.h. The first line
# comes after 120 s, but an fsync on a slow disk may take so long. Later lines say how long the task has hung.
HANG = re.compile(
    r"INFO: task .* blocked for more than (?:[3-9]\d\d|\d{4,}) seconds|rcu: INFO: .* detected (?:expedited )?stalls?"
)
# The kernel prints these if a program made it panic, by sysrq or by taking all memory.
_MADE_TO = re.compile(r"sysrq triggered|deadlocked on memory|[Oo]ut of memory|Attempted to kill init")
_STAMP = re.compile(r"^\[ *\d+\.\d+\] ?")
STEP = re.compile(r"bob: at (.+)")  # a recording that narrates prints this on the console before each step


class LossCause(Enum):
    """How a guest was lost. PANICKED means that its console reports a panic of the kernel, and HUNG that the guest did
    not answer before a deadline. VANISHED means that its QEMU is gone. DISCONNECTED means that its QEMU runs, but that
    the connection, or the program at the other end, has ended."""

    PANICKED = "panicked"
    HUNG = "hung"
    VANISHED = "vanished"
    DISCONNECTED = "disconnected"


@dataclass(frozen=True, slots=True)
class Loss:
    """The reason why a guest was lost. ``console`` has the last lines of the guest's console; if there was a panic,
    these begin with the panic. ``step`` is the last step that a recording announced on the console."""

    cause: LossCause
    console: str
    step: str = ""

    @property
    def said(self) -> str:
        """The kernel's line about the fault, without the time at its beginning. Empty if the console lacks such a
        line."""
        mark = HANG if self.cause is LossCause.HUNG else PANIC
        line = next(filter(mark.search, self.console.splitlines()), "")
        return _STAMP.sub("", line).strip()

    @property
    def is_by_kernel(self) -> bool:
        """Whether the kernel caused the loss: it panicked, or a task hangs in the kernel. A panic does not count if a
        program caused it, for example by taking all memory."""
        is_told = bool(self.said) and not _MADE_TO.search(self.said)
        return self.cause in (LossCause.PANICKED, LossCause.HUNG) and is_told

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of the console that begin with the kernel's line about the fault. bob's own lines are left out."""
        every = [_STAMP.sub("", line).rstrip() for line in self.console.splitlines() if not STEP.search(line)]
        first = next((place for place, line in enumerate(every) if line.strip() == self.said), 0)
        return tuple(line for line in every[first:] if line.strip())


class GuestLost(GuestError):
    where: ClassVar[str] = "guest"

    def __init__(self, loss: Loss, message: str) -> None:
        super().__init__(f"the {self.where} {_VERBS[loss.cause]}: {message}", hint=_hint(loss))
        self.loss = loss


class SandboxLost(GuestLost):
    """An error: a sandbox on the host was lost (:mod:`bob.sandbox`), not a guest. ``message`` says why."""

    where = "sandbox"

    def __init__(self, message: str, cause: LossCause = LossCause.DISCONNECTED) -> None:
        GuestError.__init__(self, message)
        self.loss = Loss(cause, "")


class KernelFell(GuestError):
    """An error: the guest's kernel panicked or hung at the same request twice. This error says something about the
    kernel, not about bob."""

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
