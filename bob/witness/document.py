"""Witnesses, ``bob.witness/1``: small files with all that bob needs to show a violation again. A witness has the base
image (the disk before the recording), the sectors that differ from it in the crash state, the workload, and the broken
claim. A *claim* is what each crash state should satisfy, such as a property of the file system (docs/formats.md)."""

import lzma
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from bob import documents, fields
from bob.blocks.naming import BlockName, names
from bob.catalogue.probe_files import shipped_probes
from bob.claim.checking import CheckerClaim
from bob.claim.claim import Claim, Context, Refusal
from bob.claim.kinds import claim_of
from bob.claim.property.rules import Property
from bob.crash.case import Case
from bob.crash.departures import distance
from bob.crash.device import DeviceModel, DeviceModelDocument
from bob.crash.state import CrashState
from bob.crash.work import Work, document_of, operations_of, workload_in
from bob.errors import MalformedError, StoreError, UsageError
from bob.observe.observation import Observation
from bob.schema import LATER, Document, adapt, decode, encode, field, is_later, older
from bob.store.run_documents import BaseDocument
from bob.story import timeline
from bob.story.timeline import CrashTimeline
from bob.subject.subject import ConfigurationDocument, Subject
from bob.trace import differences
from bob.trace.base import Base
from bob.trace.model import SECTOR_BYTES
from bob.trace.recording import Statuses
from bob.witness import bundle
from bob.witness.recipes import DataRecipe, from_recipe, to_recipe
from bob.witness.tree_document import FoundDocument
from bob.workload.language import write_one
from bob.workload.operations import Operation, Workload
from bob.workload.plain import WorkloadDocument

SCHEMA = "bob.witness/1"
_NOT_OURS = Refusal("an imported log, whose writes bob cannot make again", "the log itself is for xfstests' replay-log")


@dataclass(frozen=True, slots=True)
class WitnessSize:
    """The size of a witness. ``operations`` counts the operations, and ``setup`` the operations that make the initial
    tree. A *clean prefix* is a crash state with all pending writes that were submitted up to some moment, and no later
    ones, as on a disk without a cache. ``departure`` counts the writes that make the crash state differ from the
    nearest clean prefix (:mod:`bob.crash.departures`)."""

    operations: int
    setup: int
    departure: int


@dataclass(frozen=True, slots=True)
class EarlierCrash:
    """A crash before the crash of a witness. ``title`` names what it interrupted: a workload, or a recovery. ``state``
    is the crash state that it left, and ``sentence`` says in words what that state lacks."""

    title: str
    state: CrashState
    sentence: str


@dataclass(frozen=True, slots=True)
class ShownState:
    """A crash state of the recording ``case`` that breaks ``claim``. ``evidence`` is a line of text that says how the
    state breaks the claim. ``causes`` are the indexes of the decisive writes: if a single one of them had another fate,
    the claim would hold. ``all_lost`` says whether the claim also fails if the crash comes right after the last
    operation and loses all pending writes (None: unknown). ``found`` is the tree after the mount, if the evidence is
    about the tree. If the claim says that one operation persists before a later one, ``is_clear`` says whether the
    later one certainly is complete in the state. For any other claim, ``is_clear`` is True. If this crash interrupted
    the recovery from another crash, ``earlier`` returns the crashes before this one."""

    case: Case
    state: CrashState
    claim: Claim
    evidence: str
    causes: tuple[int, ...] = ()
    all_lost: bool | None = None
    found: Observation | None = None
    is_clear: bool = True
    earlier: Callable[[], tuple[EarlierCrash, ...]] = tuple

    @property
    def size(self) -> WitnessSize:
        work, pending = self.case.work, self.case.plan.points[self.state.point].pending
        setup = work.setup if isinstance(work, Workload) else ()
        return WitnessSize(len(operations_of(work)), len(setup), distance(pending, self.state))


