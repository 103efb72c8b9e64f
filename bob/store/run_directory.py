"""The run directory: each phase writes what it made before the next one starts.

::

    RUN/run.json                       what was asked, and on what it runs
    RUN/bases/NAME.json                base images (docs/formats.md)
    RUN/workloads/NNN-NAME/log         the dm-log-writes log, as ``bob trace`` and xfstests read it; log-1 ... those of
                                       further disks
                          /timeline    the bios, as the kernel's tracepoints told them
                          /recorded.json, /observed.json; /refused.json, /lost.json
    RUN/recoveries/NNN/                the same for a recovery that was crashed (bob/recovery/)
    RUN/result.json                    bob.result/2
    RUN/witnesses/*.json               bob.witness/1

Each JSON file has its checksum in it, and those of the files that it speaks of: recorded.json of the logs, the timeline
and the base, observed.json of recorded.json. So a file that was changed is told, and one of another workload or run.
"""

from __future__ import annotations

import re
import uuid
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from typing import Any

from bob import documents
from bob.catalogue.request import ANYWHERE, Host, ProbeRequest, request_from_json
from bob.crash.case import Case
from bob.crash.device import DeviceModel
from bob.crash.work import Work, document_of
from bob.errors import StoreError, UsageError
from bob.fields import MISSHAPEN
from bob.observe.observations import Observations
from bob.schema import adapt, decode, encode
from bob.store.files import (
    changed,
    checksum_in,
    read_document,
    read_raw,
    reading,
    rewrite_document,
    write_document,
    write_whole,
)
from bob.store.run_documents import BaseDocument, ObservedDocument, RecordedDocument, RefusedDocument, RefusedWorkload
from bob.store.run_kind import no_probe
from bob.subject import Subject
from bob.trace.base import Base
from bob.trace.recording import Recording
from bob.workload.operations import Workload
from bob.workload.plain import WorkloadDocument

RUNS = Path("bob-runs")
"""Where runs are kept by default: in the current directory."""
FOLDERS = ("bases", "workloads", "witnesses")
"""Those that every run directory has, empty as they may be."""


