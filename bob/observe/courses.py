"""A division of all legal crash states with only whole writes. An *outcome* is what a mount of a crash state shows. If
recovery reads the same contents in two states, in the same order, the two states belong to the same *course*, and have
the same outcome.

bob simulates the reads of recovery one after the other. States that agree in everything that recovery has read so far
form a *cube* (:mod:`bob.crash.cubes`). The next read divides the cube into smaller cubes, one for each content that
recovery can find in the sectors. If bob does not know what recovery reads next, the cube is *open*: bob mounts one of
its states, and then continues the division. So bob needs one mount for each course, not for each state. The idea to
branch where a read could return another value is from Jaaru (Gorjiara et al., ASPLOS 2021)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from bob.crash.cubes import Cube, Divider, LegalStates
from bob.crash.image import Composer
from bob.observe.predict import Gap, Indexes, ReadNode, ReadTree

# If a read can find this many contents or more, bob does not check whether recovery forgets all of them.
MOST_FORGOTTEN = 64


@dataclass(frozen=True, slots=True)
class Course:
    """A ``cube`` of states. Recovery reads the same contents in all of them. ``states`` is their number, and
    ``outcome`` is the number of their common outcome."""

    cube: Cube
    outcome: int
    states: int


class Courses:
    """The division of the legal states so far. ``settled`` has the cubes with a known outcome. ``open`` has the cubes
    that wait for a mount, grouped by their *gap*. A gap is a point where bob does not know what recovery reads next:
    recovery has just read a content that it read there in no mounted state. ``known`` is the tree of recovery's reads
    in the mounted states."""

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
        """Divide cubes until ``most_open`` different gaps have cubes that wait, or until this call has made ``steps``
        smaller cubes. Return the number of cubes that the division made."""
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
        """Continue to divide the cubes that waited at ``gap``. The caller has mounted one of their states."""
        # After a merge of nodes, bob's new knowledge may be at another node than that of the gap.
        begin = self._known.root if self._known.forgets else _after(gap)
        self._under_way.append(iter([(cube, begin) for cube in self.open.pop(gap)]))

    def give_up(self, steps: int) -> None:
        """Finish the division without further mounts. Make at most ``steps`` more cubes, and settle those whose outcome
        bob knows already. Drop all open cubes, since there may be ten thousand gaps with such cubes, and each gap takes
        4 KB of memory."""
        while self.open or (self._under_way and steps > 0):
            self._given_up = self._given_up or bool(self.open)
            self.open.clear()
            steps -= self.advance(1, steps)

    @property
    def is_complete(self) -> bool:
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
    """Return the node that follows ``gap`` in the tree of reads. bob continues the division of the states at this node.
    If bob still does not know what recovery reads after the gap, return ``gap``."""
    if gap.content:
        return gap.node.by_content.get(gap.content, gap)
    return gap if gap.node.places is None and gap.node.outcome is None else gap.node
