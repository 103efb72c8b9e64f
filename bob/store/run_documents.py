"""The JSON documents of a run directory: base images (the disk before a recording), recordings, observations, and
workloads that bob could not record (docs/formats.md)."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

from bob.agent.loss import Loss, LossCause
from bob.crash.coverage import States
from bob.crash.work import Work, document_of
from bob.observe.observation import OutcomeTable, split
from bob.observe.observations import ExploredState, MixedStates, Observations, StateTrouble
from bob.observe.unknown_torn import CauseCount
from bob.program.answer import CheckerAnswer, CheckerAnswers
from bob.schema import Document, adapt, field, older
from bob.trace.base import Base
from bob.trace.recording import Completion, RecordedDisk, Recording, Statuses
from bob.workload.operations import Workload
from bob.workload.plain import WorkloadDocument
from bob.workload.steps import place_of


class BaseDocument(Document, frozen=True, kw_only=True):
    name: str
    length: int
    effective_options: str
    mkfs: str
    disks: tuple[int, ...] = ()  # empty if there is one disk
    image: bytes

    @classmethod
    def of(cls, base: Base, image: bytes) -> BaseDocument:
        return adapt(cls, base, image=image, disks=() if len(base.disks) == 1 else base.disks)

    def base(self, packed: bytes) -> Base:
        return adapt(Base, self, packed=packed)


class RecordedDocument(Document, frozen=True, kw_only=True):
    """A recording without its logs and its timeline, which are files in the same folder."""

    run: str | None = None
    workload: WorkloadDocument
    base: str
    base_checksum: str | None = None
    checksums: Mapping[str, str] = field(default_factory=dict)  # the checksums of logs and timeline, by file name
    devices: tuple[tuple[int, int], ...] = ()
    device: tuple[int, int] | None = None  # in older documents, instead of devices
    effective_options: str
    inodes_before: dict[str, int]
    inodes_after: dict[str, int]
    status_before: Statuses = field(default_factory=older({}))
    status_after: Statuses = field(default_factory=older({}))
    completion: Completion = field(default_factory=older(Completion.PROMPT))
    final: bytes

    def recording(self, logs: Sequence[bytes], timeline: str) -> Recording:
        disks = tuple(RecordedDisk(log, device) for log, device in zip(logs, self.disks, strict=True))
        return adapt(Recording, self, disks=disks, timeline=timeline)

    @property
    def disks(self) -> tuple[tuple[int, int], ...]:
        """The device number (major, minor) of each disk."""
        return self.devices or (() if self.device is None else (self.device,))


class ObservedDocument(Document, frozen=True, kw_only=True):
    """The observations of a workload. bob stores the contents of files in pieces, called chunks. ``contents`` has all
    chunks, one after the other, compressed, and ``chunks`` has their lengths."""

    recorded_checksum: str | None = None
    states: tuple[ExploredState, ...]
    outcomes: list[str]
    chunks: list[int]
    contents: bytes
    coverage: States
    lost: str | None = None
    earlier_loss: str | None = None
    predicted: tuple[int, ...] = ()
    troubles: tuple[StateTrouble, ...] = ()
    normal: tuple[str, ...] = ()
    passing: tuple[str, ...] = ()
    examined_outcomes: tuple[int, ...] = ()
    mixtures: tuple[MixedStates, ...] = ()
    unknown_torn: tuple[CauseCount, ...] = ()

    @classmethod
    def of(cls, observed: Observations, recorded_checksum: str | None) -> ObservedDocument:
        found = observed.findings
        return adapt(
            cls,
            observed,
            recorded_checksum=recorded_checksum,
            outcomes=found.found,
            chunks=[len(chunk) for chunk in found.chunks],
            contents=zlib.compress(b"".join(found.chunks)),
            predicted=tuple(sorted(observed.predicted)),
            examined_outcomes=observed.examined,
        )

    @property
    def observed(self) -> Observations:
        """The observations. Raise ValueError if the chunks together are longer or shorter than the contents. Also raise
        it if a mixture (torn states that mix the data of explored states) has no torn state. Also raise it if the
        mixture has fewer than two rows, or a row that is not an index of ``states``."""
        contents = zlib.decompress(self.contents)
        if sum(self.chunks) != len(contents):
            raise ValueError(f"its contents have {len(contents)} bytes, and its chunks {sum(self.chunks)}")
        for mixture in self.mixtures:
            if (
                mixture.states < 1
                or len(mixture.rows) < 2
                or not all(0 <= row < len(self.states) for row in mixture.rows)
            ):
                raise ValueError(f"a mixture has {mixture.states} torn states and the rows {list(mixture.rows)}")
        findings = OutcomeTable(self.outcomes, split(contents, self.chunks))
        predicted = frozenset(self.predicted)
        return adapt(Observations, self, findings=findings, predicted=predicted, examined=self.examined_outcomes)


class CheckedWindow(Document, frozen=True, kw_only=True):
    """The results for one window of a program: the observed crash states, and the answers of the checker. A window has
    the crashes between two outputs of the program. ``answers`` has triples of an outcome's number, the exit code of the
    checker (None: it did not end in time), and what the checker printed."""

    observed: ObservedDocument
    answers: tuple[tuple[int, int | None, str], ...]
    checks: int
    disagreed: str | None = None

    @classmethod
    def of(cls, observed: Observations, checked: CheckerAnswers[int], recorded_checksum: str | None) -> CheckedWindow:
        answers = tuple((outcome, one.code, one.printed) for outcome, one in checked.answers.items())
        document = ObservedDocument.of(observed, recorded_checksum)
        return cls(observed=document, answers=answers, checks=checked.count, disagreed=checked.disagreed)

    @property
    def checked(self) -> CheckerAnswers[int]:
        answers = {outcome: CheckerAnswer(code, printed) for outcome, code, printed in self.answers}
        return CheckerAnswers(answers, self.checks, self.disagreed)


class RefusedWorkload(Document, frozen=True):
    """A workload that cannot be recorded (the file refused.json), or that was lost, since its guest died or bob failed
    (lost.json). If the guest is lost during the recording, bob records once more. If the kernel then panics or hangs,
    bob refuses the workload, and ``fall`` is that panic or hang."""

    workload: WorkloadDocument
    reason: str
    fall: Loss | None = None

    @classmethod
    def of(cls, work: Work, reason: str, fall: Loss | None = None) -> RefusedWorkload:
        return cls(document_of(work), reason, fall)

    @classmethod
    def by_kernel(cls, workload: Workload, fall: Loss) -> RefusedWorkload:
        """Return a document that refuses ``workload`` because the kernel panicked or hung. The reason in it says during
        which operation this happened, if known, and quotes the kernel."""
        verb = "panicked" if fall.cause is LossCause.PANICKED else "hung"
        words = " ".join(filter(None, ["the kernel", verb, place_of(fall.step, workload)]))
        return cls.of(workload, f"{words}: {fall.said}", fall)
