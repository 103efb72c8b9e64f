"""Predicts the outcome of a crash state from what recovery read in others.

Recovery, repair and the look at the tree are a deterministic program that knows of the device only what it reads. So a
state in which everything has the content that was read when another state was mounted takes the same course, and has
the same outcome: it need not be mounted.

What makes this sound, and what only makes fewer predictions:

- *All* reads count between the writing of the state and the end of its unmount: checks and repairs before a mount,
  the recovery, the look. They all reach the device as bios, since nothing is cached for it: the last close of a block
  device drops its page cache. The session holds the trace against the device's own count of sectors for each state.
- A sector that recovery wrote before it read it is left out: its content is a function of what was read before. The
  order is that in which bios are queued. The kernel does not read from the device what it is still writing there: it
  holds the page, or has waited. A read that is queued before a write of its sector counts, whichever comes first.
- Readahead reads more than is used, and jbd2 eight blocks at a time as it scans: more sectors must agree then.
- Accesses come in bios of many sectors. Each sector counts on its own, so that those that no state changes, those that
  were written, and the parts of a torn write are told apart.
- Sectors that are the same in all states of the workload need no comparing; the others are compared by content, not by
  the write that it came from.
- A state that was *repaired* is none to predict from: only the first state with a refusal is repaired, and one that is
  like it would be refused and not repaired.

Some file systems *forget* what was on the disk: xfs reads each block that its log has something for, brings it up to
date unless it is newer, and writes it back. Whether the block was old or new, what follows is the same. Where that was
seen, of two states that differ in one access only, that went on to read in the same places, and that left the same
behind, both contents lead on to the same node. So n such blocks take n + 1 mounts, not 2^n. This is done where the file
system's declaration says that recovery takes each block by itself.

That recovery is deterministic, and that it forgets, are assumptions. They are checked: states that were predicted are
mounted after all, see :mod:`bob.observe.rounds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bob.observe.accesses import Access
from bob.observe.leftovers import Leftovers

Contents = NDArray[np.int32]
"""A number for the content of each sector that differs between states (``Composer.contents``)."""
Indexes = NDArray[np.intp]
"""Which of these sectors, as indexes."""


class Contradiction(Exception):
    """Two states agree in all that was read of one of them, and have different outcomes (``one`` and ``other``)."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"outcome {one} and outcome {other}")
        self.one, self.other = one, other


@dataclass(slots=True, eq=False)
class ReadNode:
    """What is known of the states that agree in everything that was read on the way here and not forgotten.

    ``places`` are read next, and ``by_content`` says how it goes on. Where there is an ``outcome`` nothing is read any
    more that could differ; ``left`` says what was left behind, if that is known. A node with neither was never passed.
    ``forgets`` says that several contents lead on to one node. ``source`` is the number that the state was given of
    which an outcome was learnt.
    """

    places: Indexes | None = None
    by_content: dict[bytes, ReadNode] = field(default_factory=dict)
    outcome: int | None = None
    left: Leftovers | None = None
    forgets: bool = False
    source: int = -1


@dataclass(frozen=True, slots=True)
class Gap:
    """Where what is known of a state ends: no state with its ``content`` at what is read at ``node`` was mounted.

    Of two states with equal gaps, one may well predict the other once it is mounted. Of two with different ones, none
    does.
    """

    node: ReadNode
    content: bytes


class _Learnt(NamedTuple):
    """What :meth:`ReadTree.add` was told of a mounted state."""

    contents: Contents
    read: tuple[Indexes, ...]
    outcome: int
    left: Leftovers | None
    source: int


