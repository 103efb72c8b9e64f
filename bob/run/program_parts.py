"""The run of a program in parts, for a cluster. A part is one file system at one pace (how fast the program runs). The
first part also finds the program's vulnerabilities on models of file systems. Each part asks whether these models allow
the trees that it sees on its real file system."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import copyfile, copytree, ignore_patterns
from typing import Any

from bob.answer.merge import merged
from bob.answer.result import Result, SubjectResult
from bob.apm.model import Model
from bob.apm.model import from_json as model_from_json
from bob.apm.model import to_json as model_to_json
from bob.catalogue.request import CheckPlace, Host, ProbeRequest, request_from_json, request_to_json
from bob.errors import GuestError, StoreError, UsageError
from bob.judge.modelled import crossed
from bob.program.program import Program
from bob.progress import Progress
from bob.run.dask_workers import workers
from bob.run.parts import Doer, PartEnd, RunPart
from bob.store.files import reading
from bob.store.lock import LOCK
from bob.store.run_directory import FRAMES, RunDirectory, now
from bob.store.run_kind import RunKind, kind_of


def spread(
    program: Program,
    requests: Mapping[int, ProbeRequest],
    run: RunDirectory,
    models: Sequence[Model],
    progress: Progress,
    *,
    explores: bool,
) -> Result:
    """Try ``program`` on a cluster, once for each of ``requests``. Return the answers of all these parts together, and
    keep them in ``run``. If ``explores`` is false, only the models answer. Raise UsageError if the program cannot be
    run, or its checker cannot be trusted. Raise GuestError if no worker could do a part. A run that was stopped gives
    its recordings and windows to the workers."""
    first = min(requests)
    scheduler = requests[first].host.scheduler
    assert scheduler is not None
    with (
        tempfile.TemporaryDirectory(prefix="bob-app-") as scratch,
        workers(scheduler, run.about()["id"], [], progress) as them,
    ):
        parts = _ProgramParts(program, dict(requests), first, run, models, explores, Path(scratch))
        them.do(parts)
    run.note(finished=(finished := now()))
    result = parts.together(finished)
    run.save_result(result)
    return result


@dataclass(frozen=True, slots=True)
class AskedOfProgram:
    """The questions of a run of a program, or of a part of it: the ``requests`` for its file systems and paces, by
    their number, and the ``models``. If ``explores`` is false, bob does not explore crash states of file systems, and
    only the models answer. If ``answers`` is false, another part asks the models whether the program is safe."""

    requests: Mapping[int, ProbeRequest]
    models: Sequence[Model]
    explores: bool
    answers: bool

    @property
    def request(self) -> ProbeRequest:
        """The first request."""
        return next(iter(self.requests.values()))

    @property
    def document(self) -> dict[str, Any]:
        """The fields of run.json that :func:`asked_of` reads."""
        return {
            "numbers": list(self.requests),
            "asked": {
                "requests": list(map(request_to_json, self.requests.values())),
                "models": list(map(model_to_json, self.models)),
                "explores": self.explores,
                "answers": self.answers,
                "checks": self.request.host.checks.value,
            },
        }


def is_program(run: RunDirectory) -> bool:
    return kind_of(run.about()) is RunKind.APP


def asked_of(run: RunDirectory, host: Host) -> AskedOfProgram:
    """Return what the run of a program asks, on the given ``host``. Raise StoreError if run.json lacks it, since an
    older version of bob wrote it."""
    about = run.about()
    if "asked" not in about:
        raise StoreError(f"another version of bob wrote {run.path}", hint="start again, with --out")
    with reading(run.path / "run.json"):
        asked = about["asked"]
        host = replace(host, checks=CheckPlace(asked["checks"]))
        each = (request_from_json(document, host) for document in asked["requests"])
        requests = dict(zip(about["numbers"], each, strict=True))
        models = tuple(model_from_json(document) for document in asked["models"])
        return AskedOfProgram(requests, models, asked["explores"], asked["answers"])


@dataclass(slots=True)
class _ProgramParts:
    """The parts of a program's run. ``waiting`` has the requests that bob has not yet given to a worker, by their
    number. ``first`` is the number of the request whose part also answers for the models."""

    program: Program
    waiting: dict[int, ProbeRequest]
    first: int
    run: RunDirectory
    models: Sequence[Model]
    explores: bool
    scratch: Path
    results: dict[int, Result] = field(default_factory=dict)

    def ready(self, _doer: Doer) -> Iterator[RunPart]:
        while self.waiting:
            number = min(self.waiting)
            request = self.waiting.pop(number)
            asked = AskedOfProgram({number: request}, self.models, self.explores, number == self.first)
            about = {name: value for name, value in self.run.about().items() if name != "environment"}
            made = RunDirectory.create(self.scratch / f"{number:03d}", {**about, **asked.document})
            self._give(made, number)
            title = f"{self.program.name} on {request.pace.of(request.configuration.name)}"
            yield RunPart(made, title, request.host)

    def _give(self, made: RunDirectory, number: int) -> None:
        """Copy what the run has kept of an earlier session, so that the worker does not do it again."""
        kept = [*self.run.path.glob("bases/*"), *self.run.path.glob(f"workloads/{number:03d}-*/**/*")]
        for path in (one for one in (*kept, self.run.path / FRAMES) if one.is_file()):
            target = made.path / path.relative_to(self.run.path)
            target.parent.mkdir(parents=True, exist_ok=True)
            copyfile(path, target)

    def take(self, part: RunPart, ended: PartEnd) -> None:
        """Add the results of ``part``. ``ended`` says how the part ended. Raise UsageError if mkfs, the kernel or a
        script of the program refused it, and GuestError if no worker could do it. Without these errors, the result
        would lack a file system, as if the user had not named it."""
        if ended.refusal is not None:
            raise UsageError(f"{part.title}: {ended.refusal[0]}", hint=ended.refusal[1])
        if ended.failure is not None:
            raise GuestError(f"{part.title}: {ended.failure}", hint="try it on one machine, without --scheduler")
        about = part.run.about()
        if "environment" not in self.run.about():
            self.run.note(environment=about["environment"])
        not_copied = ignore_patterns("run.json", "result.json", LOCK)
        copytree(part.run.path, self.run.path, dirs_exist_ok=True, ignore=not_copied)
        [number] = about["numbers"]
        self.results[number] = part.run.result()
        self.run.save_result(self.together())

    def together(self, finished: str = "") -> Result:
        """Combine the results of the finished parts into one result, and return it. Its answers for the models say
        which predictions came true on the file systems. ``finished`` is the time when the run ended; it is empty if
        parts are left."""
        parts = [found for _number, found in sorted(self.results.items())]
        run = replace(parts[0].run, finished=finished)
        answers = {one.name: one for one in self.results[self.first].models} if self.first in self.results else {}
        for part in parts[1:] if answers else ():
            for seen in part.models:
                answers[seen.name] = _beside(answers[seen.name], seen, part.file_systems)
        of_disks = [replace(part, subjects=part.file_systems) for part in parts]
        whole = merged(of_disks, run)
        return replace(whole, subjects=(*whole.subjects, *answers.values()))


def _beside(answer: SubjectResult, seen: SubjectResult, file_systems: Iterable[SubjectResult]) -> SubjectResult:
    for one in file_systems:
        answer = crossed(answer, one, {})
    assert answer.model is not None and seen.model is not None
    missed = (*answer.model.missed, *seen.model.missed)
    return replace(answer, model=replace(answer.model, missed=missed), notes=(*answer.notes, *seen.notes))
