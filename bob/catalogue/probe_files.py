"""Probe files: one TOML file for each property, with its question, its rule (such as ``atomic`` or ``durable``) and its
workloads (docs/extend.md). A mistake in a file raises a UsageError with the file's name. The shipped probes are the
rows of Table 1, bob's main table of properties."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, product
from pathlib import Path

from bob.claim.property.declaration import PropertyDocument
from bob.claim.property.rules import Property, questions
from bob.errors import UsageError, meant
from bob.resources import shipped
from bob.schema import Declaration, OneLine, declared, mistakes_in, toml
from bob.workload import operations as ops
from bob.workload.finishes import synced
from bob.workload.language import parse, parse_one, write_one
from bob.workload.operations import At, Finish, Operation, Workload, parent
from bob.workload.simulation import is_possible, simulate

TREES = "trees.toml"

RESERVED = ("all", "unmountable", "recovery-idempotent", "kernel-message", "read-only", "checker", "removal", "layer")
"""Names that a user's property cannot have, since they have another meaning: all shipped properties, crashed recoveries
(bob.claim.idempotence), and others."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A property and the workloads that test it. ``row`` is a number; tables of results sort their properties by it."""

    row: int
    property: Property
    workloads: tuple[Workload, ...]


class TreeDeclaration(Declaration, frozen=True):
    about: str
    setup: tuple[OneLine, ...]


class WorkloadDeclaration(Declaration, frozen=True, kw_only=True):
    name: OneLine
    tree: str | None = None
    setup: tuple[OneLine, ...] | None = None
    pairs: tuple[OneLine, ...] = ()
    first: tuple[OneLine, ...] = ("",)
    operations: tuple[OneLine, ...]
    later: tuple[OneLine, ...] = ("",)
    finish: tuple[OneLine, ...]
    at: At = At.ANY


class WorkloadsDeclaration(Declaration, frozen=True):
    workloads: tuple[WorkloadDeclaration, ...]


class ProbeDeclaration(PropertyDocument, frozen=True, forbid_unknown_fields=True, kw_only=True):
    row: int = 1000
    workloads: tuple[WorkloadDeclaration, ...]


class RowDeclaration(PropertyDocument, frozen=True, forbid_unknown_fields=True):
    """The declaration of one property in a file of rows. Such a file is not a probe file: it declares several
    properties (:func:`load_rows`)."""


class RowsDeclaration(Declaration, frozen=True):
    rows: tuple[RowDeclaration, ...]
    workloads: tuple[WorkloadDeclaration, ...]


def probe_names() -> tuple[str, ...]:
    """Return the names of the shipped probes, in the order of Table 1."""
    return tuple(probe.property.name for probe in shipped_probes())


def shipped_probes(names: Sequence[str] = ()) -> tuple[Probe, ...]:
    """Return the shipped probes with these names, in the order of Table 1. Without names, return all."""
    return named(_probes_in(shipped("probes")), names)


def layer_probes() -> tuple[Probe, ...]:
    """Return the shipped probes that bob asks only of file systems on layers (device-mapper or md devices on the
    disks)."""
    return _probes_in(shipped("probes") / "layers")


@cache  # cached, since each witness that bob reads asks for the probes
def _probes_in(folder: Path) -> tuple[Probe, ...]:
    files = sorted(path for path in folder.glob("*.toml") if path.name != TREES)
    return tuple(sorted(map(load, files), key=lambda probe: probe.row))


def named(probes: Sequence[Probe], names: Sequence[str]) -> tuple[Probe, ...]:
    """Return the ``probes`` with these names, in the order of ``probes``. Without names, return all. Raise UsageError
    for an unknown name."""
    known = [probe.property.name for probe in probes]
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"unknown property {unknown[0]!r}", hint=meant(unknown[0], known))
    return tuple(probe for probe in probes if not names or probe.property.name in names)


def load_workloads(path: Path) -> tuple[Workload, ...]:
    """Return the workloads that the file ``path`` declares. Such a file declares only workloads, but no property."""
    text = toml(path, _IS_IT)
    with mistakes_in(path.name, _HINT):
        return _workloads(declared(WorkloadsDeclaration, text).workloads)


