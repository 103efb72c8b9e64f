"""Names after some of a workload's operations, by performing them: a small file system of its own, with link counts.

The oracle divides operations into groups and follows tuples (bob/claim/property/possible.py). This one performs one set
of operations after the other on directories that are dictionaries, and refuses as the kernel does.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from bob.workload import operations as ops
from bob.workload.history import FileKind, History

ROOT = 0


class Refused(Exception):
    """EEXIST, ENOENT, ENOTEMPTY, EISDIR or ENOTDIR; or it is another file that would be moved."""


class Names:
    """Directories: the inode of each name in them. An inode is a thing of the history."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.folders: dict[int, dict[str, int]] = {ROOT: {}}
        for path, thing in sorted(history.steps[0].names.items()):
            if history.things[thing].kind is FileKind.DIRECTORY:
                self.folders.setdefault(thing, {})
            if path != "/":
                folder, name = self.split(0, path)
                self.folders[folder][name] = thing

    def split(self, step: int, path: str) -> tuple[int, str]:
        folder, name = path.rsplit("/", 1)
        return self.history.steps[step].names[folder or "/"], name

    def links(self, inode: int) -> int:
        return sum(list(names.values()).count(inode) for names in self.folders.values())

    def need(self, inode: int) -> None:
        if inode != ROOT and not self.links(inode):
            raise Refused("ENOENT")

    def need_gone(self, inode: int) -> None:
        """What is replaced or removed must be empty."""
        if self.folders.get(inode):
            raise Refused("ENOTEMPTY")

    def perform(self, number: int) -> None:
        operation = self.history.operations[number - 1]
        before, after = self.history.steps[number - 1].names, self.history.steps[number].names
        is_directory = {thing.identity: thing.kind is FileKind.DIRECTORY for thing in self.history.things}
        match operation:
            case (
                ops.Create(path)
                | ops.Mkdir(path)
                | ops.Symlink(_, path)
                | ops.Mknod(path)
                | ops.Link(_, path)
                | ops.Write(path)
                | ops.CopyRange(_, path)
                | ops.Reflink(_, path)
            ):
                writes = isinstance(operation, ops.Write | ops.CopyRange | ops.Reflink)
                if writes and (path in before or not path.startswith("/")):
                    return
                folder, name = self.split(number - 1, path)
                self.need(folder)
                if name in self.folders[folder]:
                    raise Refused("EEXIST")
                inode = after[path]
                if isinstance(operation, ops.Link):
                    if self.history.steps[number - 1].inodes[inode].links:
                        self.need(inode)  # and else O_TMPFILE has made it, and it never had a name
                elif is_directory[inode]:
                    self.folders[inode] = {}
                self.folders[folder][name] = inode
            case ops.Unlink(path) | ops.Rmdir(path):
                folder, name = self.split(number - 1, path)
                self.need(folder)
                if name not in self.folders[folder]:
                    raise Refused("ENOENT")
                inode = self.folders[folder][name]
                if is_directory[inode] != isinstance(operation, ops.Rmdir):
                    raise Refused("EISDIR or ENOTDIR")
                self.need_gone(inode)
                del self.folders[folder][name]
            case ops.Rename(old, new):
                if before.get(old) == before.get(new):
                    return
                (source, old_name), (target, new_name) = self.split(number - 1, old), self.split(number - 1, new)
                self.need(source)
                self.need(target)
                if old_name not in self.folders[source]:
                    raise Refused("ENOENT")
                inode, there = self.folders[source][old_name], self.folders[target].get(new_name)
                if inode != before[old]:
                    raise Refused("another file")
                if inode == there:
                    return
                if operation.replacing is ops.Replacing.EXCHANGE:
                    if there is None:
                        raise Refused("ENOENT")
                    self.folders[source][old_name], self.folders[target][new_name] = there, inode
                    return
                if there is not None and operation.replacing is ops.Replacing.REFUSE:
                    raise Refused("EEXIST")
                if there is not None:
                    if is_directory[there] != is_directory[inode]:
                        raise Refused("EISDIR or ENOTDIR")
                    self.need_gone(there)
                del self.folders[source][old_name]
                self.folders[target][new_name] = inode

    def places(self) -> dict[tuple[int, str], int]:
        return {(folder, name): inode for folder, names in self.folders.items() for name, inode in names.items()}


def executed(history: History, there: Iterable[int]) -> dict[tuple[int, str], int] | None:
    """What is at each (directory, name) after the operations ``there``; None if that cannot be: one of them is refused,
    or something of the initial tree is gone that no operation of the whole workload takes a name from."""
    names = Names(history)
    initial = set(names.places().values())
    try:
        for number in sorted(there):
            names.perform(number)
    except Refused:
        return None
    counts = [list(step.names.values()) for step in history.steps]
    lasting = {
        thing
        for thing in initial
        if all(after.count(thing) >= before.count(thing) for before, after in pairwise(counts))
    }
    return names.places() if all(names.links(thing) for thing in lasting) else None
