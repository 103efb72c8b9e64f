"""What was found after a crash: plain data, the only thing that is ever judged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from bob.workload.history import attributes


@dataclass(frozen=True, slots=True)
class Node:
    """One name in the tree that recovery left.

    ``kind`` is ``file``, ``directory``, ``symlink``, ``other`` or ``unreadable``. ``content`` is the whole file as it
    can be read (bytes); ``size`` what stat says (bytes). ``fault`` is the kernel's word where something below this name
    could not be read.

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
    def summary(self) -> str:
        """One line for people."""
        if self.mounted:
            names = len(self.tree or {})
            return f"mounted, {names} name{'' if names == 1 else 's'}"
        if not self.repaired:
            return f"does not mount ({self.error})"
        return f"does not mount ({self.error}); " + ("repaired" if self.tree is not None else "repair did not help")


class Findings:
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

    def observations(self) -> Sequence[Observation]:
        """All outcomes; each is put together when it is asked for, since together they may not fit into memory."""
        return _Observations(self)


class _Observations(Sequence[Observation]):
    def __init__(self, findings: Findings) -> None:
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
    return Node(
        kind=entry["kind"],
        inode=entry.get("inode", 0),
        links=entry.get("links", 1),
        size=entry.get("size", 0),
        content=b"".join(chunks[number] for number in entry.get("content", ())),
        target=entry.get("target", ""),
        xattrs={name: chunks[number] for name, number in entry.get("xattrs", {}).items()},
        fault=entry.get("fault"),
        mode=entry.get("mode"),
        uid=entry.get("uid"),
        gid=entry.get("gid"),
        mtime=entry.get("mtime"),
    )


CONTENTS = ("content", "xattrs", "mtime")
"""What a shape leaves out of a name."""


def shape(outcome: str) -> str | None:
    """The tree of an outcome (as :class:`Findings` has it) but for the contents of its files, as text; None where it
    did not mount at once."""
    found = json.loads(outcome)
    if found["error"] is not None or found["tree"] is None:
        return None
    tree = {
        path: {key: value for key, value in entry.items() if key not in CONTENTS}
        for path, entry in found["tree"].items()
    }
    return json.dumps(tree, sort_keys=True)
