"""Answers of a program's checker, a script that says whether a crash state is acceptable."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from bob.text import printable

K = TypeVar("K")
S_co = TypeVar("S_co", covariant=True)


class Consequence(StrEnum):
    """The effect of a crash on the program, according to the checker's exit code (docs/apps.md)."""

    LOST = "lost"
    CORRUPT = "corrupt"
    CANNOT_OPEN = "cannot-open"
    UNAVAILABLE = "unavailable"
    BETWEEN = "between"
    OTHER = "other"
    HANG = "hang"

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    Consequence.LOST: "lost acknowledged data",
    Consequence.CORRUPT: "corruption",
    Consequence.CANNOT_OPEN: "cannot open",
    Consequence.UNAVAILABLE: "the cluster does not answer",
    Consequence.BETWEEN: "neither before nor after",
    Consequence.OTHER: "the checker refuses it",
    Consequence.HANG: "the checker does not end",
}
CODES = {
    10: Consequence.LOST,
    11: Consequence.CORRUPT,
    12: Consequence.CANNOT_OPEN,
    13: Consequence.UNAVAILABLE,
    14: Consequence.BETWEEN,
}
"""The exit codes of a checker that have a meaning of their own. The code 0 means that the checker accepts the state;
any other code is :attr:`Consequence.OTHER`."""


REQUEST_SECONDS = 10.0  # a request to a guest runs checks for so long (host's clock), so that bob reacts to interrupts


class Batches:
    """The number of checks in the next request to a guest. The first request has one check. bob measures how long a
    request took, and chooses the next number so that the next request takes about REQUEST_SECONDS. The number is at
    most ``most``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.size = 1

    def took(self, checks: int, seconds: float) -> None:
        self.size = max(1, min(self._most, int(REQUEST_SECONDS * checks / max(seconds, 1e-6))))


@dataclass(frozen=True, slots=True)
class CheckerAnswer:
    """The exit code of a checker (None: the checker did not end in time) and its output."""

    code: int | None
    printed: str

    @property
    def consequence(self) -> Consequence | None:
        if self.code is None:
            return Consequence.HANG
        return None if self.code == 0 else CODES.get(self.code, Consequence.OTHER)

    @property
    def is_judgement(self) -> bool:
        """Whether the checker itself chose the exit code. It did not if a signal ended it, or if a shell could not run
        a program (126, 127)."""
        return self.code is not None and self.code >= 0 and self.code not in (126, 127)

    @property
    def evidence(self) -> str:
        """The last line of the checker's output that is not empty. If the checker timed out or printed nothing, words
        that say so."""
        if self.code is None:
            return "it timed out"
        lines = [line.strip() for line in self.printed.splitlines() if line.strip()]
        return printable(lines[-1])[:300] if lines else f"it prints nothing and ends with {self.code}"


@dataclass(frozen=True, slots=True)
class CheckerRun(Generic[S_co]):
    """A run of a checker on the crash state ``state``. Before the crash, the program wrote ``output``. ``spoiler`` is a
    script that damages the state first, or empty."""

    state: S_co
    output: bytes
    spoiler: str = ""


@dataclass(slots=True)
class CheckerAnswers(Generic[K]):
    """The answers of a checker so far. ``answers`` has one answer for each tree of files that was checked. ``count`` is
    the number of runs of the checker. ``disagreed`` says how the checker contradicted itself about one tree (None: it
    did not)."""

    answers: dict[K, CheckerAnswer] = field(default_factory=dict)
    count: int = 0
    disagreed: str | None = None

    def take(self, tree: K, answer: CheckerAnswer) -> bool:
        """Keep an answer of the checker, and return whether it is the first for this tree. A check that did not end in
        time also gives an answer. If a later check of the same tree ends in time, its answer replaces the earlier
        answer."""
        self.count += 1
        known = self.answers.get(tree)
        if known is None or known.code is None:
            self.answers[tree] = answer
        elif answer.code is not None and answer.code != known.code:
            codes = f"{known.code} and with {answer.code}"
            self.disagreed = f"the checker contradicts itself: for the same tree and output it ends with {codes}"
        return known is None
