"""What stands in the place of everything that would start a guest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bob.answer.answer import Answer, ByRecording, ClaimWords, Way
from bob.answer.result import UNMOUNTABLE, Allowed, Checks, Environment, Result, Run, SubjectResult, beside
from bob.catalogue.request import Host
from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.crash.device import DeviceModel, DeviceModelDocument
from bob.judge.question import Trial
from bob.program.answer import Consequence
from bob.progress import Progress
from bob.workload.plain import WorkloadDocument
from samples_of_programs import by_model, file_system, of_program, way


def result(name: str = "ext4-ordered", *, unknown: bool = True) -> Result:
    """A small run: a cell that fails, one that holds, and perhaps one that is unknown."""
    states = States(812, 4096, 2**88, None)
    cells = [
        Answer(
            ClaimWords("property", "append-any", "ordering"),
            Verdict.FAILS,
            states,
            (Way("operation 3 (mkdir /d) is there, operation 2 (append /a) is not", 0, "witnesses/append-any.json"),),
        ),
        Answer(ClaimWords("property", "overwrite-any", "ordering"), Verdict.HOLDS, states),
    ]
    if unknown:
        claim = ClaimWords("property", "directory-op", "atomicity")
        cells.append(Answer(claim, Verdict.UNKNOWN, states, reason="the guest was lost"))
    return Result(
        run=Run("made-up", "2026-11-21T23:00:21Z", "2026-11-21T23:04:33Z", "0.1.0", 1, 200),
        environment=Environment("6.1.0-31-amd64", "debian-bookworm", "tcg", "virtual", "7.2.0", "9.0.0", "1.47.0"),
        device_model=DeviceModelDocument.of(DeviceModel()),
        subjects=(SubjectResult(name, "ext4", "", "", "rw,relatime", tuple(cells)),),
    )


@dataclass(frozen=True)
class Ended:
    """How a run of bob ended, and what it said."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Ready:
    """What is known of a program before its crash states are explored."""

    configuration: str
    outputs: int = 2
    told: int = 10
    calls: int = 30
    windows: int = 3
    states: int = 2**60


