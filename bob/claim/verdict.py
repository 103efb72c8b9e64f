"""What is said of a claim in the end."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    """A cell of the table. FAILS wins over everything; HOLDS is said only of what was explored."""

    FAILS = "fails"
    HOLDS = "holds"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """Return what ``verdicts``, at least one, say together: a failure first, then what is not known."""
    return min(verdicts, key=_WORST_FIRST.index)


_WORST_FIRST = (Verdict.FAILS, Verdict.UNKNOWN, Verdict.HOLDS, Verdict.SKIPPED)