@dataclass(frozen=True, slots=True)
class Witness:
    """A witness, read from its file. ``model`` is the model of the disk: what it may lose or tear in a crash. ``runs``
    are pairs (sector, data) that replace sectors of ``base``. ``inodes`` has two tables of inode numbers by path, one
    from before and one from after the operations. ``statuses`` has two tables of the same kind, with other fields of
    stat(2). ``state`` says which writes of the original recording are in the crash state. ``timeline`` has the events
    up to the crash. ``shrunk_from`` is the size before bob made the witness smaller.

    ``all_lost`` is the same as in :class:`ShownState`. ``found`` is the tree after the mount; older witnesses lack it.
    ``earlier`` has the crashes that led to ``base``, if the crash of the witness interrupted a recovery."""

    claim: Claim
    evidence: str
    kernel: str
    environment: Mapping[str, str]
    configuration: Subject
    model: DeviceModel
    work: Work
    base: Base
    runs: tuple[tuple[int, bytes], ...]
    inodes: tuple[Mapping[str, int], Mapping[str, int]]
    statuses: tuple[Statuses, Statuses]
    state: CrashState
    timeline: CrashTimeline
    size: WitnessSize
    shrunk_from: WitnessSize | None
    all_lost: bool | None = None
    found: Observation | None = None
    earlier: tuple[EarlierCrash, ...] = ()

    @property
    def title(self) -> str:
        return self.claim.title

    @property
    def context(self) -> Context:
        return Context(self.work, self.inodes, self.statuses)

    @property
    def no_export(self) -> Refusal | None:
        """The reason why bob cannot export the log of the workload; None if it can."""
        return _NOT_OURS if self._is_imported else self.claim.no_export

    @property
    def no_shrinking(self) -> Refusal | None:
        """The reason why bob cannot make the witness smaller; None if it can."""
        return _NOT_OURS if self._is_imported else self.claim.no_shrinking

    @property
    def _is_imported(self) -> bool:
        return isinstance(self.work, Workload) and self.work.is_imported

    @property
    def workload(self) -> Workload:
        """The workload. Raises TypeError if bob recorded a program instead of a workload."""
        return workload_in(self.work)

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations of the workload; () if bob recorded a program instead."""
        return operations_of(self.work)

    @property
    def sentence(self) -> str:
        return self.claim.sentence(self.timeline, self.context, self.found)


class CrashDocument(Document, frozen=True):
    """The crash of a witness. ``state`` says which writes and sectors of the recording are in the crash state.
    ``departure`` counts the writes that make this state differ from a clean prefix, as in :class:`WitnessSize`. The
    field ``timeline`` is only for people; bob does not need it to show the violation again."""

    state: CrashState
    departure: int
    timeline: CrashTimeline
    all_lost: bool | None = None


class WitnessDocument(Document, frozen=True, kw_only=True, tag_field="schema", tag=SCHEMA):
    """A witness as a JSON document. A witness has further fields, which depend on the kind of its claim. This class
    does not know them; each class of claims reads and writes its own fields (:mod:`bob.claim.kinds`). ``runs`` are
    pairs (first sector, number of sectors) for the sectors of the crash state that differ from ``base``. ``data`` has
    the contents of these sectors, one run after the other."""

    claim: str
    evidence: str
    environment: Mapping[str, str]
    configuration: ConfigurationDocument
    device_model: DeviceModelDocument
    workload: WorkloadDocument
    inodes_before: Mapping[str, int]
    inodes_after: Mapping[str, int]
    status_before: Statuses = field(default_factory=older({}))
    status_after: Statuses = field(default_factory=older({}))
    crash: CrashDocument
    shrunk_from: WitnessSize | None = None
    found: FoundDocument | None = None
    earlier: tuple[EarlierCrash, ...] = ()
    base: BaseDocument
    runs: tuple[tuple[int, int], ...]
    data: DataRecipe


def write(
    showing: ShownState,
    *,
    environment: Mapping[str, str],
    shrunk_from: WitnessSize | None = None,
    calls: Sequence[timeline.ProgramCallEvent] = (),
    writes: Sequence[BlockName] | None = None,
) -> dict[str, Any]:
    """Return the witness of the crash state ``showing`` as a plain JSON object. ``calls`` are the calls of a program up
    to the crash. ``writes`` is the result of :func:`named`, if the caller already has it."""
    case, state = showing.case, showing.state
    base, recording, runs = case.base, case.recording, case.plan.runs(state)
    line = timeline.with_calls(timeline_of(case, state, showing.causes, writes), calls)
    found = None if showing.found is None else FoundDocument.of(showing.found, environment["kernel"])
    document = adapt(
        WitnessDocument,
        recording,
        claim=showing.claim.kind,
        evidence=showing.evidence,
        environment=dict(environment),
        configuration=ConfigurationDocument.of(case.subject),
        device_model=DeviceModelDocument.of(replace(case.plan.model, completion=recording.completion)),
        workload=document_of(case.work),
        crash=CrashDocument(state, showing.size.departure, line, showing.all_lost),
        shrunk_from=shrunk_from,
        found=found,
        earlier=showing.earlier(),
        base=BaseDocument.of(base, _image(base.packed)),
        runs=tuple((sector, len(data) // SECTOR_BYTES) for sector, data in runs),
        data=to_recipe(b"".join(data for _sector, data in runs)),
    )
    plain = encode(document)
    return {"schema": plain["schema"], "claim": plain["claim"], **showing.claim.to_json(), **plain}


def named(case: Case) -> tuple[BlockName, ...]:
    """Return, for each write of ``case``, the name of the block that the write changes. The name says what the block is
    for in the on-disk format of the file system, for example an inode table or the data of a file."""
    used = {word for operation in operations_of(case.work) for word in write_one(operation).split()}
    # If a file has several names, the last one counts: a name that an operation uses.
    paths = {
        number: path
        for known in case.inodes
        for path, number in sorted(known.items(), key=lambda pair: pair[0] in used)
    }
    driver = case.subject.fs.driver if case.subject.is_one_disk else ""  # layers move the blocks to other places
    return names(driver, case.base, case.plan.trace, paths)


def timeline_of(
    case: Case, state: CrashState, causes: Collection[int] = (), writes: Sequence[BlockName] | None = None
) -> CrashTimeline:
    """Return the time line of the crash state ``state``: the events up to the crash in order, with the fate of each
    write. ``causes`` are the indexes of the decisive writes, and the time line marks them: with another fate of one of
    them, the violation goes away. The time line also names the written blocks. ``writes`` is the result of
    :func:`named`, if the caller already has it."""
    known = named(case) if writes is None else writes
    texts = [(name.kind.value, name.text) for name in known]
    point, of_nodes = case.plan.points[state.point], bool(case.subject.nodes)
    return timeline.timeline(case.plan.trace, point, state, texts, causes, of_nodes=of_nodes)


@lru_cache(maxsize=2)
def _image(packed: bytes) -> bytes:
    """Return a base image compressed by lzma, as a witness needs it. ``packed`` is the same image, compressed by zlib.
    The results are cached, since many witnesses of a run have the same base image."""
    return lzma.compress(zlib.decompress(packed))


def read(path: Path) -> Witness:
    """Return the witness in the file ``path``. Raises MalformedError if the file is not a witness, or has another
    schema."""
    try:
        document = bundle.load(path)
    except OSError as error:
        raise MalformedError(f"cannot read {path}: {error.strerror}", hint="is it the path of a witness?") from None
    except documents.ChangedError as error:
        raise MalformedError(f"{path}: {error}", hint=documents.BY_HAND) from None
    except ValueError as error:
        raise MalformedError(f"{path} is not a witness: {error}", hint="was it truncated?") from None
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
    """Return the JSON object of the witness ``path`` with new ``evidence``, and with the tree ``found`` after a mount
    on ``kernel``. If its claim is not about a tree, return the witness unchanged. Raises MalformedError if the file is
    not a witness."""
    document: dict[str, Any] = bundle.load(path)
    if not read(path).claim.is_shown_by_the_tree:
        return document
    return {**document, "evidence": evidence, "found": encode(FoundDocument.of(found, kernel))}


def _instead(schema: Any, path: Path) -> str:
    if is_later(schema, SCHEMA):
        return LATER
    if str(schema).partition("/")[0] in ("bob.result", "bob.try", "bob.programs"):
        return f"it has results: bob show {path}; witnesses are in the folder {bundle.FOLDER} of a run"
    return f"witnesses are in the folder {bundle.FOLDER} of a run"


def files_in(paths: Sequence[Path]) -> list[Path]:
    """Return the paths of witnesses that ``paths`` stand for. A path in ``paths`` is a witness, or a directory, which
    stands for all witnesses in it. Raises StoreError for a directory without witnesses."""
    files: list[Path] = []
    for path in paths:
        within = bundle.within(path) if path.is_dir() else [path]
        if not within:
            raise StoreError(f"cannot find a witness in {path}", hint="a run has witnesses where a property fails")
        files += within
    return files


def _read(plain: Mapping[str, Any]) -> Witness:
    document = decode(WitnessDocument, {"claim": "", **plain})
    image = from_recipe(document.data)
    runs, position = [], 0
    for sector, count in document.runs:
        runs.append((sector, image[position : position + count * SECTOR_BYTES]))
        position += count * SECTOR_BYTES
    if position != len(image):
        raise ValueError(f"its runs have {position:,} bytes, their data {len(image):,}")
    packed = zlib.compress(lzma.decompress(document.base.image), 1)
    for sector, data in [*differences.runs(packed), *runs]:
        if not 0 <= sector * SECTOR_BYTES <= document.base.length - len(data) or not data:
            raise ValueError(f"it has {len(data):,} bytes at sector {sector}, not on its device")
    workload = document.workload.workload
    claim = claim_of(plain, workload, _shipped)
    return adapt(
        Witness,
        document,
        claim=claim,
        kernel=document.environment["kernel"],
        configuration=document.configuration.configuration,
        model=document.device_model.model,
        work=claim.program if isinstance(claim, CheckerClaim) else workload,
        base=document.base.base(packed),
        runs=tuple(runs),
        inodes=(document.inodes_before, document.inodes_after),
        statuses=(document.status_before, document.status_after),
        state=document.crash.state,
        timeline=document.crash.timeline,
        size=WitnessSize(len(workload.operations), len(workload.setup), document.crash.departure),
        all_lost=document.crash.all_lost,
        found=None if document.found is None else document.found.observation,
    )


def _shipped(name: str) -> Property | None:
    return next((probe.property for probe in shipped_probes() if probe.property.name == name), None)