@dataclass
class Work:
    """What stands in the place of all that takes a guest: it notes what was asked, and answers at once."""

    asked: list[Any] = field(default_factory=list)
    result: Result = field(default_factory=result)
    replayed: Any = None
    exported: Any = None
    raises: BaseException | None = None
    breaks: int = 0
    """In how many ways the first expectation breaks."""
    needs_no_crash: bool = False
    """Whether it breaks in the state with every write, too."""

    def probe(self, request: Any, out: Path | None, progress: Progress) -> tuple[Result, Path]:
        return self._run((request, out), out, progress)

    def matrix(self, chosen: Any, request: Any, out: Path | None, progress: Progress) -> tuple[Result, Path]:
        return self._run((chosen, request, out), out, progress)

    def search(self, asked: Any, request: Any, out: Path | None, progress: Progress) -> tuple[Result, Path]:
        return self._run((asked, request, out), out, progress)

    def resume(self, run: Path, host: Host, progress: Progress) -> tuple[Result, Path]:
        return self._run((run, host), run, progress)

    def _run(self, asked: Any, out: Path | None, progress: Progress) -> tuple[Result, Path]:
        self._ask(asked)
        folder = out or Path("bob-runs/made-up")
        (folder / "witnesses").mkdir(parents=True, exist_ok=True)
        (folder / "run.json").write_text("{}")
        progress.step("booting a guest")
        progress.planned(1, 200)
        if self.raises:
            raise self.raises
        for cell in self.result.subjects[0].answers:
            progress.judged(cell)
        return self.result, folder

    def try_out(self, trial: Trial, out: Path | None, progress: Progress) -> tuple[Result, Path]:
        self._ask((trial, out))
        progress.planned(1, trial.request.budget)
        if self.raises:
            raise self.raises
        return self.tried(trial), out or Path("bob-runs/made-up")

    def try_program(
        self,
        program: Any,
        requests: Any,
        out: Path | None,
        progress: Progress,
        models: Any,
        *,
        explores: bool,
        numbers: Any = None,
    ) -> tuple[Result, Path]:
        self._ask((program, requests, out))
        states = States(812, 4096, 2**88, None, 17)
        lost = way(Consequence.LOST, "acknowledged data is lost", 5, 2, witness="witnesses/00-1-lost.json")
        verdicts = (Verdict.FAILS, Verdict.HOLDS, Verdict.UNKNOWN)
        subjects = [
            file_system(
                request.configuration.name, verdict, (lost,) if verdict is Verdict.FAILS else (), states,
                Checks(1, 10, 12), "a guest was lost" if verdict is Verdict.UNKNOWN else None,
            )
            for request, verdict in zip(requests, verdicts, strict=False)
        ]  # fmt: skip
        gone = way(Consequence.CORRUPT, "a file is gone", 2, 2, step="prefix")
        subjects += [
            by_model(
                model.name, Verdict.FAILS if "what-if" in model.name else Verdict.HOLDS,
                (gone,) if "what-if" in model.name else (),
                Allowed(model.about, 4, 9, 30, is_all=True), Checks(0, 10, 10),
            )
            for model in models
        ]  # fmt: skip
        return of_program(program.name, program.about, *subjects), out or Path("bob-runs/made-up")

    def preflight(self, program: Any, requests: Any, progress: Progress) -> list[Ready]:
        self._ask((program, requests))
        return [Ready(request.configuration.name) for request in requests]

    def tried(self, trial: Trial) -> Result:
        """Of the expectations the first breaks, the next ones hold, and one with ``zeros`` in it is unknown."""
        answers = [self._answer(trial, place, expectation.text) for place, expectation in enumerate(trial.expectations)]
        made = trial.request.configuration
        refused = [
            Way("Structure needs cleaning", 3, "witnesses/unmountable.json", place)
            for place in range(len(trial.workloads))
        ]
        subject = SubjectResult(
            made.name, made.fs.name, made.mkfs_options, made.mount_options, "rw,relatime", tuple(answers),
            (beside(UNMOUNTABLE, UNMOUNTABLE, refused[:1]),), notes=("a note",),
        )  # fmt: skip
        return replace(
            self.result,
            device_model=DeviceModelDocument.of(trial.request.model),
            subjects=(subject,),
            workload=WorkloadDocument.of(trial.workloads[0]),
        )

    def _answer(self, trial: Trial, place: int, text: str) -> Answer:
        verdict = Verdict.HOLDS if place or not self.breaks else Verdict.FAILS
        verdict = Verdict.UNKNOWN if "zeros" in text else verdict
        reason = "the guest was lost: it hung" if verdict is Verdict.UNKNOWN else None
        states = States(812, 4096, 2**88, None, 17, unmountable=3)
        ways = tuple(
            Way(
                f"/a is wrong in way {number}",
                2**number,
                f"witnesses/expectation-{place + 1}-{number + 1}.json" if number < 2 else None,
                by_recording=(2**number, *[0] * (len(trial.workloads) - 1)),
            )
            for number in range(self.breaks if verdict is Verdict.FAILS else 0)
        )
        violations = sum(way.states for way in ways)
        recordings = [
            ByRecording(
                "try", one.finish.name, Verdict.HOLDS if number else verdict, states,
                0 if number else violations, None if number else reason,
                self.needs_no_crash and verdict is Verdict.FAILS and not number,
            )
            for number, one in enumerate(trial.workloads)  # what the first recording shows; in the others all holds
        ]  # fmt: skip
        return Answer(ClaimWords("expectation", text), verdict, states, ways, tuple(recordings), reason)

    def judge_again(self, folder: Path, step: Callable[[str], None]) -> Result:
        self._ask(folder)
        step("judging 3 workloads")
        return self.result

    def replay(self, witness: Path, **more: Any) -> Any:
        self._ask((witness, more))
        return self.replayed

    def export(self, witness: Path, **more: Any) -> Any:
        self._ask((witness, more))
        return self.exported

    def _ask(self, what: Any) -> None:
        self.asked.append(what)


Bob = Callable[..., Ended]
"""Runs bob: ``bob("probe", "--fs", "ext4")``."""
