"""Predictions of a crash state's outcome from the reads of recovery in other states.

Recovery, repair and bob's look at the files are together a deterministic program, which knows the device only by its
reads. Suppose that bob has seen all reads of this program in one state. If a second state has the same contents in all
sectors of these reads, the program does the same in the second state, and the outcome is the same.

* bob takes *all* reads into account, beginning when the state is on the disk, and ending when the unmount has ended.
  All these reads reach the device as bios. The page cache hides none of them, since the kernel drops it at the last
  close of the device.
* If recovery writes a sector and then reads it, bob ignores that read: earlier reads determine the sector's content. A
  bio counts as earlier if the kernel queued it earlier. That is correct, since the kernel does not read a sector as
  long as a write of the same sector is under way.
* bob predicts nothing from a *repaired* state. If the mounts of several states fail with the same error, bob runs the
  file system's repair only on the first of these states.

Some file systems *forget* what was on the disk. For example, the log of xfs describes new contents of blocks. Recovery
reads each such block from its place on the disk. If the content on the disk is not newer than the log, recovery
overwrites this content with the content from the log. The reads of all mounted states form a tree: a node stands for
one read, and its children stand for the contents that the read found. Suppose that two states differ only in the
content that one read finds. Suppose also that recovery of both then reads in the same places, and leaves the same
contents on the disk. Then both contents lead to the same node. So bob needs n + 1 mounts for n blocks that recovery
forgets, not 2^n. bob merges nodes only for a file system whose field ``forgets`` says that recovery treats each block
by itself. To check these assumptions, bob mounts some predicted states as controls."""

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
Indexes = NDArray[np.intp]  # indexes into these sectors


class Contradiction(Exception):
    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"outcome {one} and outcome {other}")
        self.one, self.other = one, other


@dataclass(slots=True, eq=False)
class ReadNode:
    """A node of the tree of reads. It stands for all states whose reads so far had the same contents, apart from
    contents that recovery has forgotten. In all these states, recovery next reads the sectors ``places`` (indexes). A
    node with ``places`` has a child for each content that recovery found there (``by_content``). If the node
    ``forgets``, several contents may lead to the same child. A node without further reads has an ``outcome``;
    ``source`` is the caller's number of the mounted state that had this outcome. ``left`` says what recovery left on
    the disk (None: the file system forgets nothing)."""

    places: Indexes | None = None
    by_content: dict[bytes, ReadNode] = field(default_factory=dict)
    outcome: int | None = None
    left: Leftovers | None = None
    forgets: bool = False
    source: int = -1


@dataclass(frozen=True, slots=True)
class Gap:
    """The point where a state leaves the known part of the tree of reads. At ``node``, recovery reads certain sectors
    next. The state has ``content`` in them, and no mounted state had this content there."""

    node: ReadNode
    content: bytes


class _Learnt(NamedTuple):
    contents: Contents
    read: tuple[Indexes, ...]
    outcome: int
    left: Leftovers | None
    source: int


class ReadTree:
    """The tree of the reads of a workload's mounted states, which begins with the node ``root``. bob assigns a mounted
    state to a node by the state's contents in the node's sectors. bob does so even if recovery of this state read these
    sectors later, or not at all. This costs some predictions, but never makes one wrong. ``forgets`` is True if several
    contents lead to one child somewhere in the tree."""

    def __init__(self, forgettable: NDArray[np.bool_] | None = None) -> None:
        self.root = ReadNode()
        self._forgettable = forgettable
        self.forgets = False
        self._learnt: list[_Learnt] = []
        self._partings: list[tuple[ReadNode, bytes, Contents]] = []

    def find(self, contents: Contents, gap: Gap | None = None) -> int | Gap:
        """Return the outcome of a state. If the tree does not have the outcome, return the gap where the state leaves
        the tree. ``gap`` is the result of an earlier call for this state; the search goes on from there."""
        found = self.leaf(contents, gap)
        if isinstance(found, Gap):
            return found
        assert found.outcome is not None
        return found.outcome

    def leaf(self, contents: Contents, gap: Gap | None = None) -> ReadNode | Gap:
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
        """Add a mounted state with the ``outcome`` of its recovery. ``source`` is the caller's number of the state.
        ``read`` has the sectors that recovery read, in order, and each sector at most once (:func:`places_read`).
        ``left`` says what recovery left on the disk (None: the file system forgets nothing). Raises Contradiction if a
        state with the same reads had another outcome."""
        learnt = _Learnt(contents, tuple(read), outcome, left, source)
        self._place(learnt)
        if left is None:
            return
        self._learnt.append(learnt)
        # The new state may also show that an earlier difference between states made no difference in the end.
        while len(kept := [each for each in self._partings if not self._forget(*each)]) < len(self._partings):
            self._partings = kept
            for one in self._learnt:  # a merge of nodes may have cut this state off
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
                # If this state did not read what other states read here, it predicts only states with the same content
                # here. This makes fewer predictions, and no wrong one.
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
        mine = node.by_content[content]
        for other in node.by_content.values():
            if other is not mine and _end_alike(mine, other, contents):
                node.by_content[content] = other
                node.forgets = self.forgets = True
                return True
        return False


def _end_alike(one: ReadNode, other: ReadNode, contents: Contents) -> bool:
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
    """Return what each access read: one array for each access, with indexes into the ascending ``sectors``. The arrays
    are sorted by the time when recovery used the data. If the first access to a sector is a read, the sector is in the
    array of that access and in no other. If the first access is a write, the sector is in no array. Accesses whose
    arrays would be empty are left out."""
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
    if left and np.array_equal(left[0], taken):  # nearly always, since recovery then reads the same sectors
        return list(left[1:])
    remaining = [places[~np.isin(places, taken)] for places in left]
    return [places for places in remaining if len(places)]
