"""Witnesses, ``bob.witness/1``: everything that is needed to show a violation again, in one small file.

A witness carries the base image, the sectors by which the crash state differs from it, the workload, and the claim that
the state breaks. docs/formats.md describes each field.
"""

from __future__ import annotations

import base64
import lzma
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from bob import documents, fields
from bob.blocks.naming import Name, names
from bob.catalogue.probe_files import shipped_probes
from bob.claim.claim import Claim, Context
from bob.claim.kinds import claim_of
from bob.claim.property.rules import Property
from bob.crash.case import Case
from bob.crash.departures import distance
from bob.crash.device import DeviceModel
from bob.crash.state import CrashState
from bob.errors import MalformedError, StoreError, UsageError
from bob.observe.observation import Observation
from bob.request import configuration_from_json, configuration_to_json
from bob.store.run_directory import base_from_json
from bob.story import timeline
from bob.story.timeline import Timeline
from bob.subject import Configuration
from bob.trace import differences
from bob.trace.base import Base
from bob.trace.model import SECTOR_BYTES
from bob.trace.recording import Statuses, statuses_from_json
from bob.typed import typed
from bob.witness import bundle
from bob.witness.found import found_from_json, found_to_json
from bob.witness.recipes import from_recipe, to_recipe
from bob.workload.language import write_one
from bob.workload.operations import Workload
from bob.workload.plain import workload_from_json, workload_to_json

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
    """A crash state of ``case`` that breaks ``claim``: ``evidence`` says by what, ``causes`` are the writes without any
    one of which it would not (:func:`bob.crash.neighbours.causes`). ``all_lost`` says whether it is broken, too, where
    the crash comes at the earliest, and all is lost that was pending then; None where that is not known. ``found`` is
    what was there after the mount, where it is what the evidence is about; ``is_clear`` is as in
    :class:`bob.claim.property.rules.Violation`."""

    case: Case
    state: CrashState
    claim: Claim
    evidence: str
    causes: tuple[int, ...] = ()
    all_lost: bool | None = None
    found: Observation | None = None
    is_clear: bool = True

    @property
    def size(self) -> Size:
        """How large its witness is."""
        workload, pending = self.case.workload, self.case.plan.points[self.state.point].pending
        return Size(len(workload.operations), len(workload.setup), distance(pending, self.state))


@dataclass(frozen=True, slots=True)
class Witness:
    """A witness as it is read again.

    ``claim`` is what it breaks, ``evidence`` by what. ``environment`` is what it was measured on.
    ``runs`` are (sector, data) on top of ``base``. ``inodes`` are the inode numbers by name before and after the
    operations, ``statuses`` what else stat said. ``state`` is the crash state in terms of the recording that it was
    found in, ``timeline`` what happened there up to the crash. ``size`` is how large it is, ``shrunk_from`` how large
    it was before it was shrunk, where it was. ``all_lost`` and ``found`` are as in :class:`Showing`; older witnesses
    do not have what was found.
    """

    claim: Claim
    evidence: str
    kernel: str
    environment: Mapping[str, str]
    configuration: Configuration
    model: DeviceModel
    workload: Workload
    base: Base
    runs: tuple[tuple[int, bytes], ...]
    inodes: tuple[Mapping[str, int], Mapping[str, int]]
    statuses: tuple[Statuses, Statuses]
    state: CrashState
    timeline: Timeline
    size: Size
    shrunk_from: Size | None
    all_lost: bool | None = None
    found: Observation | None = None

    @property
    def title(self) -> str:
        """What it is a witness of, for people."""
        return self.claim.title

    @property
    def context(self) -> Context:
        """What its claim is judged by."""
        return Context(self.workload, self.inodes, self.statuses)

    @property
    def sentence(self) -> str:
        """What happened up to the crash, in one sentence."""
        return self.claim.sentence(self.timeline, self.context, self.found)


