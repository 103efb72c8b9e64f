"""The state of the files after a crash, as plain data. An *outcome* is what a mount of a crash state showed; several
states may have the same one."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

from bob.workload.history import attributes


class Presence(Enum):
    NONE = 0
    PARTIAL = 1
    FULL = 2
    UNDECIDED = 3  # the observation cannot distinguish none from full


@dataclass(frozen=True, slots=True)
class Node:
    """A file or directory in the tree after recovery. A file with several names has a node for each name.

    ``kind`` is ``file``, ``directory``, ``symlink``, ``other`` or ``unreadable``. ``size`` is from stat (bytes).
    ``fault`` is the error if a part of this file or directory could not be read. ``unseen`` is True if a limit of bob,
    not the kernel, is the cause of the fault. If a file is longer than bob's limit, ``content`` is empty. Instead,
    ``pieces`` has the parts of the file that are not zero, by the offset of their first byte.

    None stands for an unknown ``mode`` (permission bits), ``uid``, ``gid`` or ``mtime``, if stat failed, or if an older
    version of bob stored the node. That version also stored 1 for ``links`` of directories. ``mtime`` is in ns since
    1970. If this time is after bob made the base image, ``mtime`` is 0. ``flags`` (chattr's flags) and ``project`` (the
    project ID) are 0 unless bob's agent read the files *closely* (:class:`bob.agent.inside.look.Look`)."""

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
        """Return the bytes from ``start`` to ``end``, up to the end of the file. If bob could read only the first part
        of the file, the bytes after that part are missing, or zero if the file has ``pieces``."""
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
        """The extended attributes, the permission bits, the owner and the time of modification, by the same names as in
        :func:`bob.workload.history.attributes`. Attributes that bob does not know are left out. The time of
        modification is also left out if it is later than the time when bob made the base image."""
        owner = None if self.uid is None or self.gid is None else (self.uid, self.gid)
        modified = self.mtime // 1_000_000_000 if self.mtime else None
        return attributes(self.xattrs, self.mode, owner, modified)


@dataclass(frozen=True, slots=True)
class Observation:
    """The outcome of one crash state. ``mounted`` says whether the state mounted without a repair. If it did not,
    ``error`` is the kernel's message about its refusal. bob runs the file system's repair program only on the first
    state with this ``error``, and mounts this state again to see its ``tree``. For this state, ``repaired`` is True."""

    mounted: bool
    error: str | None
    tree: Mapping[str, Node] | None
    repaired: bool = False

    @property
    def unseen(self) -> str | None:
        """The first thing in the tree that bob did not see, and why; None if it saw everything."""
        nodes = sorted((self.tree or {}).items())
        return next((f"{path}: {node.fault}" for path, node in nodes if node.unseen), None)

    @property
    def summary(self) -> str:
        if self.mounted:
            names = len(self.tree or {})
            return f"mounted, {names} name{'' if names == 1 else 's'}"
        if not self.repaired:
            return f"does not mount ({self.error})"
        return f"does not mount ({self.error}); " + ("repaired" if self.tree is not None else "repair did not help")


class OutcomeTable:
    """The distinct outcomes of a workload. ``found`` has each outcome as JSON. In this JSON, an index into ``chunks``
    stands for each content of a file."""

    def __init__(self, found: Iterable[str] = (), chunks: Iterable[bytes] = ()) -> None:
        self.found = list(found)
        self.chunks = list(chunks)
        self._refused: dict[int, tuple[bool, bool]] = {}

    def observation(self, outcome: int) -> Observation:
        found = json.loads(self.found[outcome])
        tree = found["tree"]
        nodes = None if tree is None else {path: _node(entry, self.chunks) for path, entry in tree.items()}
        return Observation(found["error"] is None, found["error"], nodes, found["repaired"])

    def mounted(self, outcome: int) -> bool:
        return not self._ending(outcome)[0]

    def repaired(self, outcome: int) -> bool:
        return self._ending(outcome)[1]

    def _ending(self, outcome: int) -> tuple[bool, bool]:
        """Return whether a state with this outcome was refused, and whether it was repaired. bob asks for each crash
        state, and parses each outcome once."""
        if outcome not in self._refused:
            found = json.loads(self.found[outcome])
            self._refused[outcome] = found["error"] is not None, found["repaired"]
        return self._refused[outcome]

    def unseen(self, outcome: int) -> str | None:
        """Return the first thing in outcome number ``outcome`` that bob did not see, and why. Return None if bob saw
        everything."""
        # bob does not parse most outcomes, which may be large.
        return self.observation(outcome).unseen if '"unseen":' in self.found[outcome] else None

    def observations(self) -> Sequence[Observation]:
        """Return all outcomes. Each is built on access, since all of them together may be too large for the memory."""
        return _LazyOutcomes(self)


class _LazyOutcomes(Sequence[Observation]):
    def __init__(self, findings: OutcomeTable) -> None:
        self._findings = findings

    def __len__(self) -> int:
        return len(self._findings.found)

    def __getitem__(self, outcome: int | slice) -> Any:
        if isinstance(outcome, slice):
            return [self[number] for number in range(*outcome.indices(len(self)))]
        return self._findings.observation(outcome)


_AS_THEY_ARE = {each.name for each in fields(Node)} - {"kind", "content", "xattrs", "pieces"}


def _node(entry: Mapping[str, Any], chunks: Sequence[bytes]) -> Node:
    content = [chunks[number] for number in entry.get("content", ())]
    places = entry.get("places")
    return Node(
        kind=entry["kind"],
        content=b"".join(content) if places is None else b"",
        xattrs={name: chunks[number] for name, number in entry.get("xattrs", {}).items()},
        pieces=None if places is None else dict(zip(places, content, strict=True)),
        **{name: value for name, value in entry.items() if name in _AS_THEY_ARE},
    )


def split(contents: bytes, lengths: Iterable[int]) -> Iterator[bytes]:
    """Yield the pieces of ``contents``, which have these lengths (bytes) and stand end to end."""
    position = 0
    for length in lengths:
        yield contents[position : position + length]
        position += length


CONTENTS = ("content", "places", "blocks", "xattrs", "mtime", "atime", "ctime", "btime", "touched")


def shape(outcome: str) -> str | None:
    """Return the tree in an outcome of :class:`OutcomeTable` as JSON. Leave out the fields that depend on a file's
    contents (``CONTENTS``). Return None if the state did not mount."""
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
"""Letters of FS_*_FL in include/uapi/linux/fs.h, except flags that a file system sets by itself."""


def letters(flags: int) -> str:
    """Return lsattr(1)'s letters for ``flags``, without the flags that a file system sets by itself."""
    return "".join(letter for bit, letter in _LETTERS.items() if flags & bit)
