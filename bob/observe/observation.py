"""What was found after a crash: plain data, the only thing that is ever judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Node:
    """One name in the tree that recovery left.

    ``kind`` is ``file``, ``directory``, ``symlink``, ``other`` or ``unreadable``. ``content`` is the whole file as it
    can be read (bytes); ``size`` what stat says (bytes). ``fault`` is the kernel's word where something below this name
    could not be read.
    """

    kind: str
    inode: int = 0
    links: int = 1
    size: int = 0
    content: bytes = b""
    target: str = ""
    xattrs: Mapping[str, bytes] = field(default_factory=dict)
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """The outcome of one crash state.

    ``mounted``: the kernel mounted it at once. Where it did not, ``error`` is its refusal, and ``tree`` is what
    was found after the file system's own repair program and another mount (None if that did not help either).
    """

    mounted: bool
    error: str | None
    tree: Mapping[str, Node] | None

    @property
    def summary(self) -> str:
        """One line for people."""
        if self.mounted:
            return f"mounted, {len(self.tree or {})} names"
        return f"does not mount ({self.error}); " + ("repaired" if self.tree is not None else "repair did not help")


def decode(found: Mapping[str, Any], chunks: Mapping[int, bytes]) -> Observation:
    """An observation from the agent's words; ``chunks`` are the contents that it refers to by number."""
    tree = found["tree"]
    nodes = None if tree is None else {path: _node(entry, chunks) for path, entry in tree.items()}
    return Observation(found["error"] is None, found["error"], nodes)


def _node(entry: Mapping[str, Any], chunks: Mapping[int, bytes]) -> Node:
    return Node(
        kind=entry["kind"],
        inode=entry.get("inode", 0),
        links=entry.get("links", 1),
        size=entry.get("size", 0),
        content=b"".join(chunks[number] for number in entry.get("content", ())),
        target=entry.get("target", ""),
        xattrs={name: chunks[number] for name, number in entry.get("xattrs", {}).items()},
        fault=entry.get("fault"),
    )
