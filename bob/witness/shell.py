"""Lines of a shell script for xfstests. Some perform the operations of a workload with tools such as ``xfs_io``. Others
print parts of the file system's tree."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bob.errors import UsageError
from bob.workload import operations as ops
from bob.workload.history import PerformedOperation
from bob.workload.language import write_one
from bob.workload.operations import Allocation, How, Operation, Replacing, names_of
from bob.workload.pattern import FIRST_SETUP_NUMBER

_FILLS = 0x7F  # number of fill bytes for operations, and of other fill bytes for the initial tree


@dataclass(frozen=True, slots=True)
class _NumberedOperation:
    """The number of an operation of the workload, and the ``offset`` of its write in the file (bytes)."""

    number: int
    offset: int

    @property
    def fill(self) -> str:
        """The byte that fills the data of the operation. Up to _FILLS operations, no two have the same byte."""
        if self.number >= FIRST_SETUP_NUMBER:
            return f"0x{0x80 + (self.number - FIRST_SETUP_NUMBER) % _FILLS:02x}"
        return f"0x{1 + (self.number - 1) % _FILLS:02x}"

    @property
    def letter(self) -> str:
        return chr(ord("a") + self.number % 26)


def word_of(path: str) -> str:
    return "$SCRATCH_MNT" + ("" if path == "/" else shlex.quote(path))


def _xfs_io(path: str, *commands: str, flags: str = "") -> str:
    words = " ".join(f'-c "{command}"' for command in commands)
    return f"$XFS_IO_PROG {flags + ' ' if flags else ''}{words} {word_of(path)}"


def _write(operation: ops.Write, at: _NumberedOperation) -> str:
    where = f"{at.offset} {operation.length}"
    if operation.how is How.MMAP:
        page = at.offset - at.offset % 4096
        mapped = f"mmap -rw {page} {at.offset + operation.length - page}"
        return _xfs_io(operation.path, mapped, f"mwrite -S {at.fill} {where}", "munmap")
    how = {How.DSYNC: "-V 1 -D "}.get(operation.how, "")
    flags = {How.DIRECT: "-f -d", How.SYNC: "-f -s", How.TRUNC: "-f -t"}.get(operation.how, "-f")
    return _xfs_io(operation.path, f"pwrite {how}-b {operation.length} -S {at.fill} {where}", flags=flags)


_FALLOCATE = {
    Allocation.GROW: "falloc",
    Allocation.KEEP: "falloc -k",
    Allocation.PUNCH: "fpunch",
    Allocation.ZERO: "fzero",
    Allocation.ZERO_KEEP: "fzero -k",
    Allocation.COLLAPSE: "fcollapse",
    Allocation.INSERT: "finsert",
}
_RENAMEAT2 = {Replacing.REFUSE: "-n", Replacing.EXCHANGE: "-x"}


def _rename(operation: ops.Rename, at: _NumberedOperation) -> str:
    both = f"{word_of(operation.old)} {word_of(operation.new)}"
    flag = _RENAMEAT2.get(operation.replacing)
    return f"mv -fT {both}" if flag is None else f"$here/src/renameat2 {flag} {both}"


_WORDS: Mapping[type, Callable[[Any, _NumberedOperation], str]] = {
    ops.Create: lambda one, at: f": > {word_of(one.path)}",
    ops.Write: _write,
    ops.Truncate: lambda one, at: _xfs_io(one.path, f"truncate {one.size}"),
    ops.Fallocate: lambda one, at: _xfs_io(one.path, f"{_FALLOCATE[one.mode]} {one.offset} {one.length}"),
    ops.Rename: _rename,
    ops.Link: lambda one, at: f"ln -T {word_of(one.old)} {word_of(one.new)}",
    ops.Symlink: lambda one, at: f"ln -sT -- {shlex.quote(one.target)} {word_of(one.path)}",
    ops.Unlink: lambda one, at: f"rm -f {word_of(one.path)}",
    ops.Mkdir: lambda one, at: f"mkdir {word_of(one.path)}",
    ops.Rmdir: lambda one, at: f"rmdir {word_of(one.path)}",
    ops.Setxattr: lambda one, at: (
        f"$SETFATTR_PROG -n {shlex.quote(one.name)} -v {at.letter * one.length} {word_of(one.path)}"
    ),
    ops.Removexattr: lambda one, at: f"$SETFATTR_PROG -x {shlex.quote(one.name)} {word_of(one.path)}",
    ops.Chmod: lambda one, at: f"chmod {one.mode:03o} {word_of(one.path)}",
    ops.Chown: lambda one, at: f"chown {one.uid}:{one.gid} {word_of(one.path)}",
    ops.Utimes: lambda one, at: f"touch -d @{one.seconds} {word_of(one.path)}",
    ops.CopyRange: lambda one, at: _xfs_io(
        one.path, f"copy_range -s {one.offset} -d {one.offset} -l {one.length} {word_of(one.source)}", flags="-f"
    ),
    ops.Reflink: lambda one, at: _xfs_io(one.path, f"reflink {word_of(one.source)}", flags="-f"),
    ops.Fsync: lambda one, at: _xfs_io(one.path, "fdatasync" if one.data_only else "fsync"),
    ops.SyncFileRange: lambda one, at: _xfs_io(one.path, f"sync_range -b -w -a {one.offset} {one.length}"),
    ops.Msync: lambda one, at: _xfs_io(one.path, f"mmap -rw 0 $(stat -c %s {word_of(one.path)})", "msync -s", "munmap"),
    ops.Sync: lambda one, at: _xfs_io("/", "syncfs") if one.this_only else "sync",
    ops.Writeback: lambda one, at: _xfs_io(one.path, "sync_range -b -w -a 0 0"),
    ops.Sleep: lambda one, at: f"sleep {one.seconds:g}",
    ops.Acknowledge: lambda one, at: f": {shlex.quote(one.text)}",
}


def translated(performed: Sequence[PerformedOperation]) -> Iterator[str]:
    """Yield each operation as a line of a shell script. Raises UsageError for an operation that no command can do, or
    that names an open file by a handle instead of a path."""
    for step in performed:
        words = _WORDS.get(type(step.operation))
        if words is None or not all(name.startswith("/") for name in names_of(step.operation)):
            verb = write_one(step.operation).split()[0]
            raise UsageError(
                f"bob cannot write the operation {verb!r} for xfstests", hint="bob witness export --probe can write it"
            )
        yield words(step.operation, _NumberedOperation(step.number, step.offset))


def needs(operations: Sequence[Operation]) -> Iterator[str]:
    """Yield the ``_require`` lines that an xfstests case needs for its ``operations``. If several operations need the
    same line, yield it several times."""
    for operation in operations:
        match operation:
            case ops.Write(how=How.DIRECT):
                yield "_require_odirect"
            case ops.Fallocate(mode=mode):
                command, *flags = _FALLOCATE[mode].split()
                yield " ".join(["_require_xfs_io_command", f'"{command}"', *(f'"{flag}"' for flag in flags)])
            case ops.Rename(replacing=replacing) if replacing in _RENAMEAT2:
                yield f"_require_renameat2 {replacing.value}"
            case ops.Link():
                yield "_require_hardlinks"
            case ops.CopyRange():
                yield '_require_xfs_io_command "copy_range"'
            case ops.Reflink():
                yield "_require_scratch_reflink"
            case ops.Symlink():
                yield "_require_symlinks"
            case ops.Setxattr() | ops.Removexattr():
                yield "_require_attrs"
            case ops.SyncFileRange():
                yield '_require_xfs_io_command "sync_range"'
            case ops.Sync(this_only=True):
                yield '_require_xfs_io_command "syncfs"'


@dataclass(frozen=True, slots=True)
class Printer:
    """A line of the script that prints a part of the tree. ``function`` is the name of the shell function that the line
    calls. The function prints the first of ``paths`` that exists; ``more`` are further arguments of the function."""

    function: str
    paths: tuple[str, ...]
    more: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        return " ".join([self.function, *map(shlex.quote, self.more), *map(word_of, self.paths)])


_FUNCTIONS = {
    "content": (
        "# The size and the contents of a file, by the first of its names that exists.",
        'local name=$(first "$@")',
        'echo "${1#$SCRATCH_MNT}: $(stat -c %s "$name") bytes, $(md5sum < "$name")"',
    ),
    "entry": (
        "# The kind of thing that has a name.",
        "local what=nothing",
        'if [ -L "$1" ]; then',
        '\twhat="a link to $(readlink "$1")"',
        'elif [ -d "$1" ]; then',
        "\twhat=directory",
        'elif [ -e "$1" ]; then',
        '\twhat="file $(stat -c %i "$1")"',
        "fi",
        'echo "${1#$SCRATCH_MNT}: $what"',
    ),
    "attribute": (
        "# The value of an extended attribute.",
        "local attribute=$1",
        "shift",
        'local name=$(first "$@")',
        'echo "${1#$SCRATCH_MNT}: $attribute=$($GETFATTR_PROG --only-values -n "$attribute" "$name" 2> /dev/null)"',
    ),
    "status": (
        "# The mode, or the owner and group.",
        "local form=$1",
        "shift",
        'local name=$(first "$@")',
        'echo "${1#$SCRATCH_MNT}: $(stat -c "$form" "$name")"',
    ),
}
_FIRST = (
    "first()",
    "{",
    "\tlocal name",
    '\tfor name in "$@"; do',
    '\t\t[ -e "$name" ] && echo "$name" && return',
    "\tdone",
    "}",
    "",
)


def function(name: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{name}()"
    yield "{"
    yield from (f"\t{line}" for line in [*lines] or [":"])
    yield "}"
    yield ""


def looks(checks: Sequence[Printer]) -> Iterator[str]:
    """Yield the lines of shell functions that print parts of the tree. There is one function for each kind of part in
    ``checks``: contents, entries, attributes or status. The last function, ``promised``, prints all parts in
    ``checks``. The xfstests case calls it before and after the crash, and compares what it prints."""
    used = [name for name in _FUNCTIONS if any(check.function == name for check in checks)]
    if {*used} - {"entry"}:
        yield from _FIRST
    for name in used:
        comment, *lines = _FUNCTIONS[name]
        yield comment
        yield from function(name, lines)
    yield "# Everything that must be the same before and after the crash."
    yield from function("promised", [check.line for check in checks])