def write(
    showing: Showing,
    *,
    environment: Mapping[str, str],
    configuration: Configuration,
    model: DeviceModel,
    shrunk_from: Size | None = None,
    calls: Sequence[timeline.Asked] = (),
    writes: Sequence[Name] | None = None,
) -> dict[str, Any]:
    """The witness of a crash state as a plain document; ``shrunk_from`` is how large it was before it was shrunk,
    ``calls`` are what a program did up to the crash, ``writes`` what each write is, where that is known already."""
    case, state = showing.case, showing.state
    base, recording, runs = case.base, case.recording, case.plan.runs(state)
    image = b"".join(data for _sector, data in runs)
    line = timeline.with_calls(told(configuration.fs.driver, case, state, showing.causes, writes), calls)
    return {
        "schema": SCHEMA,
        "claim": showing.claim.kind,
        **showing.claim.to_json(),
        "evidence": showing.evidence,
        "environment": dict(environment),
        "configuration": configuration_to_json(configuration),
        "device_model": replace(model, completion=recording.completion).to_json(),
        "workload": workload_to_json(case.workload),
        "inodes_before": dict(recording.inodes_before),
        "inodes_after": dict(recording.inodes_after),
        "status_before": recording.status_before,
        "status_after": recording.status_after,
        "crash": {
            "state": state.to_json(),
            "departure": showing.size.departure,
            "timeline": timeline.to_json(line),
            **({} if showing.all_lost is None else {"all_lost": showing.all_lost}),
        },
        **({} if shrunk_from is None else {"shrunk_from": asdict(shrunk_from)}),
        **({} if showing.found is None else {"found": found_to_json(showing.found, environment["kernel"])}),
        "base": {
            "name": base.name,
            "length": base.length,
            "effective_options": base.effective_options,
            "mkfs": base.mkfs,
            **({} if len(base.disks) == 1 else {"disks": list(base.disks)}),
            "image": _image(base.packed),
        },
        "runs": [[sector, len(data) // SECTOR_BYTES] for sector, data in runs],
        "data": to_recipe(image),
    }


def named(driver: str, case: Case) -> tuple[Name, ...]:
    """What each write of ``case`` is, by the on-disk format of the file system ``driver``."""
    used = {word for operation in case.workload.operations for word in write_one(operation).split()}
    # Of several names of a file, one that an operation goes by.
    paths = {
        number: path
        for known in case.inodes
        for path, number in sorted(known.items(), key=lambda pair: pair[0] in used)
    }
    return names(driver, case.base, case.plan.trace, paths)


def told(
    driver: str,
    case: Case,
    state: CrashState,
    causes: Collection[int] = (),
    writes: Sequence[Name] | None = None,
) -> Timeline:
    """The time line of ``state``, with the blocks of the file system ``driver`` by their names (``writes``, where they
    are known already), and the ``causes``."""
    known = named(driver, case) if writes is None else writes
    texts = [(name.kind.value, name.text) for name in known]
    return timeline.timeline(case.plan.trace, case.plan.points[state.point], state, texts, causes)


@lru_cache(maxsize=2)
def _image(packed: bytes) -> str:
    """The runs of a base image as witnesses have them: many witnesses of a run have one base."""
    return base64.b64encode(lzma.compress(zlib.decompress(packed))).decode()


def read(path: Path) -> Witness:
    """The witness in the file ``path``; MalformedError where it is none, or of another schema."""
    try:
        document = bundle.load(path)
    except OSError as error:
        raise MalformedError(f"cannot read {path}: {error.strerror}", hint="is it the path of a witness?") from None
    except documents.ChangedError as error:
        raise MalformedError(f"{path}: {error}", hint=documents.BY_HAND) from None
    except ValueError as error:
        raise MalformedError(f"{path} is no witness: {error}", hint="was it truncated?") from None
    if (found := document.get("schema")) != SCHEMA:
        said = f"{path} has schema {found!r}, not {SCHEMA!r}"
        raise MalformedError(said, hint=_instead(found, path))
    try:
        return _read(document)
    except (UsageError, MalformedError) as error:
        raise MalformedError(f"{path}: {error.message}", hint=error.hint) from None
    except fields.MISSHAPEN as error:
        raise MalformedError(f"{path} is damaged: {fields.said(error)}", hint="was it truncated?") from None


def updated(path: Path, found: Observation, kernel: str, evidence: str) -> dict[str, Any]:
    """The document of the witness in ``path`` with what was ``found`` when it was mounted again on ``kernel``, and with
    ``evidence`` in the place of its own; as it is where its evidence is not about a tree. Raises as :func:`read` does.
    """
    document: dict[str, Any] = bundle.load(path)
    if not read(path).claim.is_shown_by_the_tree:
        return document
    return {**document, "evidence": evidence, "found": found_to_json(found, kernel)}


def _instead(schema: Any, path: Path) -> str:
    """What to do with a document of another schema."""
    kind, _, version = str(schema).partition("/")
    if kind == SCHEMA.partition("/")[0] and version.isdecimal():
        return "replay it with the bob that wrote it"
    if kind in ("bob.result", "bob.try", "bob.programs"):
        return f"it has results: bob show {path}; witnesses are in the folder {bundle.FOLDER} of a run"
    return f"witnesses are in the folder {bundle.FOLDER} of a run"


def files_in(paths: Sequence[Path]) -> list[Path]:
    """The witnesses' files: ``paths`` themselves, and of run directories all that are in them."""
    files: list[Path] = []
    for path in paths:
        within = bundle.within(path) if path.is_dir() else [path]
        if not within:
            raise StoreError(f"{path} has no witnesses", hint="a run has some where a property fails")
        files += within
    return files


def _read(document: Mapping[str, Any]) -> Witness:
    if not isinstance(document["base"]["name"], str):
        raise TypeError("the name of its base is no text")
    if not all(isinstance(value, str) for value in document["environment"].values()):
        raise TypeError("its environment is not of texts")
    image = from_recipe(document["data"])
    runs, position = [], 0
    for sector, count in document["runs"]:
        runs.append((sector, image[position : position + count * SECTOR_BYTES]))
        position += count * SECTOR_BYTES
    if position != len(image):
        raise ValueError(f"its runs have {position:,} bytes, their data {len(image):,}")
    made = document["configuration"]
    packed = zlib.compress(lzma.decompress(base64.b64decode(document["base"]["image"], validate=True)), 1)
    for sector, data in [*differences.runs(packed), *runs]:
        if not 0 <= sector * SECTOR_BYTES <= document["base"]["length"] - len(data) or not data:
            raise ValueError(f"it has {len(data):,} bytes at sector {sector}, not on its device")
    workload = workload_from_json(document["workload"])
    base = {**document["base"], "image": base64.b64encode(packed).decode()}
    return Witness(
        claim=claim_of(document, workload, _shipped),
        evidence=document["evidence"],
        kernel=document["environment"]["kernel"],
        environment=dict(document["environment"]),
        configuration=configuration_from_json(made),
        model=DeviceModel.from_json(document["device_model"]),
        workload=workload,
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
        shrunk_from=typed(Size(**document["shrunk_from"])) if "shrunk_from" in document else None,
        all_lost=document["crash"].get("all_lost"),
        found=found_from_json(document["found"]) if "found" in document else None,
    )


def _shipped(name: str) -> Property | None:
    return next((probe.property for probe in shipped_probes() if probe.property.name == name), None)


def _inodes(document: Mapping[str, Any]) -> dict[str, int]:
    return {path: int(number) for path, number in document.items()}