class RunDirectory:
    """A run directory; made by :meth:`create`, opened again by the constructor."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not (path / "run.json").is_file():
            raise StoreError(f"{path} is no run directory", hint="it has no run.json; bob probe --out makes one")

    @cached_property
    def is_sealed(self) -> bool:
        """Whether its files have checksums. Those of older versions have none; then a change in them is not told."""
        return checksum_in(self.path / "run.json") is not None

    @classmethod
    def create(cls, path: Path, about: Mapping[str, Any]) -> RunDirectory:
        """Make the directory ``path``; StoreError if it cannot be written or holds something already."""
        with empty_folder(path):
            for folder in FOLDERS:
                (path / folder).mkdir()
            write_document(path / "run.json", about)
        return cls(path)

    def discard(self) -> None:
        """Make the directory as empty as it was before :meth:`create`: nothing came of the run."""
        for entry in self.path.iterdir():
            if entry.is_dir():
                rmtree(entry)
            else:
                entry.unlink()

    @cached_property
    def _id(self) -> str | None:
        """What run.json says that the run is called."""
        return self.about().get("id")

    def about(self) -> dict[str, Any]:
        """What run.json says."""
        return read_document(self.path / "run.json")

    def planned(self) -> list[Workload]:
        """The workloads that run.json says are asked, in their order; StoreError where it does not say."""
        about = self.about()
        with reading(self.path / "run.json"):
            return [decode(WorkloadDocument, one).workload for one in about["workloads"]]

    def note(self, **more: Any) -> None:
        """Add to run.json."""
        rewrite_document(self.path / "run.json", {**self.about(), **more})

    def save_base(self, base: Base) -> None:
        """Keep a base image."""
        document = BaseDocument.of(base, zlib.compress(zlib.decompress(base.packed), 9))
        write_document(self._base(base.name), encode(document), compact=True)

    def has_base(self, name: str) -> bool:
        """Whether a base image of this name was kept."""
        return self._base(name).is_file()

    def base(self, name: str) -> Base:
        """A kept base image."""
        path = self._base(name)
        with reading(path):
            document = decode(BaseDocument, self._document(path))
            return document.base(document.image)

    def _base(self, name: str) -> Path:
        return self.path / "bases" / f"{name}.json"

    def _document(self, path: Path) -> dict[str, Any]:
        """What is in a file of this run."""
        return read_document(path, required=self.is_sealed)

    def workloads(self) -> list[Path]:
        """The folders of the workloads, in the order of the run."""
        return sorted((self.path / "workloads").iterdir())

    def folder(self, number: int, work: Work) -> Path:
        """The folder of the work with this ``number`` in the run."""
        return self.path / "workloads" / f"{number:03d}-{_slug(work.slug)}"

    def recovery_folder(self, place: int) -> Path:
        """The folder of a recovery that is crashed: like a workload's."""
        return self.path / "recoveries" / f"{place:03d}"

    def save_recording(self, folder: Path, work: Work, base: Base, recording: Recording) -> None:
        """Keep a recording that passed its check."""
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
        """Keep that, and why, a workload could not be recorded."""
        folder.mkdir(parents=True, exist_ok=True)
        write_document(folder / "refused.json", encode(RefusedDocument.of(refused)))

    def refusal(self, folder: Path) -> RefusedWorkload | None:
        """The workload of ``folder`` and why it was refused; None if it was not."""
        return self._refused(folder / "refused.json")

    def unobserved(self, folder: Path) -> RefusedWorkload | None:
        """The workload of ``folder`` and why nothing was seen of it; None where something was, or it was not tried."""
        return None if self.is_observed(folder) else self.refusal(folder) or self.loss(folder)

    def _refused(self, path: Path) -> RefusedWorkload | None:
        if not path.is_file():
            return None
        with reading(path):
            return decode(RefusedDocument, self._document(path)).refused

    def save_loss(self, folder: Path, workload: Workload, reason: str, trace: str = "") -> None:
        """Keep that, and why, it is not known of a workload what it should be; it is to be tried again when the run is
        gone on with. ``trace`` is the traceback where bob itself broke."""
        folder.mkdir(parents=True, exist_ok=True)
        if trace:
            write_whole(folder / "traceback.txt", trace.encode())
        write_document(folder / "lost.json", encode(RefusedDocument.of(RefusedWorkload(workload, reason))))

    def save_traceback(self, title: str, trace: str) -> Path:
        """Keep the traceback of where judging broke, last, at the work that is called so; its path."""
        path = self.path / f"judging-{_slug(title)}.txt"
        write_whole(path, trace.encode())
        return path

    def clear_loss(self, folder: Path) -> None:
        """Forget that a workload was lost: it is done now."""
        for name in ("lost.json", "traceback.txt"):
            (folder / name).unlink(missing_ok=True)

    def loss(self, folder: Path) -> RefusedWorkload | None:
        """The workload of ``folder`` and why it was lost; None if it was not, or was done since."""
        return self._refused(folder / "lost.json")

    def losses(self) -> int:
        """How many workloads and recoveries were lost, and are to be tried again."""
        return sum(1 for kind in ("workloads", "recoveries") for _lost in self.path.glob(f"{kind}/*/lost.json"))

    def is_finished(self) -> bool:
        """Whether the run came to its end, and nothing of it is to be tried again."""
        return "finished" in self.about() and not self.losses()

    def reopen(self) -> None:
        """Note that the run goes on, as something of it was lost: its result is not the last word any more."""
        about = self.about()
        if about.pop("finished", None) is not None:
            rewrite_document(self.path / "run.json", about)

    def recording(self, folder: Path) -> tuple[Workload, str, Recording]:
        """A kept recording: its workload, the name of its base, and itself."""
        with reading(folder / "recorded.json"):
            document = decode(RecordedDocument, self._document(folder / "recorded.json"))
            if document.run not in (None, self._id):
                raise changed(folder / "recorded.json", "it is of another run than the run.json of this one")
            base = self._base(document.base)
            if base.is_file() and document.base_checksum not in (None, checksum_in(base)):
                raise changed(base, f"{folder.name} was recorded on another one")
            known = document.checksums
            logs = [read_raw(folder / _log_name(number), known) for number in range(len(document.disks))]
            timeline = read_raw(folder / "timeline", known).decode()
            return document.workload.workload, document.base, document.recording(logs, timeline)

    def case(self, folder: Path, subject: Subject, model: DeviceModel) -> Case:
        """A kept recording of operations as a case. Raises RecordingError where it is not to be believed."""
        workload, base, recording = self.recording(folder)
        return Case.of(subject, workload, self.base(base), recording, model)

    def save_observed(self, folder: Path, observed: Observations) -> None:
        """Keep what was seen of a workload."""
        document = ObservedDocument.of(observed, checksum_in(folder / "recorded.json"))
        write_document(folder / "observed.json", encode(document), compact=True)

    def keep_observed(
        self, folder: Path, workload: Workload, observed: Observations, first_loss: str | None = None
    ) -> Observations:
        """Keep what was seen of a workload, and return it with how a guest was lost before (``first_loss``, or in an
        earlier session). Where this one was lost on the way, the workload is to be tried again some day."""
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
        """Whether the observations of a workload were kept."""
        return (folder / "observed.json").is_file()

    def is_recorded(self, folder: Path) -> bool:
        """Whether the recording of a workload was kept."""
        return (folder / "recorded.json").is_file()

    def is_done(self, folder: Path) -> bool:
        """Whether nothing is left to be done for a workload: it was observed, or could not be recorded. What was lost
        is to be tried again."""
        if (folder / "lost.json").is_file():
            return False
        return self.is_observed(folder) or (folder / "refused.json").is_file()

    def is_tried(self, folder: Path) -> bool:
        """Whether a workload was done, or lost in the attempt."""
        return self.is_observed(folder) or self.unobserved(folder) is not None

    def observed(self, folder: Path) -> Observations:
        """What was kept of a workload's observations."""
        with reading(folder / "observed.json"):
            document = decode(ObservedDocument, self._document(folder / "observed.json"))
            if document.recorded_checksum not in (None, checksum_in(folder / "recorded.json")):
                raise changed(folder / "observed.json", "it is of another recording than the one beside it")
            return document.observed

    def save_witness(self, name: str, document: Mapping[str, Any]) -> str:
        """Keep a witness; its path within the run."""
        write_document(self.path / "witnesses" / f"{name}.json", document)
        return f"witnesses/{name}.json"

    def save_result(self, document: Mapping[str, Any]) -> None:
        """Keep the result document."""
        write_document(self.path / "result.json", document)

    def result(self) -> dict[str, Any]:
        """The kept result document."""
        return read_document(self.path / "result.json")


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:60]


def _log_name(disk: int) -> str:
    return "log" if disk == 0 else f"log-{disk}"


def now() -> str:
    """The time, ISO 8601, UTC."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def new_identity() -> str:
    """A name for a new run that no other has."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"


def request_of(run: RunDirectory, host: Host = ANYWHERE) -> ProbeRequest:
    """What a run was asked, to go on with it on ``host``. Raises StoreError where it does not say."""
    try:
        return request_from_json(run.about()["request"], host)
    except UsageError:
        raise no_probe(run.path, run.about()) from None
    except MISSHAPEN:
        raise no_probe(run.path, run.about()) from None


@contextmanager
def empty_folder(path: Path) -> Iterator[None]:
    """Makes the folder ``path``, to be filled; StoreError if that fails, or if it holds something already."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise StoreError(f"{path} is not empty", hint="name another directory with --out")
        yield
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}", hint="name another directory with --out") from None
