"""Where the bytes of a file were, when ranges of it are taken out or put in.

fallocate(2) takes a range out (FALLOC_FL_COLLAPSE_RANGE), and all behind it moves towards the start; or it puts in a
range of zeros (FALLOC_FL_INSERT_RANGE), and all behind that moves away. Offsets and lengths are in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True, slots=True)
class Shift:
    """Operation ``number`` puts ``length`` bytes in at ``offset``; where that is negative, it takes so many out."""

    number: int
    offset: int
    length: int

    def origin(self, at: int) -> int | None:
        """Where the byte was that is at ``at`` now; None where it was put in."""
        if at < self.offset:
            return at
        return at - self.length if at >= self.offset + self.length else None

    def moved(self, at: int) -> int:
        """Where the end of a file, or of a piece of it, is afterwards that was at ``at``."""
        return at if at <= self.offset else max(self.offset, at + self.length)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the byte at ``at`` of what was found comes from, if of all shifts just ``there`` happened, in order."""

    at: int
    there: tuple[Shift, ...] = ()

    def after(self, number: int) -> int | None:
        """Where it was right after operation ``number`` (0: in the initial tree); None where a later shift put it
        in."""
        at: int | None = self.at
        for shift in reversed(self.there):
            if shift.number <= number or at is None:
                break
            at = shift.origin(at)
        return at

    @property
    def put_in_by(self) -> int | None:
        """The operation that put it in, if one did."""
        at = self.at
        for shift in reversed(self.there):
            before = shift.origin(at)
            if before is None:
                return shift.number
            at = before
        return None

    def has(self, number: int) -> bool:
        """Whether operation ``number`` is one of the shifts that happened."""
        return any(shift.number == number for shift in self.there)


def origins(shifts: Sequence[Shift], at: int) -> Iterator[Origin]:
    """Where the byte at ``at`` may come from: any of ``shifts`` may have happened, or not."""
    for count in range(len(shifts) + 1):
        for there in combinations(shifts, count):
            yield Origin(at, there)
