"""Sets of legal crash states of whole writes, counted and divided without listing them.

A *cube* fixes some writes, on the medium or lost, and leaves the others open. All that can be read off a device divides
the legal states into cubes: the content of a sector tells which of the writes that cover it landed last, that is, one
write that is there and later ones that are not. So what a course of recovery has read so far is a cube, and how many
legal states would take that course is the count of the cube, exact however large.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from bob.crash.drafts import View, mask, settled
from bob.crash.image import Composer
from bob.crash.state import CrashState


@dataclass(frozen=True, slots=True)
class Cube:
    """The legal states with every write of ``kept`` and none of ``lost`` (bit masks over write indexes)."""

    kept: int = 0
    lost: int = 0

    def __contains__(self, medium: int) -> bool:
        """Whether a legal state with the writes ``medium`` is one of these."""
        return not self.kept & ~medium and not self.lost & medium


class LegalStates:
    """The legal states of whole writes at the growth points ``views``."""

    def __init__(self, views: Sequence[View]) -> None:
        self._views = views
        self._becoming = [sum(1 << index for index in point.becoming) for point in views]

    def count(self, cube: Cube) -> int:
        """How many states are in ``cube``; of the whole, ``Cube()``, as many as ``count_writes`` says."""
        return sum(self._counts(cube))

    def medium(self, state: CrashState) -> int:
        """The writes that are on the medium in ``state``, durable ones included."""
        return self._views[state.point].durable | mask(state.kept)

    def some(self, cube: Cube) -> CrashState:
        """A state of ``cube``, which has one, that is easy to explain: with no write after the last that it must have,
        and before that one with all that it may have."""
        point = next(point for point, count in zip(self._views, self._counts(cube), strict=True) if count)
        below = (1 << (cube.kept & ~point.durable).bit_length()) - 1
        return settled(self._views, point.durable | cube.kept | (point.pending & below & ~cube.lost))

    def sample(self, cube: Cube, random: Random) -> CrashState:
        """A state of ``cube``, which has one, each as likely as any other."""
        counts = self._counts(cube)
        number = random.randrange(sum(counts))
        at = 0
        while number >= counts[at]:
            number -= counts[at]
            at += 1
        point, becoming = self._views[at], self._becoming[at]
        free = point.pending & ~cube.kept & ~cube.lost
        while True:  # half of all subsets at least are states of this point and not of the next
            chosen = free & random.getrandbits(free.bit_length() + 1)
            medium = point.durable | cube.kept | chosen
            if not becoming or becoming & ~medium:
                return settled(self._views, medium)

    def _counts(self, cube: Cube) -> list[int]:
        return [self._count(point, becoming, cube) for point, becoming in zip(self._views, self._becoming, strict=True)]

    def _count(self, point: View, becoming: int, cube: Cube) -> int:
        """The states of ``cube`` at this point, less those that come again at the next (as in ``bob.crash.legal``)."""
        if cube.kept & ~(point.durable | point.pending) or cube.lost & (point.durable | cube.kept):
            return 0
        free = point.pending & ~cube.kept & ~cube.lost
        every: int = 1 << free.bit_count()
        return every if not becoming or becoming & cube.lost else every - (1 << (free & ~becoming).bit_count())


class Divider:
    """Divides cubes by what is in sectors; ``composer`` says which writes touch these."""

    def __init__(self, legal: LegalStates, composer: Composer) -> None:
        self._legal = legal
        self._layers = composer.layers()
        self._groups: dict[bytes, tuple[tuple[int, ...], ...]] = {}

    def divide(self, cube: Cube, places: NDArray[np.intp]) -> Iterator[Cube]:
        """The parts of ``cube`` in which each of the sectors ``places`` has one content, one by one as asked for:
        they may be very many.

        None is without states, two may have equal contents. ``places`` are indexes into ``composer.sectors``.
        """
        yield from self._divide(cube, self._writes_at(places))

    def _divide(self, cube: Cube, lists: tuple[tuple[int, ...], ...]) -> Iterator[Cube]:
        if not lists:
            yield cube
            return
        for part in self._by_last(cube, lists[0]):
            yield from self._divide(part, lists[1:])

    def _writes_at(self, places: NDArray[np.intp]) -> tuple[tuple[int, ...], ...]:
        """The different lists of writes, as masks in submission order, that touch these sectors."""
        key = places.tobytes()
        if key not in self._groups:
            self._groups[key] = tuple(dict.fromkeys(self._layers[place] for place in places.tolist()))
        return self._groups[key]

    def _by_last(self, cube: Cube, writes: tuple[int, ...]) -> Iterator[Cube]:
        """The parts of ``cube`` by which of ``writes`` landed last, or that none did."""
        lost = cube.lost
        for write in reversed(writes):
            if write & cube.kept:
                break
            if not write & lost:
                part = Cube(cube.kept | write, lost)
                if self._legal.count(part):
                    yield part
                lost |= write
        part = Cube(cube.kept, lost)
        if lost == cube.lost or self._legal.count(part):
            yield part
