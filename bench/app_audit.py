"""Are the answers for states that were not mounted true? ``python bench/app_audit.py [STATES [PROGRAM ...]]``.

By default 1,200 states of sqlite-rollback, lmdb and replace-mv on ext4, the same number of each. Explores each program
as ``bob app`` does, and takes a sample of the crash states whose outcome was predicted. A guest then mounts each of
these and looks, mounts it again, and the checker runs on it. Prints how many were tried, in how many the tree is
another one than predicted, and in how many the checker says something else than of the tree that it was asked of. Ends
with 1 where there is one, or where there are fewer states than were asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from random import Random

from bob.agent.client import Agent
from bob.catalogue.request import Host, ProbeRequest
from bob.crash.state import CrashState
from bob.guest.hypervisor import Hypervisor
from bob.guest.spec import Clock
from bob.image import ensure, ensure_world
from bob.judge.looked import Looked
from bob.observe.session import session_of
from bob.program.answer import CheckerRun
from bob.program.folder import load, shipped_programs
from bob.program.program import Program
from bob.progress import Silent
from bob.record.recorder import put_program
from bob.run.agents import agent_in
from bob.run.pool import ProgramGuests
from bob.run.program_recording import record_program_run, validate_checker
from bob.run.program_windows import explore_windows
from bob.subject import configuration

PROGRAMS = "sqlite-rollback", "lmdb", "replace-mv"
BUDGET = 600
"""Mounts for a window: more than bob takes by itself, so that more states are predicted, too."""
BATCH = 20
Predicted = tuple[CrashState, int]
"""A state that was not mounted, and the number of the outcome that was predicted."""


def main() -> int:
    """Try the programs; 0 where every prediction was right."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1200
    names = sys.argv[2:] or list(PROGRAMS)
    tried = wrong = 0
    for name in names:
        some, trees, answers = _try(name, wanted // len(names))
        print(f"{name:<24}{some:>5} predicted states tried, {trees} other trees, {answers} other answers", flush=True)
        tried, wrong = tried + some, wrong + trees + answers
    print(f"{tried} states, {wrong} wrong")
    return int(wrong > 0 or tried < wanted // len(names) * len(names))


def _try(name: str, most: int) -> tuple[int, int, int]:
    """How many predicted states of a program were tried, how many had another tree, how many another answer."""
    program, request = load(shipped_programs()[name]), ProbeRequest(configuration("ext4"), budget=BUDGET)
    image = ensure(request.image, print)
    with Hypervisor.open() as hypervisor:
        guests = ProgramGuests(hypervisor, image, Silent())
        case = record_program_run(guests, program, request)
        validate_checker(guests, case)
        windows = explore_windows(guests, case, request, Host().jobs or 2)
        predicted = [(window, one) for window in windows for one in _predicted(window)]
        sample = Random(1).sample(predicted, min(most, len(predicted)))
        trees = answers = 0
        with agent_in(hypervisor, image, Clock.REAL, ensure_world(image, program.packages, print)) as agent:
            put_program(agent, program)
            for window in windows:
                some = [one for at, one in sample if at is window]
                other = _compare(agent, program, window, some)
                trees, answers = trees + other[0], answers + other[1]
    return len(sample), trees, answers


def _predicted(window: Looked) -> Iterator[Predicted]:
    """The states whose outcome, which the checker was asked of, was predicted."""
    for number, seen in enumerate(window.observed.states):
        if number in window.observed.predicted and seen.outcome in window.answers:
            yield seen.state, seen.outcome


def _compare(agent: Agent, program: Program, window: Looked, some: Sequence[Predicted]) -> tuple[int, int]:
    """In how many of these states the tree, and in how many the checker's answer, is another one than predicted."""
    plan = window.case.plan
    payload = plan.composer.payload_since(0)
    session = session_of(agent, window.case, closely=True)
    trees = answers = 0
    for start in range(0, len(some), BATCH):
        batch = some[start : start + BATCH]
        deltas = [plan.composer.delta(state) for state, _outcome in batch]
        for (_state, outcome), found in zip(batch, session.observe(deltas, payload), strict=True):
            trees += session.findings.observation(found) != window.observed.findings.observation(outcome)
        asked = [CheckerRun(delta, window.told) for delta in deltas]
        for (_state, outcome), answer in zip(
            batch, session.check_program(asked, payload, program.seconds), strict=True
        ):
            answers += answer.code != window.answers[outcome].code
    return trees, answers


if __name__ == "__main__":
    sys.exit(main())
