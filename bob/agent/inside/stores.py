"""Detect a program's stores through shared mappings of files, which no system call shows.

At each system call, the program waits until a process of bob has handled strace's line about the call
(:class:`bob.agent.inside.strace_lines.Ahead`). Meanwhile that process compares the mapped files with their last
contents. If a file has changed since the previous line, the process writes a new line in front of the call's line. The
new line has the form of a ``pwrite64``::

    1234 1700000000.000001 store(3<\\x2f...>, "\\x61", 1, 4096) = 1

If the call itself may have changed the file, the new line follows the call's line, and includes what the call wrote. If
bob watches a mapping, the line of its ``mmap`` call has the name ``mapped`` instead. Readers of the lines thus know
which mappings bob does not watch. The order of stores is lost if two tasks store, or if one task stores while another
one syncs. In both cases, bob stops watching the file, and writes the line of its mapping once more, with the name
``mmap``."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from bob.agent.inside.strace_lines import Ahead, StraceLines, lines_of

LARGEST = 64 * 1024 * 1024  # bytes; a larger file is not watched: each comparison would take too long
PAGE = 4096
_MAPS = re.compile(
    rb"mmap\([^,]+, (\d+), ([A-Z_|]+), ([A-Z_|]+), (\d+)<((?:\\x[0-9a-f]{2})*)>(?:\(deleted\))?, \w+\) += (0x[0-9a-f]+)"
)
_RESULT = re.compile(rb".*\) += (\d+)", re.DOTALL)
_OPEN_FILE = re.compile(rb"\w+\((\d+)<")
_INTO = re.compile(rb"(?:copy_file_range|splice)\([^,]+, [^,]+, (\d+)<")
_STRING = re.compile(rb'"((?:\\x[0-9a-f]{2})*)"')
OPENS = b"open", b"openat", b"openat2", b"creat"
WRITES = (b"write", b"pwrite64", b"writev", b"pwritev", b"pwritev2", b"sendfile", b"copy_file_range", b"splice",
          b"ftruncate", b"fallocate", b"truncate", *OPENS)  # fmt: skip
SYNCS = b"fsync", b"fdatasync", b"sync", b"syncfs", b"sync_file_range", b"msync"
FORKS = b"fork", b"vfork", b"clone", b"clone3"
PASSING = b"read", b"readv", b"preadv2", b"close", b"close_range"  # calls that change nothing


class StoreWatch(Ahead):
    """A process that copies strace's output from ``pipe`` to the file ``out``, and adds lines for stores in files below
    ``root``. ``pipe`` is the path of a named pipe, which is made at the start of a ``with`` block. The program does not
    run while this process handles a line, because the two share one processor."""

    def __init__(self, pipe: str, out: str, root: str) -> None:
        super().__init__(pipe, lambda: _copy(pipe, out, root))

    def finish(self) -> None:
        if self.wait():
            raise RuntimeError("bob could not watch the program's stores to mapped files")


def _copy(pipe: str, out: str, root: str) -> int:
    with open(pipe, "rb", buffering=0) as lines, open(out, "wb") as copied:
        watcher = StoreFilter(root)
        for whole in lines_of(lines):
            for line in whole:
                copied.writelines(one + b"\n" for one in watcher.lines(line))
            copied.flush()
        copied.writelines(one + b"\n" for one in watcher.left)
    return 0


FileId = tuple[int, int]  # a file's device and inode


class MappedFile:
    """A mapped file: its content at the last comparison, and its mappings as (task, address, length). ``told`` is the
    file's name in strace's output, and ``line`` is the line about its first ``mmap``."""

    def __init__(self, fd: int, told: bytes, line: bytes) -> None:
        self.fd, self.told, self.line = fd, told, line
        self.content = os.pread(fd, LARGEST, 0)
        self.mappings: set[tuple[int, int, int]] = set()

    @property
    def tasks(self) -> set[int]:
        return {pid for pid, _start, _length in self.mappings}

    def stored(self) -> list[tuple[int, bytes]]:
        """Return the changes since the last call. The result has an item for each changed page. An item is the offset
        in the file of the first changed byte, and the new bytes from the first to the last changed byte."""
        before, self.content = self.content, os.pread(self.fd, LARGEST, 0)
        if before == self.content:
            return []
        found = []
        size = min(len(before), len(self.content))
        for start in range(0, size, PAGE):
            old, new = before[start : min(start + PAGE, size)], self.content[start : min(start + PAGE, size)]
            if old != new:
                differing = int.from_bytes(old, "little") ^ int.from_bytes(new, "little")
                first = ((differing & -differing).bit_length() - 1) // 8
                found.append((start + first, new[first : -(-differing.bit_length() // 8)]))
        return found


class StoreFilter:
    """A filter that adds lines for stores to strace's lines. strace may write the stack frames of a call on the lines
    after the call's line. A new line that must follow the call must also follow these frames. Such a line waits in the
    list ``left`` until the line of a later call."""

    def __init__(self, root: str) -> None:
        self._root = _escaped(root.encode())
        self._files: dict[FileId, MappedFile] = {}
        self._lines = StraceLines()
        self._writing: dict[int, FileId | None] = {}
        self.left: list[bytes] = []

    def lines(self, line: bytes) -> list[bytes]:
        """Return the lines for new stores, and then ``line``. If the call itself changes a file, the lines for stores
        to that file go to ``left`` instead."""
        taken = self._lines.take(line)
        if taken is None:  # a line with a stack frame
            return [line]
        pid, seconds, name, call, is_begun = taken
        if name in PASSING:
            return [line]  # to compare the mapped files at each read would take longest of all
        before, self.left = self.left, []
        if self._files:
            self._look(pid, seconds, name, call, is_begun, before)
        if not is_begun and self._takes(pid, seconds, name, call):
            line = line.replace(b"mmap", b"mapped", 1)
        if call.startswith(b"+++ "):
            self._unmapped(pid)
        return [*before, line]

    def _look(self, pid: int, seconds: bytes, name: bytes, call: bytes, is_begun: bool, before: list[bytes]) -> None:
        self._writing.pop(pid, None)
        changed = self._changed(pid, name, call) if name in WRITES else None
        for key, mapped in list(self._files.items()):
            stored = mapped.stored()
            is_own = key == changed and not is_begun
            is_racing = len(mapped.tasks) > 1 or (name in SYNCS and pid not in mapped.tasks)
            is_part = key in self._writing.values() or (key == changed and is_begun)  # perhaps by an unfinished write
            if len(mapped.content) == LARGEST or (stored and (is_racing or is_part)):
                self.left.append(mapped.line)
                self._forget(key)
                continue
            for start, data in stored:
                words = min(mapped.tasks), seconds, mapped.told, _escaped(data), len(data), start, len(data)
                (self.left if is_own else before).append(b'%d %s store(%s, "%s", %d, %d) = %d' % words)
        if is_begun and changed is not None:
            self._writing[pid] = changed

    def _changed(self, pid: int, name: bytes, call: bytes) -> FileId | None:
        if name in OPENS:
            found = _RESULT.match(call)
        else:
            found = (_INTO if name in (b"copy_file_range", b"splice") else _OPEN_FILE).match(call)
        with suppress(OSError):
            if found is not None:
                return _key(os.stat(f"/proc/{pid}/fd/{int(found[1])}"))
            if name == b"truncate" and (path := _STRING.search(call)):
                return _key(os.stat(os.path.join(os.fsencode(f"/proc/{pid}/cwd"), _bytes(path[1]))))
        return None

    def _takes(self, pid: int, seconds: bytes, name: bytes, call: bytes) -> bool:
        if name == b"munmap" and self._files:
            address, length = re.findall(rb"0x[0-9a-f]+|\d+", call)[:2]
            self._unmapped(pid, int(address, 16), int(length))
        elif name in (b"execve", b"execveat") and call.endswith(b"= 0"):
            self._unmapped(pid)
        elif name in FORKS and self._files and (child := _RESULT.match(call)):
            for mapped in self._files.values():
                mapped.mappings |= {(int(child[1]), at, size) for one, at, size in mapped.mappings if one == pid}
        found = _MAPS.match(call)
        if found is None or not (b"PROT_WRITE" in found[2] and b"MAP_SHARED" in found[3]):
            return False
        is_below = self._root + b"\\x2f" in found[5]
        return is_below and self._mapped(pid, found, b"%d %s %s" % (pid, seconds, call))

    def _mapped(self, pid: int, found: re.Match[bytes], line: bytes) -> bool:
        fd = _opened(f"/proc/{pid}/fd/{int(found[4])}")
        if fd is None:
            return False
        key = _key(os.fstat(fd))
        if key in self._files:
            os.close(fd)
        else:
            self._files[key] = MappedFile(fd, found[4] + b"<" + found[5] + b">", line)
        length = -(-int(found[1]) // PAGE) * PAGE
        self._files[key].mappings.add((pid, int(found[6], 16), length))
        return True

    def _unmapped(self, pid: int, address: int = 0, length: int = 1 << 64) -> None:
        end = address + -(-length // PAGE) * PAGE
        for key, mapped in list(self._files.items()):
            mapped.mappings = {
                (one, start, size)
                for one, start, size in mapped.mappings
                if one != pid or start < address or start + size > end
            }
            if not mapped.mappings:
                self._forget(key)

    def _forget(self, key: FileId) -> None:
        os.close(self._files.pop(key).fd)


def _key(status: os.stat_result) -> FileId:
    return status.st_dev, status.st_ino


def _opened(path: str) -> int | None:
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOATIME)  # reading it must not change its atime
        if os.fstat(fd).st_size < LARGEST:
            return fd
        os.close(fd)
    return None


def _escaped(data: bytes) -> bytes:
    return ("\\x" + data.hex("|").replace("|", "\\x")).encode() if data else b""


def _bytes(escaped: bytes) -> bytes:
    return bytes.fromhex(escaped.replace(b"\\x", b"").decode())
