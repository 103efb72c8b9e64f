"""A program under test, from end to end: record its workload, explore what a crash may leave, have its checker look.

The recording is cut into windows by what the program had told (:mod:`bob.program.told`). Each window's legal crash
states are explored as those of any workload: most outcomes are predicted, and what was mounted for one window need not
be mounted for another. The checker runs once for each tree that can be seen with each output, and on a sample of
others with the same tree.
"""

from __future__ import annotations

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
from bob.crash.legal import count_writes, growth_points
from bob.crash.plan import Plan
from bob.crash.state import CrashState, departure
from bob.errors import UsageError
from bob.guest.capacity import check_jobs, guests_that_fit
from bob.guest.hypervisor import Hypervisor
from bob.guest.spec import Clock
from bob.image import Image, check_file_system, check_kernel, ensure, ensure_world
from bob.judge.programs import Looked, ProgramResult, claim_of, judge, to_json
from bob.observe.effort import Effort
from bob.observe.explore import explore
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
"""Of the states of a window whose tree was checked in another state, at least so many are checked all the same."""
BATCH = 10
"""So many states are checked in one request: what was said of them is known when the guest is lost at a later one."""


@dataclass(frozen=True, slots=True)
class Preflight:
    """What is known of a program before its crash states are explored: how much it told, in how many outputs, and how
    many system calls of it were traced; how many windows there are between outputs, with how many legal states of whole
    writes together."""

    configuration: str
    outputs: int
    told: int
    calls: int
    windows: int
    states: int


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

    @property
    def preflight(self) -> Preflight:
        name = self.request.configuration.name
        model = self.request.model
        states = sum(count_writes(growth_points(window.trace, model)) for window in self.windows)
        return Preflight(name, len(self.windows) - 1, len(self.told), len(self.calls), len(self.windows), states)


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
        every = []
        for number, request in enumerate(requests):
            taken = _take(hypervisor, image, program, request, progress, run, number)
            _trust(hypervisor, image, taken, progress)
            every.append(taken)
        progress.planned(
            sum(len(taken.windows) for taken in every),
            sum(len(taken.windows) * taken.request.budget for taken in every),
        )
        for number, taken in enumerate(every):
            looked = _look(hypervisor, image, taken, jobs, progress)
            name, mount = taken.request.configuration.name, taken.case.recording.effective_options
            result = judge(name, mount, looked, _notes(taken))
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
        what = "an emptied directory, after all of the output" if spoiler == EMPTIED else f"what {spoiler} leaves"
        if answer.consequence is not None and not answer.is_judgement:
            raise UsageError(
                f"the checker does not judge {what}: {answer.evidence} (exit code {answer.code})",
                hint="it must refuse what is lost by itself: in time, without a signal, and not since it cannot be run",
            )
        if answer.consequence is None:
            raise UsageError(
                f"the checker accepts {what}: it cannot tell a loss",
                hint="must_fail in app.toml says what it must refuse; must_fail = [] says that there is no such thing",
            )


def _session(agent: Agent, taken: _Taken, plan: Plan) -> Session:
    configuration = taken.request.configuration
    return Session(agent, configuration, plan.base, plan.composer.floor_delta(), plan.composer.payload_since(0))


def _look(hypervisor: Hypervisor, image: Image, taken: _Taken, jobs: int, progress: Progress) -> list[Looked]:
    """Explore all windows, in several guests side by side. An interrupt lets each worker come to where it can stop."""
    waiting = deque(enumerate(taken.windows))
    stop = threading.Event()
    done: dict[int, Looked] = {}
    chances = SecondChances(progress)

    def work() -> None:
        while waiting:
            try:
                with agent_in(hypervisor, image, Clock.REAL, taken.world) as agent:
                    put_program(agent, taken.program)
                    for place, window in _next(waiting):
                        looked, is_lost = _look_at(agent, taken, window, place, progress, stop)
                        if is_lost and chances.has(place, f"window {place + 1}", looked.observed.lost or ""):
                            waiting.appendleft((place, window))
                        else:
                            done[place] = looked
                        if is_lost:
                            break  # on with a new guest
            except _Stopped:
                return
            except GuestLost as loss:
                if stop.is_set():
                    return
                if not chances.has("started", taken.program.name, str(loss)):
                    raise

    with ThreadPoolExecutor(min(jobs, len(taken.windows))) as pool:
        try:
            for future in [pool.submit(work) for _ in range(min(jobs, len(taken.windows)))]:
                future.result()
        except BaseException:
            stop.set()
            waiting.clear()
            raise
    return [done[place] for place in range(len(taken.windows))]


