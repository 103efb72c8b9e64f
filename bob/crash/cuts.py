"""Crash states of a cluster's nodes that belong together. A *node* is a member of the cluster. A *cut* gives each node
a moment, and the node does nothing after its moment. A cut is *consistent* if each message that was received by the
receiver's moment was sent by the sender's moment (the paper PACE, section 2.2). The moments of a consistent cut may be
different times, because a message may take any time.

A state of a node is possible at some moments of this node, which form intervals. A tuple has a state for each node. It
is possible if its states are possible at the moments of some consistent cut."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from bob.trace.messages import Message

NEVER = -1  # a moment before all others: messages have times from 0 on


class CutKind(StrEnum):
    """The cuts that bob looks at: all consistent ones, or only those with the same moment for all nodes."""

    ANY = "any"
    INSTANT = "instant"


class Interval(NamedTuple):
    """The moments from ``first`` to ``last``, which both belong to the interval."""

    first: int
    last: int


class Cuts:
    """The consistent cuts of ``nodes`` nodes that exchanged ``messages``. If ``messages`` is None, there are only the
    cuts at one instant, in which all nodes have the same moment. Such cuts are consistent, whatever the messages
    are."""

    def __init__(self, nodes: int, messages: Iterable[Message] | None) -> None:
        self.nodes = nodes
        self._is_instant = messages is None
        self._received: list[list[int]] = [[] for _ in range(nodes)]
        self._needed: list[list[tuple[int, ...]]] = [[(NEVER,) * nodes] for _ in range(nodes)]
        for message in sorted(messages or (), key=lambda one: one.received):
            self._received[message.receiver].append(message.received)
            needed = list(self._needed[message.receiver][-1])
            needed[message.sender] = max(needed[message.sender], message.sent)
            self._needed[message.receiver].append(tuple(needed))
        self.earliest = cache(self._earliest)

    def _earliest(self, node: int, moment: int) -> tuple[int, ...]:
        """Return the earliest moment of each node in a consistent cut where ``node`` has at least ``moment``."""
        if self._is_instant:
            return (moment,) * self.nodes
        found = [NEVER] * self.nodes
        found[node] = moment
        changed = {node}
        while changed:
            receiver = changed.pop()
            needed = self._needed[receiver][bisect_right(self._received[receiver], found[receiver])]
            for sender, least in enumerate(needed):
                if least > found[sender]:
                    found[sender] = least
                    changed.add(sender)
        return tuple(found)

    def go_together(self, node: int, one: Interval, other: int, another: Interval) -> bool:
        """Return whether some consistent cut has its moment for node number ``node`` in the interval ``one``, and its
        moment for node number ``other`` in the interval ``another``."""
        return (
            self.earliest(node, one.first)[other] <= another.last
            and self.earliest(other, another.first)[node] <= one.last
        )

    def allow(self, intervals: Sequence[Interval]) -> bool:
        """Return whether some consistent cut has a moment in each of ``intervals``, one interval for each node.

        It is enough to check pairs of nodes, since the maximum of consistent cuts (for each node, the latest of its
        moments) is consistent too."""
        return all(
            self.go_together(node, one, other, intervals[other])
            for node, one in enumerate(intervals)
            for other in range(node + 1)
        )

    def cut(self, intervals: Sequence[Interval]) -> tuple[int, ...]:
        """Return the earliest consistent cut that has a moment in each of ``intervals``, which :meth:`allow` allows."""
        each = [self.earliest(node, one.first) for node, one in enumerate(intervals)]
        return tuple(map(max, zip(*each, strict=True)))


NodeStates = Sequence[Sequence[Interval]]
"""The distinct states of a node. Each is given by intervals: the moments when it is possible."""


def fitting(cuts: Cuts, allowed: Iterable[tuple[int, Sequence[Interval]]]) -> list[tuple[Interval, ...]]:
    """Return each choice of an interval for each node so that some consistent cut lies in all of them. ``allowed`` has
    the numbers of nodes, each with the intervals to choose from. Other nodes may have any moment."""
    found: list[tuple[tuple[int, Interval], ...]] = [()]
    for node, intervals in allowed:
        found = [
            (*before, (node, one))
            for before in found
            for one in intervals
            if all(cuts.go_together(node, one, other, another) for other, another in (*before, (node, one)))
        ]
    return [tuple(interval for _node, interval in one) for one in found]


def intervals_of(cuts: Cuts, states: Sequence[NodeStates], chosen: Sequence[int]) -> tuple[Interval, ...]:
    """Return an interval for each node, so that some consistent cut lies in all of them. ``chosen`` is a possible
    tuple: for each node, the index of its state in ``states``."""
    return fitting(cuts, enumerate(of_node[one] for of_node, one in zip(states, chosen, strict=True)))[0]


def count_tuples(cuts: Cuts, states: Sequence[NodeStates]) -> int:
    """Return the exact number of possible tuples."""
    return _TupleCount(cuts, states).count()


class _TupleCount:
    def __init__(self, cuts: Cuts, states: Sequence[NodeStates]) -> None:
        self._cuts, self._states = cuts, states
        self._last: list[tuple[Interval, int]] = []  # each interval of the last node, with the number of its state
        self._fitting: dict[tuple[int, Interval], int] = {}

    def count(self) -> int:
        """Return the number of possible tuples. To be fast, look at all states of the last node at once."""
        if not self._states:
            return 1
        self._last = [(interval, number) for number, intervals in enumerate(self._states[-1]) for interval in intervals]
        last = len(self._states) - 1
        alone = (self._cuts.go_together(last, one, last, one) for one, _state in self._last)
        return self._count([((), sum(int(one) << place for place, one in enumerate(alone)))], 0)

    def _count(self, choices: list[tuple[tuple[Interval, ...], int]], node: int) -> int:
        """Return the number of possible tuples whose first nodes have some states. Each of ``choices`` has intervals
        for these nodes, and a bit mask of the last node's intervals that go together with them. ``node`` is the next
        node."""
        if node == len(self._states) - 1:
            fits = 0
            for _intervals, some in choices:
                fits |= some
            return len({state for place, (_interval, state) in enumerate(self._last) if fits >> place & 1})
        found = 0
        for intervals in self._states[node]:
            more = [
                ((*before, one), left)
                for before, some in choices
                for one in intervals
                if self._go_with(before, one) and (left := some & self._fits_last(node, one))
            ]
            found += self._count(more, node + 1) if more else 0
        return found

    def _fits_last(self, node: int, interval: Interval) -> int:
        """Return the intervals of the last node that go together with ``interval`` of ``node``, as a bit mask."""
        if (node, interval) not in self._fitting:
            last = len(self._states) - 1
            fits = (self._cuts.go_together(node, interval, last, other) for other, _state in self._last)
            self._fitting[node, interval] = sum(int(one) << place for place, one in enumerate(fits))
        return self._fitting[node, interval]

    def _go_with(self, before: tuple[Interval, ...], interval: Interval) -> bool:
        node = len(before)
        return self._cuts.go_together(node, interval, node, interval) and all(
            self._cuts.go_together(other, one, node, interval) for other, one in enumerate(before)
        )
