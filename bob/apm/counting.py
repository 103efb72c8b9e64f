"""Count the crash states that a model allows: exactly if that is quick, else a lower bound. A crash state consists of
*micro-operations*, which persist as a whole or not at all. The states are the down-sets of a partial order: if a set
has a member, it has all that the member needs. For independent parts of the order, the numbers are multiplied. A chain
of n members has n + 1 down-sets. For any other part, bob takes one member, and adds the number of down-sets with it to
the number without it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from bob.apm.model_states import CrashInterval, Lattice, places
from bob.apm.tree_digests import bits

MOST_STEPS = 200_000  # members that exact counting looks at before it stops, after some seconds
LARGEST_PART = 64  # members; a larger part gets a lower bound


@dataclass(frozen=True, slots=True)
class StateCount:
    states: int
    is_exact: bool


def count(lattice: Lattice, outputs: Sequence[bytes], most: int = MOST_STEPS) -> StateCount:
    """Count the crash states of a lattice. A crash state is a closed set of micro-operations together with the output
    before the crash; equal pairs count once. After about ``most`` steps, the result is only a lower bound."""
    counting = _Counter(lattice, most)
    # Most states are in the intervals that may lose most, so a lower bound leaves out the small intervals.
    ordered = sorted(places(lattice, outputs), key=lambda one: one.free.bit_count(), reverse=True)
    found: list[StateCount] = []
    for place in ordered:
        if counting.left <= 0:
            return StateCount(max(sum(one.states for one in found), 1), is_exact=False)
        found.append(counting.at(place))
    return StateCount(sum(one.states for one in found), all(one.is_exact for one in found))


class _Counter:
    """A counter of closed sets. After ``most`` steps, it no longer counts exactly, but gives lower bounds."""

    def __init__(self, lattice: Lattice, most: int) -> None:
        self._lattice, self.left = lattice, most
        self._known: dict[int, StateCount] = {}

    def at(self, place: CrashInterval) -> StateCount:
        """Return how many crash states of the interval ``place`` do not belong to an earlier interval. (An interval is
        the crashes between two returns of operations.)"""
        every = self._sets(place.free)
        must = place.must & place.base
        if not place.must or must & ~place.free:
            return every
        need_it, it_needs = 0, 0
        for at in bits(must):
            need_it |= self._lattice.needed_by[at]
            it_needs |= self._lattice.needs[at]
        none = self._sets(place.free & ~need_it)
        if every.is_exact and none.is_exact:
            return StateCount(every.states - none.states, is_exact=True)
        return StateCount(self._sets(place.free & ~it_needs).states, is_exact=False)

    def _sets(self, free: int) -> StateCount:
        self.left -= free.bit_count()
        return self._product(sum(1 << at for at in self._lattice.atoms(free)))

    def _product(self, members: int) -> StateCount:
        parts = [self._of_part(part) for part in self._parts(members)]
        return StateCount(prod(one.states for one in parts), all(one.is_exact for one in parts))

    def _parts(self, members: int) -> list[int]:
        found = []
        while members:
            part, new = 0, members & -members
            while new:
                part |= new
                near = 0
                for at in bits(new):
                    near |= self._lattice.needs[at] | self._lattice.needed_by[at]
                    self.left -= 1
                new = near & members & ~part
            found.append(part)
            members &= ~part
        return found

    def _of_part(self, part: int) -> StateCount:
        if part not in self._known:
            self._known[part] = self._divided(part)
        return self._known[part]

    def _divided(self, part: int) -> StateCount:
        size = part.bit_count()
        self.left -= size
        above = {at: (self._lattice.needed_by[at] & part).bit_count() for at in bits(part)}
        if sum(above.values()) == size * (size + 1) // 2:
            return StateCount(size + 1, is_exact=True)
        if size > LARGEST_PART or self.left <= 0:
            return StateCount(max(size + 1, 1 << self._apart(part)), is_exact=False)
        near = {at: above[at] + (self._lattice.needs[at] & part).bit_count() for at in above}
        most = max(near, key=lambda at: near[at])
        if_lost = self._product(part & ~self._lattice.needed_by[most])
        if_there = self._product(part & ~self._lattice.needs[most])
        return StateCount(if_lost.states + if_there.states, if_lost.is_exact and if_there.is_exact)

    def _apart(self, part: int) -> int:
        found = 0
        while part:
            at = part.bit_length() - 1
            part &= ~(self._lattice.needs[at] | self._lattice.needed_by[at])
            found += 1
        return found
