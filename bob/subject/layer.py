"""Layers between the disks and a file system, such as RAID 1. Each is declared in layers/NAME.toml, or in a file of the
user's own."""

from __future__ import annotations

import ast
import operator
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from bob.errors import UsageError, meant
from bob.schema import Declaration, OneLine, OneWord, declared, mistakes_in, older, toml
from bob.subject.file_system import HINT, MIB, is_file

LayerCommand = tuple[str, ...]

SECTOR_BYTES = 512
MOST_DISKS = 8  # as many late disks as a guest has (bob/agent/inside/late_disk.py)
MOST_LAYERS = 16  # as many as there are numbers for their arrays (bob/agent/inside/devices.py)
MOST_MIB_MORE = 32  # room for the metadata of layers on the disks
_FOLDER = Path(__file__).with_name("layers")
_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_DISK = re.compile(r"\bDISK(\d+)\b")
_TARGET = re.compile(r"\s*\d+\s+\d+\s+\S.*")
_OPTIONS = {"level", "data", "chunk", "layout", "bitmap", "ppl"}  # the options of the command md-create
_MORE = "chunk=N, layout=N, bitmap=N and ppl=N"
_LABEL = re.compile(r"[A-Z][A-Z0-9_]*")
_BINARY: Mapping[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_FUNCTIONS: Mapping[str, Callable[..., int]] = {"min": min, "max": max}
MAKERS = ("dm", "md", "bcache", "loop", "nbd")  # the commands that make a device and give it a name
LEAST_WORDS = {
    "dm": 5,
    "md": 3,
    "bcache": 4,
    "bcache-create": 4,
    "loop": 3,
    "nbd": 3,
    "mount": 4,
    "md-create": 2,
    "zero": 3,
    "set": 4,
    "wait": 4,
    "expect": 4,
    "message": 4,
    "remove": 2,
}
"""The commands that the agent itself carries out (bob/agent/inside/layer_commands.py), each with its least number of
words."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer makes one device, of ``sectors`` sectors, from the devices ``below``. Devices have numbers: first the
    disks, then the layers, from the bottom up. The guest carries out the commands ``make`` once. It carries out
    ``start`` and ``stop`` for each crash state, since a crash erases the layer's state in memory. It carries out
    ``examine`` for some of them, to find faults. ``device`` is the path of the device. If it is empty, the layer's
    device is the last device that one of the commands ``MAKERS`` made. The layer needs the kernel modules ``modules``,
    and the Debian packages ``packages`` in the guest.

    Some file systems use several devices themselves, as btrfs does for RAID 1. In a layer for such a file system,
    ``fs`` is the file system's name. This layer is the topmost one, and its device is the first device of ``below``.
    The file system's mkfs gets the words ``mkfs``, its mount the options ``mount``, and its programs for repair and
    checks the words ``check``. In all these, ``DISK1`` stands for the second device of ``below``."""

    name: str
    below: tuple[int, ...]
    sectors: int
    start: tuple[LayerCommand, ...]
    make: tuple[LayerCommand, ...] = ()
    stop: tuple[LayerCommand, ...] = ()
    device: str = ""
    modules: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    fs: str = field(default_factory=older(""))
    mkfs: tuple[str, ...] = field(default_factory=older(()))
    mount: str = field(default_factory=older(""))
    check: tuple[str, ...] = field(default_factory=older(()))
    examine: tuple[LayerCommand, ...] = field(default_factory=older(()))


class PromiseDeclaration(Declaration, frozen=True):
    """A promise that the documentation of a layer makes. ``says`` has the words of the documentation, and ``source`` is
    the file that has them. ``row`` is the name of a property, which is a row in bob's table. The answer in this row
    tells whether the layer keeps the promise."""

    row: OneLine
    says: OneLine
    source: OneLine


class LayerDeclaration(Declaration, frozen=True, kw_only=True):
    """The content of a TOML file that declares a layer. ``disks`` is the number of devices below the layer. The
    commands and ``sectors`` may contain the sizes of these devices by name. ``SIZE0`` is the size of the first device,
    ``SIZE1`` that of the second, and so on, in sectors of 512 bytes. ``fs``, ``mkfs``, ``mount`` and ``check`` are for
    a layer that hands several devices to one file system (:class:`Layer`)."""

    about: OneLine
    disks: Annotated[int, Meta(ge=1, le=MOST_DISKS)] = 1
    modules: tuple[OneWord, ...] = ()
    packages: tuple[OneWord, ...] = ()
    sectors: OneLine
    make: tuple[OneLine, ...] = ()
    start: tuple[OneLine, ...] = ()
    stop: tuple[OneLine, ...] = ()
    examine: tuple[OneLine, ...] = ()
    device: str = ""
    fs: str = ""
    mkfs: str = ""
    mount: str = ""
    check: str = ""
    promises: tuple[PromiseDeclaration, ...] = ()

    def layer(self, name: str, below: Sequence[int], sizes: Sequence[int]) -> Layer:
        """Return the layer over the devices with the numbers ``below``. ``sizes`` are the sizes of these devices in
        sectors. Raise ValueError if the declaration has a mistake, or if the devices are too small for the layer."""
        numbers = {f"SIZE{number}": size for number, size in enumerate(sizes)}
        if (sectors := evaluated(self.sectors, numbers)) <= 0:
            raise ValueError(f"disks of {_mib(sizes)} are too small for it")
        make, start, stop = (
            tuple(self._command(line, numbers) for line in lines) for lines in (self.make, self.start, self.stop)
        )
        if bool(self.fs) == bool(start):
            raise ValueError(
                "start is missing" if not self.fs else "start: a layer with the key fs has no such commands"
            )
        if not self.fs and not self.device and not any(words[0] in MAKERS for words in start):
            raise ValueError(
                "device is missing: without dm, md, bcache, loop and nbd nothing says which device the layer makes"
            )
        made = Layer(name, tuple(below), sectors, start, make, stop, self.device, self.modules, self.packages)
        made = replace(made, examine=tuple(self._command(line, numbers) for line in self.examine))
        if not self.fs:
            return made
        mkfs, check = self._words(self.mkfs), self._words(self.check)
        return replace(made, device="DISK0", fs=self.fs, mkfs=mkfs, mount=self.mount, check=check)

    def _words(self, line: str) -> LayerCommand:
        return self._command(line, {}) if line else ()

    def _command(self, line: str, numbers: Mapping[str, int]) -> LayerCommand:
        words = tuple(shlex.split(_EXPRESSION.sub(lambda found: str(evaluated(found[1], numbers)), line)))
        if len(words) < LEAST_WORDS.get(words[0], 1):
            raise ValueError(f"{line!r} lacks words: {words[0]} has {LEAST_WORDS[words[0]]} at least")
        if words[0] in (*MAKERS, "mount") and (not _LABEL.fullmatch(words[1]) or _DISK.fullmatch(words[1])):
            raise ValueError(f"{line!r}: {words[1]!r} cannot name a device; it needs capital letters, such as TOP")
        if words[0] == "dm" and not all(map(_TARGET.fullmatch, " ".join(words[2:]).split(";"))):
            raise ValueError(f"{line!r}: each target of the table has its start, sectors, type and parameters")
        if words[0] in ("zero", "message") and not words[2].isdigit():
            raise ValueError(f"{line!r}: {words[2]!r} is not a number of sectors")
        given = dict(re.findall(r"(\w+)=(\S*)", line)) if words[0] == "md-create" else {"level": "1", "data": "0"}
        if not {"level", "data"} <= given.keys() <= _OPTIONS or not all(map(str.isdigit, given.values())):
            raise ValueError(f"{line!r}: md-create has level=N and data=N, and may have {_MORE}")
        if wrong := [int(found) for found in _DISK.findall(line) if int(found) >= self.disks]:
            raise ValueError(f"{line!r}: DISK{wrong[0]} is beyond the {self.disks} below it (disks)")
        return words


def evaluated(text: str, numbers: Mapping[str, int]) -> int:
    """Return the value of the term ``text``. A term may have whole numbers, the names in ``numbers``, the operators + -
    * //, parentheses, and the functions min and max. Raise ValueError for any other text."""
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, numbers)
    except (SyntaxError, _WrongTerm, ZeroDivisionError, RecursionError):
        names = ", ".join(numbers)
        raise ValueError(f"invalid number {text!r}; expected {names}, whole numbers, + - * // ( ) min max") from None


