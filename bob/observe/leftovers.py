"""The disk that a crash state leaves after recovery, observation and unmount. bob compares such disks only for file
systems whose recovery *forgets*. Such a recovery replaces blocks that it has read, so their old contents no longer
matter (:mod:`bob.observe.predict`).

A *stretch* is a run of neighbouring sectors that the same writes of the recording change. The description of a disk has
the content of each stretch that recovery changed, and digests of the writes outside of stretches. The *exempt* area is
the file system's log, which is not needed after recovery. So bob ignores the content of two kinds of writes to this
area: writes outside of stretches, and writes after the last read of the disk. For example, xfs writes a log record with
a random number at its unmount."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bob.crash.image import Composer
from bob.observe.accesses import Access


@dataclass(frozen=True, slots=True)
class Leftovers:
    """The disk that a state left, as far as bob compares it. ``contents`` has the stretches that recovery changed, as
    pairs of the stretch's number and its content's number. ``late`` has the stretches in the exempt area that were
    written after the last read of the disk. If two disks differ only in stretches that are ``late`` on both, bob takes
    them as equal. ``written`` has the writes outside of stretches as (first sector, sectors, digest of the final
    content). The digest of a write in the exempt area is empty."""

    contents: frozenset[tuple[int, int]]
    late: frozenset[int]
    written: frozenset[tuple[int, int, str]]

    def is_alike(self, other: Leftovers) -> bool:
        differing = {stretch for stretch, _content in self.contents ^ other.contents}
        return self.written == other.written and differing <= self.late & other.late


NOTHING = range(0)

LONGEST = 64
"""The most sectors in a stretch. bob ignores longer stretches: they take long to check, and are data or a cleared part
of the log."""


class Stretches:
    """The stretches of the sectors that differ between crash states (``composer.sectors``). Stretches of more than
    ``LONGEST`` sectors are left out.

    ``forgettable`` says, for each sector of ``composer.sectors``, whether bob tests if recovery forgets its content.
    bob tests this for stretches outside of the ``exempt`` area, the log. It does not test the log: there, one part of a
    block decides whether recovery uses another part."""

    def __init__(self, composer: Composer, exempt: range = NOTHING) -> None:
        self.exempt = exempt
        writes = [tuple(layer.write for layer in layers) for layers in composer.layers]
        sectors = composer.sectors.tolist()
        runs: list[tuple[int, int]] = []
        for place, sector in enumerate(sectors):
            if place and sector == sectors[place - 1] + 1 and writes[place] == writes[place - 1]:
                first, count = runs[-1]
                runs[-1] = first, count + 1
            else:
                runs.append((sector, 1))
        self.runs = [run for run in runs if run[1] <= LONGEST]
        lengths = np.array([count for _first, count in runs], dtype=np.int64)
        is_outside = [sector >= exempt.stop or sector + count <= exempt.start for sector, count in runs]
        self.forgettable: NDArray[np.bool_] = np.repeat(
            (lengths <= LONGEST) & np.array(is_outside, dtype=bool), lengths
        )
        self._starts: NDArray[np.int64] = np.array([first for first, _count in self.runs], dtype=np.int64)
        self._ends: NDArray[np.int64] = np.array([first + count for first, count in self.runs], dtype=np.int64)

    def left(
        self,
        contents: Iterable[tuple[int, int]],
        elsewhere: Iterable[tuple[int, int, str]],
        accesses: Sequence[Access],
    ) -> Leftovers:
        """Return the leftovers of a state. ``contents`` has the changed stretches, as pairs of the stretch's number and
        its content's number. ``elsewhere`` has the writes outside of stretches, as (first sector, sectors, digest).
        ``accesses`` are the reads and writes in order."""
        last = max((number for number, access in enumerate(accesses) if access.reads), default=-1)
        late, written = set[int](), set(elsewhere)
        for number, access in enumerate(accesses):
            if not access.reads:
                first = int(np.searchsorted(self._ends, access.sector, side="right"))
                stop = int(np.searchsorted(self._starts, access.sector + access.sectors))
                if first >= stop and self._is_exempt(access.sector, access.sectors):
                    written.add((access.sector, access.sectors, ""))
                elif number > last:
                    late.update(place for place in range(first, stop) if self._is_exempt(*self.runs[place]))
        return Leftovers(frozenset(contents), frozenset(late), frozenset(written))

    def _is_exempt(self, sector: int, sectors: int) -> bool:
        return sector in self.exempt and sector + sectors <= self.exempt.stop
