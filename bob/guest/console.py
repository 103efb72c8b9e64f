"""The guest's serial console, as QEMU writes it to a file, and its evidence on a guest that does not answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bob.agent.loss import HANG, PANIC, STEP, Loss, LossCause

_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Console:
    """The output of a guest since it was started or restored."""

    path: Path

    def text(self) -> str:
        """Return all of it; empty if QEMU has not made the file yet, or it may not be read."""
        try:
            return self.path.read_text(errors="replace")
        except OSError:
            return ""

    def tail(self, lines: int = 20) -> str:
        """Return the last ``lines`` lines."""
        return "\n".join(self.text().rstrip().splitlines()[-lines:])

    def wait_for(self, text: str, seconds: float, alive: Callable[[], bool]) -> bool:
        """Wait until ``text`` was printed. Return False if the guest is not ``alive``, or after ``seconds``."""
        deadline = time.monotonic() + seconds
        while text not in self.text():
            if time.monotonic() > deadline or not alive():
                return text in self.text()
            time.sleep(_POLL_SECONDS)
        return True


_TAIL_LINES = 30
_PANIC_LINES = 60

# QEMU's sockets close before the process is gone: after a connection broke, it gets this many seconds to be gone.
_LAST_BREATH = 2.0


def diagnose(console: Console, is_running: Callable[[], bool], *, disconnected: bool = False) -> Loss:
    """Return why a guest does not answer, by its ``console`` and whether its QEMU ``is_running``. If it is
    ``disconnected``, a connection broke, and it is probably about to be gone."""
    deadline = time.monotonic() + (_LAST_BREATH if disconnected else 0)
    while (running := is_running()) and time.monotonic() < deadline:
        time.sleep(0.01)
    text = console.text()
    steps = STEP.findall(text)
    step = steps[-1].strip() if steps else ""
    if panic := PANIC.search(text):
        return Loss(LossCause.PANICKED, _from(text, panic.start()), step)
    if running and not disconnected and (hang := HANG.search(text)):
        return Loss(LossCause.HUNG, _from(text, hang.start()), step)
    cause = LossCause.DISCONNECTED if disconnected else LossCause.HUNG
    return Loss(cause if running else LossCause.VANISHED, console.tail(_TAIL_LINES), step)


def _from(text: str, place: int) -> str:
    """Return the lines of ``text`` from the one before ``place`` on, which often says the cause."""
    first = text[:place].count("\n")
    return "\n".join(text.splitlines()[max(0, first - 1) :][:_PANIC_LINES])
