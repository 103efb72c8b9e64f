"""A small stand-in for ALICE, written for these tests: what its parser hands to a class, and what its replay makes.

After its interface (github.com/madthanu/alice): a *logical operation* is a ``Struct`` with ``op`` (creat, write,
append, trunc, rename, ...), inodes, paths and sizes; the class gives it ``hidden_disk_ops``, and each of those
``hidden_dependencies``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any
from unittest.mock import patch

from bob.apm.dependencies import Graph
from bob.apm.micro import DataCell, MicroOperation, NameCell, SizeCell
from bob.workload import operations as ops
from bob.workload.history import FileKind, History
from bob.workload.language import write_one
from bob.workload.operations import How, Operation, Workload

INODES = 100
"""Inode numbers are the identities of things, and this much more."""


class Struct:
    """A bag of attributes."""

    TYPE_DIR = 0
    TYPE_FILE = 1

    def __init__(self, **entries: Any) -> None:
        self.__dict__.update(entries)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def load(source: str) -> Any:
    """The module of this source, where ``alicestruct`` is the stand-in's."""
    alice = ModuleType("alicestruct")
    alice.Struct = Struct  # type: ignore[attr-defined]
    module = ModuleType("generated")
    with patch.dict(sys.modules, {"alicestruct": alice}):
        exec(compile(source, "generated", "exec"), module.__dict__)
    return module


def disk_operations(system: Any, workload: Workload, history: History) -> list[Struct]:
    """The disk operations that ``system`` makes of a workload, in order (ALICE's ``Replayer.set_fs``)."""
    found = []
    for line in trace(workload, history):
        system.get_disk_ops(line)
        for number, op in enumerate(line.hidden_disk_ops):
            op.hidden_id, op.hidden_omitted, op.hidden_micro_op = number, False, line
            found.append(op)
    return found


def trace(workload: Workload, history: History) -> Iterator[Struct]:
    """The logical operations of a workload."""
    for number, operation in enumerate((*workload.operations, *workload.finish.operations), start=1):
        at = min(number, len(history.steps) - 1)
        for syscall, line in _Step(history, at, number).lines(operation):
            line.hidden_tid, line.hidden_full_line = 1, f"{number} {write_one(operation)}"
            line.hidden_parsed_line = Struct(syscall=syscall)
            yield line


class _Step:
    def __init__(self, history: History, at: int, number: int) -> None:
        self._number, self._data, self._things = number, history.data, history.things
        self._before, self._after = history.steps[at - 1 if at == number else at], history.steps[at]

    def lines(self, operation: Operation) -> Iterator[tuple[str, Struct]]:
        match operation:
            case ops.Create(path):
                yield "open", self._made("creat", path, self._after)
            case ops.Symlink(_target, path):
                yield "symlink", self._made("creat", path, self._after)
            case ops.Mkdir(path):
                yield "mkdir", self._made("mkdir", path, self._after)
            case ops.Rmdir(path):
                yield "rmdir", self._made("rmdir", path, self._before)
            case ops.Unlink(path):
                line = self._made("unlink", path, self._before)
                line.hardlinks, line.size = self._links(path), self._size(path)
                yield "unlink", line
            case ops.Link(old, new):
                yield "link", self._two("link", old, new)
            case ops.Rename(old, new):
                line = self._two("rename", old, new)
                line.dest_inode = self._inode(new, self._before) if new in self._before.names else False
                line.dest_hardlinks = self._links(new) if new in self._before.names else 0
                yield "rename", line
            case ops.Truncate(path, size) if size != self._size(path):
                yield "truncate", self._trunc(path, size)
            case ops.Fallocate(path, offset, length):
                if offset + length > self._size(path):
                    yield "fallocate", self._trunc(path, offset + length)
                yield "fallocate", self._write("write", path, offset, length)
            case ops.Write(path, _offset, length, how):
                assert path in self._before.names and how is not How.TRUNC, "say create, or truncate, first"
                for line in self._writes(path, self._data[self._number][1], length):
                    yield "pwrite", line
                    if how in (How.SYNC, How.DSYNC) and line.op != "trunc":
                        yield "pwrite", self._write("file_sync_range", path, line.offset, line.count)
            case ops.Fsync(path, data_only):
                syscall = "fdatasync" if data_only else "fsync"
                yield (
                    syscall,
                    Struct(op=syscall, name=path, inode=self._inode(path, self._after), size=self._size(path)),
                )
            case ops.Sync(False):
                yield "sync", Struct(op="sync", hidden_files=[])
            case ops.Acknowledge(text):
                yield "write", Struct(op="stdout", data=text)

    def _writes(self, path: str, offset: int, length: int) -> Iterator[Struct]:
        size = self._size(path)
        within = max(0, min(offset + length, size) - offset)
        if within:
            yield self._write("write", path, offset, within)
        if offset > size:
            yield self._trunc(path, offset)
        if length > within:
            yield self._write("append", path, offset + within, length - within)

    def _write(self, op: str, path: str, offset: int, count: int) -> Struct:
        inode = self._inode(path, self._before)
        return Struct(op=op, name=path, inode=inode, offset=offset, count=count, dump_file="dump", dump_offset=offset)

    def _trunc(self, path: str, size: int) -> Struct:
        inode = self._inode(path, self._before)
        return Struct(op="trunc", name=path, inode=inode, initial_size=self._size(path), final_size=size)

    def _made(self, op: str, path: str, step: Any) -> Struct:
        return Struct(op=op, name=path, mode="0644", inode=self._inode(path, step), parent=self._parent(path))

    def _two(self, op: str, old: str, new: str) -> Struct:
        return Struct(
            op=op, source=old, dest=new, source_inode=self._inode(old, self._before),
            source_parent=self._parent(old), dest_parent=self._parent(new),
        )  # fmt: skip

    def _parent(self, path: str) -> int:
        return self._inode(path.rsplit("/", 1)[0] or "/", self._before)

    def _inode(self, path: str, step: Any) -> int:
        return INODES + int(step.names[path])

    def _links(self, path: str) -> int:
        return list(self._before.names.values()).count(self._before.names[path])

    def _size(self, path: str) -> int:
        return len(self._before.inodes[self._before.names[path]].content)


