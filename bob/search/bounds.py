"""Bounds of workloads. A TOML file lists the parts that bob may build a workload from. They are the initial tree, the
names of files, the operations that change files, and the calls (such as fsync) that ask for durability. The file also
lists promises: the properties that bob tests with these workloads. Each promise says what a crash after such a call
must keep (docs/search.md)."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, product
from pathlib import Path

from bob.catalogue.finer_rows import durability_rows
from bob.catalogue.probe_files import counted
from bob.claim.property.rules import Property
from bob.errors import UsageError, meant
from bob.resources import shipped
from bob.schema import Declaration, OneLine, declared, mistakes_in, toml
from bob.workload import operations as ops
from bob.workload.language import bytes_in, parse, parse_one, path_in
from bob.workload.operations import Operation, Workload
from bob.workload.simulation import simulate

FILE, DIRECTORY = (
    "FILE",
    "DIRECTORY",
)  # in the text of an operation, each name of a file or directory replaces these words
_PLACES = re.compile(rf"(?<!\S)({FILE}|{DIRECTORY})(?=[\s;]|$)")
FILLER = "/full"
SEVERAL = "several"  # in the name of a property that combines several promises: fsync-file.several


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits for workloads. A workload begins with the tree that ``setup`` makes. Then come the operations ``begin``,
    which for example open files; they do not count in the length of the workload. Then come entries of ``operations``.
    Each entry counts as one, even if it has several operations. The last operation is one of ``calls``, and a call of
    ``between`` may come between two entries.

    All operations and calls use the names ``files`` and ``directories``. The workloads test the ``promises``
    (properties of durability). If ``leave`` is not 0, ``leave`` bytes of the device are free at the start, and the file
    :data:`FILLER` fills all other space."""

    name: str
    about: str
    setup: tuple[Operation, ...]
    begin: tuple[Operation, ...]
    files: tuple[str, ...]
    directories: tuple[str, ...]
    operations: tuple[tuple[Operation, ...], ...]
    calls: tuple[Operation, ...]
    between: tuple[Operation, ...]
    promises: tuple[Property, ...]
    leave: int = 0


def shipped_bounds() -> dict[str, Path]:
    return {path.stem: path for path in sorted((shipped("probes") / "bounds").glob("*.toml"))}


def load(name: str) -> Bounds:
    """Return the bounds that bob ships as ``name``, or that are in the file ``name``. Raises UsageError for a
    mistake."""
    return parsed(*found(name))


def found(name: str, others: Sequence[str] = ()) -> tuple[str, str]:
    """Return the name and the TOML text of the bounds that bob ships as ``name``, or that are in the file ``name``.
    Raises UsageError if bob finds none. The hint of this error suggests a similar name among the shipped bounds and
    ``others``."""
    known = shipped_bounds()
    path = known.get(name, Path(name))
    if not path.exists() and not ("/" in name or path.suffix):
        raise UsageError(f"unknown bounds {name!r}", hint=meant(name, (*known, *others), "bob ships"))
    return path.stem, toml(path, "is this the file with the bounds?")


def parsed(name: str, text: str, filler: int = 0) -> Bounds:
    """Return the bounds ``name`` that the TOML ``text`` describes. If the bounds want a full device, their initial
    tree gets a file of ``filler`` bytes that fills the device. Raises UsageError for a mistake."""
    with mistakes_in(f"{name}.toml", "see docs/search.md"):
        made = declared(BoundsDeclaration, text).bounds(name)
    if not (made.leave and filler):
        return made
    return replace(made, setup=(*made.setup, *filling(filler)))


def filling(length: int) -> tuple[Operation, ...]:
    """Return the operations that make the file :data:`FILLER`. The file takes ``length`` bytes of the device, but they
    are only allocated. Its size stays 0, so it is fast to read."""
    return ops.Create(FILLER), ops.Fallocate(FILLER, 0, length, ops.Allocation.KEEP)


