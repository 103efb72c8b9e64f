"""The reader and writer of the language of operations. A text has one operation in each line, or several joined by
``;`` (``write /a 0 4096; fsync /a``). A mistake raises :class:`~bob.errors.UsageError`, which quotes the operation and
says what was expected. ``path_in`` and similar functions take one word of an operation, and return the path, number or
time that it stands for. They raise ValueError if the word does not fit."""

import math
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from itertools import islice
from typing import Any, get_args

from bob.errors import PointedError, UsageError, meant
from bob.workload import operations as ops
from bob.workload.operations import Allocation, How, Operation, Replacing, Special

UNOBSERVED = frozenset({"lost+found", ".nilfs"})
UNOBSERVED_PREFIX = ".bob-"
"""The beginning of names at the top of a file system that belong to the file system itself or to bob
(bob.agent.inside.look leaves them out)."""

EARLIEST, LATEST = 400_000_000, 1_600_000_000
"""Bounds of the times that an operation may set (seconds since 1970). They are before any recording."""

_UNITS = {"K": 1024, "M": 1024 * 1024}
_PIECE = re.compile(
    r"""( (?: \\. | '[^']*' | "(?: \\. | [^"\\] )*" | (?<=[^\s;])\# | [^\n;\#] )* ) (?: [;\n] | \#[^\n]*\n? | $ )""",
    re.VERBOSE | re.DOTALL,
)
"""An operation and what ends it: a semicolon, the end of the line or a comment, outside of quotes."""


def path_in(word: str) -> str:
    """Return the path in ``word``. Raises ValueError if the word is not an absolute path. Also raises it for the names
    at the top that the file system or bob itself uses (such as /lost+found), and for paths below them. bob does not
    look there after a crash."""
    names = word.split("/")[1:]
    if word.startswith("/") and {".", ".."} & set(names):
        raise ValueError(f"the path {word!r} must not contain {'..' if '..' in names else '.'}")
    if not word.startswith("/") or (word != "/" and not all(names)) or "\0" in word:
        raise ValueError(f"{word!r} is not an absolute path such as /d/a")
    if names[0] in UNOBSERVED or names[0].startswith(UNOBSERVED_PREFIX):
        raise ValueError(f"bob does not observe the contents of /{names[0]}")
    return word


def file_in(word: str) -> str:
    return path_in(word) if word.startswith("/") else handle_in(word)


def handle_in(word: str) -> str:
    # Words in the language of a finish.
    if not re.fullmatch(r"[A-Za-z]\w*", word, re.ASCII) or word in ("later", "directory"):
        raise ValueError(f"{word!r} is neither an absolute path such as /d/a nor a handle such as f")
    return word


def bytes_in(word: str) -> int:
    digits, unit = (word[:-1], _UNITS[word[-1]]) if word[-1:] in _UNITS else (word, 1)
    if not digits.isdigit():
        raise ValueError(f"{word!r} is not a number of bytes such as 512, 4K or 2M")
    return int(digits) * unit


def _length(word: str) -> int:
    if (length := bytes_in(word)) == 0:
        raise ValueError("a length must be more than 0")
    return length


def permissions_in(word: str) -> int:
    if not re.fullmatch("[0-7]{3}", word):
        raise ValueError(f"invalid permission bits {word!r}; expected three octal digits, for example 640")
    return int(word, 8)


def time_in(word: str) -> int:
    """Return the time in ``word`` (seconds since 1970). Raises ValueError for an odd time, which vfat cannot store."""
    if not word.isdigit() or int(word) % 2 or not EARLIEST <= int(word) <= LATEST:
        raise ValueError(f"{word!r} is not an even number of seconds from {EARLIEST} to {LATEST}")
    return int(word)


def owner_in(word: str) -> tuple[int, int]:
    if not re.fullmatch(r"\d{1,9}:\d{1,9}", word, re.ASCII):
        raise ValueError(f"invalid owner {word!r}; expected UID:GID, for example 1000:100")
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


def _as(word: str) -> tuple[()]:
    if word != "as":
        raise ValueError(f"expected 'as', not {word!r}")
    return ()


@dataclass(frozen=True, slots=True)
class _Word:
    """A kind of word in the language, such as a path or an owner. ``read`` returns the value for a word. ``write``
    returns the word for a value, or None if the word is left out. ``fields`` is the number of fields of the operation
    that get their values from the word. If one word gives the values of several fields, ``read`` returns a tuple with
    these values."""

    read: Callable[[str], Any]
    write: Callable[..., str | None] = str
    fields: int = 1


def _one_of(*words: StrEnum, default: StrEnum | None = None) -> _Word:
    known = {word.value: word for word in words}

    def read(word: str) -> StrEnum:
        if word not in known:
            raise ValueError(f"unknown word {word!r}; expected one of {', '.join(known)}")
        return known[word]

    return _Word(read, lambda value: None if value is default else str(value))


