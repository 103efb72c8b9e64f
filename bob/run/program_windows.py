"""The windows of a recorded program explored, in several guests side by side, with its checker run on what is there."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from random import Random

from bob.agent.client import Agent, AgentBroken, what_happened
from bob.agent.loss import GuestLost
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.errors import UsageError
from bob.guest.spec import Clock
from bob.image import Image
from bob.judge.looked import Looked
from bob.observe.easiest import easiest
from bob.observe.effort import Effort
from bob.observe.explore import explore
from bob.observe.observed import Observed, Seen
from bob.observe.session import Checking
from bob.program.answer import Batches, CheckerAnswer
from bob.program.told import Window
from bob.progress import Progress
from bob.record.recorder import put_program
from bob.request import ProbeRequest
from bob.run.agents import AnyGuests, agent_in
from bob.run.program_recording import TakenProgram, session_of
from bob.run.second_chances import SecondChances

LEAST_SAMPLED = 3
"""Of the states of a window whose tree was checked in another state, at least so many are checked all the same."""
BATCH = 10
"""So many states are checked in one request at most: what was said of them is known when the guest is lost at a later
one."""


def look(guests: AnyGuests, image: Image, taken: TakenProgram, jobs: int, progress: Progress) -> list[Looked]:
    """Explore all windows, in several guests side by side. An interrupt lets each worker come to where it can stop."""
    waiting = deque(enumerate(taken.windows))
    stop = threading.Event()
    done: dict[int, Looked] = {}
    chances = SecondChances(progress)

    def work() -> None:
        while waiting:
            try:
                with agent_in(guests, image, Clock.REAL, taken.world) as agent:
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
    agent: Agent, taken: TakenProgram, window: Window, place: int, progress: Progress, stop: threading.Event
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
    if not agent.is_sound:
        return Looked(window.told, case, observed, {}), True
    checked = _Checks()
    try:
        _check(agent, taken, plan, window, observed, checked, stop)
    except (GuestLost, AgentBroken, UsageError) as loss:
        observed = replace(observed, lost=what_happened(loss, " while checking"))
    progress.finished(name, request.budget - dealt_with)
    return Looked(window.told, case, observed, checked.answers, checked.count, checked.disagreed), not agent.is_sound


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
    taken: TakenProgram,
    plan: Plan,
    window: Window,
    observed: Observed,
    checked: _Checks,
    stop: threading.Event,
) -> None:
    """Run the checker on each outcome that mounts, in the state that is easiest to explain; then on a sample of other
    states with the same tree, and once more where it did not end."""
    of: dict[int, list[Seen]] = {}
    for seen in observed.states:
        if seen.outcome is not None:
            of.setdefault(seen.outcome, []).append(seen)
    first = {one: easiest(some).shown.state for one, some in of.items() if observed.findings.observation(one).mounted}
    others = [(one, seen.state) for one in first for seen in of[one] if seen.state != first[one]]
    wanted = min(len(others), max(LEAST_SAMPLED, round(taken.request.audit * len(others))))
    sample = Random(f"{taken.request.seed} checked {len(window.told)}").sample(others, wanted)
    session, batches = session_of(agent, taken, plan), Batches(BATCH)

    def ask(asked: Iterator[tuple[int, CrashState]]) -> None:
        while some := list(islice(asked, batches.size)):
            _stop_if(stop)
            began = time.monotonic()
            checkings = [Checking(plan.composer.delta(state), window.told) for _outcome, state in some]
            answers = session.check_program(checkings, plan.composer.payload_since(0), taken.program.seconds)
            batches.took(len(some), time.monotonic() - began)
            for (outcome, _state), answer in zip(some, answers, strict=True):
                checked.take(outcome, answer)

    ask(iter(first.items()))
    ask(iter(sample))
    ask(iter([(one, first[one]) for one, answer in checked.answers.items() if answer.code is None]))


def _effort(request: ProbeRequest) -> Effort:
    """What is spent on a window; a program may see more than a property asks about."""
    return replace(request.effort, closely=True)
