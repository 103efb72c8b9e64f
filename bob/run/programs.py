"""A program under test, from end to end: record its workload, explore what a crash may leave, have its checker look.

The recording is cut into windows by what the program had told (:mod:`bob.program.told`). Each window's legal crash
states are explored as those of any workload: most outcomes are predicted, and what was mounted for one window need not
be mounted for another. The checker runs once for each tree that can be seen with each output, and on a sample of
others with the same tree.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import bob
from bob.agent.client import Agent, AgentBroken, what_happened
from bob.agent.inside.mounts import ROOT
from bob.agent.loss import GuestLost
from bob.crash.case import Case
from bob.crash.plan import Plan
from bob.crash.state import CrashState, departure
from bob.errors import UsageError
from bob.guest.capacity import check_jobs, guests_that_fit
from bob.guest.hypervisor import Hypervisor
from bob.guest.spec import Clock
from bob.image import Image, check_file_system, check_kernel, ensure, ensure_world
from bob.judge.programs import Looked, ProgramResult, claim_of, judge, to_json
from bob.observe.explore import explore
from bob.observe.observation import Findings
from bob.observe.observed import Observed
from bob.observe.session import Checking, Session
from bob.observe.sights import Sights
from bob.program.answer import CheckerAnswer
from bob.program.program import EMPTIED, Program
from bob.program.strace import SystemCall, parse
from bob.program.told import Window, outputs, windows
from bob.program.unsynced import not_followed, unsynced
from bob.progress import Progress
from bob.record.base import make_program_base
from bob.record.recorder import RecordedProgram, put_program, record_program
from bob.request import ProbeRequest, configuration_to_json
from bob.result import Environment
from bob.run.agents import agent_in
from bob.run.prober import RUNS, environment_of, new_identity, now
from bob.run.second_chances import SecondChances, each_in_a_guest
from bob.store.lock import writing
from bob.store.run_directory import RunDirectory, write_whole
from bob.trace.base import Base
from bob.trace.timeline import parse_timeline
from bob.witness import document as witness
from bob.witness.document import Showing
from bob.workload.operations import Workload

LEAST_SAMPLED = 3
"""Of the states of a window whose tree was checked in another one, at least so many are checked all the same."""


@dataclass(frozen=True, slots=True)
class Preflight:
    """What is known of a program before its crash states are explored: how much it told, in how many outputs, and how
    many system calls of it were traced."""

    configuration: str
    outputs: int
    told: int
    calls: int
    windows: int


@dataclass(slots=True)
class _Taken:
    """A program that was recorded on one configuration, and what has come of it."""

    request: ProbeRequest
    program: Program
    world: Path | None
    case: Case
    windows: tuple[Window, ...]
    told: bytes
    calls: tuple[SystemCall, ...]
    pipe: int
    sights: Sights = field(default_factory=dict)
    answers: dict[tuple[str, bytes], CheckerAnswer] = field(default_factory=dict)
    checks: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def preflight(self) -> Preflight:
        name = self.request.configuration.name
        return Preflight(name, len(self.windows) - 1, len(self.told), len(self.calls), len(self.windows))


def try_program(
    program: Program, requests: Sequence[ProbeRequest], out: Path | None, progress: Progress
) -> tuple[list[ProgramResult], Path]:
    """The answer for ``program`` on each requested configuration, and the run directory with everything behind them.

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
        for number, request in enumerate(requests):
            made = request.configuration
            taken = _take(hypervisor, image, program, request, progress, run, number)
            _trust(hypervisor, image, taken, progress)
            progress.planned(len(taken.windows), len(taken.windows) * request.budget)
            looked = _look(hypervisor, image, taken, jobs, progress)
            result = judge(made.name, taken.case.recording.effective_options, looked, taken.checks, _notes(taken))
            results.append(_with_witnesses(result, taken, looked, run, environment, number))
        document = to_json(program, results, {"id": identity, "started": started, "finished": now()})
        run.save_result({**document, "environment": asdict(environment), **first.model.to_json()})
        run.note(finished=now())
    return results, run.path


def preflight(program: Program, requests: Sequence[ProbeRequest], progress: Progress) -> list[Preflight]:
    """All but exploring: the program is recorded on each configuration, and its checker tried.

    Raises as :func:`try_program` does.
    """
    image = _image(requests, progress)
    with Hypervisor.open(requests[0].host.connect, progress.step) as hypervisor:
        taken = [_take(hypervisor, image, program, request, progress) for request in requests]
        for one in taken:
            _trust(hypervisor, image, one, progress)
    return [one.preflight for one in taken]


def _image(requests: Sequence[ProbeRequest], progress: Progress) -> Image:
    check_jobs(requests[0].host.jobs)
    image = ensure(requests[0].image, progress.step)
    check_kernel(image)
    for request in requests:
        check_file_system(image, request.configuration.fs.module, request.configuration.fs.package)
    return image