class _WrongTerm(Exception):
    """A term has a part that :func:`evaluated` does not allow, such as a string."""


def _value(term: ast.expr, numbers: Mapping[str, int]) -> int:
    match term:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.Name(id=name) if name in numbers:
            return numbers[name]
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            return _BINARY[type(sign)](_value(left, numbers), _value(right, numbers))
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as terms, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*[[_value(one, numbers) for one in terms]])
    raise _WrongTerm


@cache
def layers() -> dict[str, LayerDeclaration]:
    """Return the declarations of all shipped layers, by name. Raise UsageError for a mistake in one of their files."""
    found = {}
    for path in sorted(_FOLDER.glob("*.toml"), key=lambda path: path.stem):
        with mistakes_in(path.name, HINT):
            found[path.stem] = declared(LayerDeclaration, toml(path, HINT))
    return found


def promises(made: Sequence[Layer]) -> list[tuple[str, PromiseDeclaration]]:
    """Return the promises of the layers in ``made``, each with the name of its layer. Leave out layers that the user
    declared."""
    names = dict.fromkeys(layer.name for layer in made if layer.name in layers())
    return [(name, promise) for name in names for promise in layers()[name].promises]


def layer_declaration(word: str) -> tuple[str, LayerDeclaration]:
    """Return the name and the declaration of the layer that ``word`` means: the name of a shipped layer, or the path of
    the user's file. Raise UsageError if the name is unknown, or the file has a mistake."""
    if is_file(word):
        path = Path(word)
        with mistakes_in(path.name, HINT):
            return path.stem, declared(LayerDeclaration, toml(path, "is this the file that declares it?"))
    if word not in layers():
        raise UsageError(f"unknown layer {word!r}", hint=meant(word, layers()))
    return word, layers()[word]


