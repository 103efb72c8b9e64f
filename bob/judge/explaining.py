"""What explains an answer costs no answer, and one answer costs no other: where bob itself breaks over one thing, all
else is told."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Explaining:
    """Makes explanations, and ``keep``s the traceback of the first that broke, in a file: it returns the file's name.
    ``notes`` say what is not explained."""

    def __init__(self, keep: Callable[[str], str] | None = None) -> None:
        self._keep = keep
        self._broken: dict[str, None] = {}
        self._where = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not explained, and why: sentences for people."""
        return tuple(self._broken)

    def made(self, make: Callable[[], T], otherwise: U) -> T | U:
        """What ``make`` returns; ``otherwise`` where bob breaks over it."""
        try:
            return make()
        except Exception as broken:
            self._broken[f"not all is explained: {self.broke(broken)}"] = None
            return otherwise

    def broke(self, broken: Exception) -> str:
        """That bob itself broke, in words, with where the first traceback is."""
        if not self._where and self._keep is not None:
            self._where = f", traceback in {self._keep(''.join(traceback.format_exception(broken)))}"
        return f"bob itself broke ({' '.join(f'{type(broken).__name__}: {broken}'.split())}{self._where})"
