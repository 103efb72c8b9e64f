"""The file system in memory that :func:`bob.workload.simulation.simulate` changes. It does not depend on a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bob.workload.history import PERMISSIONS, FileKind, HistoryStep, Inode, Thing
from bob.workload.operations import Replacing, parent
from bob.workload.pattern import PATTERN, UNSHADED, UNSHADED_PATTERN, contents, word_of
from bob.workload.shades import CELL_BYTES, Shades


class FileTree:
    """Names, files and their contents. The *identity* of a file or directory is a number that no rename changes. The
    methods raise ValueError where a file system would refuse the operation."""

    def __init__(self, pattern: int = PATTERN) -> None:
        self._shades = None if pattern == UNSHADED_PATTERN else Shades()
        self.names: dict[str, int] = {"/": 0}
        self.inodes: dict[int, Inode] = {0: Inode(mode=PERMISSIONS[FileKind.DIRECTORY])}
        self.things: list[Thing] = [Thing(0, FileKind.DIRECTORY, -1, names={"/"})]
        self.handles: dict[str, int] = {}
        # For each operation that writes, zeroes or moves data: its place, as in a history.
        self.data: dict[int, tuple[int, int, int]] = {}
        self._shifted: set[int] = set()

    def copy(self) -> FileTree:
        copied = FileTree.__new__(FileTree)
        copied._shades = None if self._shades is None else self._shades.copied()
        copied.names, copied.inodes, copied.handles = dict(self.names), dict(self.inodes), dict(self.handles)
        copied.things = [replace(thing, names=set(thing.names)) for thing in self.things]
        copied.data, copied._shifted = dict(self.data), set(self._shifted)
        return copied

    def shift(self, identity: int) -> None:
        """Record that an operation moves contents of a file to another offset. Raises ValueError if an earlier
        operation moved contents of this file. The reason is that bob could not distinguish two moves that are both
        torn."""
        if identity in self._shifted:  # if both shifts were torn, bob could not distinguish them
            raise ValueError("a workload may collapse or insert ranges of one file only once")
        self._shifted.add(identity)
        if self._shades is not None:
            self._shades.shift((identity, ""))

    def snapshot(self) -> HistoryStep:
        return HistoryStep(dict(self.names), dict(self.inodes), dict(self.handles))

    def make(self, path: str, kind: FileKind, step: int, target: str = "") -> int:
        """Create a file or directory at ``path``, and return its identity. ``step`` is the number of the operation that
        creates it, or -1 for the initial tree."""
        if not path.startswith("/"):
            raise ValueError(not_open(path))
        self.parent_of(path)
        if path in self.names:
            raise ValueError(f"{path} exists already")
        self._touch(path)
        identity = len(self.things)
        self.things.append(Thing(identity, kind, step, target, {path}))
        self.names[path] = identity
        self.inodes[identity] = Inode(mode=PERMISSIONS[kind])
        return identity

    def make_unnamed(self, directory: str, step: int) -> int:
        """Create a file without a name, and return its identity. ``step`` is the number of the operation that creates
        it, or -1 for the initial tree."""
        self.find(directory, FileKind.DIRECTORY)
        identity = len(self.things)
        self.things.append(Thing(identity, FileKind.FILE, step, is_born_unnamed=True))
        self.inodes[identity] = Inode(mode=PERMISSIONS[FileKind.FILE], links=0)
        return identity

    def keep_open(self, handle: str, identity: int) -> None:
        if handle in self.handles:
            raise ValueError(f"{handle} is open already")
        self.handles[handle] = identity

    def has(self, name: str) -> bool:
        return name in self.names or name in self.handles

    def kind(self, path: str) -> FileKind | None:
        return self.things[self.names[path]].kind if path in self.names else None

    def size(self, path: str) -> int:
        return self.inodes[self.names[path]].size

    def find(self, path: str, *kinds: FileKind) -> int:
        """Return the identity of the file with this path, or of the open file with this handle. Raises ValueError if it
        does not exist. With ``kinds``, also raises ValueError for a file of any other kind."""
        if path not in self.names and path.startswith("/"):
            raise ValueError(f"{path} does not exist")
        if path not in self.names and path not in self.handles:
            raise ValueError(not_open(path))
        identity = self.names[path] if path in self.names else self.handles[path]
        if kinds and self.things[identity].kind not in kinds:
            raise ValueError(f"{path} is a {self.things[identity].kind}")
        return identity

    def set(self, identity: int, **changes: object) -> None:
        self.inodes[identity] = replace(self.inodes[identity], **changes)  # type: ignore[arg-type]

    def fill(self, identity: int, content: bytes) -> None:
        """Give a file new contents. Its time of modification becomes unknown, even if an earlier operation had set
        it."""
        self.set(identity, content=content, modified=None)

    def written(self, number: int, identity: int, offset: int, length: int, attribute: str = "") -> bytes:
        """Return the bytes that operation ``number`` writes to the contents, or to ``attribute``, of a file."""
        if self._shades is None:
            return contents(number, offset, length, UNSHADED)
        shade = self._shades.choose(number, word_of(number), (identity, attribute), offset, length)
        return contents(number, offset, length, shade)

    def copied(self, source: int, offset: int, length: int, path: str) -> bytes:
        """Return the bytes of ``source`` that an operation copies to the same offset in the file ``path``. The file
        ``path`` need not exist yet."""
        identity = self.find(path, FileKind.FILE) if self.has(path) else None
        if source == identity:
            raise ValueError("cannot copy a file to itself")
        copied = self.inodes[source].content[offset : offset + length]
        there = b"" if identity is None else self.inodes[identity].content[offset : offset + length]
        if len(copied) < length or not length:
            raise ValueError(f"the source has only {len(self.inodes[source].content):,} bytes")
        # The data of two operations differs at least in the operation's number, once in each cell.
        starts = range(-offset % CELL_BYTES, len(there) - CELL_BYTES + 1, CELL_BYTES)
        cells = [(copied[at : at + CELL_BYTES], there[at : at + CELL_BYTES]) for at in starts]
        if any(new == old and any(old) for new, old in cells or [(copied[: len(there)], there)]):
            raise ValueError("some of these bytes are there already, so bob could not see the copy")
        return copied

    def take_shades(self, source: int, identity: int, offset: int, length: int) -> None:
        """Record that ``length`` bytes of the file ``identity``, from ``offset`` on, are a copy of the same range of
        ``source``. Later writes must then differ from these bytes, so bob chooses other shades (variants of the test
        data) for them (:mod:`bob.workload.shades`)."""
        if self._shades is not None:
            self._shades.copy((source, ""), (identity, ""), offset, length)

    def rename(self, old: str, new: str, replacing: Replacing) -> None:
        """Perform rename(2): give the file or directory ``old``, with everything below it, the name ``new``.
        ``replacing`` says what happens to a file that already has the name ``new``: the rename replaces it, fails, or
        gives it the name ``old``."""
        moved = self.find(old)
        self.parent_of(new)
        if "/" in (old, new) or new.startswith(old + "/"):
            raise ValueError(f"cannot move {old} to {new}")
        if replacing is Replacing.REFUSE and new in self.names:
            raise ValueError(f"{new} exists already")
        if replacing is Replacing.EXCHANGE and (new not in self.names or old.startswith(new + "/")):
            raise ValueError(f"{old} and {new} cannot swap their names")
        if self.names.get(new) == moved:
            return  # for two names of one file, rename(2) does nothing
        self._touch(old)
        self._touch(new)
        moved_to = {old: new, new: old} if replacing is Replacing.EXCHANGE else {old: new}
        if replacing is not Replacing.EXCHANGE and new in self.names:
            replaced = self.things[self.names[new]].kind
            if (replaced is FileKind.DIRECTORY) != (self.things[moved].kind is FileKind.DIRECTORY):
                raise ValueError(f"{new} is a {replaced}")
            self.drop(new)
        for path, identity in move_names(self.names, moved_to).items():
            self.things[identity].names.add(path)

    def drop(self, path: str) -> None:
        """Remove the name ``path``. If it is the name of a directory, the directory must be empty."""
        identity = self.find(path)
        if path == "/":
            raise ValueError("cannot remove the root")
        if any(other.startswith(path + "/") for other in self.names):
            raise ValueError(f"{path} is not empty")
        self._touch(path)
        del self.names[path]
        self.set(identity, links=self.inodes[identity].links - 1)

    def link(self, old: str, new: str) -> None:
        identity = self.find(old, FileKind.FILE)
        self.parent_of(new)
        if new in self.names:
            raise ValueError(f"{new} exists already")
        thing = self.things[identity]
        if not self.inodes[identity].links and not (thing.is_born_unnamed and not thing.names):
            raise ValueError(f"{old} has lost its last name, so it cannot get another one")
        self._touch(new)
        self.names[new] = identity
        self.things[identity].names.add(new)
        self.set(identity, links=self.inodes[identity].links + 1)

    def parent_of(self, path: str) -> int:
        return self.find(parent(path), FileKind.DIRECTORY)

    def _touch(self, path: str) -> None:
        self.set(self.parent_of(path), modified=None)


def not_open(handle: str) -> str:
    return f"no file is open as {handle} (a path begins with a slash)"


def move_names(names: dict[str, int], moved: Mapping[str, str]) -> dict[str, int]:
    """Replace, in ``names`` itself, the paths of moved files and directories, and the paths below them. ``moved`` has
    the new path for each old path. Return only the new paths, with the identities of their files."""
    below = [(path, top) for path in names for top in moved if path == top or path.startswith(top + "/")]
    taken = {moved[top] + path[len(top) :]: names.pop(path) for path, top in below}
    names.update(taken)
    return taken
