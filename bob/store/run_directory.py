"""The run directory of a run of `bob probe` or `bob try`, or of a test of a program (`bob app`). bob records a
workload, observes its crash states, and judges them. Each of these phases writes its output into the directory before
the next one starts.

::

    RUN/run.json                    the request, and the environment
    RUN/bases/NAME.json             base images: the disk before a recording (docs/formats.md)
    RUN/workloads/NNN-NAME/         log (dm-log-writes; log-1 ... of further disks), timeline (bios by tracepoints),
                                    recorded.json, observed.json, refused.json, lost.json; of a program also calls,
                                    told.json, trusted.json, windows/NNN.json
    RUN/recoveries/NNN/             the same files, of a recovery that bob crashes (bob/recovery/)
    RUN/result.json, witnesses/     in the formats bob.result/2 and bob.witness/1

Each JSON file has its own checksum, and the checksums of the files that it was made from. So recorded.json has the
checksums of the logs, the timeline and the base image, and observed.json has the checksum of recorded.json."""

from __future__ import annotations

import re
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from bob import documents
from bob.catalogue.request import ANYWHERE, Host, ProbeRequest, request_from_json
from bob.crash.case import Case
from bob.crash.device import DeviceModel
from bob.crash.work import Work, document_of
from bob.errors import StoreError, UsageError
from bob.fields import MISSHAPEN
from bob.observe.observations import Observations
from bob.program.answer import CheckerAnswers
from bob.schema import adapt, decode, encode
from bob.store.files import changed, checksum_in, read_document, read_raw, reading, write_document, write_whole
from bob.store.new_folder import check_new_folder
from bob.store.run_documents import BaseDocument, CheckedWindow, ObservedDocument, RecordedDocument, RefusedWorkload
from bob.store.run_kind import RunFolder, no_probe
from bob.subject import Subject
from bob.trace.base import Base
from bob.trace.recording import Recording
from bob.workload.operations import Workload
from bob.workload.plain import WorkloadDocument

RUNS = Path("bob-runs")  # the default folder for run directories, in the current directory
FRAMES = "frames.json"  # the stack frames of a program's calls
FOLDERS = ("bases", "workloads", "witnesses")  # every run directory has these folders, empty or not


