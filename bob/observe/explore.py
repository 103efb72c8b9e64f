"""One workload's crash states: enumerate, observe, count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from bob.agent.client import Agent, AgentBroken, what_happened
from bob.agent.loss import GuestLost
from bob.blocks.xfs_geometry import log_area
from bob.crash.plan import Plan
from bob.crash.search import StateSearch
from bob.crash.state import CrashState
from bob.errors import UsageError
from bob.observe.effort import Effort
from bob.observe.examine import NOT_EXAMINED, Examination, examined
from bob.observe.leftovers import Stretches
from bob.observe.mount_cache import Sights
from bob.observe.observation import OutcomeTable
from bob.observe.observations import ExploredState, Observations
from bob.observe.rounds import Misprediction, Rounds, StateCounts
from bob.observe.session import Session
from bob.subject import Subject

WINDOW = 200  # crash states in one round: enough to choose from, and no prediction waits long for its controls


def explore(
    agent: Agent,
    subject: Subject,
    plan: Plan,
    effort: Effort,
    told: Callable[[int], None],
    sights: Sights | None = None,
) -> Observations:
    """Find the outcomes of as many crash states of ``plan`` as the ``effort`` allows mounts in the agent's guest.

    First come single states of whole writes, up to half of the budget (a tenth where recovery forgets). Then come all
    legal states of whole writes, if that is not too much, then single torn ones. States come back as states of the
    whole trace. ``told`` is called with the number of further single states done. States in ``sights`` need no mount,
    and mounted states are added to them, except where recovery forgets. A loss is part of the result. States lack an
    outcome if it is not trustworthy, or if bob could not see it completely: two that look alike may differ.
    """
    done = _ExplorationSoFar(OutcomeTable())
    loss = _ExplorationLoss()
    try:
        if effort.predicting:
            _explore(agent, subject, plan, effort, told, sights, done)
        else:
            _mount_each(agent, subject, plan, effort, told, done)
    except (GuestLost, AgentBroken, UsageError) as failure:
        loss = _ExplorationLoss(what_happened(failure), died=isinstance(failure, GuestLost))
    except Misprediction as wrong:
        loss = _ExplorationLoss(str(wrong), final=True)
    return _observed(plan, done, loss)


@dataclass(slots=True)
class _ExplorationSoFar:
    findings: OutcomeTable
    rounds: Rounds | None = None
    counts: StateCounts | None = None
    is_complete: bool = False
    search: StateSearch | None = None
    closer: Examination = NOT_EXAMINED


@dataclass(frozen=True, slots=True)
class _ExplorationLoss:
    lost: str | None = None
    died: bool = False
    final: bool = False


def _explore(
    agent: Agent,
    subject: Subject,
    plan: Plan,
    effort: Effort,
    told: Callable[[int], None],
    sights: Sights | None,
    done: _ExplorationSoFar,
) -> None:
    """Explore ``plan`` by predictions; ``done`` has the progress even if this raises."""
    # If recovery forgets, the division of all states teaches more than single states do.
    singles = -(-effort.budget // (10 if subject.forgets else 2))
    whole = plan.search(singles, effort.seed, torn=False)
    torn = plan.search(effort.budget // 2, effort.seed, torn=True)
    stretches, disks = None, None
    if subject.forgets:
        stretches = Stretches(plan.composer, log_area(subject.fs.log, plan.base))
    elif sights is not None:
        disks = sights.setdefault(plan.base.name, {})
    watched = plan.composer.sectors.tolist()
    floor, payload = plan.composer.floor_delta(), plan.composer.payload_since(0)
    session = Session(
        agent, subject, plan.base, floor, payload, watched=watched, stretches=stretches, closely=effort.closely
    )
    done.findings = session.findings
    done.rounds = rounds = Rounds(session, plan, effort, told, disks)
    _observe_all(rounds, (candidate.state for candidate in whole))
    landmarks = dict.fromkeys((*plan.controls, *plan.bare))
    rounds.observe([state for state in landmarks if rounds.ledger.number_of(state) is None], counted=False)
    rounds.check(tuple(landmarks))
    division = rounds.divide()
    _observe_all(rounds, (candidate.state for candidate in torn))
    counts = rounds.count(division)
    rounds.look_around(counts)
    rounds.settle()
    done.counts, done.is_complete = counts, division.is_complete
    done.closer = examined(session, rounds, plan, effort.seed)
    if disks is not None:
        disks.update(rounds.mounts.new_disks)


def _mount_each(
    agent: Agent, subject: Subject, plan: Plan, effort: Effort, told: Callable[[int], None], done: _ExplorationSoFar
) -> None:
    search = plan.search(effort.budget, effort.seed)
    floor, payload = plan.composer.floor_delta(), plan.composer.payload_since(0)
    session = Session(agent, subject, plan.base, floor, payload, closely=effort.closely)
    done.findings = session.findings
    done.rounds = rounds = Rounds(session, plan, effort, told)
    _observe_all(rounds, (candidate.state for candidate in search))
    rounds.settle()
    done.search = search


def _observe_all(rounds: Rounds, states: Iterator[CrashState]) -> None:
    while window := list(islice(states, WINDOW)):
        rounds.observe(window)
        if len(window) == WINDOW:
            rounds.settle()


def _observed(plan: Plan, done: _ExplorationSoFar, loss: _ExplorationLoss) -> Observations:
    coverage = plan.nothing_explored()
    if done.rounds is None:
        return Observations((), done.findings, coverage, loss.lost, died=loss.died)
    # Before all is settled, the last predictions lack a control, so a state speaks for itself only.
    counts = done.counts or StateCounts()
    states, mounts = done.rounds.ledger.states, done.rounds.mounts
    in_part = {outcome: words for outcome in {*mounts.outcomes.values()} if (words := done.findings.unseen(outcome))}
    if in_part and loss.lost is None:
        loss = _ExplorationLoss(f"not all that is there can be seen: {min(in_part.values())}", final=True)
    outcomes = {number: outcome for number, outcome in mounts.outcomes.items() if outcome not in in_part}
    known = tuple(
        ExploredState(
            plan.in_whole(state),
            outcomes.get(number),
            counts.states.get(number, 1),
            counts.whole.get(number, int(not state.torn)),
        )
        for number, state in enumerate(states)
    )
    explored = sum(seen.states for seen in known if seen.outcome is not None)
    exhaustive: Literal["writes", "sectors"] | None = None
    if loss.lost is None and known:
        if done.search is not None:
            exhaustive = done.search.coverage.exhaustive
        elif done.is_complete:
            exhaustive = "sectors" if explored == coverage.legal_sectors else "writes"
    mounted = len(outcomes.keys() & mounts.mounted)
    closer = done.closer
    return Observations(
        known,
        done.findings,
        replace(coverage, explored=explored, exhaustive=exhaustive, mounted=mounted),
        loss.lost,
        frozenset(outcomes.keys() - mounts.mounted),
        loss.died,
        final=loss.final,
        troubles=closer.troubles,
        normal=closer.normal,
        passing=closer.passing,
        examined=closer.outcomes,
    )
