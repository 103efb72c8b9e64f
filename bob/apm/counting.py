"""How many crash states a model allows: exactly where that can be told soon, else at least so many.

The crash states are those of :func:`bob.apm.model_states.places`: at each place the sets of micro-operations that a
crash may lose, each with all that needs them. Of a partial order there are as many such sets as it has down-sets. Parts
of it that have nothing to do with each other multiply; of a chain of n there are n + 1; all else is divided by one of
its members: sets that lose it, and sets that do not. Where that takes too long, a part counts as what can be seen at
once: 2**n for n members of which none needs another one, and one more than its members at least. Sets are bit masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from bob.apm.model_states import CrashInterval, Lattice, places
from bob.apm.tree_digests import bits

MOST_STEPS = 200_000
"""So often a member is looked at before bob stops counting exactly: some seconds."""
LARGEST_PART = 64
"""A part with more members that is no chain is not divided."""


@dataclass(frozen=True, slots=True)
class StateCount:
    """So many crash states, or at least so many (``is_exact``)."""

    states: int
    is_exact: bool


def count(lattice: Lattice, outputs: Sequence[bytes], most: int = MOST_STEPS) -> StateCount:
    """The crash states of a lattice: different sets of micro-operations, each with what had been told. About
    ``most`` steps are taken at most."""
    counting = _Counter(lattice, most)
    # Where the freedom is large most of them are: what there is no time for is missing at the small places.
    ordered = sorted(places(lattice, outputs), key=lambda one: one.free.bit_count(), reverse=True)
    found: list[StateCount] = []
    for place in ordered:
        if counting.left <= 0:
            return StateCount(max(sum(one.states for one in found), 1), is_exact=False)
        found.append(counting.at(place))
    return StateCount(sum(one.states for one in found), all(one.is_exact for one in found))


class _Counter:
    """Counts sets, and the steps that this takes: ``left`` are those that there is time for."""

    def __init__(self, lattice: Lattice, most: int) -> None:
        self._lattice, self.left = lattice, most
        self._known: dict[int, StateCount] = {}

    def at(self, place: CrashInterval) -> StateCount:
        """The crash states of a place, that are of no earlier one."""
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
        """How many sets a crash may lose of the micro-operations that are ``free``."""
        self.left -= free.bit_count()
        return self._product(sum(1 << at for at in self._lattice.atoms(free)))

    def _product(self, members: int) -> StateCount:
        parts = [self._of_part(part) for part in self._parts(members)]
        return StateCount(prod(one.states for one in parts), all(one.is_exact for one in parts))

    def _parts(self, members: int) -> list[int]:
        """Members that have something to do with each other, directly or by others."""
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
        """So many members of a part of which none needs another one, at least."""
        found = 0
        while part:
            at = part.bit_length() - 1
            part &= ~(self._lattice.needs[at] | self._lattice.needed_by[at])
            found += 1
        return found
