"""The offsets that a byte of a file may come from, if fallocate(2) shifts contents. fallocate(2) takes ranges out of
the file (FALLOC_FL_COLLAPSE_RANGE), or inserts ranges of zeros (FALLOC_FL_INSERT_RANGE). Offsets and lengths are in
bytes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True, slots=True)
class Shift:
    """A shift by operation ``number``, which inserts ``length`` bytes at ``offset``. If ``length`` is negative, the
    operation removes bytes at ``offset``."""

    number: int
    offset: int
    length: int

    def origin(self, at: int) -> int | None:
        """Return the old offset, before the shift, of the byte that is now at ``at``; None if the shift inserted the
        byte."""
        if at < self.offset:
            return at
        return at - self.length if at >= self.offset + self.length else None

    def moved(self, at: int) -> int:
        """Return the new offset, after the shift, of a boundary that was at ``at``. A boundary is the end of the file,
        or an end of a range in the file."""
        return at if at <= self.offset else max(self.offset, at + self.length)


@dataclass(frozen=True, slots=True)
class Origin:
    """One explanation of the byte that a crash left at offset ``at``. ``there`` has the shifts that survived the crash,
    in program order. All other shifts of the workload were lost."""

    at: int
    there: tuple[Shift, ...] = ()

    def after(self, number: int) -> int | None:
        """Return the offset that the byte had after operation ``number`` (0: in the initial tree). Return None if a
        later shift inserted the byte."""
        at: int | None = self.at
        for shift in reversed(self.there):
            if shift.number <= number or at is None:
                break
            at = shift.origin(at)
        return at

    @property
    def put_in_by(self) -> int | None:
        at = self.at
        for shift in reversed(self.there):
            before = shift.origin(at)
            if before is None:
                return shift.number
            at = before
        return None

    def has(self, number: int) -> bool:
        return any(shift.number == number for shift in self.there)


def origins(shifts: Sequence[Shift], at: int) -> Iterator[Origin]:
    """Yield each origin that the byte at ``at`` may have. A crash may have left out any of ``shifts``."""
    for count in range(len(shifts) + 1):
        for there in combinations(shifts, count):
            yield Origin(at, there)
