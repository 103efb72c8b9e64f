"""Probe files: one TOML file per property, with what it asks, how it is judged, and the workloads that ask it.

docs/write-a-probe.md is the reference. A mistake in a file is a UsageError that names the file and what is wrong.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from bob.errors import UsageError, meant
from bob.judge.calls import Call
from bob.judge.rules import Later, Property, Rule, questions
from bob.judge.subjects import Effect, Span
from bob.resources import shipped
from bob.workload import operations as ops
from bob.workload.history import simulate
from bob.workload.kinds import ChangeKind, Relation
from bob.workload.language import parse, parse_one, write_one
from bob.workload.operations import At, Finish, Operation, Workload

TREES = "trees.toml"

RESERVED = ("all", "unmountable", "recovery-idempotent", "kernel-message", "read-only", "checker", "removal")
"""Names that mean something else: every shipped property, the witness of states that do not mount, and the property of
recoveries (bob.judge.idempotence)."""

Word = TypeVar("Word", bound=StrEnum)


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
    return named(probes, names)


def named(probes: Sequence[Probe], names: Sequence[str]) -> tuple[Probe, ...]:
    """Those of ``probes`` that have these names (all of them if there are none), in their order."""
    known = [probe.property.name for probe in probes]
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"unknown property {unknown[0]!r}", hint=meant(unknown[0], known))
    return tuple(probe for probe in probes if not names or probe.property.name in names)


def load_workloads(path: Path) -> tuple[Workload, ...]:
    """The workloads of a file that has nothing else."""
    document = _toml(path)
    with mistakes_in(path.name):
        _check_keys(document, "workloads")
        return _workloads(document["workloads"])


def check_own(own: Iterable[Probe]) -> None:
    """Raise UsageError where a probe of the user's has the name of a shipped one, or of another."""
    shipped_names = probe_names()
    known = list(shipped_names)
    for name in (probe.property.name for probe in own):
        if name in known:
            if name in shipped_names:
                raise UsageError(f"{name!r} is a shipped property", hint=f"name yours otherwise, e.g. 'my-{name}'")
            raise UsageError(f"two probe files are named {name!r}", hint="choose another name in one of them")
        known.append(name)


def load(path: Path) -> Probe:
    """The probe in the file ``path``."""
    document = _toml(path)
    with mistakes_in(path.name):
        return _probe(document)


@contextmanager
def mistakes_in(file: str) -> Iterator[None]:
    """Whatever is wrong with a probe is a UsageError of one line that names ``file``."""
    try:
        yield
    except KeyError as error:
        raise UsageError(f"{file}: {error.args[0]!r} is missing", hint=_HINT) from None
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"{file}: {error}", hint=_HINT) from None
    except UsageError as error:
        raise UsageError(f"{file}: {error.message}", hint=error.hint) from None


_HINT = "see docs/write-a-probe.md"


def _probe(document: Mapping[str, Any]) -> Probe:
    _check_keys(document, "name", "row", "family", "meaning", "judge", "workloads")
    check_name(_text(document["name"]))
    prop = declared(document)
    workloads = _workloads(document["workloads"])
    histories = [simulate(workload)[0] for workload in workloads]
    if not any(questions(prop, history) for history in histories):
        raise ValueError("no workload has an operation that the property is about")
    row = document.get("row", 1000)
    if not isinstance(row, int):
        raise ValueError(f"row: {row!r} is not an integer")
    return Probe(row, prop, workloads)


def _workloads(entries: Any) -> tuple[Workload, ...]:
    trees = _toml(shipped("probes") / TREES)
    return tuple(workload for entry in _tables(entries, "workloads") for workload in _expand(entry, trees))


