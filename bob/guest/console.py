"""The guest's serial console, as QEMU writes it to a file."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Console:
    """What a guest has printed since it was started or restored."""

    path: Path

    def text(self) -> str:
        """All of it; empty if QEMU has not made the file yet, or it may not be read."""
        try:
            return self.path.read_text(errors="replace")
        except OSError:
            return ""

    def tail(self, lines: int = 20) -> str:
        """The last ``lines`` lines."""
        return "\n".join(self.text().rstrip().splitlines()[-lines:])

    def wait_for(self, text: str, seconds: float, alive: Callable[[], bool]) -> bool:
        """Wait until ``text`` was printed. False if the guest is not ``alive`` any more, or after ``seconds``."""
        deadline = time.monotonic() + seconds
        while text not in self.text():
            if time.monotonic() > deadline or not alive():
                return text in self.text()
            time.sleep(_POLL_SECONDS)
        return True
