"""The one-line language of operations, read and written: ``write /a 0 4096``, ``rename /a /b``, ``fsync /d``.

One operation a line, or several joined by ``;``. ``docs/write-a-probe.md`` has the table of them, made from
:data:`GRAMMAR`. A mistake is a :class:`~bob.errors.UsageError` that quotes the operation and says what was expected.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bob.errors import PointedError, UsageError, meant
from bob.workload import operations as ops
from bob.workload.operations import Allocation, How, Operation, Replacing, Special

UNOBSERVED = frozenset({"lost+found", ".nilfs"})
UNOBSERVED_PREFIX = ".bob-"
"""Names at the top of a file system that are its own or bob's (bob.agent.inside.look leaves them out)."""

EARLIEST, LATEST = 400_000_000, 1_600_000_000
"""Between these are the times that an operation may set (seconds since 1970), before that of any recording."""

_UNITS = {"K": 1024, "M": 1024 * 1024}
_PIECE = re.compile(
    r"""( (?: \\. | '[^']*' | "(?: \\. | [^"\\] )*" | (?<=[^\s;])\# | [^\n;\#] )* ) (?: [;\n] | \#[^\n]*\n? | $ )""",
    re.VERBOSE | re.DOTALL,
)
"""An operation and what ends it: a semicolon, the end of the line or a comment, outside of quotes."""


@dataclass(frozen=True, slots=True)
class Form:
    """How an operation is written, what it does, and how its words become the operation."""

    usage: str
    does: str
    build: Callable[[Sequence[str]], Operation]


def path_in(word: str) -> str:
    """The path in ``word``; raises ValueError for what is none, or is not observed."""
    names = word.split("/")[1:]
    if word.startswith("/") and {".", ".."} & set(names):
        raise ValueError(f"{word!r} has {'..' if '..' in names else '.'} in it: write the path without")
    if not word.startswith("/") or (word != "/" and not all(names)) or "\0" in word:
        raise ValueError(f"{word!r} is not an absolute path such as /d/a")
    if names[0] in UNOBSERVED or names[0].startswith(UNOBSERVED_PREFIX):
        raise ValueError(f"bob does not observe what is in /{names[0]}")
    return word


def file_in(word: str) -> str:
    """The path, or the handle of a file that is kept open, in ``word``; raises ValueError for what is neither."""
    return path_in(word) if word.startswith("/") else handle_in(word)


def handle_in(word: str) -> str:
    """The handle in ``word``; raises ValueError for what is none."""
    if not re.fullmatch(r"[A-Za-z]\w*", word, re.ASCII) or word in ("later", "directory"):  # words of a finish
        raise ValueError(f"{word!r} is neither an absolute path such as /d/a nor a handle such as f")
    return word


def _opened(words: Sequence[str]) -> tuple[str, str]:
    if words[1] != "as":
        raise ValueError(f"{words[1]!r} is not 'as'")
    return path_in(words[0]), handle_in(words[2])


def _special(word: str) -> Special:
    if word not in set(Special):
        raise ValueError(f"{word!r} is none of {', '.join(Special)}")
    return Special(word)


def bytes_in(word: str) -> int:
    """The number of bytes in ``word``, such as ``512`` or ``4K``; raises ValueError for what is none."""
    digits, unit = (word[:-1], _UNITS[word[-1]]) if word[-1:] in _UNITS else (word, 1)
    if not digits.isdigit():
        raise ValueError(f"{word!r} is not a number of bytes such as 512, 4K or 2M")
    return int(digits) * unit


def _length(word: str) -> int:
    if (length := bytes_in(word)) == 0:
        raise ValueError("a length of 0 writes nothing")
    return length


def _how(words: Sequence[str], *allowed: How) -> How:
    if words and words[0] not in allowed:
        raise ValueError(f"{words[0]!r} is none of {', '.join(allowed)}")
    return How(words[0]) if words else How.PLAIN