def declared(document: Mapping[str, Any]) -> Property:
    """The property that a probe file declares, or :func:`declaration` wrote down.

    Raises KeyError, ValueError, TypeError, AttributeError or UsageError for what is none.
    """
    name = _text(document["name"])
    (judge,) = _tables([document["judge"]], "judge")
    _check_keys(judge, "rule", "subject", "spans", "then_renamed", "later", "kinds", "later_kinds", "relations", "call")
    of_all = judge.get("rule") == Rule.COLLATERAL
    subject = judge.get("subject", ()) if "kinds" in judge or of_all else judge["subject"]
    prop = Property(
        name=name,
        family=_text(document["family"]),
        meaning=_text(document["meaning"]),
        rule=_word(Rule, judge["rule"]),
        subjects=tuple(_word(Effect, name) for name in ([subject] if isinstance(subject, str) else _texts(subject))),
        spans=tuple(_word(Span, name) for name in _texts(judge.get("spans", ()))),
        then_renamed=judge.get("then_renamed", False),
        later=_word(Later, judge.get("later", Later.ANY)),
        kinds=_words(ChangeKind, judge, "kinds"),
        later_kinds=_words(ChangeKind, judge, "later_kinds"),
        relations=_words(Relation, judge, "relations"),
        call=_word(Call, judge["call"]) if "call" in judge else None,
    )
    if prop.rule is Rule.PREFIX and prop.subjects != (Effect.APPEND,):
        raise ValueError("the rule 'prefix' is about appends only")
    if not isinstance(prop.then_renamed, bool):
        raise ValueError(f"then_renamed: {prop.then_renamed!r} is neither true nor false")
    if prop.rule is not Rule.ORDERED and (prop.then_renamed or prop.later is not Later.ANY or prop.later_kinds):
        raise ValueError("'then_renamed', 'later' and 'later_kinds' are for the rule 'ordered' only")
    if prop.relations and prop.rule not in (Rule.ORDERED, Rule.DURABLE):
        raise ValueError("'relations' are for the rules 'ordered' and 'durable' only")
    if (prop.rule is Rule.DURABLE) != (prop.call is not None):
        raise ValueError("the rule 'durable' needs a 'call', and no other rule has one")
    if prop.rule is Rule.COLLATERAL and (prop.subjects or prop.spans or prop.kinds):
        raise ValueError("the rule 'collateral' is about all that no operation was to change: it has no 'subject'")
    if prop.rule is Rule.DURABLE and (prop.subjects or prop.spans or not prop.kinds):
        raise ValueError("the rule 'durable' is about 'kinds', and has neither 'subject' nor 'spans'")
    return prop


def declaration(prop: Property) -> dict[str, Any]:
    """``prop`` as a plain document, with the keys of a probe file; it needs no other file to be understood."""
    finer = {"kinds": prop.kinds, "later_kinds": prop.later_kinds, "relations": prop.relations}
    return {
        "name": prop.name,
        "family": prop.family,
        "meaning": prop.meaning,
        "judge": {
            "rule": prop.rule.value,
            "subject": [subject.value for subject in prop.subjects],
            "spans": [span.value for span in prop.spans],
            "then_renamed": prop.then_renamed,
            "later": prop.later.value,
            **{name: [one.value for one in words] for name, words in finer.items() if words},
            **({} if prop.call is None else {"call": prop.call.value}),
        },
    }


