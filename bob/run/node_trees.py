"""The distinct trees of files that crashes can leave on the disk of one node, a member of a cluster. Each tree comes
with the moments of the node when it is possible."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import blake2b

from bob.crash.cubes import Cube
from bob.crash.cuts import Interval
from bob.crash.drafts import mask
from bob.crash.members import NodeDisk
from bob.crash.state import CrashState, departure
from bob.crash.tuples import widest
from bob.observe.observation import Node
from bob.observe.observations import Observations

TreeSource = CrashState | Cube  # a crash state that leaves the tree, or a set of such states


@dataclass(frozen=True, slots=True)
class NodeTrees:
    """The trees of one node. ``outcomes`` has the number of each tree's observation in ``seen``. ``sources`` has the
    crash states that leave a tree, for each tree and each interval of moments when it is possible. If ``are_all`` is
    true, no legal crash state of whole writes leaves another tree, or such a tree at another moment."""

    disk: NodeDisk
    seen: Observations
    outcomes: tuple[int, ...]
    sources: tuple[dict[Interval, TreeSource], ...]
    are_all: bool

    @classmethod
    def of(cls, disk: NodeDisk, seen: Observations) -> NodeTrees:
        """Return the trees of the states in ``seen`` that mount."""
        found: dict[int, dict[Interval, TreeSource]] = {}
        for one in sorted(seen.states, key=lambda each: departure(each.state)):
            if one.outcome is not None and seen.findings.mounted(one.outcome):
                found.setdefault(one.outcome, {}).setdefault(disk.moments(one.state), one.state)
        for cube, outcome in seen.cubes:
            if seen.findings.mounted(outcome) and (moments := disk.moments_of(cube)) is not None:
                found.setdefault(outcome, {}).setdefault(moments, cube)
        kept = [{interval: sources[interval] for interval in widest([*sources])} for sources in found.values()]
        return cls(disk, seen, tuple(found), tuple(kept), bool(seen.cubes))

    @property
    def unmountable(self) -> int:
        """The number of explored states of the disk that do not mount."""
        refused = (one for one in self.seen.states if one.outcome is not None)
        return sum(one.states for one in refused if not self.seen.findings.mounted(one.outcome or 0))

    @property
    def torn_left(self) -> int:
        """The number of legal torn states of the disk whose trees bob does not know."""
        coverage = self.seen.coverage
        return max(0, coverage.legal_torn - sum(one.states - one.whole_states for one in self.seen.states))

    def tree_of(self, state: CrashState) -> int | None:
        """Return the number of the tree that ``state``, a state of whole writes, leaves. Return None if bob does not
        know it."""
        whole = self.disk.whole(state)
        alike = (one.outcome for one in self.seen.states if not one.state.torn and self.disk.whole(one.state) == whole)
        within = (outcome for cube, outcome in self.seen.cubes if mask(whole) in cube)
        found = next((one for some in (alike, within) for one in some if one is not None), None)
        return self.outcomes.index(found) if found in self.outcomes else None

    @property
    def files(self) -> tuple[bytes, ...]:
        """A digest of the files of each tree."""
        trees = (self.seen.findings.observation(one).tree or {} for one in self.outcomes)
        return tuple(blake2b(repr(sorted(tree.items())).encode(), digest_size=16).digest() for tree in trees)

    def state(self, tree: int, interval: Interval, moment: int) -> CrashState:
        """Return a crash state that leaves tree number ``tree`` at ``moment``, which is in ``interval``."""
        source = self.sources[tree][interval]
        return self.disk.state_at(source, moment) if isinstance(source, Cube) else source

    def nodes_below(self, tree: int, nodes: int) -> dict[str, Node]:
        """Return the files of tree number ``tree`` below the path /nK of this node, one of ``nodes``. No file has the
        inode number of a file on another disk. If the file system's numbers do not last, each name has another one."""
        found = self.seen.findings.observation(self.outcomes[tree]).tree or {}
        number, place = self.disk.number, f"/n{self.disk.number}"
        return {
            place if path == "/" else place + path: replace(node, inode=(node.inode or -name) * nodes + number)
            for name, (path, node) in enumerate(found.items(), 1)
        }

    def below(self, place: str, tree: int, chunks: int) -> dict[str, object]:
        """Return the tree number ``tree``, moved below the path ``place``, as JSON (:class:`OutcomeTable`). ``chunks``
        is added to the numbers of its contents."""
        found: dict[str, object] = {}
        for path, entry in json.loads(self.seen.findings.found[self.outcomes[tree]])["tree"].items():
            moved = dict(entry)
            if "content" in moved:
                moved["content"] = [number + chunks for number in moved["content"]]
            if "xattrs" in moved:
                moved["xattrs"] = {name: number + chunks for name, number in moved["xattrs"].items()}
            found[place if path == "/" else place + path] = moved
        return found
