"""A program under test, from end to end: record its workload, explore what a crash may leave, have its checker look.

The recording is cut into windows by what the program had told (:mod:`bob.program.told`). Each window's legal crash
states are explored as those of any workload: most outcomes are predicted, and what was mounted for one window need not
be mounted for another. The checker runs once for each tree that can be seen with each output, and on a sample of
others with the same tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import bob
from bob.agent.inside.mounts import ROOT
from bob.apm.derive import was_derived_of
from bob.apm.model import Model
from bob.crash.case import Case
from bob.errors import UsageError
from bob.guest.capacity import check_jobs, guests_that_fit
from bob.guest.hypervisor import Hypervisor
from bob.image import Image, check_file_system, check_kernel, ensure
from bob.judge.looked import Looked
from bob.judge.modelled import crossed
from bob.judge.program_result import Easiest, ProgramResult, Programs, to_json
from bob.judge.programs import claim_of, judge
from bob.judge.reliance import Reliances
from bob.program.program import Program
from bob.program.told import tellings
from bob.program.unsynced import not_followed, unsynced
from bob.progress import Progress
from bob.protocol.diagram import Protocol
from bob.request import ProbeRequest
from bob.result import Environment
from bob.run.prober import RUNS, environment_of, new_identity, now
from bob.run.program_models import hold_against, unforeseen
from bob.run.program_recording import Preflight, TakenProgram, take, trust
from bob.run.program_windows import look
from bob.store.lock import writing
from bob.store.run_directory import RunDirectory
from bob.story.timeline import Asked
from bob.timings import Work, timed
from bob.witness import document as witness
from bob.witness.document import Showing


def try_program(
    program: Program,
    requests: Sequence[ProbeRequest],
    out: Path | None,
    progress: Progress,
    models: Sequence[Model] = (),
    *,
    explores: bool = True,
) -> tuple[Programs, Path]:
    """The answers for ``program`` on each requested configuration, and by each of ``models``; and the run directory
    with everything behind them. Models are held against the calls that were recorded on the first configuration. Where
    bob does not explore (``explores``), only they have an answer.

    Raises UsageError where the program cannot be run, or its checker cannot be trusted: with its own words, and before
    anything is explored.
    """
    first = requests[0]
    image, identity, started = _image(requests, progress), new_identity(), now()
    folder = out if out is not None else RUNS / identity
    about = {"id": identity, "started": started, "bob": bob.__version__, "program": program.to_json()}
    run = RunDirectory.create(folder, about)
    with writing([run.path]), Hypervisor.open(first.host.connect, progress.step) as hypervisor:
        environment = environment_of(hypervisor, image, first)
        run.note(environment=asdict(environment))
        jobs = first.host.jobs or guests_that_fit()
        results: list[ProgramResult] = []
        every = []
        for number, request in enumerate(requests):
            watches = bool(models) and number == 0
            taken = take(hypervisor, image, program, request, progress, run, number, stores=watches)
            trust(hypervisor, image, taken, progress)
            every.append(taken)
        modelled = hold_against(hypervisor, image, every[0], models, jobs, progress) if models else []
        answers = [one.result for one in modelled]
        explored = every if explores else []
        if explored:
            progress.planned(
                sum(len(taken.windows) for taken in explored),
                sum(len(taken.windows) * taken.request.budget for taken in explored),
            )

        def save() -> None:
            about = {"id": identity, "started": started, "finished": now()}
            document = to_json(program, results, about, answers, _protocols(every))
            run.save_result({**document, "environment": asdict(environment), **first.model.to_json()})

        if answers:
            save()
        with timed([_work(taken, jobs) for taken in explored], progress) as watcher:
            for number, taken in enumerate(explored):
                looked = look(hypervisor, image, taken, jobs, watcher)
                watcher.lap()
                name, mount = taken.request.configuration.name, taken.case.recording.effective_options
                reliances = Reliances.of_looked(looked, taken.calls, ROOT)
                taken.steps = reliances.steps(tellings(taken.calls, taken.pipe)) or taken.steps
                result = judge(name, mount, looked, _notes(taken), reliances)
                results.append(_with_witnesses(result, taken, looked, reliances, run, environment, number))
                answers = [
                    crossed(
                        answer,
                        result,
                        unforeseen(one, looked) if number == 0 else frozenset(),
                        is_its_own=was_derived_of(one.model, taken.request.configuration, environment.kernel),
                    )
                    for answer, one in zip(answers, modelled, strict=True)
                ]
                save()
        run.note(finished=now())
    found = Programs(program.name, program.about, tuple(results), "", tuple(answers), _protocols(every))
    return found, run.path


def _work(taken: TakenProgram, guests: int) -> Work:
    """What there is to explore of a program on one configuration, as it is timed."""
    request = taken.request
    what = f"{taken.program.name} on {request.configuration.fs.name}"
    return Work("app", what, request.image, guests, request.budget, len(taken.windows))


def preflight(program: Program, requests: Sequence[ProbeRequest], progress: Progress) -> list[Preflight]:
    """All but exploring: the program is recorded on each configuration, and its checker tried.

    Raises as :func:`try_program` does.
    """
    image = _image(requests, progress)
    with Hypervisor.open(requests[0].host.connect, progress.step) as hypervisor:
        taken = [take(hypervisor, image, program, request, progress) for request in requests]
        for one in taken:
            trust(hypervisor, image, one, progress)
    return [one.preflight for one in taken]


def _image(requests: Sequence[ProbeRequest], progress: Progress) -> Image:
    check_jobs(requests[0].host.jobs)
    names = [request.configuration.name for request in requests]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(
            f"two file systems are called {twice!r}", hint="a file system of one's own has its file's name"
        )
    image = ensure(requests[0].image, progress.step)
    check_kernel(image)
    for request in requests:
        check_file_system(image, request.configuration.fs.module, request.configuration.fs.package)
    return image


def _protocols(every: Sequence[TakenProgram]) -> tuple[Protocol, ...]:
    return tuple(taken.protocol for taken in every if taken.protocol is not None)


def _notes(taken: TakenProgram) -> tuple[str, ...]:
    found = [taken.request.configuration.note]
    if not taken.program.must_fail:
        found.append("the checker was never seen to refuse anything: must_fail is empty")
    if never := unsynced(taken.calls, taken.pipe, ROOT):
        found.append(f"changed, and not synced when the program last told something: {', '.join(never)}")
    if unfollowed := not_followed(taken.calls, ROOT):
        found.append(f"not traced: {', '.join(unfollowed)}")
    return tuple(note for note in found if note)


def _with_witnesses(
    result: ProgramResult,
    taken: TakenProgram,
    looked: Sequence[Looked],
    reliances: Reliances,
    run: RunDirectory,
    environment: Environment,
    number: int,
) -> ProgramResult:
    """The same with a witness of each vulnerability, kept in ``run``."""
    shown = []
    for place, one in enumerate(result.vulnerabilities, start=1):
        assert one.easiest is not None
        case = looked[one.easiest.place].case
        showing = Showing(case, one.easiest.state, claim_of(taken.program, one), one.evidence)
        document: Mapping[str, Any] = witness.write(
            showing,
            environment=asdict(environment),
            configuration=taken.request.configuration,
            model=taken.request.model,
            calls=_calls(taken, case, reliances, one.easiest),
        )
        path = run.save_witness(f"{number:02d}-{place}-{one.consequence.value}", document)
        shown.append(replace(one, witness=path))
    return replace(result, vulnerabilities=tuple(shown))


def _calls(taken: TakenProgram, case: Case, reliances: Reliances, easiest: Easiest) -> list[Asked]:
    """What the program did, and told, on the clock of the time line of ``case``."""
    if taken.offset is None:
        return []
    start = case.plan.trace.start.seconds
    calls = reliances.calls_up_to(easiest.place, easiest.outcome, taken.offset - start)
    return [*calls, *taken.tellings(start)]