def stack(words: str, disk: int) -> tuple[tuple[int, ...], tuple[Layer, ...]]:
    """Return the sizes of the disks (all are ``disk`` bytes), and the layers on them, from the bottom up. ``words`` has
    the names of the layers from the top down, with commas. A layer may need several devices below it. Then bob makes
    the layer below it (the next name in ``words``) several times, once for each of these devices. Raise UsageError for
    an unknown layer, too many disks, or a mistake in a declaration."""
    levels = [layer_declaration(word.strip()) for word in words.split(",")]
    count, total = 1, 0
    for _name, level in levels:
        total += count
        count *= level.disks
    if total > MOST_LAYERS:
        raise UsageError(f"the stack has {total} layers; a guest has {MOST_LAYERS} at most", hint="name fewer layers")
    if count > MOST_DISKS:
        hint = "each layer is there once for each device of the layer above it"
        raise UsageError(f"the stack {words} takes {count} disks; a guest has {MOST_DISKS} at most", hint=hint)
    sizes = [disk // SECTOR_BYTES] * count  # sectors of the devices so far: first the disks, then the layers
    made: list[Layer] = []
    free = iter(range(count))

    def device(depth: int) -> int:
        if depth == len(levels):
            return next(free)
        name, level = levels[depth]
        below = [device(depth + 1) for _ in range(level.disks)]
        with mistakes_in(f"{name}.toml", HINT):
            made.append(level.layer(name, below, [sizes[number] for number in below]))
        sizes.append(made[-1].sectors)
        return len(sizes) - 1

    device(0)
    return (disk,) * count, tuple(made)


def stack_for(words: str, volume: int) -> tuple[tuple[int, ...], tuple[Layer, ...]]:
    """Return the disks and layers of :func:`stack`, with the smallest disks that give the file system a device of at
    least ``volume`` bytes. A disk is at most ``MOST_MIB_MORE`` MiB larger than ``volume``; if this is not enough, the
    device is smaller. Raise the same errors as :func:`stack`."""
    found = stack(words, volume)
    for mib in range(-(-volume // MIB // len(found[0])), volume // MIB + MOST_MIB_MORE + 1):
        with suppress(UsageError):  # disks of this size are too small for a layer
            found = stack(words, mib * MIB)
            if found[1][-1].sectors * SECTOR_BYTES >= volume:
                break
    return found


def stack_words(disks: int, made: Sequence[Layer]) -> list[str]:
    """Return the names of the layers ``made``, from the top down, one name for each level of the stack. ``disks`` is
    the number of disks below the layers. Joined by commas, the names are the argument ``words`` of :func:`stack`."""
    words, number = [], disks + len(made) - 1
    while number >= disks:
        words.append(made[number - disks].name)
        number = made[number - disks].below[0]
    return words


def _mib(sizes: Sequence[int]) -> str:
    return ", ".join(f"{size * SECTOR_BYTES / MIB:g} MiB" for size in sizes)