def _mode(words: Sequence[str]) -> Allocation:
    modes = [mode.value for mode in Allocation if mode is not Allocation.GROW]
    if words and words[0] not in modes:
        raise ValueError(f"{words[0]!r} is none of {', '.join(modes)}")
    return Allocation(words[0]) if words else Allocation.GROW


def _replacing(words: Sequence[str]) -> Replacing:
    flags = [flag.value for flag in Replacing if flag is not Replacing.REPLACE]
    if words and words[0] not in flags:
        raise ValueError(f"{words[0]!r} is none of {', '.join(flags)}")
    return Replacing(words[0]) if words else Replacing.REPLACE


def permissions_in(word: str) -> int:
    """The permission bits in ``word``, in octal; raises ValueError for what is none."""
    if not re.fullmatch("[0-7]{3}", word):
        raise ValueError(f"{word!r} is no permission bits such as 640")
    return int(word, 8)


def time_in(word: str) -> int:
    """The time of modification in ``word`` (seconds since 1970), one that every file system keeps: vfat begins in 1980,
    and keeps every other second. Raises ValueError for what is none."""
    if not word.isdigit() or int(word) % 2 or not EARLIEST <= int(word) <= LATEST:
        raise ValueError(f"{word!r} is not an even number of seconds from {EARLIEST} to {LATEST}")
    return int(word)


def owner_in(word: str) -> tuple[int, int]:
    """The owner and the group in ``word``, such as ``1000:100``; raises ValueError for what is none."""
    if not re.fullmatch(r"\d{1,9}:\d{1,9}", word, re.ASCII):
        raise ValueError(f"{word!r} is no owner and group such as 1000:100")
    uid, gid = map(int, word.split(":"))
    return uid, gid


def _seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise ValueError(f"{word!r} is not a number of seconds such as 2.5")
    return seconds


