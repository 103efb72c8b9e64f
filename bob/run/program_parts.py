"""The run of a program in parts, for a cluster. A part is one file system at one pace (how fast the program runs). The
first part also finds the program's vulnerabilities on models of file systems. Each part asks whether these models allow
the trees that it sees on its real file system."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import copytree, ignore_patterns

from bob.answer.merge import merged
from bob.answer.result import Result, SubjectResult
from bob.apm.model import Model
from bob.apm.model import from_json as model_from_json
from bob.apm.model import to_json as model_to_json
from bob.catalogue.request import CheckPlace, Host, ProbeRequest, request_from_json, request_to_json
from bob.errors import GuestError, UsageError
from bob.judge.modelled import crossed
from bob.program.program import Program
from bob.progress import Progress
from bob.run.dask_workers import workers
from bob.run.parts import Doer, PartEnd, RunPart
from bob.store.lock import LOCK
from bob.store.run_directory import RunDirectory, now


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
    run, or its checker cannot be trusted. Raise GuestError if no worker could do a part. If the run is stopped, bob
    cannot resume it, since it would have to record the program again."""
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
class ProgramPart:
    """The work of one part: the ``request`` for its file system, and the ``models``. If ``explores`` is false, the part
    does not explore crash states of the file system, and only the models answer. If ``answers`` is false, another part
    asks the models whether the program is safe."""

    request: ProbeRequest
    models: tuple[Model, ...]
    explores: bool
    answers: bool


def is_program(run: RunDirectory) -> bool:
    return "asked" in run.about()


def asked_of(run: RunDirectory, host: Host) -> ProgramPart:
    asked = run.about()["asked"]
    models = tuple(model_from_json(document) for document in asked["models"])
    host = replace(host, checks=CheckPlace(asked["checks"]))
    return ProgramPart(request_from_json(asked["request"], host), models, asked["explores"], asked["answers"])


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
            asked = {
                "request": request_to_json(request),
                "models": list(map(model_to_json, self.models)),
                "explores": self.explores,
                "answers": number == self.first,
                "checks": request.host.checks.value,
            }
            about = {name: value for name, value in self.run.about().items() if name != "environment"}
            made = RunDirectory.create(self.scratch / f"{number:03d}", {**about, "numbers": [number], "asked": asked})
            title = f"{self.program.name} on {request.pace.of(request.configuration.name)}"
            yield RunPart(made, title, request.host)

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