def load_rows(path: Path) -> tuple[Probe, ...]:
    """Return the probes of the file ``path``, which declares several properties, and workloads for all of them. Raise
    UsageError for a mistake."""
    text = toml(path, "is this the file with the rows?")
    with mistakes_in(path.name, _HINT):
        document = declared(RowsDeclaration, text)
        for row in document.rows:
            check_name(row.name)
        found = asking(tuple(row.declared for row in document.rows), _workloads(document.workloads))
        names = [probe.property.name for probe in found]
        if idle := [row.name for row in document.rows if row.name not in names]:
            raise ValueError(f"no workload has an operation that {idle[0]!r} is about")
        return found


def asking(properties: Sequence[Property], workloads: Iterable[Workload]) -> tuple[Probe, ...]:
    """Return a probe for each of ``properties``, in order, with the ``workloads`` that test it. Leave out a property
    that no workload tests."""
    tested: dict[str, list[Workload]] = {prop.name: [] for prop in properties}
    for _done, alike in groupby(workloads, key=lambda one: (one.setup, one.operations, one.at)):
        several = tuple(alike)
        history = simulate(several[0])[0]
        for prop in properties:
            if questions(prop, history):
                tested[prop.name] += several
    found = [prop for prop in properties if tested[prop.name]]
    return tuple(Probe(row, prop, tuple(tested[prop.name])) for row, prop in enumerate(found, start=1))


def check_own(own: Iterable[Probe]) -> None:
    """Raise UsageError if one of the user's probes has the name of a shipped probe or of another of the user's probes.
    ``own`` has the user's probes."""
    shipped_names = (*probe_names(), *(probe.property.name for probe in layer_probes()))
    known = list(shipped_names)
    for name in (probe.property.name for probe in own):
        if name in known:
            if name in shipped_names:
                raise UsageError(
                    f"{name!r} is a shipped property", hint=f"choose another name, for example 'my-{name}'"
                )
            raise UsageError(f"two probe files are named {name!r}", hint="choose another name in one of them")
        known.append(name)


def load(path: Path) -> Probe:
    return parsed(path.name, toml(path, _IS_IT))


def parsed(file: str, text: str) -> Probe:
    """Return the probe in the TOML ``text``. Messages about mistakes name ``file``."""
    with mistakes_in(file, _HINT):
        document = declared(ProbeDeclaration, text)
        check_name(document.name)
        prop, workloads = document.declared, _workloads(document.workloads)
        if not any(questions(prop, simulate(workload)[0]) for workload in workloads):
            raise ValueError("no workload has an operation that the property is about")
        return Probe(document.row, prop, workloads)


_HINT = "see docs/extend.md"
_IS_IT = "is this the probe file?"


def _workloads(entries: Iterable[WorkloadDeclaration]) -> tuple[Workload, ...]:
    trees = declared(dict[str, TreeDeclaration], toml(shipped("probes") / TREES, _HINT))
    return tuple(workload for entry in entries for workload in _expand(entry, trees))