GRAMMAR: dict[str, Form] = {
    "create": Form("create PATH", "make an empty file", lambda w: ops.Create(path_in(w[0]))),
    "mknod": Form(
        "mknod PATH fifo|socket|character|block",
        "make a special file; a device has the number 7:11",
        lambda w: ops.Mknod(path_in(w[0]), _special(w[1])),
    ),
    "open": Form("open PATH as HANDLE", "open what is there, and keep it open", lambda w: ops.Open(*_opened(w))),
    "tmpfile": Form(
        "tmpfile DIRECTORY as HANDLE",
        "make a file without a name, and keep it open; link HANDLE PATH gives it one",
        lambda w: ops.Unnamed(*_opened(w)),
    ),
    "close": Form("close HANDLE", "close what is kept open", lambda w: ops.Close(handle_in(w[0]))),
    "write": Form(
        "write PATH OFFSET LENGTH [direct|sync|dsync|mmap]",
        "write LENGTH bytes at OFFSET (an overwrite within the file, an append at its end)",
        lambda w: ops.Write(
            file_in(w[0]), bytes_in(w[1]), _length(w[2]), _how(w[3:], How.DIRECT, How.SYNC, How.DSYNC, How.MMAP)
        ),
    ),
    "append": Form(
        "append PATH LENGTH [direct|sync|dsync|trunc]",
        "append LENGTH bytes; with trunc, to a file opened with O_TRUNC",
        lambda w: ops.Write(
            file_in(w[0]), None, _length(w[1]), _how(w[2:], How.DIRECT, How.SYNC, How.DSYNC, How.TRUNC)
        ),
    ),
    "copy_file_range": Form(
        "copy_file_range FROM TO OFFSET LENGTH",
        "copy a range of one file to the same place in another",
        lambda w: ops.CopyRange(file_in(w[0]), file_in(w[1]), bytes_in(w[2]), _length(w[3])),
    ),
    "reflink": Form(
        "reflink FROM TO",
        "have TO share all that FROM has (FICLONE)",
        lambda w: ops.Reflink(file_in(w[0]), file_in(w[1])),
    ),
    "truncate": Form("truncate PATH SIZE", "set the size", lambda w: ops.Truncate(file_in(w[0]), bytes_in(w[1]))),
    "fallocate": Form(
        "fallocate PATH OFFSET LENGTH [keep|punch|zero|zero-keep|collapse|insert]",
        "allocate a range, growing the file where it ends beyond; keep: without growing it; punch: make a hole of it; "
        "zero: make zeros of it, growing the file; zero-keep: without growing it; collapse: take it out; insert: put "
        "zeros in before it",
        lambda w: ops.Fallocate(file_in(w[0]), bytes_in(w[1]), _length(w[2]), _mode(w[3:])),
    ),
    "rename": Form(
        "rename OLD NEW [noreplace|exchange]",
        "rename, over NEW if it is there; noreplace: only if it is not; exchange: have both swap their names",
        lambda w: ops.Rename(path_in(w[0]), path_in(w[1]), _replacing(w[2:])),
    ),
    "link": Form("link OLD NEW", "make a hard link", lambda w: ops.Link(file_in(w[0]), path_in(w[1]))),
    "symlink": Form("symlink TARGET PATH", "make a symbolic link", lambda w: ops.Symlink(w[0], path_in(w[1]))),
    "unlink": Form("unlink PATH", "remove a name", lambda w: ops.Unlink(path_in(w[0]))),
    "mkdir": Form("mkdir PATH", "make a directory", lambda w: ops.Mkdir(path_in(w[0]))),
    "rmdir": Form("rmdir PATH", "remove an empty directory", lambda w: ops.Rmdir(path_in(w[0]))),
    "setxattr": Form(
        "setxattr PATH NAME LENGTH",
        "set an extended attribute",
        lambda w: ops.Setxattr(file_in(w[0]), w[1], _length(w[2])),
    ),
    "removexattr": Form(
        "removexattr PATH NAME", "remove an extended attribute", lambda w: ops.Removexattr(file_in(w[0]), w[1])
    ),
    "chmod": Form(
        "chmod PATH MODE", "set the permission bits, in octal", lambda w: ops.Chmod(file_in(w[0]), permissions_in(w[1]))
    ),
    "chown": Form("chown PATH UID:GID", "set owner and group", lambda w: ops.Chown(file_in(w[0]), *owner_in(w[1]))),
    "utimes": Form(
        "utimes PATH SECONDS",
        "set the times of access and modification, in seconds since 1970",
        lambda w: ops.Utimes(file_in(w[0]), time_in(w[1])),
    ),
    "fsync": Form("fsync PATH", "fsync a file or directory", lambda w: ops.Fsync(file_in(w[0]))),
    "fdatasync": Form("fdatasync PATH", "fdatasync a file", lambda w: ops.Fsync(file_in(w[0]), data_only=True)),
    "sync_file_range": Form(
        "sync_file_range PATH OFFSET LENGTH",
        "write a range out and wait",
        lambda w: ops.SyncFileRange(file_in(w[0]), bytes_in(w[1]), _length(w[2])),
    ),
    "msync": Form("msync PATH", "map a file, and msync all of it", lambda w: ops.Msync(file_in(w[0]))),
    "sync": Form("sync", "sync everything", lambda w: ops.Sync()),
    "syncfs": Form("syncfs", "sync this file system", lambda w: ops.Sync(this_only=True)),
    "sleep": Form("sleep SECONDS", "let time pass in the guest", lambda w: ops.Sleep(_seconds(w[0]))),
    "acknowledge": Form("acknowledge WORD", "put a mark into the recording", lambda w: ops.Acknowledge(w[0])),
}


def parse(text: str) -> tuple[Operation, ...]:
    """The operations in ``text``; raises PointedError at the first that is not one."""
    found = []
    for start, stop in places(text):
        try:
            found.append(parse_one(text[start:stop]))
        except UsageError as error:
            raise PointedError(error.message, text, start, stop, hint=error.hint) from None
    return tuple(found)