def counterparts(graph: Graph, found: list[Struct]) -> list[int]:
    """For each of bob's micro-operations the disk operation (its index) that it is, or is a part of."""
    return [
        next(at for at, op in enumerate(found) if _call_of(op) == micro.number and _is_of(op, micro))
        for micro in graph.workings.operations
    ]


def _call_of(op: Struct) -> int:
    return int(op.hidden_micro_op.hidden_full_line.split()[0])


def _is_of(op: Struct, micro: MicroOperation) -> bool:
    match micro.cell:
        case DataCell(thing, start, stop):
            return (
                op.op == "write"
                and op.special_write != "GARBAGE"
                and op.inode == INODES + thing
                and op.offset <= start
                and stop <= op.offset + op.count
            )
        case SizeCell(thing):
            return op.op == "truncate" and op.inode == INODES + thing and op.final_size == micro.value
        case NameCell((directory, name)):
            verb = "delete_dir_entry" if micro.value is None else "create_dir_entry"
            return op.op == verb and op.parent == INODES + directory and op.entry.rsplit("/", 1)[1] == name
    raise AssertionError(micro)


Left = tuple[tuple[str, bytes], ...]
"""What a crash left: each path, and what is in the file."""


def replay(history: History, there: Iterable[Struct], dump: dict[int, bytes]) -> Left:
    """The tree that these disk operations leave; ``dump`` has what each call wrote, by its number."""
    first = history.steps[0]
    files = {INODES + thing: bytearray(inode.content) for thing, inode in first.inodes.items()}
    names = {}
    for path, thing in first.names.items():
        if path != "/":
            parent, name = path.rsplit("/", 1)
            names[INODES + first.names[parent or "/"], name] = INODES + thing
    for op in there:
        if op.op == "create_dir_entry":
            names[op.parent, op.entry.rsplit("/", 1)[1]] = op.inode
        elif op.op == "delete_dir_entry":
            names.pop((op.parent, op.entry.rsplit("/", 1)[1]), None)
        elif op.op in ("truncate", "write"):
            content = files.setdefault(op.inode, bytearray())
            size = op.final_size if op.op == "truncate" else max(len(content), op.offset + op.count)
            content[:] = content[:size].ljust(size, b"\0")
            if op.op == "write":
                content[op.offset : op.offset + op.count] = _written(op, dump)
    kinds = {INODES + thing.identity: thing.kind for thing in history.things}
    found: dict[str, bytes] = {}
    _list(INODES, "", names, files, kinds, found)
    return tuple(sorted(found.items()))


def _written(op: Struct, dump: dict[int, bytes]) -> bytes:
    if op.special_write == "ZEROS":
        return bytes(op.count)
    if op.special_write == "GARBAGE":
        return b"?" * op.count
    return dump[_call_of(op)][op.dump_offset : op.dump_offset + op.count]


def _list(
    directory: int, path: str, names: dict[tuple[int, str], int], files: dict[int, bytearray], kinds: dict[int, FileKind],
    found: dict[str, bytes],
) -> None:  # fmt: skip
    for (parent, name), inode in names.items():
        if parent == directory:
            found[f"{path}/{name}"] = bytes(files.get(inode, b"")) if kinds[inode] is FileKind.FILE else b""
            if kinds[inode] is FileKind.DIRECTORY:
                _list(inode, f"{path}/{name}", names, files, kinds, found)
