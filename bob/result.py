"""The result document, ``bob.result/1``: what every verb that yields results writes, and what reports read.

Frozen dataclasses here, JSON at the border (:func:`to_json`, :func:`from_json`). Field names are stable once released;
new ones may be added. docs/formats.md describes each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, TypeVar

from bob import counts
from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.crash.device import DeviceModel, DeviceModelDocument
from bob.errors import MalformedError, UsageError
from bob.fields import MISSHAPEN, said
from bob.observe.observations import TroubleKind
from bob.schema import decode, encode
from bob.typed import array, typed

T = TypeVar("T")

SCHEMA = "bob.result/1"


@dataclass(frozen=True, slots=True)
class WorkloadResult:
    """What one workload said of one property. ``violations`` counts the explored states that break it."""

    name: str
    finish: str
    verdict: Verdict
    states: States
    violations: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PropertyResult:
    """One cell. ``evidence`` is one line for a FAILS; ``reason`` says why a cell is UNKNOWN or SKIPPED; ``meaning`` is
    the property in one sentence."""

    name: str
    family: str
    verdict: Verdict
    states: States
    workloads: tuple[WorkloadResult, ...] = ()
    witness: str | None = None
    evidence: str | None = None
    reason: str | None = None
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Unmountable:
    """Crash states that the kernel did not mount: how many, one witness, and the kernel's own words."""

    states: int = 0
    witness: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is wrong with crash states that mount: in how many of those that were really mounted (or, of the
    checker and of removal, examined) it was seen, in the words that one of them has, with a witness of that one."""

    kind: TroubleKind
    states: int
    words: str
    witness: str | None = None


@dataclass(frozen=True, slots=True)
class Cause:
    """What violations have in common that are one finding (docs/search.md).

    The ``rule`` of the claims that are broken; the sort of ``block`` whose loss breaks them, what became of it
    (``fate``: lost or torn), and where the ``flush`` was that should have saved it. Where nothing was lost, these three
    are empty. Where they do not tell causes apart, the ``call`` and the ``kinds`` of change that are not there do; else
    these two are empty.
    """

    rule: str
    block: str = ""
    fate: str = ""
    flush: str = ""
    call: str = ""
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """Violations that have one ``cause``, which is said in ``words``.

    ``rows`` are the properties that they break, ``missing`` the kinds of change that are not there, ``shown_by`` is how
    many workloads show it. The smallest of these is ``workload``, of so many ``operations``; ``evidence`` is what is
    found after it, in one line, ``witness`` its witness.
    """

    cause: Cause
    words: str
    rows: tuple[str, ...]
    missing: tuple[str, ...]
    shown_by: int
    workload: str
    finish: str
    operations: int
    evidence: str
    witness: str | None = None

    @property
    def size(self) -> tuple[int, int, str, str]:
        """By this, findings are in order: those with small workloads come first."""
        return self.operations, len(self.workload), self.workload, self.words


@dataclass(frozen=True, slots=True)
class ConfigurationResult:
    """One column. ``examined`` outcomes of workloads, of ``examinable`` that mount, were looked at by the file system's
    checker and by the removal of all that is there. ``findings`` are the violations by cause; only a search asks for
    these."""

    name: str
    fs: str
    mkfs_options: str
    mount_options: str
    effective_mount_options: str
    properties: tuple[PropertyResult, ...]
    unmountable: Unmountable = field(default_factory=Unmountable)
    notes: tuple[str, ...] = ()
    mkfs_version: str = ""
    troubles: tuple[Trouble, ...] = ()
    examined: int = 0
    examinable: int = 0
    findings: tuple[Finding, ...] = ()

    def within(self, folder: str) -> ConfigurationResult:
        """This column with its witnesses as they are found from the directory above the run in ``folder``."""

        def moved(witness: str | None) -> str | None:
            return f"{folder}/{witness}" if witness else None

        return replace(
            self,
            properties=tuple(replace(cell, witness=moved(cell.witness)) for cell in self.properties),
            unmountable=replace(self.unmountable, witness=moved(self.unmountable.witness)),
            troubles=tuple(replace(trouble, witness=moved(trouble.witness)) for trouble in self.troubles),
            findings=tuple(replace(finding, witness=moved(finding.witness)) for finding in self.findings),
        )


@dataclass(frozen=True, slots=True)
class Run:
    """When and how it was run. Times are ISO 8601 in UTC. ``search`` says which workloads a search tried; None where
    it was none."""

    id: str
    started: str
    finished: str
    bob_version: str
    seed: int
    budget: int
    search: str | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """What it was measured on. ``clock`` is "virtual" or "real"."""

    kernel: str
    image: str
    accelerator: str
    clock: str
    qemu: str
    libvirt: str
    mkfs_version: str


@dataclass(frozen=True, slots=True)
class Result:
    """A whole run."""

    run: Run
    environment: Environment
    model: DeviceModel
    configurations: tuple[ConfigurationResult, ...]

    @property
    def has_unknown(self) -> bool:
        """Whether some cell is unknown."""
        return any(cell.verdict is Verdict.UNKNOWN for column in self.configurations for cell in column.properties)


def to_json(result: Result) -> dict[str, Any]:
    """``result`` as the plain document."""
    return {
        "schema": SCHEMA,
        "run": plain(asdict(result.run)),
        "environment": plain(asdict(result.environment)),
        "device_model": encode(DeviceModelDocument.of(result.model)),
        "configurations": [_column(column) for column in result.configurations],
    }


def _column(column: ConfigurationResult) -> dict[str, Any]:
    """A column as a plain document; it has findings where there are some."""
    document: dict[str, Any] = plain(asdict(column))
    if not column.findings:
        del document["findings"]
    return document


def condensed(document: Mapping[str, Any]) -> dict[str, Any]:
    """A result document in which each column has its different ``states`` of workloads once, in a list, and a workload
    has a place in this list for them; what is 0 or null of a workload is left out. For results that are kept for long:
    :func:`from_json` reads both."""
    columns = []
    for column in document["configurations"]:
        shared: list[Any] = []
        for states in (row["states"] for cell in column["properties"] for row in cell["workloads"]):
            if states not in shared:
                shared.append(states)
        cells = [
            {**cell, "workloads": [{**_said(row), "states": shared.index(row["states"])} for row in cell["workloads"]]}
            for cell in column["properties"]
        ]
        columns.append({**column, "properties": cells, "states": shared})
    return {**document, "configurations": columns}


def _said(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in row.items() if name not in ("reason", "violations") or value not in (0, None)
    }


def from_json(document: Mapping[str, Any]) -> Result:
    """The result in a plain document; raises MalformedError if it is none of this schema.

    Fields that this bob does not know, since a later one added them, are left out.
    """
    schema = document.get("schema") if isinstance(document, Mapping) else None
    if schema != SCHEMA:
        raise MalformedError(f"schema {schema!r} is not {SCHEMA!r}", hint="is it a result document?")
    try:
        return Result(
            run=run_from_json(document["run"]),
            environment=environment_from_json(document["environment"]),
            model=decode(DeviceModelDocument, document["device_model"]).model,
            configurations=tuple(map(_configuration, document["configurations"])),
        )
    except UsageError as error:
        raise MalformedError(f"the result document is damaged: {error.message}", hint=error.hint) from None
    except MISSHAPEN as error:
        raise MalformedError(f"the result document is damaged: {said(error)}") from None


def _configuration(document: Mapping[str, Any]) -> ConfigurationResult:
    found = {**document, "notes": array(document.get("notes", ()))}
    shared = document.get("states", ())
    found["properties"] = tuple(_property(cell, shared) for cell in document["properties"])
    found["unmountable"] = unmountable_from_json(document["unmountable"])
    found["troubles"] = tuple(map(_trouble, document.get("troubles", ())))
    found["findings"] = tuple(map(_finding, document.get("findings", ())))
    found |= {name: counts.read(document.get(name, 0)) for name in ("examined", "examinable")}
    return _made(ConfigurationResult, found)


def _trouble(document: Mapping[str, Any]) -> Trouble:
    return _made(
        Trouble, {**document, "kind": TroubleKind(document["kind"]), "states": counts.read(document["states"])}
    )


def _finding(document: Mapping[str, Any]) -> Finding:
    cause = document["cause"]
    found = {**document, "cause": _made(Cause, {**cause, "kinds": array(cause["kinds"])})}
    return _made(Finding, {**found, "rows": array(document["rows"]), "missing": array(document["missing"])})


def _property(document: Mapping[str, Any], shared: Sequence[Any]) -> PropertyResult:
    found = {**document, "verdict": Verdict(document["verdict"]), "states": decode(States, document["states"])}
    found["workloads"] = tuple(_workload(row, shared) for row in document["workloads"])
    return _made(PropertyResult, found)


def _workload(document: Mapping[str, Any], shared: Sequence[Any]) -> WorkloadResult:
    states = document["states"]
    if type(states) is int:
        if states < 0:
            raise ValueError(f"there are no states {states}")
        states = shared[states]
    found = {**document, "verdict": Verdict(document["verdict"]), "states": decode(States, states)}
    return _made(WorkloadResult, {**found, "violations": counts.read(document.get("violations", 0))})


def _made(kind: Callable[..., T], document: Mapping[str, Any]) -> T:
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return typed(kind(**{name: value for name, value in document.items() if name in known}))


def run_from_json(document: Mapping[str, Any]) -> Run:
    """When and how it was run, in a plain document."""
    return _made(Run, {**document, "seed": counts.read(document["seed"]), "budget": counts.read(document["budget"])})


def environment_from_json(document: Mapping[str, Any]) -> Environment:
    """What it was measured on, in a plain document."""
    return _made(Environment, document)


def unmountable_from_json(document: Mapping[str, Any]) -> Unmountable:
    """The states that were not mounted, in a plain document."""
    return _made(Unmountable, {**document, "states": counts.read(document["states"])})


def plain(value: Any) -> Any:
    """``value`` as JSON has it: arrays, verdicts as text, and counts as :mod:`bob.counts` writes them."""
    match value:
        case dict():
            return {name: plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [plain(inner) for inner in value]
        case StrEnum():
            return value.value
        case bool():
            return value
        case int():
            return counts.written(value)
    return value
