"""Rules of the paper PACE (OSDI'16, section 3.3) that spare checks of a cluster. A rule says which nodes are behind
(:mod:`bob.crash.tuples`) in the tuples that are worth a check. PACE has R1 and R2 for replicated state machines, where
a majority decides, and the log flows from the leader to the others. R3 to R5 are for other clusters.

A rule may leave out a tuple because another tuple shows the same. This *stand-in* has the same old trees on some of the
nodes, and the newest trees on the others. Messages may forbid the stand-in. Then bob keeps the tuple, even if it does
not follow the rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations


class PaceRule(StrEnum):
    """A rule. R1, R3, R4 and R5 say which nodes are behind, and no others: some exact majority, the master, one node
    that is not the master, or all. R2 says that a node of R1's majority leads."""

    MAJORITY = "R1"
    LEADER = "R2"
    MASTER = "R3"
    SLAVE = "R4"
    ALL = "R5"


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a cluster with the node ``master``. R1, R3, R4 and R5 set tuples aside: those that follow none of
    the ``rules``. If no node is behind, no rule sets the tuple aside.

    R1 is right only if no node is slow: in some cut, the newest trees after an output have what was acknowledged."""

    rules: tuple[PaceRule, ...] = ()
    master: int = 0

    @property
    def choosing(self) -> tuple[PaceRule, ...]:
        """The rules that set tuples aside."""
        return tuple(rule for rule in self.rules if rule is not PaceRule.LEADER)

    def allow(self, behind: Sequence[int], nodes: int) -> bool:
        """Return whether a tuple of ``nodes`` nodes follows a rule if the nodes ``behind`` are behind."""
        follows = {
            PaceRule.MAJORITY: len(behind) == majority(nodes),
            PaceRule.MASTER: list(behind) == [self.master],
            PaceRule.SLAVE: len(behind) == 1 and self.master not in behind,
            PaceRule.ALL: len(behind) == nodes,
        }
        return not self.choosing or not behind or any(follows[rule] for rule in self.choosing)

    def stand_ins(self, behind: Sequence[int], nodes: int) -> tuple[tuple[int, ...], ...]:
        """Return the stand-ins that must all be possible before bob sets aside a tuple that follows no rule. A stand-in
        is given by the nodes that keep their old trees.

        By R1, each majority alone shows what it shows together with more nodes. By R3 and R4, each node does."""
        found: list[tuple[int, ...]] = []
        if PaceRule.MAJORITY in self.rules and len(behind) > majority(nodes):
            found += combinations(behind, majority(nodes))
        found += [
            (node,) for node in behind if (PaceRule.MASTER if node == self.master else PaceRule.SLAVE) in self.rules
        ]
        return tuple(found)

    def late(self, behind: Sequence[int], nodes: int, number: int) -> int:
        """Return the node that starts after the others, so that it does not lead, or -1 if all nodes start together.
        ``number`` varies the choice. By R2, a node starts late that is not behind, if exactly a majority is behind. Of
        three nodes, one with an old tree leads then."""
        others = [node for node in range(nodes) if node not in behind]
        if PaceRule.LEADER in self.rules and len(behind) == majority(nodes) and others:
            return others[number % len(others)]
        return number % (nodes + 1) - 1


NO_RULES = Rules()


def majority(nodes: int) -> int:
    """Return the size of an exact majority, as PACE has it: half of the nodes, rounded up."""
    return (nodes + 1) // 2
