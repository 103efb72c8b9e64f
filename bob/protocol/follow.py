"""From the system calls of a program to what each of them changes.

The calls are taken as they returned, one after the other. Calls that bob does not know the effect of make the file that
they change one that is not *followed*: nothing is said of what is in it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from bob.errors import RecordingError
from bob.observe.observation import Node
from bob.program.paths import Paths
from bob.program.stack import caller
from bob.program.strace import SystemCall, unescaped
from bob.program.unsynced import HARMLESS, RENAMES
from bob.protocol.descriptors import DUPLICATES, FORKS, Descriptors, OpenFile
from bob.protocol.effects import AT_FIRST, DirectoryEntry, Effects, File, Stored, Version

ROOT_FILE = 0
OPENS = {"open": 0, "creat": 0, "openat": 1, "openat2": 1}
"""Where in its arguments a call has the name."""
LINKS = {"link": (0, 1), "linkat": (1, 3)}
MAKES = {"mkdir": 0, "mkdirat": 1, "mknod": 0, "mknodat": 1}
SYMLINKS = {"symlink": 1, "symlinkat": 2}
REMOVES = {"unlink": 0, "unlinkat": 1, "rmdir": 0}
WRITES = ("write", "writev", "pwrite64", "pwritev", "pwritev2")
MODES = {"chmod": 0, "fchmodat": 1}
SYNCS = ("fsync", "fdatasync", "sync_file_range", "syncfs", "sync", "msync")
INTO = {"sendfile": 0, "copy_file_range": 2, "splice": 2, "ioctl": 0, "mmap": 4}
"""Which descriptor leads to the file that a call may change without telling how."""


def follow(calls: Sequence[SystemCall], root: str, tree: Mapping[str, Node]) -> Effects:
    """What the calls change of ``tree``, what there was below ``root`` before the first of them."""
    follower = _Follower(tuple(calls), root, tree)
    for number, call in enumerate(calls):
        follower.take(number, call)
    return follower.effects


class _Follower:
    """The tree as the calls so far have made it; it is the last value of each unit's history."""

    def __init__(self, calls: tuple[SystemCall, ...], root: str, tree: Mapping[str, Node]) -> None:
        self.effects = Effects([File("directory")], {}, {})
        self._root = root
        self._paths = Paths(root)
        self._descriptors = Descriptors(calls)
        self._removed: dict[str, int] = {}
        self._programs: dict[int, str] = {}
        self._number = AT_FIRST
        self._put_at_first(tree)

    def _put_at_first(self, tree: Mapping[str, Node]) -> None:
        by_inode: dict[int, int] = {}
        for path in sorted(tree):
            node = tree[path]
            if path == "/":
                self.effects.files[ROOT_FILE].inode = node.inode
                continue
            is_linked = node.kind == "file" and node.links > 1 and node.inode != 0
            if is_linked and node.inode in by_inode:
                self._lead(self._entry(path), by_inode[node.inode])
                continue
            file = self._new(node.kind, node.inode)
            by_inode[node.inode] = file
            of = self.effects.files[file]
            of.content = node.content
            of.sizes.append(Version(AT_FIRST, node.size))
            if node.mode is not None:
                of.modes.append(Version(AT_FIRST, node.mode))
            self._lead(self._entry(path), file)

    def take(self, number: int, call: SystemCall) -> None:
        """Take in a call."""
        self._number = number
        name = call.name
        if name == "execve":
            self._programs[call.pid] = posixpath.basename(_text(call.arguments[0])) if call.arguments else ""
        if call.result is None:
            return
        if name in FORKS:
            self._forked(call)
        elif name in DUPLICATES or (name == "fcntl" and "F_DUPFD" in call.arguments[1]):
            self._descriptors.duplicated(call)
        elif name in ("chdir", "fchdir"):
            self._paths.changed(call)
        elif name == "lseek":
            if open_file := self._descriptors.at(call, 0):
                open_file.position = call.result
        elif name in OPENS:
            self._open(call)
        elif name in WRITES:
            self._write(call)
        elif name in SYNCS:
            path = self._paths.below(call.path(0)) if call.arguments else ""
            if path or name in ("sync", "syncfs") or self._is_root(call):
                self._say(call, f"{name} {path or '/'}" if name != "sync" else "sync")
        else:
            self._change_names(call)

    def _change_names(self, call: SystemCall) -> None:
        name = call.name
        if name in ("truncate", "ftruncate"):
            self._truncate(call)
        elif name == "fallocate":
            self._fallocate(call)
        elif name in RENAMES:
            self._rename(call, *(self._paths.at(call, place) for place in RENAMES[name]))
        elif name in LINKS:
            self._link(call, *(self._paths.at(call, place) for place in LINKS[name]))
        elif name in MAKES or name in SYMLINKS:
            path = self._paths.at(call, {**MAKES, **SYMLINKS}[name])
            kind = "symlink" if name in SYMLINKS else "directory" if name in ("mkdir", "mkdirat") else "other"
            if path:
                self._lead(self._entry(path), self._new(kind))
                self._say(call, f"{name} {path}")
        elif name in REMOVES:
            path = self._paths.at(call, REMOVES[name])
            if path:
                self._removed[path] = self._leads(path) or ROOT_FILE
                self._lead(self._entry(path), None)
                self._say(call, f"{'rmdir' if 'AT_REMOVEDIR' in call.arguments[-1] else name} {path}")
        elif name in MODES or name == "fchmod":
            self._mode(call)
        elif name in INTO:
            self._lose_sight(call)

    def _open(self, call: SystemCall) -> None:
        assert call.result is not None
        flags = " ".join(call.arguments[OPENS[call.name] + 1 :]) if call.name != "creat" else "O_CREAT|O_TRUNC"
        path = self._paths.below(call.opened) or self._paths.at(call, OPENS[call.name])
        if not path or "O_TMPFILE" in flags:
            file = self._new("file") if path and "O_TMPFILE" in flags else None
            self._descriptors.opened(call.pid, call.result, None if file is None else OpenFile(file))
            return
        file = self._leads(path)
        if file is None:
            if "O_CREAT" not in flags:
                self._descriptors.opened(call.pid, call.result, None)
                return
            file = self._new("file")
            self.effects.files[file].sizes.append(Version(AT_FIRST, 0))
            self._lead(self._entry(path), file)
            self._say(call, f"create {path}")
        elif "O_TRUNC" in flags and self.effects.files[file].size:
            self._cut(file, 0)
            self._say(call, f"open {path} with O_TRUNC")
        self._descriptors.opened(call.pid, call.result, OpenFile(file, "O_APPEND" in flags))

    def _write(self, call: SystemCall) -> None:
        path = self._paths.below(call.path(0))
        if not path or not call.result:
            return
        open_file = self._descriptors.at(call, 0)
        if open_file is None:
            self._unfollowed(self._file_at(path))
            return
        file = self.effects.files[open_file.file]
        if call.name in ("write", "writev"):
            start = file.size if open_file.appends else open_file.position
            open_file.position = start + call.result
        else:
            start = int(call.arguments[3], 0)
        try:
            data = call.written
        except RecordingError:  # strace has not written all of it down
            self._unfollowed(open_file.file)
            return
        end = start + len(data)
        is_append = end > file.size
        file.stored.append(Version(self._number, Stored(start, end, data)))
        if is_append:
            file.sizes.append(Version(self._number, end))
        self._say(call, f"{'append' if is_append else 'overwrite'} {len(data)} bytes at {start} of {path}")

    def _truncate(self, call: SystemCall) -> None:
        size = int(call.arguments[1], 0)
        if call.name == "truncate":
            path = self._paths.at(call, 0)
            file = self._leads(path) if path else None
        else:
            path = self._paths.below(call.path(0))
            open_file = self._descriptors.at(call, 0)
            file = open_file.file if open_file else None
        if path and file is None:
            self._unfollowed(self._file_at(path))
        elif path and file is not None and size != self.effects.files[file].size:
            self._cut(file, size)
            self._say(call, f"truncate {path} to {size} bytes")

    def _fallocate(self, call: SystemCall) -> None:
        path, open_file = self._paths.below(call.path(0)), self._descriptors.at(call, 0)
        if not path:
            return
        mode, start, length = call.arguments[1], int(call.arguments[2], 0), int(call.arguments[3], 0)
        if open_file is None or any(word in mode for word in ("COLLAPSE", "INSERT", "UNSHARE")):
            self._unfollowed(self._file_at(path))
            return
        file, end = self.effects.files[open_file.file], start + length
        if "PUNCH_HOLE" in mode or "ZERO_RANGE" in mode:
            file.stored.append(Version(self._number, Stored(start, end, None)))
        if "KEEP_SIZE" not in mode and end > file.size:
            file.sizes.append(Version(self._number, end))
        self._say(call, f"fallocate {length} bytes at {start} of {path}")

    def _rename(self, call: SystemCall, old: str, new: str) -> None:
        if not old or not new:
            for path in (old, new):
                self._unfollowed(self._leads(path) if path else None)
            return
        moved, replaced = self._leads(old), self._leads(new)
        if moved is not None and moved == replaced:
            return  # two names of one file: rename(2) does nothing
        if any("RENAME_EXCHANGE" in argument for argument in call.arguments):
            self._lead(self._entry(old), replaced)
        else:
            self._lead(self._entry(old), None)
            if replaced is not None:
                self._removed[new] = replaced
        self._lead(self._entry(new), moved)
        self._say(call, f"rename {old} to {new}")

    def _link(self, call: SystemCall, old: str, new: str) -> None:
        file = self._leads(old) if old else None
        if new:
            self._lead(self._entry(new), self._new("file") if file is None else file)
            if file is None:  # a file without a name, by way of /proc
                self._unfollowed(self._leads(new))
            self._say(call, f"link {old or 'a file without a name'} as {new}")

    def _mode(self, call: SystemCall) -> None:
        if call.name == "fchmod":
            path, mode = self._paths.below(call.path(0)), call.arguments[1]
            open_file = self._descriptors.at(call, 0)
            file = open_file.file if open_file else None
        else:
            place = MODES[call.name]
            path, mode = self._paths.at(call, place), call.arguments[place + 1]
            file = self._leads(path) if path else None
        if path and file is not None:
            modes = self.effects.files[file].modes
            if modes and modes[-1].value != int(mode, 8):
                modes.append(Version(self._number, int(mode, 8)))
                self._say(call, f"chmod {path} to {mode}")

    def _lose_sight(self, call: SystemCall) -> None:
        """A call changes a file in a way that it does not tell."""
        if call.name == "ioctl" and any(word in call.arguments[1] for word in HARMLESS):
            return
        if call.name == "mmap" and not ("PROT_WRITE" in call.arguments[2] and "MAP_SHARED" in call.arguments[3]):
            return
        if path := self._paths.below(call.path(INTO[call.name])):
            self._unfollowed(self._file_at(path))

    def _forked(self, call: SystemCall) -> None:
        if call.result:
            self._paths.forked(call.pid, call.result)

    def _program(self, pid: int) -> str:
        """The name of the program that a process runs."""
        while pid not in self._programs and pid in self._descriptors.parents:
            pid = self._descriptors.parents[pid].pid
        return self._programs.get(pid, "")

    def _is_root(self, call: SystemCall) -> bool:
        return bool(call.arguments) and call.path(0).endswith(self._root)

    def _say(self, call: SystemCall, words: str) -> None:
        program, function = self._program(call.pid), caller(call.stack)
        where = f"{words} ({function})" if function else words
        self.effects.words[self._number] = f"{program}: {where}" if program else where

    def _new(self, kind: str, inode: int = 0) -> int:
        self.effects.files.append(File(kind, inode))
        return len(self.effects.files) - 1

    def _cut(self, file: int, size: int) -> None:
        of = self.effects.files[file]
        if size < of.size:
            of.stored.append(Version(self._number, Stored(size, of.size, None)))
        of.sizes.append(Version(self._number, size))

    def _lead(self, entry: DirectoryEntry, file: int | None) -> None:
        history = self.effects.entries.setdefault(entry, [] if self._number == AT_FIRST else [Version(AT_FIRST, None)])
        history.append(Version(self._number, file))

    def _entry(self, path: str) -> DirectoryEntry:
        folder, _slash, name = path.rpartition("/")
        return DirectoryEntry(self._leads(folder) or ROOT_FILE, name)

    def _leads(self, path: str) -> int | None:
        """The file that a path leads to now."""
        file: int | None = ROOT_FILE
        for name in filter(None, path.split("/")):
            if file is None:
                return None
            file = self.effects.last(DirectoryEntry(file, name))
        return file

    def _file_at(self, path: str) -> int | None:
        """The file with this path, or the one that had it last."""
        return self._leads(path) or self._removed.get(path)

    def _unfollowed(self, file: int | None) -> None:
        if file is not None:
            self.effects.files[file].followed = False


def _text(argument: str) -> str:
    return unescaped(argument.strip('"')).decode(errors="replace")