class BoundsDeclaration(Declaration, frozen=True, kw_only=True):
    about: OneLine
    files: tuple[OneLine, ...]
    setup: tuple[OneLine, ...]
    begin: tuple[OneLine, ...] = ()
    directories: tuple[OneLine, ...] = ()
    operations: tuple[OneLine, ...] = ()
    calls: tuple[OneLine, ...] = ()
    between: tuple[OneLine, ...] = ()
    promises: tuple[OneLine, ...]
    leave: OneLine | None = None

    def bounds(self, name: str) -> Bounds:
        """Return the bounds that the file declares. Raises ValueError or UsageError for a mistake."""
        files, directories = tuple(map(path_in, self.files)), tuple(map(path_in, self.directories))
        setup = tuple(map(parse_one, counted(self.setup)))
        begin = tuple(map(parse_one, self.begin))
        leave = 0 if self.leave is None else bytes_in(self.leave)
        simulate(Workload("setup", (*setup, *(filling(leave) if leave else ())), begin))

        def filled(texts: Sequence[str]) -> tuple[tuple[Operation, ...], ...]:
            return tuple(dict.fromkeys(one for text in texts for one in _filled(text, files, directories)))

        calls, between = (tuple(chain.from_iterable(filled(texts))) for texts in (self.calls, self.between))
        if wrong := [one for one in (*calls, *between) if not isinstance(one, ops.SYNC_OPERATIONS)]:
            raise ValueError(f"calls and between take sync calls, not {type(wrong[0]).__name__.lower()!r}")
        if not calls:
            raise ValueError("'calls' must not be empty: workloads end with a call that promises something")
        operations = filled(self.operations)
        if not operations:
            raise ValueError("no operation is possible: is 'operations' empty, or are there too few names?")
        named = name, self.about, setup, begin, files, directories
        return Bounds(*named, operations, calls, between, promised(self.promises), leave)


def _filled(text: str, files: Sequence[str], directories: Sequence[str]) -> Iterator[tuple[Operation, ...]]:
    """Yield the operations that ``text`` describes, with names in place of the words FILE and DIRECTORY. There is one
    result for each choice of names, and no choice has the same name twice."""
    named = {FILE: tuple(map(shlex.quote, files)), DIRECTORY: tuple(map(shlex.quote, directories))}
    pieces = _PLACES.split(text)
    for chosen in product(*(named.get(piece, (piece,)) for piece in pieces)):
        names = [name for name, piece in zip(chosen, pieces, strict=True) if piece in named]
        if len(set(names)) == len(names):
            yield parse("".join(chosen))


def promised(names: Sequence[str]) -> tuple[Property, ...]:
    """Return the properties of durability that have these names, each once. Raises UsageError for an unknown name."""
    known = {one.name: one for one in durability_rows()}
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"unknown promise {unknown[0]!r}", hint=meant(unknown[0], known))
    return tuple(known[name] for name in dict.fromkeys(names))


def together(promises: Sequence[Property]) -> Iterator[Property]:
    """Yield a property for each call that has several promises about the same files; the property combines these
    promises. To test operations that make changes of several kinds, bob needs such properties. For example, a write
    across the end of a file is an overwrite and an append. Such a write survives for certain only if the call promises
    both data and size (:func:`bob.claim.property.calls.covered`)."""

    def key(prop: Property) -> tuple[str, tuple[str, ...]]:
        return str(prop.call), prop.relations

    for _key, group in groupby(sorted(promises, key=key), key):
        several = list(group)
        kinds = tuple(dict.fromkeys(kind for one in several for kind in one.kinds))
        call = several[0].call
        if call is None or len(several) == 1:
            continue
        yield Property(
            name=f"{call.value}.{SEVERAL}",
            family=several[0].family,
            meaning=f"{call.words} has made durable, when it returns, operations that make several changes, "
            "and operations on what another operation made: " + ", ".join(kinds),
            rule=several[0].rule,
            kinds=kinds,
            relations=several[0].relations,
            call=call,
            several=True,
        )