class _Stopped(BaseException):
    """The run was interrupted while a window was looked at."""


def _stop_if(stop: threading.Event) -> None:
    if stop.is_set():
        raise _Stopped


def _next(waiting: deque[tuple[int, Window]]) -> Iterator[tuple[int, Window]]:
    while True:
        try:
            yield waiting.popleft()
        except IndexError:
            return


def _look_at(
    agent: Agent, taken: _Taken, window: Window, place: int, progress: Progress, stop: threading.Event
) -> tuple[Looked, bool]:
    """Explore one window, and have the checker look at each tree; whether another guest is needed."""
    request = taken.request
    plan = Plan(window.trace, taken.case.base, request.model)
    case = replace(taken.case, plan=plan)
    name = f"{taken.program.name}, window {place + 1}"
    dealt_with = 0

    def tell(states: int) -> None:
        nonlocal dealt_with
        _stop_if(stop)
        dealt_with += states
        progress.observed(name, states)

    observed = explore(agent, request.configuration, plan, _effort(request), tell, taken.sights)
    if observed.died:
        return Looked(window.told, case, observed, {}), True
    checked = _Checks()
    is_over = False
    try:
        _check(agent, taken, plan, window, observed, checked, stop)
    except (GuestLost, AgentBroken, UsageError) as loss:
        observed = replace(observed, lost=what_happened(loss, " while checking"))
        is_over = not isinstance(loss, UsageError)
    progress.finished(name, request.budget - dealt_with)
    return Looked(window.told, case, observed, checked.answers, checked.count, checked.disagreed), is_over


@dataclass(slots=True)
class _Checks:
    """What the checker has said so far, by outcome; in how many runs; and how it disagreed with itself, if it did."""

    answers: dict[int, CheckerAnswer] = field(default_factory=dict)
    count: int = 0
    disagreed: str | None = None

    def take(self, outcome: int, answer: CheckerAnswer) -> None:
        """Take in an answer. One that did not end in time is no answer where the same tree has another one."""
        self.count += 1
        known = self.answers.setdefault(outcome, answer)
        if known.code is None:
            self.answers[outcome] = answer
        elif answer.code is not None and known.code != answer.code:
            codes = f"{known.code} and with {answer.code}"
            self.disagreed = f"the checker contradicts itself: of one tree and output it ends with {codes}"


def _check(
    agent: Agent,
    taken: _Taken,
    plan: Plan,
    window: Window,
    observed: Observed,
    checked: _Checks,
    stop: threading.Event,
) -> None:
    """Run the checker on each outcome that mounts, in the state that is easiest to explain; then on a sample of other
    states with the same tree, and once more where it did not end."""
    of: dict[int, list[CrashState]] = {}
    for seen in observed.states:
        if seen.outcome is not None:
            of.setdefault(seen.outcome, []).append(seen.state)
    mounting = [one for one in of if observed.findings.observation(one).mounted]
    easiest = {one: min(of[one], key=departure) for one in mounting}
    others = [(one, state) for one in mounting for state in of[one] if state != easiest[one]]
    wanted = min(len(others), max(LEAST_SAMPLED, round(taken.request.audit * len(others))))
    sample = Random(f"{taken.request.seed} checked {len(window.told)}").sample(others, wanted)
    session = _session(agent, taken, plan)

    def ask(asked: Sequence[tuple[int, CrashState]]) -> None:
        for start in range(0, len(asked), BATCH):
            _stop_if(stop)
            some = asked[start : start + BATCH]
            checkings = [Checking(plan.composer.delta(state), window.told) for _outcome, state in some]
            answers = session.check_program(checkings, plan.composer.payload_since(0), taken.program.seconds)
            for (outcome, _state), answer in zip(some, answers, strict=True):
                checked.take(outcome, answer)

    ask(list(easiest.items()))
    ask(sample)
    ask([(one, easiest[one]) for one, answer in checked.answers.items() if answer.code is None])


def _effort(request: ProbeRequest) -> Effort:
    """What is spent on a window; a program may see more than a property asks about."""
    return replace(request.effort, closely=True)


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