class ReadTree:
    """The mounted states of a workload, as a tree of what they read, in the order in which they read it.

    The order only gives the tree its shape: a state may have read in another order, or less than another one at the
    same node. ``find`` costs some microseconds for each read on the way, however many states there are. ``root`` is
    where all states begin; ``forgets`` says that some node forgets, which it can only at places that are
    ``forgettable``.
    """

    def __init__(self, forgettable: NDArray[np.bool_] | None = None) -> None:
        self.root = ReadNode()
        self._forgettable = forgettable
        self.forgets = False
        self._learnt: list[_Learnt] = []
        self._partings: list[tuple[ReadNode, bytes, Contents]] = []

    def find(self, contents: Contents, gap: Gap | None = None) -> int | Gap:
        """The outcome of a state, or where what is known of it ends. To go on from an earlier answer, give its gap."""
        found = self.leaf(contents, gap)
        if isinstance(found, Gap):
            return found
        assert found.outcome is not None
        return found.outcome

    def leaf(self, contents: Contents, gap: Gap | None = None) -> ReadNode | Gap:
        """As :meth:`find`, but the node that has the outcome."""
        node = self.root if gap is None else gap.node
        while node.outcome is None:
            content = b"" if node.places is None else contents[node.places].tobytes()
            child = node.by_content.get(content)
            if child is None:
                return Gap(node, content)
            node = child
        return node

    def add(
        self, contents: Contents, read: Sequence[Indexes], outcome: int, left: Leftovers | None = None, source: int = -1
    ) -> None:
        """Take in a mounted state: what it ``read``, in order and none of it twice, its outcome, and what it ``left``
        behind, where recovery forgets; ``source`` is its number, for who asks for a :meth:`leaf`.

        Raises Contradiction if another outcome was already known of a state like it.
        """
        learnt = _Learnt(contents, tuple(read), outcome, left, source)
        self._place(learnt)
        if left is None:
            return
        self._learnt.append(learnt)
        # What was learnt just now may also show of earlier ones that they made no difference.
        while len(kept := [each for each in self._partings if not self._forget(*each)]) < len(self._partings):
            self._partings = kept
            for one in self._learnt:  # what it was learnt of may lie where nothing leads any more
                if isinstance(self.find(one.contents), Gap):
                    self._place(one)

    def _place(self, learnt: _Learnt) -> None:
        contents, ahead = learnt.contents, list(learnt.read)
        node = self.root
        parted = False
        while node.outcome is None:
            if node.places is None:
                if not ahead:
                    node.outcome, node.left, node.source = learnt.outcome, learnt.left, learnt.source
                    break
                node.places, *ahead = ahead
            else:
                # Where this state did not read what others read here, it is known for this content only: fewer
                # predictions, and none that is wrong.
                ahead = _without(ahead, node.places)
            content = contents[node.places].tobytes()
            if not parted and node.by_content and content not in node.by_content:
                parted = True
                if learnt.left is not None and self._can_forget(node.places):
                    self._partings.append((node, content, contents))
            node = node.by_content.setdefault(content, ReadNode())
        if node.outcome != learnt.outcome:
            raise Contradiction(node.outcome, learnt.outcome)

    def _can_forget(self, places: Indexes) -> bool:
        return self._forgettable is None or bool(self._forgettable[places].all())

    def _forget(self, node: ReadNode, content: bytes, contents: Contents) -> bool:
        """Have ``content`` at ``node`` lead on to where another one leads, if it made no difference to the state with
        ``contents``; whether it did not."""
        mine = node.by_content[content]
        for other in node.by_content.values():
            if other is not mine and _end_alike(mine, other, contents):
                node.by_content[content] = other
                node.forgets = self.forgets = True
                return True
        return False


def _end_alike(one: ReadNode, other: ReadNode, contents: Contents) -> bool:
    """Whether a state with ``contents`` reads in the same places from both nodes on, and leaves the same behind."""
    while one.outcome is None or other.outcome is None:
        if one.places is None or other.places is None or not np.array_equal(one.places, other.places):
            return False
        content = contents[one.places].tobytes()
        if content not in one.by_content or content not in other.by_content:
            return False
        one, other = one.by_content[content], other.by_content[content]
    if one.left is None or other.left is None:
        return False
    return one.outcome == other.outcome and one.left.is_alike(other.left)


def places_read(sectors: NDArray[np.int64], accesses: Sequence[Access]) -> list[Indexes]:
    """Which of ``sectors`` (ascending) each access read, without those that were written or read before.

    In the order in which they were used, in which recovery makes up its mind; that decides nothing but the shape of the
    tree in ``ReadTree``. Accesses that read none of them are left out.
    """
    if not accesses:
        return []
    starts = np.array([access.sector for access in accesses], dtype=np.int64)
    ends = starts + np.array([access.sectors for access in accesses], dtype=np.int64)
    first, stop = np.searchsorted(sectors, starts), np.searchsorted(sectors, ends)
    done = np.zeros(len(sectors), dtype=np.bool_)
    read: list[tuple[int, Indexes]] = []
    for number in np.flatnonzero(first < stop).tolist():
        span = slice(int(first[number]), int(stop[number]))
        if accesses[number].reads:
            fresh = np.flatnonzero(~done[span]) + span.start
            if len(fresh):
                read.append((accesses[number].used, fresh))
        done[span] = True
    return [places for _used, places in sorted(read, key=lambda pair: pair[0])]


def _without(left: Sequence[Indexes], taken: Indexes) -> list[Indexes]:
    """``left`` without the places ``taken``, in their order."""
    if left and np.array_equal(left[0], taken):  # nearly always: recovery goes the same way
        return list(left[1:])
    remaining = [places[~np.isin(places, taken)] for places in left]
    return [places for places in remaining if len(places)]
