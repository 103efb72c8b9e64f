"""The legal crash states, torn ones included, whose course of recovery (what recovery reads, in order) is known from
the mounted states. All states of one course have the same *outcome*: a mount of each shows the same.

A *part* is the smallest piece of a write that a tear can separate (:mod:`bob.crash.units`). The states are divided into
cubes (:mod:`bob.crash.cubes`). In a cube, some parts must be on the disk, some must not, and all others are free. If
recovery reads no sector of a write, a single cube contains the states for all ways to tear that write, and bob need not
list these ways."""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from bob.crash.cubes import Cube
from bob.crash.image import Composer, LandedSector
from bob.crash.units import WriteUnits
from bob.observe.courses import Course
from bob.observe.predict import Indexes, ReadNode, ReadTree

MOST_CUBES = 64
"""The most cubes for one content of several sectors. If there are more, bob knows fewer states, but none wrongly."""


class TornCourses:
    """A search for the courses of torn states. For each sector that differs between crash states
    (``Composer.sectors``), ``alone`` has the number of the part that writes to this sector. The number is -1 if several
    writes do so."""

    def __init__(self, parts: WriteUnits, composer: Composer) -> None:
        self._parts = parts
        layers_by_place = composer.layers
        # For each place that one write touches: the part that shows there, and the number of its content. For other
        # places -1.
        single = [layers[0] if len(layers) == 1 else None for layers in layers_by_place]
        self.alone = np.array([-1 if layer is None else self._number(layer) for layer in single], dtype=np.int64)
        self._content = np.array([-1 if layer is None else layer.content for layer in single], dtype=np.int32)
        # For each other place: part and content of each layer of writes, the last layer first.
        self._several = {
            place: [(self._number(layer), layer.content) for layer in reversed(layers)]
            for place, layers in enumerate(layers_by_place)
            if len(layers) != 1
        }

    def known(self, known: ReadTree) -> Iterator[Course]:
        """Yield the legal states whose outcome bob can predict from ``known`` (the tree of recovery's reads). They come
        as cubes with their outcomes. No state is in two of the cubes. If there are too many cubes, some states are left
        out. Do not keep all cubes: there may be 60,000 of them, of 4 KB each."""
        left: list[tuple[ReadNode, list[Cube], ReadNode | None, list[bytes]]] = [(known.root, [Cube()], None, [])]
        while left:
            node, cubes, before, contents = left.pop()
            if before is not None:
                cubes = self._leading(before, cubes, contents)
            if node.outcome is not None:
                yield from (Course(cube, node.outcome, self._parts.legal.count(cube)) for cube in cubes)
            elif node.places is not None and cubes:
                after: dict[int, tuple[ReadNode, list[bytes]]] = {}
                for content, child in node.by_content.items():
                    after.setdefault(id(child), (child, []))[1].append(content)
                left.extend((child, cubes, node, several) for child, several in after.values())

    def _leading(self, node: ReadNode, cubes: Sequence[Cube], contents: Sequence[bytes]) -> list[Cube]:
        assert node.places is not None
        found: list[Cube] = []
        for content in contents:
            found += self._showing(cubes, node.places, np.frombuffer(content, dtype=np.int32))[0]
        return sorted(found, key=self._parts.legal.count, reverse=True)[:MOST_CUBES] if node.forgets else found

    def showing(self, places: Indexes, contents: NDArray[np.int32]) -> list[Cube] | None:
        """Return all legal states that have these ``contents`` (numbers of contents) at ``places``, as cubes. Return
        None if that takes more than ``MOST_CUBES`` cubes."""
        cubes, is_all = self._showing([Cube()], places, contents)
        return cubes if is_all else None

    def _showing(self, cubes: Sequence[Cube], places: Indexes, contents: NDArray[np.int32]) -> tuple[list[Cube], bool]:
        """Divide ``cubes``, and return the cubes whose states have these ``contents`` at ``places``. Also return
        whether these are all such cubes, since the number of cubes has a limit."""
        alone = self.alone[places] >= 0
        there = alone & (self._content[places] == contents)
        lost = alone & ~there
        if contents[lost].any():  # neither what the only write puts there, nor the content without that write (0)
            return [], True
        kept, missing = self._mask(self.alone[places[there]]), self._mask(self.alone[places[lost]])
        found = [Cube(cube.kept | kept, cube.lost | missing) for cube in cubes]
        is_all = True
        for place, content in zip(places[~alone].tolist(), contents[~alone].tolist(), strict=True):
            # One by one: if a sector was written a thousand times with one content, there are a thousand cubes for each
            # cube.
            layers = self._several[place]
            found = list(islice((part for cube in found for part in _by_last(cube, layers, content)), MOST_CUBES + 1))
            if len(found) > MOST_CUBES:
                found.pop()
                is_all = False
        return [cube for cube in found if self._parts.legal.count(cube)], is_all

    def _number(self, layer: LandedSector) -> int:
        return self._parts.number(layer.write, layer.sector)

    def _mask(self, parts: NDArray[np.int64]) -> int:
        bits = np.zeros(self._parts.total, dtype=np.bool_)
        bits[parts] = True
        return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")


def _by_last(cube: Cube, layers: Sequence[tuple[int, int]], content: int) -> Iterator[Cube]:
    """Divide ``cube``, and yield the cubes whose states have ``content`` in one sector. ``layers`` are the writes to
    that sector, from the last to the first, each as the number of a part and the number of its content. The last of
    these writes that is on the disk decides the sector's content."""
    kept, lost = cube.kept, cube.lost
    for number, shown in layers:
        part = 1 << number
        if not part & lost:
            if shown == content:
                yield Cube(kept | part, lost)
            lost |= part
        if part & kept:
            return
    if content == 0:
        yield Cube(kept, lost)
