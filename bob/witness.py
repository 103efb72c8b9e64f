"""Witnesses, ``bob.witness/1``: everything that is needed to show a violation again, in one small file.

A witness carries the base image, the sectors by which the crash state differs from it, and the workload with the
question that the state answers wrongly, or the expectation that it breaks. docs/formats.md describes each field.
"""

from __future__ import annotations

import base64
import json
import lzma
import struct
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bob.blocks.naming import names
from bob.config import Configuration
from bob.crash.departures import distance
from bob.crash.device import DeviceModel, WriteCache
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.errors import MalformedError, StoreError, UsageError
from bob.expect.evaluate import check
from bob.expect.language import parse
from bob.judge.idempotence import IDEMPOTENT
from bob.judge.rules import Property, Question
from bob.probe_files import declaration, declared, shipped_probes
from bob.request import configuration_from_json, configuration_to_json
from bob.result import TroubleKind
from bob.store import base_from_json, workload_from_json, workload_to_json
from bob.story import timeline
from bob.story.timeline import Timeline
from bob.trace import differences
from bob.trace.base import Base
from bob.trace.completion import Completion
from bob.trace.model import SECTOR_BYTES
from bob.trace.recording import Recording, Statuses, statuses_from_json
from bob.workload.history import simulate
from bob.workload.language import write_one
from bob.workload.operations import Workload
from bob.workload.recipes import from_recipe, to_recipe

SCHEMA = "bob.witness/1"


@dataclass(frozen=True, slots=True)
class Size:
    """How large a witness is: operations, operations of the initial tree (``setup``), and by how many writes the crash
    state departs from a clean prefix (:mod:`bob.crash.departures`)."""

    operations: int
    setup: int
    departure: int


@dataclass(frozen=True, slots=True)
class Showing:
    """A crash state that shows something, with what its witness is made of: ``evidence`` says what it shows,
    ``question`` is the one that it answers wrongly, ``expectation`` what it breaks, ``trouble`` what is wrong with it
    though it mounts (none of these where nothing mounts); ``causes`` are the writes without any one of which it would
    not (:func:`bob.crash.neighbours.causes`)."""

    workload: Workload
    base: Base
    recording: Recording
    plan: Plan
    state: CrashState
    question: Question | None
    evidence: str
    expectation: str | None = None
    trouble: TroubleKind | None = None
    causes: tuple[int, ...] = ()

    @property
    def size(self) -> Size:
        """How large its witness is."""
        pending = self.plan.points[self.state.point].pending
        return Size(len(self.workload.operations), len(self.workload.setup), distance(pending, self.state))


@dataclass(frozen=True, slots=True)
class Witness:
    """A witness as it is read again.

    ``property`` is a name; None for a state that does not mount, for one that breaks an ``expectation`` (of which this
    is the text), and for one that has ``trouble`` though it mounts. ``declared`` is what it asks, None where
    ``property`` is, and in a witness that is older than declarations. ``environment`` is what it was measured on.
    ``runs`` are (sector, data) on top of ``base``. ``inodes`` are the inode numbers by name before and after the
    operations, ``statuses`` what else stat said. ``state`` is the crash state in terms of the recording that it was
    found in, ``timeline`` what happened there up to the crash. ``size`` is how large it is, ``shrunk_from`` how large
    it was before it was shrunk, where it was.
    """

    property: str | None
    evidence: str
    kernel: str
    environment: Mapping[str, str]
    configuration: Configuration
    model: DeviceModel
    workload: Workload
    question: Question | None
    base: Base
    runs: tuple[tuple[int, bytes], ...]
    inodes: tuple[Mapping[str, int], Mapping[str, int]]
    statuses: tuple[Statuses, Statuses]
    state: CrashState
    timeline: Timeline
    size: Size
    shrunk_from: Size | None
    declared: Property | None = None
    expectation: str | None = None
    trouble: TroubleKind | None = None

    def title(self) -> str:
        """What it is a witness of, for people."""
        if self.trouble is not None:
            return f"a crash state that {self.trouble.said}"
        expected = None if self.expectation is None else f"«{parse(self.expectation).line}» does not hold"
        return self.property or expected or "a crash state that does not mount"


