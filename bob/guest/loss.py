"""Why a guest does not answer."""

from __future__ import annotations

import time
from typing import Protocol

from bob.agent.loss import HANG, PANIC, STEP, Loss, LossCause
from bob.guest.console import Console

_TAIL_LINES = 30
_PANIC_LINES = 60

# QEMU's sockets close before the process is gone: after a connection broke, it gets this many seconds to be gone.
_LAST_BREATH = 2.0


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
    text = guest.console.text()
    steps = STEP.findall(text)
    step = steps[-1].strip() if steps else ""
    if panic := PANIC.search(text):
        return Loss(LossCause.PANICKED, _from(text, panic.start()), step)
    if running and not disconnected and (hang := HANG.search(text)):
        return Loss(LossCause.HUNG, _from(text, hang.start()), step)
    cause = LossCause.DISCONNECTED if disconnected else LossCause.HUNG
    return Loss(cause if running else LossCause.VANISHED, guest.console.tail(_TAIL_LINES), step)


def _from(text: str, place: int) -> str:
    """The lines of ``text`` from ``place`` on: what it says is above a long call trace. The line before it is there,
    too, which often says what led to it."""
    first = text[:place].count("\n")
    return "\n".join(text.splitlines()[max(0, first - 1) :][:_PANIC_LINES])
