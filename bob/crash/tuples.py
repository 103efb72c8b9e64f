"""The order of checks of a cluster's possible states. Such a state is a *tuple*: a tree of files for each node, and the
client's output so far. The client counts as the last node, and its outputs are its states.

A cut allows some trees of a node beside a given output. The newest of these trees has the latest last write to the
disk. A node with another tree is *behind* in the tuple: it may have lost acknowledged data. If few nodes are behind, a
cluster should survive, and a failure tells most."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from random import Random

from bob.crash.cuts import Cuts, Interval, NodeStates, count_tuples, fitting
from bob.crash.drafts import interleave
from bob.crash.rules import NO_RULES, Rules

Chosen = tuple[int, ...]  # for each node, the number of its tree; last, the number of outputs before the crash


class PossibleTuples:
    """The possible tuples. ``trees`` has the moments of each tree, for each node. ``told`` has the moments between two
    outputs of the client. ``seed`` gives the order of tuples that tell as much."""

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
        """Return the number of possible tuples after the first ``told`` outputs of the client."""
        return count_tuples(self.cuts, (*self.states[:-1], [self.states[-1][told]]))

    def possible_by(self, rules: Rules) -> int:
        """Return the exact number of possible tuples that ``rules`` do not set aside."""
        return sum(
            count_tuples(self.cuts, [*self._choices(told, behind), [self.states[-1][told]]])
            if rules.allow(behind, self.nodes)
            else sum(1 for _one in self._with_behind(told, behind, rules))
            for told in range(len(self.states[-1]))
            for size in range(self.nodes + 1)
            for behind in combinations(range(self.nodes), size)
        )

    def in_order(self, rules: Rules = NO_RULES) -> Iterator[Chosen]:
        """Yield each possible tuple that ``rules`` do not set aside. Tuples with few nodes behind come first, and, if
        equally many are behind, tuples with many outputs."""
        outputs = range(len(self.states[-1]))[::-1]
        for size in range(self.nodes + 1):
            yield from interleave(
                self._with_behind(told, one, rules) for told in outputs for one in self._sets(told, size)
            )

    def grid(self, nodes: tuple[int, int], answers: Mapping[Chosen, int | None]) -> tuple[str, ...]:
        """Return a row for each tree of the first of ``nodes``, with a letter for each tree of the second. The letter
        is "x" if a tuple with both trees has an answer other than 0, and "." if all such answers are 0. Without an
        answer, the letter is "?" if some cut has both trees, else a space. Trees are in the order of their first
        moments."""
        one, other = nodes
        found: dict[tuple[int, int], bool] = {}
        for chosen, answer in answers.items():
            pair = chosen[one], chosen[other]
            found[pair] = found.get(pair, False) or answer != 0
        orders = [
            [n for _moments, n in sorted((tuple(m), n) for n, m in enumerate(self.states[node]))] for node in nodes
        ]

        def letter(row: int, column: int) -> str:
            if (refused := found.get((row, column))) is not None:
                return "x" if refused else "."
            go_together = any(
                self.cuts.go_together(one, mine, other, theirs)
                for mine in self.states[one][row]
                for theirs in self.states[other][column]
            )
            return "?" if go_together else " "

        return tuple("".join(letter(row, column) for column in orders[1]) for row in orders[0])

    def behind(self, chosen: Chosen) -> tuple[int, ...]:
        """Return the nodes that are behind in the tuple ``chosen``."""
        newest = self._newest(chosen[-1])
        return tuple(node for node in range(self.nodes) if chosen[node] != newest[node])

    def _sets(self, told: int, size: int) -> list[tuple[int, ...]]:
        found = [*combinations(range(self.nodes), size)]
        Random(f"{self.seed} behind {told}").shuffle(found)
        return found

    def _with_behind(self, told: int, behind: Sequence[int], rules: Rules) -> Iterator[Chosen]:
        """Yield the possible tuples after ``told`` outputs in which exactly the nodes ``behind`` are behind, without
        those that ``rules`` set aside."""
        random, choices = Random(f"{self.seed} tuples {told} {behind}"), self._trees(told, behind)
        for older in choices:
            random.shuffle(older)
        asked = None if rules.allow(behind, self.nodes) else rules.stand_ins(behind, self.nodes)
        yield from self._spread((), choices, told, asked)

    def _spread(
        self,
        chosen: Chosen,
        choices: Sequence[Sequence[int]],
        told: int,
        asked: Sequence[Sequence[int]] | None,
    ) -> Iterator[Chosen]:
        """Yield the possible tuples that begin with the trees ``chosen``. The first ones differ in each other tree.
        Leave out those whose stand-ins ``asked`` are all possible (None: leave out none)."""
        if asked is not None and all(self._stand_in(chosen, one, told) for one in asked):
            return
        if len(chosen) == len(choices):
            yield (*chosen, told)
            return
        more = [(*chosen, tree) for tree in choices[len(chosen)] if self._go_together((*chosen, tree), told)]
        yield from interleave(self._spread(one, choices, told, asked) for one in more)

    def _stand_in(self, chosen: Chosen, nodes: Sequence[int], told: int) -> bool:
        """Return whether a tuple is possible with the newest trees, except that ``nodes`` have their trees of
        ``chosen``. ``chosen`` has the trees of the first nodes."""
        if any(node >= len(chosen) for node in nodes):
            return False
        trees = tuple(chosen[node] if node in nodes else tree for node, tree in enumerate(self._newest(told)))
        if (trees, told) not in self._possible:
            self._possible[trees, told] = -1 not in trees and self._go_together(trees, told)
        return self._possible[trees, told]

    @cached_property
    def _possible(self) -> dict[tuple[Chosen, int], bool]:
        return {}

    def _go_together(self, trees: Chosen, told: int) -> bool:
        """Return whether some consistent cut has the first nodes at these ``trees``, and the client at ``told``."""
        of_trees = ((node, self.states[node][tree]) for node, tree in enumerate(trees))
        return bool(fitting(self.cuts, [(self.nodes, self.states[-1][told]), *of_trees]))

    def _trees(self, told: int, behind: Sequence[int]) -> list[list[int]]:
        """Return, for each node, the trees that it may have if exactly the nodes ``behind`` are behind."""
        newest, choices = self._newest(told), []
        for node, states in enumerate(self.states[:-1]):
            older = [number for number in range(len(states)) if number != newest[node]]
            choices.append(older if node in behind else [newest[node]] if newest[node] >= 0 else [])
        return choices

    def _choices(self, told: int, behind: Sequence[int]) -> list[NodeStates]:
        each = zip(self.states, self._trees(told, behind), strict=False)
        return [[states[number] for number in numbers] for states, numbers in each]

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
            (one.first, one.last, number)
            for number, intervals in enumerate(self.states[node])
            for one in intervals
            if self.cuts.go_together(node, one, self.nodes, when)
        ]
        return max(found, default=(0, 0, -1))[2]


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes of tuples. Trees of a node with the same *signature* (what the node says after it recovered alone)
    are one class of trees. Tuples with the same classes of trees, and the same output, are one class. ``signatures``
    has, for each node, the signature of each tree."""

    signatures: tuple[tuple[str, ...], ...]

    def of(self, chosen: Chosen) -> tuple[object, ...]:
        """Return the class of a tuple, in a form that can be compared."""
        *trees, told = chosen
        return (*(of_node[tree] for of_node, tree in zip(self.signatures, trees, strict=True)), told)

    def in_order(self, tuples: Iterable[Chosen], seed: int) -> Iterator[Chosen]:
        """Yield ``tuples`` in another order: first the first tuple of each class, and then the others, which control
        the classes, in a random order."""
        seen: set[tuple[object, ...]] = set()
        others: list[Chosen] = []
        for one in tuples:
            if (kind := self.of(one)) in seen:
                others.append(one)
            else:
                seen.add(kind)
                yield one
        Random(f"{seed} controls of classes").shuffle(others)
        yield from others

    def decided(self, tuples: Iterable[Chosen], answers: Mapping[Chosen, object]) -> tuple[int, int, int]:
        """Return the number of classes of ``tuples``, the number of tuples that are decided, and the number of classes
        that are split. A class is split if some of its tuples have different ``answers``. Then only the tuples with an
        answer are decided. Otherwise, an answer decides all tuples of its class."""
        found: dict[tuple[object, ...], set[object]] = {}
        for one, answer in answers.items():
            found.setdefault(self.of(one), set()).add(answer)
        kinds: Counter[tuple[object, ...]] = Counter(map(self.of, tuples))
        alike = {kind for kind, some in found.items() if len(some) == 1}
        of_split = sum(self.of(one) not in alike for one in answers)
        return len(kinds), sum(kinds[kind] for kind in alike) + of_split, len(found) - len(alike)


def widest(intervals: Sequence[Interval]) -> tuple[Interval, ...]:
    """Return ``intervals`` without those that lie in another one, in ascending order."""
    found: list[Interval] = []
    for one in sorted(set(intervals), key=lambda each: (each.first, -each.last)):
        if not found or one.last > found[-1].last:
            found.append(one)
    return tuple(found)
