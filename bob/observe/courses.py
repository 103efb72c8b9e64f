"""All legal states of whole writes, divided by the course that recovery takes in them.

Nothing is enumerated. The states that agree in all that was read so far are a cube (:mod:`bob.crash.cubes`); what is
read next divides it, by the contents that some of its states have there. A cube that arrives where nothing is read any
more has its outcome, all of its states at once. One that arrives where nothing is known is *open*: mount one of its
states, and it goes on from there. So mounts number the courses that recovery can take, not the states; and since the
cubes are apart, the states of which the outcome is known are counted exactly.

The idea is that of Jaaru (Gorjiara et al., ASPLOS 2021), which checks programs on persistent memory: branch where a
read could return something else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from bob.crash.cubes import Cube, Divider, LegalStates
from bob.crash.image import Composer
from bob.observe.predict import Gap, Indexes, ReadNode, ReadTree

MOST_FORGOTTEN = 64
"""Of fewer contents than this it is seen whether all of them were forgotten."""


@dataclass(frozen=True, slots=True)
class Course:
    """Legal states of which all have one ``outcome``, and how many they are."""

    cube: Cube
    outcome: int
    states: int


class Courses:
    """The division as far as it is made. ``known`` may learn more at any time, but see :meth:`reopen`.

    ``settled`` are the cubes whose outcome is known; ``open`` those that wait for a mount, by what they wait for: all
    that wait for one thing have the same contents in everything that was read.
    """

    def __init__(self, known: ReadTree, legal: LegalStates, composer: Composer) -> None:
        self.settled: list[Course] = []
        self.open: dict[Gap, list[Cube]] = {}
        self._given_up = False
        self._known = known
        self._legal = legal
        self._composer = composer
        self._divider = Divider(legal, composer)
        self._under_way: list[Iterator[tuple[Cube, ReadNode | Gap]]] = [iter([(Cube(), known.root)])]

    def advance(self, most_open: int, steps: int) -> int:
        """Divide until all is divided, ``most_open`` gaps are open or ``steps`` parts were made; how many were made."""
        made = 0
        while self._under_way and len(self.open) < most_open and made < steps:
            arrived = next(self._under_way[-1], None)
            if arrived is None:
                self._under_way.pop()
                continue
            made += 1
            cube, at = arrived
            if isinstance(at, Gap):
                self.open.setdefault(at, []).append(cube)
            elif at.outcome is not None:
                self.settled.append(Course(cube, at.outcome, self._legal.count(cube)))
            else:
                self._under_way.append(self._divided(cube, at))
        return made

    def reopen(self, gap: Gap) -> None:
        """Go on with the cubes that waited for ``gap``, of which more is known now."""
        # Where something was forgotten, what was learnt may be elsewhere than the gap.
        begin = self._known.root if self._known.forgets else _after(gap)
        self._under_way.append(iter([(cube, begin) for cube in self.open.pop(gap)]))

    def give_up(self, steps: int) -> None:
        """Settle what is known of the rest already, by ``steps`` more parts at most. What is open is not kept: nothing
        will be mounted for it, and there may be some ten thousand gaps, of 4 KB each."""
        while self.open or (self._under_way and steps > 0):
            self._given_up = self._given_up or bool(self.open)
            self.open.clear()
            steps -= self.advance(1, steps)

    @property
    def is_complete(self) -> bool:
        """Whether every legal state is settled."""
        return not self._under_way and not self.open and not self._given_up

    def _divided(self, cube: Cube, node: ReadNode) -> Iterator[tuple[Cube, ReadNode | Gap]]:
        if node.places is None:
            yield cube, Gap(node, b"")
            return
        parts = ((part, self._at(part, node, node.places)) for part in self._divider.divide(cube, node.places))
        if node.forgets:
            first = list(islice(parts, MOST_FORGOTTEN))
            if len(first) < MOST_FORGOTTEN and len({id(at) for _part, at in first}) == 1:
                yield cube, first[0][1]
                return
            yield from first
        yield from parts

    def _at(self, part: Cube, node: ReadNode, places: Indexes) -> ReadNode | Gap:
        return _after(Gap(node, self._composer.contents(self._legal.some(part))[places].tobytes()))


def _after(gap: Gap) -> ReadNode | Gap:
    """Where states with this gap go on: nowhere yet, unless something was learnt since."""
    if gap.content:
        return gap.node.by_content.get(gap.content, gap)
    return gap if gap.node.places is None and gap.node.outcome is None else gap.node
