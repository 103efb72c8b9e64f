"""The presence oracle: of operation k, is nothing, a part or all to be seen in an observation?

Everything that bob says rests on this. An operation's effect is a handful of *facts* (a name refers to a thing, a range
of a file has these bytes, a file has this size, ...), each with its value before and after the operation, and the
values that later operations of the workload give it. A fact as observed is

- AFTER: it has the value that the operation gave it, or one that a later operation gave it;
- BEFORE: it has the value from before the operation;
- EITHER: both are the same, so that the observation cannot tell;
- NEITHER: it has a value that no point of the program gave it.

Where an observation cannot tell, bob gives the file system the benefit of the doubt: a false accusation is the worst
error (docs/design.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from bob.observe.observation import Node, Observation
from bob.workload import operations as ops
from bob.workload.history import History, Inode, Kind, Thing
from bob.workload.pattern import describe


class Presence(Enum):
    """How much of an operation's effect is there."""

    NONE = "none"
    PARTIAL = "partial"
    FULL = "full"
    UNDECIDED = "undecided"
    """The observation cannot tell none from full."""


class Fact(Enum):
    """One fact as observed; see the module's text."""

    BEFORE = "before"
    AFTER = "after"
    EITHER = "either"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact of an operation in an observation, in words for people."""

    fact: Fact
    about: str
    expected: str
    found: str


class Oracle:
    """The presence oracle of one recorded workload.

    ``inodes`` gives the inode number of each thing of the history where it is known (thing identity -> number): names
    that different things bear one after the other are told apart by it.
    """

    def __init__(self, history: History, inodes: Mapping[int, int]) -> None:
        self._history = history
        self._inodes = inodes
        self._bearers: dict[str, list[Thing]] = {}
        for thing in history.things:
            for name in thing.names:
                self._bearers.setdefault(name, []).append(thing)

    def presence(self, number: int, observation: Observation) -> Presence:
        """How much of operation ``number`` (1, 2, ...) is there in ``observation`` (which has a tree)."""
        facts = {finding.fact for finding in self.findings(number, observation)}
        if Fact.NEITHER in facts or {Fact.BEFORE, Fact.AFTER} <= facts:
            return Presence.PARTIAL
        if Fact.BEFORE in facts:
            return Presence.NONE
        return Presence.FULL if Fact.AFTER in facts else Presence.UNDECIDED

    def presences(self, observation: Observation) -> tuple[Presence, ...]:
        """The presence of every operation: that of operation k at ``[k - 1]``."""
        return tuple(self.presence(number + 1, observation) for number in range(len(self._history.operations)))

    def findings(self, number: int, observation: Observation, *, explain: bool = False) -> list[Finding]:
        """Every fact of operation ``number``, as observed; with ``explain``, contents are described as well."""
        before, after = self._history.steps[number - 1], self._history.steps[number]
        found = []
        for path in sorted({*before.names, *after.names}):
            if before.names.get(path) != after.names.get(path) and self._own_name(number, path):
                found.append(self._name(number, path, observation))
        for identity in sorted(after.inodes):
            was, now = before.inodes.get(identity), after.inodes[identity]
            if self._history.things[identity].kind is not Kind.FILE or was == now:
                continue
            found.extend(self._inode(number, self._history.things[identity], was, now, observation, explain))
        return found

    def locate(self, thing: Thing, observation: Observation) -> Node | None:
        """Where ``thing`` is in ``observation``, under any of the names it ever had; None if nowhere."""
        tree = observation.tree or {}
        for name in sorted(thing.names):
            node = tree.get(name)
            if node is not None and self._bearer(name, node) is thing:
                return node
        return None

    def _own_name(self, number: int, path: str) -> bool:
        """Whether the operation named ``path`` itself (and not a folder above it that it moved)."""
        operation = self._history.operations[number - 1]
        return path in _paths(operation)

    def _bearer(self, name: str, node: Node) -> Thing | None:
        """Which thing ``node``, found under ``name``, is."""
        bearers = self._bearers.get(name, [])
        if len(bearers) > 1:
            bearers = [thing for thing in bearers if self._inodes.get(thing.identity) == node.inode]
        return next((thing for thing in bearers if thing.kind.value == node.kind), None)

    def _name(self, number: int, path: str, observation: Observation) -> Finding:
        node = (observation.tree or {}).get(path)
        thing = None if node is None else self._bearer(path, node)
        before, after = (self._history.steps[step].names.get(path) for step in (number - 1, number))
        later = [step.names.get(path) for step in self._history.steps[number + 1 :]]
        found = "nothing" if node is None else f"a {node.kind}" + (f" ({node.fault})" if node.fault else "")
        if node is not None and (thing is None or node.fault or (thing.target and node.target != thing.target)):
            fact = Fact.NEITHER
        else:
            fact = _compare(None if thing is None else thing.identity, before, after, later)
            if thing is not None:
                found = self._describe(thing)
        return Finding(fact, f"the name {path}", self._describe_identity(after), found)

    def _describe(self, thing: Thing) -> str:
        first = min(thing.names, key=lambda name: (name not in self._history.steps[0].names, name))
        return f"the {thing.kind.value} first known as {first}"

    def _describe_identity(self, identity: int | None) -> str:
        return "nothing" if identity is None else self._describe(self._history.things[identity])

    def _inode(
        self, number: int, thing: Thing, was: Inode | None, now: Inode, observation: Observation, explain: bool
    ) -> Iterable[Finding]:
        later = [step.inodes[thing.identity] for step in self._history.steps[number + 1 :]]
        was = was if was is not None else Inode(links=now.links)
        node = self.locate(thing, observation)
        name = min(thing.names)
        if node is None:
            # Gone, or not there yet. Nothing of this effect is to be seen; if a later operation takes the thing away
            # by right, that does not tell whether the effect was there.
            gone = now.links == 0 or any(inode.links == 0 for inode in later)
            yield Finding(Fact.EITHER if gone else Fact.BEFORE, f"the file {name}", "there", "not there")
            return
        if node.fault:
            yield Finding(Fact.NEITHER, f"the file {name}", "readable", node.fault)
            return
        if was.links != now.links and now.links > 0:
            fact = _compare(node.links, was.links, now.links, [inode.links for inode in later])
            yield Finding(fact, f"the number of names of {name}", str(now.links), str(node.links))
        if was.content != now.content:
            yield from self._content(number, name, was, now, later, node, explain)
        for attribute in sorted({*was.xattrs, *now.xattrs}):
            if was.xattrs.get(attribute) != now.xattrs.get(attribute):
                value = node.xattrs.get(attribute)
                values = [inode.xattrs.get(attribute) for inode in later]
                fact = _compare(value, was.xattrs.get(attribute), now.xattrs.get(attribute), values)
                yield Finding(fact, f"the attribute {attribute} of {name}", "set", "absent" if value is None else "set")

    def _content(
        self, number: int, name: str, was: Inode, now: Inode, later: Sequence[Inode], node: Node, explain: bool
    ) -> Iterable[Finding]:
        start, stop = self.range_of(number, was, now)
        if len(was.content) != len(now.content):
            sizes = [len(inode.content) for inode in later]
            fact = _compare(node.size, len(was.content), len(now.content), sizes)
            yield Finding(fact, f"the size of {name}", f"{len(now.content):,} B", f"{node.size:,} B")
        yield Finding(
            _compare_bytes(node.content, was.content, now.content, [inode.content for inode in later], start, stop),
            f"bytes {start:,} to {stop:,} of {name}",
            f"the data of operation {number}",
            describe(node.content[start:stop], start) if explain else "",
        )

    def range_of(self, number: int, was: Inode, now: Inode) -> tuple[int, int]:
        """The range of the file (bytes) that operation ``number`` changed."""
        operation = self._history.operations[number - 1]
        if isinstance(operation, ops.Write) and operation.how is not ops.How.TRUNC:
            _thing, offset, length = self._history.data[number]
            return min(offset, len(was.content)), offset + length
        if isinstance(operation, ops.Write):
            return 0, max(len(was.content), len(now.content))
        shorter, longer = sorted((len(was.content), len(now.content)))
        return shorter, longer


def _paths(operation: ops.Operation) -> tuple[str, ...]:
    match operation:
        case ops.Rename(old, new) | ops.Link(old, new):
            return (old, new)
        case ops.Create(path) | ops.Mkdir(path) | ops.Unlink(path) | ops.Rmdir(path) | ops.Write(path):
            return (path,)
        case ops.Symlink(_target, path):
            return (path,)
    return ()


def _compare(found: object, before: object, after: object, later: Sequence[object]) -> Fact:
    is_before, is_after = found == before, found == after or found in later
    if is_before and is_after:
        return Fact.EITHER
    if is_after:
        return Fact.AFTER
    return Fact.BEFORE if is_before else Fact.NEITHER


def _compare_bytes(found: bytes, before: bytes, after: bytes, later: Sequence[bytes], start: int, stop: int) -> Fact:
    """The same for a range of a file; a range that a file does not reach is absent there, which is a value too.

    Later operations may have written a part of the range only, so they are allowed piece by piece.
    """
    fact = _compare(found[start:stop], before[start:stop], after[start:stop], [data[start:stop] for data in later])
    if fact is not Fact.NEITHER or not later:
        return fact
    allowed = [after, *later]
    edges = range(start, stop, _PIECE_BYTES)
    pieces = {
        _compare(found[at:to], before[at:to], after[at:to], [data[at:to] for data in allowed])
        for at in edges
        for to in [min(at + _PIECE_BYTES, stop)]
    }
    if Fact.NEITHER in pieces or {Fact.BEFORE, Fact.AFTER} <= pieces:
        return Fact.NEITHER
    return Fact.BEFORE if Fact.BEFORE in pieces else Fact.AFTER if Fact.AFTER in pieces else Fact.EITHER


_PIECE_BYTES = 16
