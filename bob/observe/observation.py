"""What was found after a crash: plain data, the only thing that is ever judged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, overload

from bob.workload.history import attributes


class Presence(Enum):
    """How much of what one operation, or one call, changes is there."""

    NONE = 0
    PARTIAL = 1
    FULL = 2
    UNDECIDED = 3
    """The observation cannot tell none from full."""


@dataclass(frozen=True, slots=True)
class Node:
    """One name in the tree that recovery left.

    ``kind`` is ``file``, ``directory``, ``symlink``, ``other`` or ``unreadable``. ``content`` is the whole file as it
    can be read (bytes); ``size`` what stat says (bytes). ``fault`` is the kernel's word where something below this name
    could not be read; where it is ``unseen``, that is a limit of bob's, and says nothing of what is there.

    Of a file that is longer than what is looked at of each, ``content`` is empty, and ``pieces`` has what is in it but
    zeros, by the byte at which it begins: where a program may see more than a property asks about. Only there are
    ``flags`` (those of chattr) and ``project``, too; else they are 0.

    ``mode`` (the permission bits), ``uid``, ``gid`` and ``mtime`` are None where they were not observed: of what stat
    does not know, and in what older runs have kept; there the ``links`` of a directory are always 1, too. ``mtime`` is
    in ns since 1970 where it was set when the base image was made, and 0 where it was set since: by an operation, by
    recovery, or when it was looked at.
    """

    kind: str
    inode: int = 0
    links: int = 1
    size: int = 0
    content: bytes = b""
    target: str = ""
    xattrs: Mapping[str, bytes] = field(default_factory=dict)
    fault: str | None = None
    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    mtime: int | None = None
    unseen: bool = False
    pieces: Mapping[int, bytes] | None = None
    flags: int = 0
    project: int = 0

    def read(self, start: int, end: int) -> bytes:
        """What can be read of it from byte ``start`` up to ``end``."""
        if self.pieces is None:
            return self.content[start:end]
        end = min(end, self.size)
        found = bytearray(max(end - start, 0))
        for at, piece in self.pieces.items():
            first, last = max(start, at), min(end, at + len(piece))
            if first < last:
                found[first - start : last - start] = piece[first - at : last - at]
        return bytes(found)

    @property
    def attributes(self) -> Mapping[str, bytes]:
        """All that operations may set, as in :attr:`bob.workload.history.Inode.attributes`, where it was observed; the
        time, where it was not set since the base image was made."""
        owner = None if self.uid is None or self.gid is None else (self.uid, self.gid)
        modified = self.mtime // 1_000_000_000 if self.mtime else None
        return attributes(self.xattrs, self.mode, owner, modified)


@dataclass(frozen=True, slots=True)
class Observation:
    """The outcome of one crash state.

    ``mounted``: the kernel mounted it at once. Where it did not, ``error`` is its refusal. The first state with a
    refusal is ``repaired`` by the file system's own program and mounted again: ``tree`` is what was found then (None if
    that did not help either).
    """

    mounted: bool
    error: str | None
    tree: Mapping[str, Node] | None
    repaired: bool = False

    @property
    def unseen(self) -> str | None:
        """What bob did not see of it, and why; None if it has seen all there is."""
        nodes = sorted((self.tree or {}).items())
        return next((f"{path}: {node.fault}" for path, node in nodes if node.unseen), None)

    @property
    def summary(self) -> str:
        """One line for people."""
        if self.mounted:
            names = len(self.tree or {})
            return f"mounted, {names} name{'' if names == 1 else 's'}"
        if not self.repaired:
            return f"does not mount ({self.error})"
        return f"does not mount ({self.error}); " + ("repaired" if self.tree is not None else "repair did not help")


class OutcomeTable:
    """The distinct outcomes of a workload as the agent told them, and the contents that they refer to by number.

    ``found`` has the JSON of each outcome, ``chunks`` each content; both only grow.
    """

    def __init__(self, found: Sequence[str] = (), chunks: Sequence[bytes] = ()) -> None:
        self.found = list(found)
        self.chunks = list(chunks)

    def add(self, found: Sequence[str], lengths: Sequence[int], contents: bytes) -> None:
        """Take in new outcomes, and new contents of these lengths (bytes) that lie end to end in ``contents``."""
        self.found.extend(found)
        position = 0
        for length in lengths:
            self.chunks.append(contents[position : position + length])
            position += length

    def observation(self, outcome: int) -> Observation:
        """Outcome number ``outcome``."""
        found = json.loads(self.found[outcome])
        tree = found["tree"]
        nodes = None if tree is None else {path: _node(entry, self.chunks) for path, entry in tree.items()}
        return Observation(found["error"] is None, found["error"], nodes, found["repaired"])

    def repaired(self, outcome: int) -> bool:
        """Whether outcome number ``outcome`` is one of a state that was repaired."""
        repaired: bool = json.loads(self.found[outcome])["repaired"]
        return repaired

    def unseen(self, outcome: int) -> str | None:
        """What bob did not see of outcome number ``outcome``, and why; None if it has seen all there is."""
        if '"unseen":' not in self.found[outcome]:  # of most, which may be large
            return None
        tree = json.loads(self.found[outcome])["tree"] or {}
        return next((f"{path}: {entry['fault']}" for path, entry in sorted(tree.items()) if "unseen" in entry), None)

    def observations(self) -> Sequence[Observation]:
        """All outcomes; each is put together when it is asked for, since together they may not fit into memory."""
        return _LazyOutcomes(self)


class _LazyOutcomes(Sequence[Observation]):
    def __init__(self, findings: OutcomeTable) -> None:
        self._findings = findings

    def __len__(self) -> int:
        return len(self._findings.found)

    @overload
    def __getitem__(self, outcome: int) -> Observation: ...

    @overload
    def __getitem__(self, outcome: slice) -> Sequence[Observation]: ...

    def __getitem__(self, outcome: int | slice) -> Observation | Sequence[Observation]:
        if isinstance(outcome, slice):
            return [self[number] for number in range(*outcome.indices(len(self)))]
        return self._findings.observation(outcome)


def _node(entry: Mapping[str, Any], chunks: Sequence[bytes]) -> Node:
    content = [chunks[number] for number in entry.get("content", ())]
    places = entry.get("places")
    return Node(
        kind=entry["kind"],
        inode=entry.get("inode", 0),
        links=entry.get("links", 1),
        size=entry.get("size", 0),
        content=b"".join(content) if places is None else b"",
        target=entry.get("target", ""),
        xattrs={name: chunks[number] for name, number in entry.get("xattrs", {}).items()},
        fault=entry.get("fault"),
        mode=entry.get("mode"),
        uid=entry.get("uid"),
        gid=entry.get("gid"),
        mtime=entry.get("mtime"),
        unseen=entry.get("unseen", False),
        pieces=None if places is None else dict(zip(places, content, strict=True)),
        flags=entry.get("flags", 0),
        project=entry.get("project", 0),
    )


CONTENTS = ("content", "places", "blocks", "xattrs", "mtime", "atime", "ctime", "btime", "touched")
"""What a shape leaves out of a name."""


def shape(outcome: str) -> str | None:
    """Return the tree of an outcome of :class:`OutcomeTable`, without the contents of its files, as text; None where it
    did not mount at once."""
    found = json.loads(outcome)
    if found["error"] is not None or found["tree"] is None:
        return None
    tree = {
        path: {key: value for key, value in entry.items() if key not in CONTENTS}
        for path, entry in found["tree"].items()
    }
    return json.dumps(tree, sort_keys=True)


_LETTERS = {
    0x1: "s", 0x2: "u", 0x4: "c", 0x8: "S", 0x10: "i", 0x20: "a", 0x40: "d", 0x80: "A", 0x400: "m", 0x4000: "j",
    0x8000: "t", 0x10000: "D", 0x20000: "T", 0x800000: "C", 0x2000000: "x", 0x20000000: "P", 0x40000000: "F",
}  # fmt: skip
"""FS_*_FL in include/uapi/linux/fs.h. What a file system sets by itself, as of how it keeps a file, is none of them."""


def letters(flags: int) -> str:
    """The letters that lsattr(1) has for those of ``flags`` that can be set."""
    return "".join(letter for bit, letter in _LETTERS.items() if flags & bit)