class RunDirectory(RunFolder):
    """The run directory of a run of `bob probe` or `bob try`, or of a test of a program (`bob app`). Many methods take
    a ``folder``: the folder of a workload in RUN/workloads, or of a recovery in RUN/recoveries."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not (path / "run.json").is_file():
            raise StoreError(
                f"{path} is not a run directory", hint="it lacks run.json; bob probe --out DIR makes a run directory"
            )

    @cached_property
    def is_sealed(self) -> bool:
        """Whether all files of the run have checksums. Older versions of bob wrote no checksums."""
        return checksum_in(self.path / "run.json") is not None

    @classmethod
    def create(cls, path: Path, about: Mapping[str, Any]) -> RunDirectory:
        return cls.made(path, about, FOLDERS)

    @cached_property
    def _id(self) -> str | None:
        return self.about().get("id")

    def planned(self) -> list[Workload]:
        """Return the workloads that run.json lists, in order. Raise StoreError if run.json lacks the list."""
        about = self.about()
        with reading(self.path / "run.json"):
            return [decode(WorkloadDocument, one).workload for one in about["workloads"]]

    def save_base(self, base: Base) -> None:
        document = BaseDocument.of(base, zlib.compress(zlib.decompress(base.packed), 9))
        write_document(self._base(base.name), encode(document), compact=True)

    def has_base(self, name: str) -> bool:
        return self._base(name).is_file()

    def base(self, name: str) -> Base:
        path = self._base(name)
        with reading(path):
            document = decode(BaseDocument, self._document(path))
            return document.base(document.image)

    def _base(self, name: str) -> Path:
        return self.path / "bases" / f"{name}.json"

    def _document(self, path: Path) -> dict[str, Any]:
        return read_document(path, required=self.is_sealed)

    def workloads(self) -> list[Path]:
        return sorted((self.path / "workloads").iterdir())

    def folder(self, number: int, work: Work) -> Path:
        return self.path / "workloads" / f"{number:03d}-{_slug(work.slug)}"

    def recovery_folder(self, place: int) -> Path:
        return self.path / "recoveries" / f"{place:03d}"

    def save_recording(self, folder: Path, work: Work, base: Base, recording: Recording) -> None:
        """Keep ``recording`` in ``folder``. The caller must have checked before that the recording is consistent."""
        folder.mkdir(parents=True, exist_ok=True)
        files = {_log_name(number): disk.log for number, disk in enumerate(recording.disks)}
        files["timeline"] = recording.timeline.encode()
        for name, data in files.items():
            write_whole(folder / name, data)
        document = adapt(
            RecordedDocument,
            recording,
            run=self._id,
            workload=document_of(work),
            base=base.name,
            base_checksum=checksum_in(self._base(base.name)),
            checksums={name: documents.checksum(data) for name, data in files.items()},
            devices=tuple(disk.device for disk in recording.disks),
        )
        write_document(folder / "recorded.json", encode(document), compact=True)

    def save_refusal(self, folder: Path, refused: RefusedWorkload) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        write_document(folder / "refused.json", encode(refused))

    def refusal(self, folder: Path) -> RefusedWorkload | None:
        """Return the workload of ``folder`` and the reason that it cannot be recorded. Such a workload is *refused*,
        and a resumed run does not try it again. Return None if the workload was not refused."""
        return self._refused(folder / "refused.json")

    def unobserved(self, folder: Path) -> RefusedWorkload | None:
        """Return the workload of ``folder`` and the reason that its observations are missing: it cannot be recorded, or
        it was lost. Return None if bob observed the workload, or has not tried it yet."""
        return None if self.is_observed(folder) else self.refusal(folder) or self.loss(folder)

    def _refused(self, path: Path) -> RefusedWorkload | None:
        if not path.is_file():
            return None
        with reading(path):
            refused = decode(RefusedWorkload, self._document(path))
            _ = refused.workload.workload  # raises an error for an unknown operation
            return refused

    def save_loss(self, folder: Path, work: Work, reason: str, trace: str = "") -> None:
        """Keep the ``reason`` that a workload was lost: its guest died, or bob failed. A resumed run tries the workload
        again. If bob itself failed, ``trace`` is the traceback."""
        folder.mkdir(parents=True, exist_ok=True)
        if trace:
            write_whole(folder / "traceback.txt", trace.encode())
        write_document(folder / "lost.json", encode(RefusedWorkload.of(work, reason)))

    def save_traceback(self, title: str, trace: str) -> Path:
        """Keep the traceback after bob itself failed while it judged. ``title`` names what bob judged: a workload or
        a program. A later traceback with the same title replaces this one. Return the path of the file."""
        path = self.path / f"judging-{_slug(title)}.txt"
        write_whole(path, trace.encode())
        return path

    def clear_loss(self, folder: Path) -> None:
        for name in ("lost.json", "traceback.txt"):
            (folder / name).unlink(missing_ok=True)

    def loss(self, folder: Path) -> RefusedWorkload | None:
        """Return the workload of ``folder`` and the reason that it was lost. Return None if it was not lost, or a later
        try was successful."""
        return self._refused(folder / "lost.json")

    def losses(self) -> int:
        """Return the number of workloads and recoveries that were lost, and that a resumed run tries again."""
        return sum(1 for kind in ("workloads", "recoveries") for _lost in self.path.glob(f"{kind}/*/lost.json"))

    def is_finished(self) -> bool:
        return "finished" in self.about() and not self.losses()

    def recording(self, folder: Path) -> tuple[Workload, str, Recording]:
        """Return the workload that was recorded into ``folder``, the name of its base image, and its recording."""
        with reading(folder / "recorded.json"):
            document = decode(RecordedDocument, self._document(folder / "recorded.json"))
            if document.run not in (None, self._id):
                raise changed(folder / "recorded.json", "it belongs to another run than run.json")
            base = self._base(document.base)
            if base.is_file() and document.base_checksum not in (None, checksum_in(base)):
                raise changed(base, f"{folder.name} was recorded on another base image")
            known = document.checksums
            logs = [read_raw(folder / _log_name(number), known) for number in range(len(document.disks))]
            timeline = read_raw(folder / "timeline", known).decode()
            return document.workload.workload, document.base, document.recording(logs, timeline)

    def case(self, folder: Path, subject: Subject, model: DeviceModel) -> Case:
        """Return the recording in ``folder`` as a case. A case combines a recording with all crash states that the disk
        model ``model`` allows. The recording must be of a workload of operations, and not of a program. Raise
        RecordingError if the recording is inconsistent."""
        workload, base, recording = self.recording(folder)
        return Case.of(subject, workload, self.base(base), recording, model)

    def save_observed(self, folder: Path, observed: Observations) -> None:
        document = ObservedDocument.of(observed, checksum_in(folder / "recorded.json"))
        write_document(folder / "observed.json", encode(document), compact=True)

    def keep_observed(
        self, folder: Path, workload: Workload, observed: Observations, first_loss: str | None = None
    ) -> Observations:
        """Keep the observations of ``workload``. Return them with the reason that an earlier guest was lost, if one
        was. This reason is ``first_loss``, or the reason in lost.json from an earlier session of this run.

        If ``observed`` lacks some outcomes, and another guest may help (``observed.final`` is false), also save the
        workload as lost. A resumed run then tries it again."""
        before = self.loss(folder)
        observed = replace(observed, earlier_loss=first_loss or (before.reason if before else None))
        is_lost = observed.lost is not None and not observed.final
        if is_lost:
            self.save_loss(folder, workload, observed.lost or "")
        self.save_observed(folder, observed)
        if not is_lost:
            self.clear_loss(folder)
        return observed

    def is_observed(self, folder: Path) -> bool:
        return (folder / "observed.json").is_file()

    def is_recorded(self, folder: Path) -> bool:
        return (folder / "recorded.json").is_file()

    def is_done(self, folder: Path) -> bool:
        """Return whether the workload of ``folder`` was observed, or cannot be recorded. A lost workload is not done: a
        resumed run tries it again."""
        if (folder / "lost.json").is_file():
            return False
        return self.is_observed(folder) or (folder / "refused.json").is_file()

    def is_tried(self, folder: Path) -> bool:
        """Return whether bob has tried a workload: it was observed, it cannot be recorded, or it was lost."""
        return self.is_observed(folder) or self.unobserved(folder) is not None

    def observed(self, folder: Path) -> Observations:
        with reading(folder / "observed.json"):
            document = decode(ObservedDocument, self._document(folder / "observed.json"))
            if document.recorded_checksum not in (None, checksum_in(folder / "recorded.json")):
                raise changed(folder / "observed.json", "it belongs to another recording than recorded.json")
            return document.observed

    def save_checked(self, folder: Path, place: int, observed: Observations, checked: CheckerAnswers[int]) -> None:
        """Keep what bob found out about window number ``place`` of the program that was recorded into ``folder``."""
        path = _window(folder, place)
        path.parent.mkdir(exist_ok=True)
        document = CheckedWindow.of(observed, checked, checksum_in(folder / "recorded.json"))
        write_document(path, encode(document), compact=True)

    def checked(self, folder: Path, place: int) -> tuple[Observations, CheckerAnswers[int]] | None:
        """Return the observations of window number ``place`` of a program, and the answers of its checker. Return None
        if bob has not kept them."""
        path = _window(folder, place)
        if not path.is_file():
            return None
        with reading(path):
            document = decode(CheckedWindow, self._document(path))
            if document.observed.recorded_checksum != checksum_in(folder / "recorded.json"):
                raise changed(path, "it belongs to another recording than recorded.json")
            return document.observed.observed, document.checked

    def save_witness(self, name: str, document: Mapping[str, Any]) -> str:
        """Keep a witness as the file ``name``.json, and return the file's path within the run directory."""
        write_document(self.path / "witnesses" / f"{name}.json", document)
        return f"witnesses/{name}.json"


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:60]


def _window(folder: Path, place: int) -> Path:
    return folder / "windows" / f"{place:03d}.json"


def _log_name(disk: int) -> str:
    return "log" if disk == 0 else f"log-{disk}"


def now() -> str:
    """Return the current time in UTC, in ISO 8601."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def new_identity() -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"


def check_runs(out: Path | None, option: str = "--out") -> None:
    """Raise UsageError if bob cannot make a new folder in ./bob-runs. Do nothing if the user named another folder,
    ``out``. The message tells the user to name a folder with ``option``."""
    if out is None:
        check_new_folder(RUNS / "new", option)


def request_of(run: RunDirectory, host: Host = ANYWHERE) -> ProbeRequest:
    """Return the request in run.json, so that bob can continue the run on ``host``. Raise StoreError if run.json lacks
    a readable request."""
    try:
        return request_from_json(run.about()["request"], host)
    except UsageError:
        raise no_probe(run.path, run.about()) from None
    except MISSHAPEN:
        raise no_probe(run.path, run.about()) from None