def places(text: str) -> list[tuple[int, int]]:
    """Where each operation stands in ``text``: its first character, and the one after its last."""
    pieces = [(match, match[1].strip()) for match in _PIECE.finditer(text)]
    starts = [(match.start(1) + match[1].index(piece), piece) for match, piece in pieces if piece]
    return [(start, start + len(piece)) for start, piece in starts]


def parse_one(text: str) -> Operation:
    """The operation in ``text``, for example ``"append /a 4K"``."""
    try:
        verb, *words = shlex.split(text) or [""]
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}", hint="close the quotes") from None
    form = GRAMMAR.get(verb)
    if form is None:
        raise UsageError(f"no operation {verb!r} in {text!r}", hint=meant(verb, GRAMMAR, "operations"))
    required = sum(1 for word in form.usage.split()[1:] if not word.startswith("["))
    optional = sum(1 for word in form.usage.split()[1:] if word.startswith("["))
    if not required <= len(words) <= required + optional:
        raise UsageError(f"{text!r} does not have the form of {verb!r}", hint=f"it is written: {form.usage}")
    try:
        return form.build(words)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}", hint=f"it is written: {form.usage}") from None


def write_one(operation: Operation) -> str:
    """``operation`` in the language; ``parse_one`` of it gives ``operation`` again."""
    match operation:
        case ops.Write(path, None, length, how):
            words = ["append", path, str(length), *_how_words(how)]
        case ops.Write(path, offset, length, how):
            words = ["write", path, str(offset), str(length), *_how_words(how)]
        case ops.Mknod(path, special):
            words = ["mknod", path, special.value]
        case ops.Open(path, handle):
            words = ["open", path, "as", handle]
        case ops.Unnamed(path, handle):
            words = ["tmpfile", path, "as", handle]
        case ops.Close(handle):
            words = ["close", handle]
        case ops.CopyRange(source, path, offset, length):
            words = ["copy_file_range", source, path, str(offset), str(length)]
        case ops.Reflink(source, path):
            words = ["reflink", source, path]
        case ops.Truncate(path, size):
            words = ["truncate", path, str(size)]
        case ops.Fallocate(path, offset, length, allocation):
            grows = allocation is Allocation.GROW
            words = ["fallocate", path, str(offset), str(length), *([] if grows else [allocation.value])]
        case ops.Rename(old, new, replacing):
            words = ["rename", old, new, *([] if replacing is Replacing.REPLACE else [replacing.value])]
        case ops.Link(old, new):
            words = ["link", old, new]
        case ops.Symlink(target, path):
            words = ["symlink", target, path]
        case ops.Setxattr(path, name, length):
            words = ["setxattr", path, name, str(length)]
        case ops.Removexattr(path, name):
            words = ["removexattr", path, name]
        case ops.Chmod(path, mode):
            words = ["chmod", path, f"{mode:03o}"]
        case ops.Chown(path, uid, gid):
            words = ["chown", path, f"{uid}:{gid}"]
        case ops.Utimes(path, seconds):
            words = ["utimes", path, str(seconds)]
        case ops.Fsync(path, data_only):
            words = ["fdatasync" if data_only else "fsync", path]
        case ops.SyncFileRange(path, offset, length):
            words = ["sync_file_range", path, str(offset), str(length)]
        case ops.Sync(this_only):
            words = ["syncfs" if this_only else "sync"]
        case ops.Sleep(duration):
            words = ["sleep", f"{duration:g}" if float(f"{duration:g}") == duration else repr(duration)]
        case ops.Acknowledge(text):
            words = ["acknowledge", text]
        case ops.Create(path) | ops.Unlink(path) | ops.Mkdir(path) | ops.Rmdir(path) | ops.Msync(path):
            words = [type(operation).__name__.lower(), path]
    return shlex.join(words)


def _how_words(how: How) -> list[str]:
    return [] if how is How.PLAIN else [how.value]