def _take(
    hypervisor: Hypervisor,
    image: Image,
    program: Program,
    request: ProbeRequest,
    progress: Progress,
    run: RunDirectory | None = None,
    number: int = 0,
) -> _Taken:
    """Record the program's workload, and keep that in ``run``. Raises UsageError where a script of it fails or does not
    end, RecordingError where the recording is not to be believed."""
    made = request.configuration
    world = ensure_world(image, program.packages, progress.step)
    progress.step(f"recording the workload of {program.name} on {made.name}")

    def take(agent: Agent, item: Program) -> tuple[Base, RecordedProgram]:
        put_program(agent, item)
        base = make_program_base(agent, made, item)
        return base, record_program(agent, made, base, item, completion=request.model.completion)

    items = [(program.name, program)]
    [(base, recorded)] = each_in_a_guest(hypervisor, image, Clock.VIRTUAL, items, take, progress, world)
    workload = Workload(program.name, (), ())
    case = Case.of(workload, base, recorded.recording, request.model)
    calls = parse(recorded.calls)
    told = outputs(calls, parse_timeline(recorded.recording.timeline), recorded.pipe, recorded.told)
    if run is not None:
        folder = run.folder(number, workload)
        if not run.has_base(base.name):
            run.save_base(base)
        run.save_recording(folder, workload, base, recorded.recording)
        write_whole(folder / "calls", recorded.calls.encode())
        more = {
            "configuration": configuration_to_json(made),
            "told": [[output.at.time, output.data.decode("latin-1")] for output in told],
        }
        write_whole(folder / "told.json", json.dumps(more).encode())
    progress.recorded(program.name)
    return _Taken(request, program, world, case, windows(case.plan.trace, told), recorded.told, calls, recorded.pipe)


def _trust(hypervisor: Hypervisor, image: Image, taken: _Taken, progress: Progress) -> None:
    """Try the checker before it is trusted: raises UsageError, with what it printed, where it refuses what the setup or
    a clean end leaves, or accepts what the program says that it must refuse."""
    program, plan = taken.program, taken.case.plan
    progress.step(f"trying the checker of {program.name} on {taken.request.configuration.name}")
    pristine, complete = plan.controls[0], plan.controls[-1]

    def ask(agent: Agent, _item: None) -> list[CheckerAnswer]:
        put_program(agent, program)
        session = _session(agent, taken, plan)
        asked = [
            Checking(plan.composer.delta(pristine), b""),
            Checking(plan.composer.delta(complete), taken.told),
            *(Checking(plan.composer.delta(complete), taken.told, spoiler) for spoiler in program.must_fail),
        ]
        return session.check_program(asked, plan.composer.payload_since(0), program.seconds)

    items = [(program.name, None)]
    [answers] = each_in_a_guest(hypervisor, image, Clock.REAL, items, ask, progress, taken.world)
    hint = "bob app check tries the checker, and explores nothing"
    for answer, what in zip(answers, ("what setup leaves, with no output", "what a clean end leaves"), strict=False):
        if answer.consequence is not None:
            raise UsageError(f"the checker refuses {what}: {answer.evidence} (exit code {answer.code})", hint=hint)
    for answer, spoiler in zip(answers[2:], program.must_fail, strict=True):
        if answer.consequence is None:
            what = "an emptied directory, after all of the output" if spoiler == EMPTIED else f"what {spoiler} leaves"
            raise UsageError(
                f"the checker accepts {what}: it cannot tell a loss",
                hint="must_fail in app.toml says what it must refuse; must_fail = [] says that there is no such thing",
            )


def _session(agent: Agent, taken: _Taken, plan: Plan) -> Session:
    configuration = taken.request.configuration
    return Session(agent, configuration, plan.base, plan.composer.floor_delta(), plan.composer.payload_since(0))


def _look(hypervisor: Hypervisor, image: Image, taken: _Taken, jobs: int, progress: Progress) -> list[Looked]:
    """Explore all windows, in several guests side by side."""
    waiting = deque(enumerate(taken.windows))
    done: dict[int, Looked] = {}
    chances = SecondChances(progress)

    def work() -> None:
        while waiting:
            try:
                with agent_in(hypervisor, image, Clock.REAL, taken.world) as agent:
                    put_program(agent, taken.program)
                    for place, window in _next(waiting):
                        looked, is_lost = _look_at(agent, taken, window, place, progress)
                        if is_lost and chances.has(place, f"window {place + 1}", looked.observed.lost or ""):
                            waiting.appendleft((place, window))
                        else:
                            done[place] = looked
                        if is_lost:
                            break  # on with a new guest
            except GuestLost as loss:
                if not chances.has("started", taken.program.name, str(loss)):
                    raise

    with ThreadPoolExecutor(min(jobs, len(taken.windows))) as pool:
        for future in [pool.submit(work) for _ in range(min(jobs, len(taken.windows)))]:
            future.result()
    return [done[place] for place in range(len(taken.windows))]