def check_name(name: str) -> None:
    """Raise ValueError if a user's property cannot be called ``name``. Only some characters are valid, since bob uses
    the name in names of files, and a few names are reserved."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}", name):
        raise ValueError(f"invalid property name {name!r}; expected letters, digits, '-' and '_', at most 80")
    if name in RESERVED:
        raise ValueError(f"bob reserves the name {name!r}")


def _expand(entry: WorkloadDeclaration, trees: Mapping[str, TreeDeclaration]) -> Iterator[Workload]:
    """Yield the workloads that ``entry`` declares. Its fields ``first``, ``later`` and ``finish`` are lists of
    alternatives. There is one workload for each way to choose one alternative from each list. It performs the chosen
    ``first``, then all ``operations``, then the chosen ``later``, and ends with the chosen ``finish``.

    If the field ``pairs`` is not empty, each workload begins with one or two of its texts. There is a workload for each
    text and for each two of them, in either order. Workloads that a file system would refuse are then left out."""
    if entry.tree is not None and entry.setup is not None:
        raise UsageError("a workload has a tree or a setup, not both", hint=_HINT)
    if entry.tree is not None and entry.tree not in trees:
        raise UsageError(f"unknown tree {entry.tree!r}", hint=f"trees: {', '.join(trees)}")
    setup = entry.setup or () if entry.tree is None else trees[entry.tree].setup
    made = tuple(map(parse_one, counted(setup)))
    always = tuple(map(parse_one, counted(entry.operations)))
    pairs = [*entry.pairs, *map("; ".join, product(entry.pairs, entry.pairs))] or [""]
    for pair, first, later, finish in product(pairs, entry.first, entry.later, entry.finish):
        operations = (*parse(pair), *parse(first), *always, *parse(later))
        if not operations:
            raise ValueError("operations must not be empty")
        name = ": ".join(word for word in (entry.name, pair, first, later) if word)
        workload = Workload(name, made, operations, parse_finish(finish, operations), entry.at)
        if not entry.pairs or is_possible(workload):
            yield workload


def counted(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts, but expand ranges as a shell does. For example, ``create /d/f{01..20}`` gives 20 texts, one for
    each number."""
    for text in texts:
        found = re.search(r"\{(\d{1,4})\.\.(\d{1,4})\}", text)
        if found is None:
            yield text
            continue
        first, last = found.groups()
        if int(first) > int(last):
            raise ValueError(f"{text!r}: {first} is larger than {last}; write the smaller number first")
        for number in range(int(first), int(last) + 1):
            yield text.replace(found[0], f"{number:0{len(first)}d}")


def parse_finish(text: str, operations: Sequence[Operation]) -> Finish:
    """Return the finish that ``text`` declares. The finish is the end of a workload's recording. It may be ``natural``,
    ``natural 2.5``, ``sync``, ``fsync PATH``, ``fsync later`` or ``fsync directory``. With ``natural``, no call syncs
    anything, and the kernel writes everything back by itself. With ``natural 2.5``, bob makes an unrelated small write
    2.5 seconds before the first operation. This write sets the time of the kernel's periodic work, such as the commits
    of a journal. In ``fsync later``, the word ``later`` stands for the file that the last operation created or wrote.
    In ``fsync directory``, ``directory`` stands for the directory of that file. ``fdatasync`` may replace ``fsync``."""
    match text.split():
        case ["natural"]:
            return Finish(text, natural=True)
        case ["natural", phase] if _is_seconds(phase):
            return Finish(text, natural=True, phase=float(phase))
        case ["fsync" | "fdatasync" as how, "later"] if operations:
            return synced(ops.Fsync(_touched(operations[-1]), how == "fdatasync"))
        case ["fsync" | "fdatasync" as how, "directory"] if operations:
            return synced(ops.Fsync(_directory(operations[-1]), how == "fdatasync"))
        case [word, *_] if word not in ("natural", "later", "directory"):
            finish = parse(text)
            if finish and all(isinstance(operation, ops.SYNC_OPERATIONS) for operation in finish):
                return synced(*finish)
    raise UsageError(
        f"invalid finish {text!r}", hint="expected natural [SECONDS], sync, or fsync|fdatasync PATH|later|directory"
    )


def _is_seconds(word: str) -> bool:
    try:
        return 0 <= float(word) < math.inf
    except ValueError:
        return False


def _touched(operation: Operation) -> str:
    match operation:
        case ops.Rename(_old, new) | ops.Link(_old, new):
            return new
        case ops.Unlink(path) | ops.Rmdir(path):
            return parent(path)
        case ops.Open() | ops.Unnamed() | ops.Close():
            pass
        case _ if path := getattr(operation, "path", ""):
            return str(path)
    raise UsageError(f"{write_one(operation)!r} leaves no file to sync", hint="name it: fsync PATH")


def _directory(operation: Operation) -> str:
    if isinstance(operation, ops.Unlink | ops.Rmdir):
        return parent(operation.path)
    touched = _touched(operation)
    if not touched.startswith("/"):
        raise UsageError(f"{write_one(operation)!r} names no directory to sync", hint="name it: fsync PATH")
    return parent(touched)