def violated(witness: Witness) -> Property | None:
    """What ``witness`` violates; None for a state that does not mount. UsageError for a property that nobody knows."""
    if witness.declared is not None or witness.property is None:
        return witness.declared
    if witness.property == IDEMPOTENT.name:
        return IDEMPOTENT
    return shipped_probes((witness.property,))[0].property


def write(
    prop: Property | None,
    showing: Showing,
    *,
    environment: Mapping[str, str],
    configuration: Configuration,
    model: DeviceModel,
    shrunk_from: Size | None = None,
) -> dict[str, Any]:
    """The witness of a crash state as a plain document; ``shrunk_from`` is how large it was before it was shrunk."""
    workload, base, question, state = showing.workload, showing.base, showing.question, showing.state
    inodes = showing.recording.inodes_before, showing.recording.inodes_after
    runs = showing.plan.runs(state)
    image = b"".join(data for _sector, data in runs)
    line = told(configuration.fs.driver, workload, inodes, base, showing.plan, state, showing.causes)
    return {
        "schema": SCHEMA,
        "property": None if prop is None else prop.name,
        "probe": None if prop is None else declaration(prop),
        "evidence": showing.evidence,
        "question": None if question is None else _question_to_json(question),
        **({} if showing.expectation is None else {"expectation": showing.expectation}),
        **({} if showing.trouble is None else {"trouble": showing.trouble.value}),
        "environment": dict(environment),
        "configuration": configuration_to_json(configuration),
        "device_model": {
            "write_cache": model.write_cache.value,
            "atomic_write_bytes": model.atomic_write_bytes,
            "completion": showing.recording.completion.value,
        },
        "workload": workload_to_json(workload),
        "inodes_before": dict(inodes[0]),
        "inodes_after": dict(inodes[1]),
        "status_before": showing.recording.status_before,
        "status_after": showing.recording.status_after,
        "crash": {
            "state": state.to_json(),
            "departure": showing.size.departure,
            "timeline": timeline.to_json(line),
        },
        **({} if shrunk_from is None else {"shrunk_from": asdict(shrunk_from)}),
        "base": {
            "name": base.name,
            "length": base.length,
            "effective_options": base.effective_options,
            "mkfs": base.mkfs,
            "image": base64.b64encode(lzma.compress(zlib.decompress(base.packed))).decode(),
        },
        "runs": [[sector, len(data) // SECTOR_BYTES] for sector, data in runs],
        "data": to_recipe(image),
    }


def told(
    driver: str,
    workload: Workload,
    inodes: Sequence[Mapping[str, int]],
    base: Base,
    plan: Plan,
    state: CrashState,
    causes: Collection[int] = (),
) -> Timeline:
    """The time line of ``state``, with the blocks of the file system ``driver`` by their names, and the ``causes``."""
    used = {word for operation in workload.operations for word in write_one(operation).split()}
    # Of several names of a file, one that an operation goes by.
    paths = {
        number: path for known in inodes for path, number in sorted(known.items(), key=lambda pair: pair[0] in used)
    }
    named = [(name.kind.value, name.text) for name in names(driver, base, plan.trace, paths)]
    return timeline.timeline(plan.trace, plan.points[state.point], state, named, causes)


def read(path: Path) -> Witness:
    """The witness in the file ``path``; MalformedError where it is none, or of another schema."""
    try:
        document = json.loads(path.read_text())
    except OSError as error:
        raise MalformedError(f"cannot read {path}: {error.strerror}", hint="is it the path of a witness?") from None
    except ValueError as error:
        raise MalformedError(f"{path} is no witness: {error}", hint="was it truncated?") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else None
        raise MalformedError(
            f"{path} has schema {found!r}, not {SCHEMA!r}", hint="replay it with the bob that wrote it"
        )
    try:
        return _read(document)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, lzma.LZMAError, struct.error) as error:
        raise MalformedError(f"{path} is damaged: {error}", hint="was it truncated?") from None
    except (UsageError, MalformedError) as error:
        raise MalformedError(f"{path}: {error.message}", hint=error.hint) from None


def files_in(paths: Sequence[Path]) -> list[Path]:
    """The witnesses' files: ``paths`` themselves, and of run directories all that are in them."""
    files: list[Path] = []
    for path in paths:
        within = sorted(path.glob("**/witnesses/*.json")) if path.is_dir() else [path]
        if not within:
            raise StoreError(f"{path} has no witnesses", hint="a run has some where a property fails")
        files += within
    return files


def _read(document: Mapping[str, Any]) -> Witness:
    asked, name = document["question"], document["property"]
    if not isinstance(document["base"]["name"], str) or not (name is None or isinstance(name, str)):
        raise TypeError("its names are no text")
    image = from_recipe(document["data"])
    runs, position = [], 0
    for sector, count in document["runs"]:
        runs.append((sector, image[position : position + count * SECTOR_BYTES]))
        position += count * SECTOR_BYTES
    if position != len(image):
        raise ValueError(f"its runs have {position:,} bytes, their data {len(image):,}")
    made, device = document["configuration"], document["device_model"]
    packed = zlib.compress(lzma.decompress(base64.b64decode(document["base"]["image"], validate=True)), 1)
    for sector, data in [*differences.runs(packed), *runs]:
        if not 0 <= sector * SECTOR_BYTES <= document["base"]["length"] - len(data) or not data:
            raise ValueError(f"it has {len(data):,} bytes at sector {sector}, not on its device")
    workload = workload_from_json(document["workload"])
    question = None
    if asked is not None:
        beside = bool(asked.get("beside", False))
        question = Question(tuple(asked["required"]), asked["later"], asked.get("returned"), beside)
    if question and not all(0 < number <= len(workload.operations) for number in question.operations):
        raise ValueError("it asks about operations that its workload does not have")
    if (expected := document.get("expectation")) is not None:
        check(parse(expected), simulate(workload)[0])
    base = {**document["base"], "image": base64.b64encode(packed).decode()}
    return Witness(
        property=name,
        evidence=document["evidence"],
        kernel=document["environment"]["kernel"],
        environment=dict(document["environment"]),
        configuration=configuration_from_json(made),
        model=DeviceModel(
            WriteCache(device["write_cache"]),
            device["atomic_write_bytes"],
            Completion(device.get("completion", Completion.PROMPT)),
        ),
        workload=workload,
        question=question,
        base=base_from_json(base),
        runs=tuple(runs),
        inodes=(_inodes(document["inodes_before"]), _inodes(document["inodes_after"])),
        statuses=(
            statuses_from_json(document.get("status_before", {})),
            statuses_from_json(document.get("status_after", {})),
        ),
        state=CrashState.from_json(document["crash"]["state"]),
        timeline=timeline.from_json(document["crash"]["timeline"]),
        size=Size(len(workload.operations), len(workload.setup), int(document["crash"]["departure"])),
        shrunk_from=Size(**document["shrunk_from"]) if "shrunk_from" in document else None,
        declared=_declared(document.get("probe"), name),
        trouble=TroubleKind(document["trouble"]) if "trouble" in document else None,
        expectation=expected,
    )


def _question_to_json(question: Question) -> dict[str, Any]:
    returned = {} if question.returned is None else {"returned": question.returned}
    beside = {"beside": True} if question.beside else {}
    return {"required": list(question.required), "later": question.later, **returned, **beside}


def _declared(document: Mapping[str, Any] | None, name: str | None) -> Property | None:
    found = None if document is None else declared(document)
    if found is not None and found.name != name:
        raise ValueError(f"it declares the property {found.name!r}, and is of {name!r}")
    return found


def _inodes(document: Mapping[str, Any]) -> dict[str, int]:
    return {path: int(number) for path, number in document.items()}