def check_name(name: str) -> None:
    """Raise ValueError if no property of the user's own can be called ``name``: it names files, too."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}", name):
        raise ValueError(f"{name!r} is no name of a property: letters, digits, '-' and '_', at most 80")
    if name in RESERVED:
        raise ValueError(f"the name {name!r} means something else to bob")


def _word(kind: type[Word], value: Any) -> Word:
    if value not in list(kind):
        raise ValueError(f"{value!r} is none of {', '.join(kind)}")
    return kind(value)


def _words(kind: type[Word], table: Mapping[str, Any], key: str) -> tuple[Word, ...]:
    return tuple(_word(kind, word) for word in _texts(table.get(key, ())))


def _tables(value: Any, key: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ValueError(f"{key!r} is no table: write [{key}] or [[{key}]] as in the examples")
    return value


def _check_keys(table: Mapping[str, Any], *known: str) -> None:
    """Refuse keys that would be ignored: most are slips, and a probe without its ``spans`` asks something else."""
    if unknown := [key for key in table if key not in known]:
        raise UsageError(f"unknown key {unknown[0]!r}", hint=f"keys here: {', '.join(known)}")


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\n" in value:
        raise ValueError(f"{value!r} is not one line of text")
    return value


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{value!r} is not an array of texts")
    return [_text(one) for one in value]


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", hint="is this the probe file?") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path.name}: {error}", hint="a probe file is TOML") from None


def _expand(entry: Mapping[str, Any], trees: Mapping[str, Any]) -> Iterator[Workload]:
    """Each of ``first`` (if there are any) before ``operations`` and each of ``later`` after them, with each of
    ``finish``."""
    _check_keys(entry, "name", "tree", "setup", "first", "operations", "later", "finish", "at")
    if "tree" in entry and "setup" in entry:
        raise UsageError("a workload has a tree or a setup, not both", hint=_HINT)
    if "tree" in entry and entry["tree"] not in trees:
        raise UsageError(f"unknown tree {entry['tree']!r}", hint=f"trees: {', '.join(trees)}")
    setup = trees[entry["tree"]]["setup"] if "tree" in entry else _texts(entry.get("setup", ()))
    made, at = tuple(map(parse_one, _counted(setup))), _word(At, entry.get("at", At.ANY))
    always = tuple(map(parse_one, _counted(_texts(entry["operations"]))))
    firsts, laters = (_texts(entry[key]) if key in entry else [""] for key in ("first", "later"))
    for first, later, finish in product(firsts, laters, _texts(entry["finish"])):
        operations = (*parse(first), *always, *parse(later))
        name = ": ".join(word for word in (_text(entry["name"]), first, later) if word)
        yield Workload(name, made, operations, parse_finish(finish, operations), at)


def _counted(texts: Iterable[str]) -> Iterator[str]:
    """Each text, and one with a range, as in a shell, once for each of its numbers: ``create /d/f{01..20}``."""
    for text in texts:
        found = re.search(r"\{(\d{1,4})\.\.(\d{1,4})\}", text)
        if found is None:
            yield text
            continue
        first, last = found.groups()
        if int(first) > int(last):
            raise ValueError(f"{text!r} counts from {first} to {last}: write the smaller number first")
        for number in range(int(first), int(last) + 1):
            yield text.replace(found[0], f"{number:0{len(first)}d}")


def parse_finish(text: str, operations: Sequence[Operation]) -> Finish:
    """A finish as it is written: ``natural``, ``natural 2.5``, ``sync``, ``fsync PATH``, ``fsync later|directory``, the
    same with ``fdatasync``.

    ``later`` is what the last operation made or wrote, ``directory`` the directory that it is in.
    """
    match text.split():
        case ["natural"]:
            return Finish(text, natural=True)
        case ["natural", phase] if _is_seconds(phase):
            return Finish(text, natural=True, phase=float(phase))
        case ["fsync" | "fdatasync" as how, "later"] if operations:
            return _synced(ops.Fsync(_touched(operations[-1]), how == "fdatasync"))
        case ["fsync" | "fdatasync" as how, "directory"] if operations:
            return _synced(ops.Fsync(_directory(operations[-1]), how == "fdatasync"))
        case [word, *_] if word not in ("natural", "later", "directory"):
            finish = parse(text)
            if finish and all(isinstance(operation, ops.SYNC_OPERATIONS) for operation in finish):
                return _synced(*finish)
    raise UsageError(
        f"{text!r} is no way to finish", hint="natural [SECONDS], sync, fsync|fdatasync PATH|later|directory"
    )


def _is_seconds(word: str) -> bool:
    try:
        return 0 <= float(word) < math.inf
    except ValueError:
        return False


def _synced(*syncs: Operation) -> Finish:
    return Finish("; ".join(map(write_one, syncs)), syncs)


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
