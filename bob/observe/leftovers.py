"""What a crash state leaves behind when it was recovered, looked at and unmounted; see ``forgets`` in
:mod:`bob.observe.predict`.

It is told by *stretches*, the sectors in a row that the same writes touch, and elsewhere by what was written. Of an
area that is *exempt*, the log of a file system, two things are of no account: what is written to a stretch when nothing
is read any more (at its unmount xfs writes a log record with a random number in it), and what is written beside
stretches. Nothing comes of either: recovery is done with the log before it writes there. What is written late in other
places is evidence like all the rest: it is what recovery has made of the blocks, which may be written at the unmount.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bob.crash.image import Composer
from bob.observe.accesses import Access


@dataclass(frozen=True, slots=True)
class Leftovers:
    """The stretches that are not as they were before the state was built, by number, each with the number of its
    content (``contents``); the exempt ones that were written when nothing was read any more (``late``); and what was
    ``written`` elsewhere, as (first sector, sectors, digest of what is there in the end; none where that is exempt)."""

    contents: frozenset[tuple[int, int]]
    late: frozenset[int]
    written: frozenset[tuple[int, int, str]]

    def is_alike(self, other: Leftovers) -> bool:
        """Whether both left the same behind."""
        differing = {stretch for stretch, _content in self.contents ^ other.contents}
        return self.written == other.written and differing <= self.late & other.late


NOTHING = range(0)
"""No sectors: nothing is exempt."""

LONGEST = 64
"""Longer stretches (sectors) are left alone: to look at them takes long, and these are data, or a part of the log that
is cleared."""


class Stretches:
    """The stretches of the sectors that states of ``composer`` differ in, but the long ones; ``runs`` says where they
    are: (first sector, sectors), ascending. ``exempt`` are the sectors of the area that is exempt, which may be empty.

    ``forgettable`` says of each of ``composer.sectors`` whether recovery may forget what was there: it is in a stretch,
    and outside of the exempt area. Recovery takes each block by itself for which the log has something, and never a
    part of the log by itself: one part says what becomes of another."""

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
        """What was left behind: by the contents of stretches; by what was written ``elsewhere``, beside the stretches
        and what is exempt, as (first sector, sectors, digest); and by how the device was accessed."""
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
