"""What stands in the place of everything that would start a guest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bob.catalogue.request import Host
from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.crash.device import DeviceModel
from bob.crash.state import CrashState
from bob.judge.answers import Answer, Way
from bob.judge.program_result import ModelResult, Predicted, ProgramResult, Programs, Safety, Vulnerability
from bob.judge.tried import Finished, Trial, Tried
from bob.program.answer import Consequence
from bob.progress import Progress
from bob.result import ConfigurationResult, Environment, PropertyResult, Result, Run, Unmountable


def result(name: str = "ext4-ordered", *, unknown: bool = True) -> Result:
    """A small run: a cell that fails, one that holds, and perhaps one that is unknown."""
    states = States(812, 4096, 2**88, None)
    cells = [
        PropertyResult(
            "append-any",
            "ordering",
            Verdict.FAILS,
            states,
            witness="witnesses/append-any.json",
            evidence="operation 3 (mkdir /d) is there, operation 2 (append /a) is not",
        ),
        PropertyResult("overwrite-any", "ordering", Verdict.HOLDS, states),
    ]
    if unknown:
        cells.append(PropertyResult("directory-op", "atomicity", Verdict.UNKNOWN, states, reason="the guest was lost"))
    return Result(
        run=Run("made-up", "2026-11-21T23:00:21Z", "2026-11-21T23:04:33Z", "0.1.0", 1, 200),
        environment=Environment("6.1.0-31-amd64", "debian-bookworm", "tcg", "virtual", "7.2.0", "9.0.0", "1.47.0"),
        model=DeviceModel(),
        configurations=(ConfigurationResult(name, "ext4", "", "", "rw,relatime", tuple(cells)),),
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
        for cell in self.result.configurations[0].properties:
            progress.judged(cell)
        return self.result, folder

    def try_out(self, trial: Trial, out: Path | None, progress: Progress) -> tuple[Tried, Path]:
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
    ) -> tuple[Programs, Path]:
        self._ask((program, requests, out))
        states = States(812, 4096, 2**88, None, 17)
        lost = Vulnerability(
            Consequence.LOST, "acknowledged data is lost", 5, 2, b"", witness="witnesses/00-1-lost.json"
        )
        safeties = (Safety.VULNERABLE, Safety.SAFE, Safety.UNKNOWN)
        results = tuple(
            ProgramResult(
                request.configuration.name, "rw", safety, states, 1, 10, 12,
                (lost,) if safety is Safety.VULNERABLE else (),
                "a guest was lost" if safety is Safety.UNKNOWN else None,
            )
            for request, safety in zip(requests, safeties, strict=False)
        )  # fmt: skip
        gone = Predicted(Consequence.CORRUPT, "a file is gone", 2, b"", "prefix")
        by_models = tuple(
            ModelResult(
                model.name, model.about, Safety.VULNERABLE if "what-if" in model.name else Safety.SAFE,
                4, 9, 30, True, 10, 10, (gone,) if "what-if" in model.name else (),
            )
            for model in models
        )  # fmt: skip
        return Programs(program.name, program.about, results, models=by_models), out or Path("bob-runs/made-up")

    def preflight(self, program: Any, requests: Any, progress: Progress) -> list[Ready]:
        self._ask((program, requests))
        return [Ready(request.configuration.name) for request in requests]

    def tried(self, trial: Trial) -> Tried:
        """Of the expectations the first breaks, the next ones hold, and one with ``zeros`` in it is unknown."""
        ways = tuple(Way(f"/a is wrong in way {number}", 2**number, CrashState(0)) for number in range(3))
        answers = [
            Answer(expectation, Verdict.UNKNOWN, reason="the guest was lost: it hung")
            if "zeros" in expectation.text
            else Answer(expectation, Verdict.HOLDS)
            if place or not self.breaks
            else Answer(expectation, Verdict.FAILS, ways[: self.breaks], needs_no_crash=self.needs_no_crash)
            for place, expectation in enumerate(trial.expectations)
        ]
        states, unmountable = (
            States(812, 4096, 2**88, None, 17),
            Unmountable(3, "witnesses/unmountable.json", "Structure needs cleaning"),
        )
        finishes = tuple(Finished(workload.finish, states, unmountable) for workload in trial.workloads)
        if len(finishes) > 1:  # what the first recording shows; in the others everything holds
            others = [Answer(answer.expectation, Verdict.HOLDS) for answer in answers]
            answers = [
                replace(answer, each=(answer, *[other] * (len(finishes) - 1)))
                for answer, other in zip(answers, others, strict=True)
            ]
        return Tried(
            run=self.result.run,
            environment=self.result.environment,
            model=trial.request.model,
            configuration=trial.request.configuration,
            mount="rw,relatime",
            workload=trial.workloads[0],
            at=trial.at,
            states=states,
            unmountable=unmountable,
            finishes=finishes,
            answers=tuple(answers),
            witnesses=tuple(
                tuple(f"witnesses/expectation-{place}-{number}.json" for number, _way in enumerate(answer.ways[:2], 1))
                for place, answer in enumerate(answers, 1)
            ),
            notes=("a note",),
        )

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
