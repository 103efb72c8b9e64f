"""The disk that a crash state leaves after recovery, observation and unmount; see ``forgets`` in
:mod:`bob.observe.predict`.

*Stretches* (runs of sectors with the same writes) describe that disk, and outside them the written content. The
*exempt* area, a file system's log, is not needed after recovery. So writes in it that are outside stretches, or after
the last read, do not count: xfs writes a log record with a random number at its unmount."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bob.crash.image import Composer
from bob.observe.accesses import Access


@dataclass(frozen=True, slots=True)
class Leftovers:
    """The traces of a state on a disk: the changed stretches, by number, each with the number of its content
    (``contents``). ``late`` stretches are exempt and written after the last read: they do not count. ``written`` has
    other writes as (first sector, sectors, digest of the final content; empty where exempt)."""

    contents: frozenset[tuple[int, int]]
    late: frozenset[int]
    written: frozenset[tuple[int, int, str]]

    def is_alike(self, other: Leftovers) -> bool:
        differing = {stretch for stretch, _content in self.contents ^ other.contents}
        return self.written == other.written and differing <= self.late & other.late


NOTHING = range(0)

LONGEST = 64
"""Sectors; longer stretches are ignored: they take long to check, and are data or a cleared part of the log."""


class Stretches:
    """The stretches of the sectors that differ between states of ``composer``, without the long ones. ``forgettable``
    marks the ``composer.sectors`` in a stretch outside the ``exempt`` ones: in the log, one part of a block decides
    about another."""

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
        """Return the leftovers; ``elsewhere`` has writes outside stretches as (first sector, sectors, digest)."""
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
