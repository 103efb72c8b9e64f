"""The origin of the bytes of a file in which ranges are taken out or put in.

fallocate(2) takes a range out (FALLOC_FL_COLLAPSE_RANGE) or puts in a range of zeros (FALLOC_FL_INSERT_RANGE), and all
behind it moves. Offsets and lengths are in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True, slots=True)
class Shift:
    """Operation ``number`` puts ``length`` bytes in at ``offset``; a negative number takes so many out."""

    number: int
    offset: int
    length: int

    def origin(self, at: int) -> int | None:
        """Return the place before of the byte that is at ``at`` now; None if it was put in."""
        if at < self.offset:
            return at
        return at - self.length if at >= self.offset + self.length else None

    def moved(self, at: int) -> int:
        """Return the place afterwards of the end of a file, or of a piece of it, that was at ``at``."""
        return at if at <= self.offset else max(self.offset, at + self.length)


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of the byte found at ``at``, if just the shifts ``there`` happened, in order."""

    at: int
    there: tuple[Shift, ...] = ()

    def after(self, number: int) -> int | None:
        """Return its place after operation ``number`` (0: in the initial tree); None if a later shift put it in."""
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
        """Return whether operation ``number`` is one of the shifts that happened."""
        return any(shift.number == number for shift in self.there)


def origins(shifts: Sequence[Shift], at: int) -> Iterator[Origin]:
    """Yield each origin that the byte at ``at`` may have: any of ``shifts`` may have happened, or not."""
    for count in range(len(shifts) + 1):
        for there in combinations(shifts, count):
            yield Origin(at, there)
