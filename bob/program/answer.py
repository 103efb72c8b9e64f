"""The answer of a checker about a crash state."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from bob.text import printable

K = TypeVar("K")


class Consequence(StrEnum):
    """What a crash did to the program, by the checker's exit code (docs/apps.md)."""

    LOST = "lost"
    CORRUPT = "corrupt"
    CANNOT_OPEN = "cannot-open"
    OTHER = "other"
    HANG = "hang"

    @property
    def words(self) -> str:
        """The consequence in words."""
        return _WORDS[self]


_WORDS = {
    Consequence.LOST: "lost acknowledged data",
    Consequence.CORRUPT: "corruption",
    Consequence.CANNOT_OPEN: "cannot open",
    Consequence.OTHER: "the checker refuses it",
    Consequence.HANG: "the checker does not end",
}
CODES = {10: Consequence.LOST, 11: Consequence.CORRUPT, 12: Consequence.CANNOT_OPEN}
"""The exit codes of a checker. 0 is fine; any other one is :attr:`Consequence.OTHER`."""


REQUEST_SECONDS = 10.0
"""A request to a checker takes about so long (host seconds). An interrupt, the loss of a guest and progress wait for
its end."""


class Batches:
    """How many checks are in the next request: one at first, then as the last ones suggest, at most ``most``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.size = 1

    def took(self, checks: int, seconds: float) -> None:
        """Note that so many checks took so long (host seconds)."""
        self.size = max(1, min(self._most, int(REQUEST_SECONDS * checks / max(seconds, 1e-6))))


@dataclass(frozen=True, slots=True)
class CheckerAnswer:
    """The exit code of a checker (None: it did not end in time), and its output."""

    code: int | None
    printed: str

    @property
    def consequence(self) -> Consequence | None:
        """What the crash did; None if all is well."""
        if self.code is None:
            return Consequence.HANG
        return None if self.code == 0 else CODES.get(self.code, Consequence.OTHER)

    @property
    def is_judgement(self) -> bool:
        """Whether the checker ended by itself: not by a signal, and not by a shell that cannot run a program (126,
        127)."""
        return self.code is not None and self.code >= 0 and self.code not in (126, 127)

    @property
    def evidence(self) -> str:
        """The last line of its output."""
        if self.code is None:
            return "it was ended when its time was over"
        lines = [line.strip() for line in self.printed.splitlines() if line.strip()]
        return printable(lines[-1])[:300] if lines else f"it prints nothing and ends with {self.code}"


@dataclass(slots=True)
class CheckerAnswers(Generic[K]):
    """The ``answers`` of a checker so far, by tree, in so many (``count``) runs. ``disagreed`` says how the checker
    contradicted itself; None: it did not."""

    answers: dict[K, CheckerAnswer] = field(default_factory=dict)
    count: int = 0
    disagreed: str | None = None

    def take(self, tree: K, answer: CheckerAnswer) -> bool:
        """Note an answer, and return whether it is the first one for its tree. A check that did not end in time gives
        no answer if the same tree has another one."""
        self.count += 1
        known = self.answers.get(tree)
        if known is None or known.code is None:
            self.answers[tree] = answer
        elif answer.code is not None and answer.code != known.code:
            codes = f"{known.code} and with {answer.code}"
            self.disagreed = f"the checker contradicts itself: of one tree and output it ends with {codes}"
        return known is None