def _others(default: StrEnum) -> _Word:
    return _one_of(*(one for one in type(default) if one is not default), default=default)


_PATH, _FILE, _HANDLE, _TEXT = _Word(path_in), _Word(file_in), _Word(handle_in), _Word(str)
_BYTES, _LENGTH, _TIME = _Word(bytes_in), _Word(_length), _Word(time_in)
_AS = _Word(_as, lambda: "as", fields=0)
_MODE = _Word(permissions_in, "{:03o}".format)
_OWNER = _Word(owner_in, "{}:{}".format, fields=2)
_SECONDS = _Word(_seconds, lambda value: f"{value:g}" if float(f"{value:g}") == value else repr(value))


@dataclass(frozen=True, slots=True)
class Form:
    """The written form of an operation: a verb, and then words. The words give the values of some fields of the
    operation; ``names`` are the names of these fields. The other fields have the same values in all operations of this
    form; ``fixed`` has these values. ``does`` says in words what the operation does."""

    verb: str
    usage: str
    does: str
    operation: Callable[..., Operation]
    words: tuple[_Word, ...]
    names: tuple[str, ...]
    fixed: dict[str, Any]

    def build(self, texts: Sequence[str]) -> Operation:
        """Return the operation with these words. Raises ValueError for a word that does not fit."""
        values: list[Any] = []
        for word, text in zip(self.words, texts, strict=False):
            value = word.read(text)
            values += [value] if word.fields == 1 else value
        return self.operation(**dict(zip(self.names, values, strict=False)), **self.fixed)

    def values(self, operation: Operation) -> list[Any]:
        return [getattr(operation, name) for name in self.names]

    def write(self, operation: Operation) -> str:
        values = iter(self.values(operation))
        texts = (word.write(*islice(values, word.fields)) for word in self.words)
        return shlex.join([self.verb, *(text for text in texts if text is not None)])


def _form(usage: str, does: str, operation: type[Operation], words: tuple[_Word, ...] = (), **fixed: Any) -> Form:
    names = tuple(one.name for one in fields(operation) if one.name not in fixed)
    return Form(usage.split()[0], usage, does, operation, words, names, fixed)


