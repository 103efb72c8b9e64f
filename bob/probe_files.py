"""Probe files: one TOML file per property, with what it asks, how it is judged, and the workloads that ask it.

docs/write-a-probe.md is the reference. A mistake in a file is a UsageError that names the file and what is wrong.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bob.errors import UsageError
from bob.judge.rules import Later, Property, Rule
from bob.judge.subjects import Effect, Span
from bob.resources import shipped
from bob.workload import operations as ops
from bob.workload.history import simulate
from bob.workload.language import parse, parse_one, write_one
from bob.workload.operations import Finish, Operation, Workload

TREES = "trees.toml"


@dataclass(frozen=True, slots=True)
class Probe:
    """A property and the workloads that ask it; ``row`` is its place in the table."""

    row: int
    property: Property
    workloads: tuple[Workload, ...]


def probe_names() -> tuple[str, ...]:
    """The names of the shipped probes, in the order of Table 1."""
    return tuple(probe.property.name for probe in shipped_probes())


def shipped_probes(names: Sequence[str] = ()) -> tuple[Probe, ...]:
    """The shipped probes of these names (all of them if there are none), in the order of Table 1."""
    files = sorted(path for path in shipped("probes").glob("*.toml") if path.name != TREES)
    probes = sorted(map(load, files), key=lambda probe: probe.row)
    known = [probe.property.name for probe in probes]
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"unknown property {unknown[0]!r}", hint=f"bob knows: {', '.join(known)}")
    return tuple(probe for probe in probes if not names or probe.property.name in names)


def load(path: Path) -> Probe:
    """The probe in the file ``path``."""
    document = _toml(path)
    try:
        trees = _toml(shipped("probes") / TREES)
        workloads = [workload for entry in document["workloads"] for workload in _expand(entry, trees)]
        for workload in workloads:
            simulate(workload)
        judge = document["judge"]
        subject = judge["subject"]
        prop = Property(
            name=document["name"],
            family=document["family"],
            meaning=document["meaning"],
            rule=Rule(judge["rule"]),
            subjects=tuple(Effect(name) for name in ([subject] if isinstance(subject, str) else subject)),
            spans=tuple(Span(name) for name in judge.get("spans", ())),
            then_renamed=judge.get("then_renamed", False),
            later=Later(judge.get("later", Later.ANY)),
        )
        return Probe(document.get("row", 1000), prop, tuple(workloads))
    except KeyError as error:
        raise UsageError(f"{path.name}: {error.args[0]!r} is missing", hint="see docs/write-a-probe.md") from None
    except ValueError as error:
        raise UsageError(f"{path.name}: {error}", hint="see docs/write-a-probe.md") from None
    except UsageError as error:
        raise UsageError(f"{path.name}: {error.message}", hint=error.hint) from None


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", hint="is this the probe file?") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path.name}: {error}", hint="a probe file is TOML") from None


def _expand(entry: Mapping[str, Any], trees: Mapping[str, Any]) -> Iterator[Workload]:
    """Each of ``later`` (if there are any) after ``operations``, with each of ``finish``."""
    if "tree" in entry and entry["tree"] not in trees:
        raise UsageError(f"unknown tree {entry['tree']!r}", hint=f"trees: {', '.join(trees)}")
    setup = trees[entry["tree"]]["setup"] if "tree" in entry else entry.get("setup", ())
    first = tuple(map(parse_one, entry["operations"]))
    for later in entry.get("later", [""]):
        operations = (*first, *parse(later))
        name = entry["name"] + (f": {later}" if later else "")
        for finish in entry["finish"]:
            yield Workload(name, tuple(map(parse_one, setup)), operations, parse_finish(finish, operations))


def parse_finish(text: str, operations: Sequence[Operation]) -> Finish:
    """A finish as it is written: ``natural``, ``natural 2.5``, ``sync``, ``fsync PATH``, ``fsync later|directory``.

    ``later`` is what the last operation made or wrote, ``directory`` the directory that it is in.
    """
    match text.split():
        case ["natural"]:
            return Finish(text, natural=True)
        case ["natural", phase]:
            return Finish(text, natural=True, phase=float(phase))
        case ["fsync", "later"]:
            path = _touched(operations[-1])
            return Finish(f"fsync {path}", (ops.Fsync(path),))
        case ["fsync", "directory"]:
            path = _directory(operations[-1])
            return Finish(f"fsync {path}", (ops.Fsync(path),))
    finish = parse(text)
    if not finish or not all(isinstance(operation, ops.SYNC_OPERATIONS) for operation in finish):
        raise UsageError(f"{text!r} is no way to finish", hint="natural [SECONDS], sync, fsync PATH|later|directory")
    return Finish("; ".join(map(write_one, finish)), finish)


def _touched(operation: Operation) -> str:
    """The name that an operation leaves something under; for a removal, its directory."""
    match operation:
        case ops.Rename(_old, new) | ops.Link(_old, new):
            return new
        case ops.Unlink(path) | ops.Rmdir(path):
            return _parent(path)
        case ops.Sync() | ops.Sleep() | ops.Acknowledge():
            raise UsageError(f"{write_one(operation)!r} leaves no file to sync", hint="name it: fsync PATH")
    return operation.path


def _directory(operation: Operation) -> str:
    """The directory that holds what an operation leaves, or held what it removed."""
    if isinstance(operation, ops.Unlink | ops.Rmdir):
        return _parent(operation.path)
    return _parent(_touched(operation))


def _parent(path: str) -> str:
    return path.rsplit("/", 1)[0] or "/"
