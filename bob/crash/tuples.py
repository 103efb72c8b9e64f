"""The order in which bob checks the possible states of a cluster. Such a state is a *tuple*: a tree of files for each
node, and how much the client had been told. The client counts as the last node, and its states are its outputs so far.

A node is *behind* in a tuple if its tree is not the newest one that goes together with what the client was told. The
newest tree is the one whose last write to the disk is the latest. So a node that is behind may have lost what was
acknowledged. The fewer nodes have to be behind, the more a cluster should survive it, and the more telling is a
failure."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations, product
from random import Random

from bob.crash.cuts import Cuts, Interval, NodeStates, count_tuples
from bob.crash.drafts import interleave

Chosen = tuple[int, ...]  # for each node, the number of its tree; last, the number of outputs before the crash


class PossibleTuples:
    """The possible tuples. ``trees`` has, for each node, the moments at which each of its trees is possible, and
    ``told`` has the moments between two outputs of the client. ``seed`` gives the order of tuples that tell as much."""

    def __init__(self, cuts: Cuts, trees: Sequence[NodeStates], told: Sequence[Interval], seed: int) -> None:
        self.cuts, self.seed = cuts, seed
        self.states: tuple[NodeStates, ...] = (*trees, [[one] for one in told])

    @property
    def nodes(self) -> int:
        return len(self.states) - 1

    @cached_property
    def possible(self) -> int:
        """The exact number of possible tuples."""
        return sum(self.possible_after(told) for told in range(len(self.states[-1])))

    def possible_after(self, told: int) -> int:
        """Return the number of possible tuples in which the client was told ``told`` outputs."""
        return count_tuples(self.cuts, (*self.states[:-1], [self.states[-1][told]]))

    def is_possible(self, chosen: Chosen) -> bool:
        return count_tuples(self.cuts, self._alone(chosen)) > 0

    def in_order(self) -> Iterator[Chosen]:
        """Yield each possible tuple, those in which few nodes are behind first, and of these the ones in which the
        client was told most."""
        outputs = range(len(self.states[-1]))[::-1]
        for size in range(self.nodes + 1):
            yield from interleave(self._with_behind(told, one) for told in outputs for one in self._sets(told, size))

    def behind(self, chosen: Chosen) -> tuple[int, ...]:
        """Return the nodes that are behind in the tuple ``chosen``."""
        newest = self._newest(chosen[-1])
        return tuple(node for node in range(self.nodes) if chosen[node] != newest[node])

    def _sets(self, told: int, size: int) -> list[tuple[int, ...]]:
        found = list(combinations(range(self.nodes), size))
        Random(f"{self.seed} behind {told}").shuffle(found)
        return found

    def _with_behind(self, told: int, behind: Sequence[int]) -> Iterator[Chosen]:
        newest, random = self._newest(told), Random(f"{self.seed} tuples {told} {behind}")
        choices = []
        for node, states in enumerate(self.states[:-1]):
            older = [number for number in range(len(states)) if number != newest[node]]
            random.shuffle(older)
            choices.append(older if node in behind else [newest[node]] if newest[node] >= 0 else [])
        yield from filter(self.is_possible, ((*trees, told) for trees in product(*choices)))

    def _newest(self, told: int) -> tuple[int, ...]:
        if told not in self._newest_of:
            self._newest_of[told] = tuple(self._newest_tree(node, told) for node in range(self.nodes))
        return self._newest_of[told]

    @cached_property
    def _newest_of(self) -> dict[int, tuple[int, ...]]:
        return {}

    def _newest_tree(self, node: int, told: int) -> int:
        """Return the newest tree of a node after ``told`` outputs, or -1 if none is possible then."""
        [when] = self.states[-1][told]
        found = [
            (one.first, number)
            for number, intervals in enumerate(self.states[node])
            for one in intervals
            if self.cuts.go_together(node, one, self.nodes, when)
        ]
        return max(found, default=(0, -1))[1]

    def _alone(self, chosen: Chosen) -> list[NodeStates]:
        return [[of_node[number]] for of_node, number in zip(self.states, chosen, strict=True)]


def widest(intervals: Sequence[Interval]) -> tuple[Interval, ...]:
    """Return ``intervals`` without those that lie in another one, in ascending order."""
    found: list[Interval] = []
    for one in sorted(set(intervals), key=lambda each: (each.first, -each.last)):
        if not found or one.last > found[-1].last:
            found.append(one)
    return tuple(found)