_HOW = How.DIRECT, How.SYNC, How.DSYNC
_FORMS = (
    _form("create PATH", "make an empty file", ops.Create, (_PATH,)),
    _form(
        "mknod PATH fifo|socket|character|block",
        "make a special file; a device has the number 7:11",
        ops.Mknod,
        (_PATH, _one_of(*Special)),
    ),
    _form(
        "open PATH as HANDLE", "open an existing file or directory, and keep it open", ops.Open, (_PATH, _AS, _HANDLE)
    ),
    _form(
        "tmpfile DIRECTORY as HANDLE",
        "make a file without a name, and keep it open; link HANDLE PATH gives it one",
        ops.Unnamed,
        (_PATH, _AS, _HANDLE),
    ),
    _form("close HANDLE", "close what an open or a tmpfile keeps open", ops.Close, (_HANDLE,)),
    _form(
        "write PATH OFFSET LENGTH [direct|sync|dsync|mmap]",
        "write LENGTH bytes at OFFSET (an overwrite within the file, an append at its end)",
        ops.Write,
        (_FILE, _BYTES, _LENGTH, _one_of(*_HOW, How.MMAP, default=How.PLAIN)),
    ),
    _form(
        "append PATH LENGTH [direct|sync|dsync|trunc]",
        "append LENGTH bytes; with trunc, to a file opened with O_TRUNC",
        ops.Write,
        (_FILE, _LENGTH, _one_of(*_HOW, How.TRUNC, default=How.PLAIN)),
        offset=None,
    ),
    _form(
        "copy_file_range FROM TO OFFSET LENGTH",
        "copy a range of one file to the same place in another",
        ops.CopyRange,
        (_FILE, _FILE, _BYTES, _LENGTH),
    ),
    _form("reflink FROM TO", "make TO share all data of FROM (FICLONE)", ops.Reflink, (_FILE, _FILE)),
    _form("truncate PATH SIZE", "set the size", ops.Truncate, (_FILE, _BYTES)),
    _form(
        "fallocate PATH OFFSET LENGTH [keep|punch|zero|zero-keep|collapse|insert]",
        "allocate a range, and grow the file if it ends beyond; keep: allocate without growing; punch: make a hole; "
        "zero: write zeros, and grow the file; zero-keep: write zeros without growing; collapse: cut the range out; "
        "insert: insert zeros at OFFSET",
        ops.Fallocate,
        (_FILE, _BYTES, _LENGTH, _others(Allocation.GROW)),
    ),
    _form(
        "rename OLD NEW [noreplace|exchange]",
        "rename, and replace NEW if it exists; noreplace: only if NEW does not exist; exchange: swap the names",
        ops.Rename,
        (_PATH, _PATH, _others(Replacing.REPLACE)),
    ),
    _form("link OLD NEW", "make a hard link", ops.Link, (_FILE, _PATH)),
    _form("symlink TARGET PATH", "make a symbolic link", ops.Symlink, (_TEXT, _PATH)),
    _form("unlink PATH", "remove a name", ops.Unlink, (_PATH,)),
    _form("mkdir PATH", "make a directory", ops.Mkdir, (_PATH,)),
    _form("rmdir PATH", "remove an empty directory", ops.Rmdir, (_PATH,)),
    _form("setxattr PATH NAME LENGTH", "set an extended attribute", ops.Setxattr, (_FILE, _TEXT, _LENGTH)),
    _form("removexattr PATH NAME", "remove an extended attribute", ops.Removexattr, (_FILE, _TEXT)),
    _form("chmod PATH MODE", "set the permission bits, in octal", ops.Chmod, (_FILE, _MODE)),
    _form("chown PATH UID:GID", "set owner and group", ops.Chown, (_FILE, _OWNER)),
    _form(
        "utimes PATH SECONDS",
        "set the times of access and modification, in seconds since 1970",
        ops.Utimes,
        (_FILE, _TIME),
    ),
    _form("fsync PATH", "fsync a file or directory", ops.Fsync, (_FILE,), data_only=False),
    _form("fdatasync PATH", "fdatasync a file", ops.Fsync, (_FILE,), data_only=True),
    _form(
        "sync_file_range PATH OFFSET LENGTH",
        "write a range to the disk, and wait",
        ops.SyncFileRange,
        (_FILE, _BYTES, _LENGTH),
    ),
    _form("msync PATH", "map a file, and msync all of it", ops.Msync, (_FILE,)),
    _form("sync", "sync everything", ops.Sync, this_only=False),
    _form("syncfs", "sync this file system", ops.Sync, this_only=True),
    _form("writeback PATH", "have the kernel write the file's dirty pages, and wait", ops.Writeback, (_FILE,)),
    _form(
        "writeback_metadata",
        "have the kernel write the metadata that it caches for the block device, and wait",
        ops.MetadataWriteback,
    ),
    _form("commit", "have the file system commit, by an fsync of an unrelated file", ops.Commit),
    _form("sleep SECONDS", "let time pass in the guest", ops.Sleep, (_SECONDS,)),
    _form("acknowledge WORD", "put a mark into the recording", ops.Acknowledge, (_TEXT,)),
)
GRAMMAR = {form.verb: form for form in _FORMS}  # docs/extend.md has the table


def form_of(operation: Operation) -> Form:
    several = _FORMS_OF[type(operation)]
    return next(form for form in several if all(getattr(operation, name) == it for name, it in form.fixed.items()))


_FORMS_OF = {kind: [one for one in reversed(_FORMS) if one.operation is kind] for kind in get_args(Operation)}


def parse(text: str) -> tuple[Operation, ...]:
    """Return the operations in ``text``. Raises PointedError, a UsageError with the place in the text, at the first
    mistake."""
    found = []
    for start, stop in places(text):
        try:
            found.append(parse_one(text[start:stop]))
        except UsageError as error:
            raise PointedError(error.message, text, start, stop, hint=error.hint) from None
    return tuple(found)


def places(text: str) -> list[tuple[int, int]]:
    """Return where each operation is in ``text``: the index of its first character, and the index after its last
    character."""
    pieces = [(match, match[1].strip()) for match in _PIECE.finditer(text)]
    starts = [(match.start(1) + match[1].index(piece), piece) for match, piece in pieces if piece]
    return [(start, start + len(piece)) for start, piece in starts]


def parse_one(text: str) -> Operation:
    """Return the operation in ``text``, for example ``"append /a 4K"``. Raises UsageError for a mistake."""
    try:
        verb, *words = shlex.split(text) or [""]
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}", hint="close the quotes") from None
    form = GRAMMAR.get(verb)
    if form is None:
        raise UsageError(f"unknown operation {verb!r} in {text!r}", hint=meant(verb, GRAMMAR, "operations"))
    hint = f"expected: {form.usage}"
    if not len(form.words) - form.usage.count("[") <= len(words) <= len(form.words):
        raise UsageError(f"{text!r} has too many or too few words", hint=hint)
    try:
        return form.build(words)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}", hint=hint) from None


def write_one(operation: Operation) -> str:
    """Return ``operation`` in the language; :func:`parse_one` reads it back."""
    return form_of(operation).write(operation)
