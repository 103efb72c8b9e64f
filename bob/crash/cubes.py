"""Sets of legal crash states of whole writes, which bob counts and divides without a list of the states. A *cube* is
the set of all states that have some given writes on the medium, and lack some other given writes. A *growth point* is a
time when the set of possible states changes. bob can divide a cube by a sector. Then the sector has the data of the
same write in all states of a part."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from bob.crash.image import Composer
from bob.crash.state import CrashState


@dataclass(frozen=True, slots=True)
class Cube:
    """The legal states that have every write of ``kept`` and none of ``lost`` (bit masks over the indexes of
    writes)."""

    kept: int = 0
    lost: int = 0

    def __contains__(self, medium: int) -> bool:
        return not self.kept & ~medium and not self.lost & medium


@dataclass(frozen=True, slots=True)
class GrowthMasks:
    """A growth point (:mod:`bob.crash.legal`). The fields are bit masks of writes. ``durable`` has the writes that are
    durable at this time, and ``pending`` the writes that are pending. ``becoming`` has the pending writes that become
    durable next."""

    durable: int
    pending: int
    becoming: int


class LegalStates:
    """The legal states of whole writes at the growth points ``points``, the times when the set of possible states
    changes. ``state`` returns the crash state for the number of a point and a bit mask of the writes on the medium."""

    def __init__(self, points: Sequence[GrowthMasks], state: Callable[[int, int], CrashState]) -> None:
        self._points = points
        self._state = state

    def count(self, cube: Cube) -> int:
        """Return the number of legal states in ``cube``. For ``Cube()``, which excludes no state, this is the result of
        :func:`bob.crash.legal.count_writes`."""
        return sum(self._counts(cube))

    def some(self, cube: Cube) -> CrashState:
        """Return a state of the nonempty ``cube``. Up to the last write of ``kept``, it has all pending writes except
        for those in ``lost``. It lacks all later pending writes."""
        point = next(point for point, count in zip(self._points, self._counts(cube), strict=True) if count)
        below = (1 << (cube.kept & ~point.durable).bit_length()) - 1
        return self._settled(point.durable | cube.kept | (point.pending & below & ~cube.lost))

    def farthest(self, cube: Cube, away: int) -> CrashState:
        """Return the state of the nonempty ``cube`` that differs from a given state in the most writes. ``away`` is a
        bit mask of the writes on the medium in the given state."""
        found = [
            point.durable | cube.kept | (point.pending & ~cube.lost & ~away)
            for point, count in zip(self._points, self._counts(cube), strict=True)
            if count
        ]
        return self._settled(max(found, key=lambda medium: (medium ^ away).bit_count()))

    def sample(self, cube: Cube, random: Random) -> CrashState:
        """Return a random state of the nonempty ``cube``. All states of the cube are equally likely."""
        counts = self._counts(cube)
        number = random.randrange(sum(counts))
        at = 0
        while number >= counts[at]:
            number -= counts[at]
            at += 1
        point = self._points[at]
        free = point.pending & ~cube.kept & ~cube.lost
        # At least half of all subsets are states of this point and not of the next one, so this loop soon ends.
        while True:
            chosen = free & random.getrandbits(free.bit_length() + 1)
            medium = point.durable | cube.kept | chosen
            if not point.becoming or point.becoming & ~medium:
                return self._settled(medium)

    def _settled(self, medium: int) -> CrashState:
        number = 0
        while number + 1 < len(self._points) and not self._points[number + 1].durable & ~medium:
            number += 1
        return self._state(number, medium)

    def _counts(self, cube: Cube) -> list[int]:
        return [self._count(point, cube) for point in self._points]

    def _count(self, point: GrowthMasks, cube: Cube) -> int:
        if cube.kept & ~(point.durable | point.pending) or cube.lost & (point.durable | cube.kept):
            return 0
        free = point.pending & ~cube.kept & ~cube.lost
        every: int = 1 << free.bit_count()
        if not point.becoming or point.becoming & cube.lost:
            return every
        return every - (1 << (free & ~point.becoming).bit_count())


class Divider:
    """A divider of cubes by the contents of sectors. ``composer`` knows which writes go to each sector."""

    def __init__(self, legal: LegalStates, composer: Composer) -> None:
        self._legal = legal
        self._layers = [tuple(1 << layer.write for layer in layers) for layers in composer.layers]
        self._groups: dict[bytes, tuple[tuple[int, ...], ...]] = {}

    def divide(self, cube: Cube, places: NDArray[np.intp]) -> Iterator[Cube]:
        """Divide ``cube`` by several sectors, and yield the nonempty parts. ``places`` are the indexes of these sectors
        in ``composer.sectors``. All states of a part show the same write in each of these sectors, and so the same
        content. There may be very many parts. Two parts may have equal contents."""
        yield from self._divide(cube, self._writes_at(places))

    def _divide(self, cube: Cube, lists: tuple[tuple[int, ...], ...]) -> Iterator[Cube]:
        if not lists:
            yield cube
            return
        for part in self._by_last(cube, lists[0]):
            yield from self._divide(part, lists[1:])

    def _writes_at(self, places: NDArray[np.intp]) -> tuple[tuple[int, ...], ...]:
        key = places.tobytes()
        if key not in self._groups:
            self._groups[key] = tuple(dict.fromkeys(self._layers[place] for place in places.tolist()))
        return self._groups[key]

    def _by_last(self, cube: Cube, writes: tuple[int, ...]) -> Iterator[Cube]:
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