def _next(waiting: deque[tuple[int, Window]]) -> Iterator[tuple[int, Window]]:
    while True:
        try:
            yield waiting.popleft()
        except IndexError:
            return


def _look_at(agent: Agent, taken: _Taken, window: Window, place: int, progress: Progress) -> tuple[Looked, bool]:
    """Explore one window, and have the checker look at what is new there; whether the guest was lost."""
    request = taken.request
    plan = Plan(window.trace, taken.case.base, request.model)
    case = replace(taken.case, plan=plan)
    name = f"{taken.program.name}, window {place + 1}"
    told = 0

    def tell(states: int) -> None:
        nonlocal told
        told += states
        progress.observed(name, states)

    observed = explore(agent, request.configuration, plan, request.effort, tell, taken.sights)
    if observed.died:
        return Looked(window.told, case, observed, {}), True
    try:
        answers, disagreed = _check(agent, taken, case, window, observed)
    except (GuestLost, AgentBroken, UsageError) as loss:
        lost = replace(observed, lost=what_happened(loss, " while checking"))
        return Looked(window.told, case, lost, {}), isinstance(loss, GuestLost)
    progress.finished(name, request.budget - told)
    return Looked(window.told, case, observed, answers, disagreed), False


def _check(
    agent: Agent, taken: _Taken, case: Case, window: Window, observed: Observed
) -> tuple[dict[int, CheckerAnswer], str | None]:
    """What the checker says of each outcome that mounts, and how it disagreed with itself, if it did."""
    easiest: dict[int, CrashState] = {}
    others: list[tuple[int, CrashState]] = []
    for seen in observed.states:
        if seen.outcome is None:
            continue
        before = easiest.get(seen.outcome)
        if before is None or departure(seen.state) < departure(before):
            easiest[seen.outcome] = seen.state
        others.append((seen.outcome, seen.state))
    digests = {outcome: _digest(observed.findings, outcome) for outcome in easiest}
    mounting = {one for one in easiest if observed.findings.observation(one).mounted}
    with taken.lock:
        new = [one for one in mounting if (digests[one], window.told) not in taken.answers]
    rest = [one for one in others if one[0] in mounting and one[1] != easiest[one[0]]]
    rest += [(one, easiest[one]) for one in mounting if one not in new]
    random = Random(f"{taken.request.seed} checked {len(window.told)}")
    wanted = min(len(rest), max(LEAST_SAMPLED, round(taken.request.audit * len(rest))))
    sample = random.sample(rest, wanted)
    asked = [*((one, easiest[one]) for one in new), *sample]
    if not asked:
        return {}, None
    plan = case.plan
    session = _session(agent, taken, plan)
    checkings = [Checking(plan.composer.delta(state), window.told) for _outcome, state in asked]
    said = session.check_program(checkings, plan.composer.payload_since(0), taken.program.seconds)
    disagreed: str | None = None
    with taken.lock:
        taken.checks += len(asked)
        for (outcome, _state), answer in zip(asked, said, strict=True):
            known = taken.answers.setdefault((digests[outcome], window.told), answer)
            if known.code != answer.code:
                disagreed = f"the checker says {known.code} and {answer.code} of the same tree and the same output"
        return {one: taken.answers[digests[one], window.told] for one in mounting}, disagreed


def _digest(findings: Findings, outcome: int) -> str:
    """Outcomes with the same tree have the same one, whatever numbers their contents have."""
    document: dict[str, Any] = json.loads(findings.found[outcome])
    for entry in (document["tree"] or {}).values():
        content = b"".join(findings.chunks[number] for number in entry.get("content", ()))
        entry["content"] = hashlib.blake2b(content).hexdigest()
        xattrs = entry.get("xattrs", {}).items()
        entry["xattrs"] = {name: findings.chunks[number].hex() for name, number in xattrs}
    return hashlib.blake2b(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _notes(taken: _Taken) -> tuple[str, ...]:
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
    taken: _Taken,
    looked: Sequence[Looked],
    run: RunDirectory,
    environment: Environment,
    number: int,
) -> ProgramResult:
    """The same with a witness of each vulnerability, kept in ``run``."""
    shown = []
    for place, one in enumerate(result.vulnerabilities, start=1):
        showing = Showing(looked[one.place].case, one.state, claim_of(taken.program, one), one.evidence)
        document: Mapping[str, Any] = witness.write(
            showing,
            environment=asdict(environment),
            configuration=taken.request.configuration,
            model=taken.request.model,
        )
        path = run.save_witness(f"{number:02d}-{place}-{one.consequence.value}", document)
        shown.append(replace(one, witness=path))
    return replace(result, vulnerabilities=tuple(shown))
