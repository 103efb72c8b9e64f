"""One workload's crash states: enumerate, observe, keep count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Literal

from bob.agent.client import Agent, AgentBroken, what_happened
from bob.agent.loss import GuestLost
from bob.blocks.log_area import log_area
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.errors import UsageError
from bob.observe.examine import Examined, examined
from bob.observe.left_behind import Stretches
from bob.observe.observation import Findings
from bob.observe.observed import Observed, Seen
from bob.observe.rounds import Mispredicted, Rounds
from bob.observe.session import Session
from bob.observe.sights import Sights
from bob.subject import DEFAULT_AUDIT, Configuration
from bob.trace.base import Base

WINDOW = 200
"""Crash states that are dealt with together: enough of them to choose from, but no prediction waits long for the
controls that it needs."""


def explore(
    agent: Agent,
    configuration: Configuration,
    base: Base,
    plan: Plan,
    *,
    budget: int,
    seed: int,
    observed: Callable[[int], None],
    audit: float = DEFAULT_AUDIT,
    predicting: bool = True,
    sights: Sights | None = None,
) -> Observed:
    """Find the outcomes of as many crash states of ``plan`` as ``budget`` mounts in the agent's guest allow; where the
    plan is of a part of its trace, they are told as states of the whole.

    First come single states of whole writes, up to half of the budget (a tenth where recovery forgets), and if they are
    not among them, the two that judgement takes for controls; then all legal states of whole writes at once, if that is
    not too much; then single torn states, with the other half. ``observed`` is told how many more single states were
    dealt with; ``audit`` is the share of predictions that is checked by more mounts. Where not ``predicting``, up to
    ``budget`` single states are mounted, and no others; the outcomes are the same. ``sights`` are those of the
    configuration: what is in them need not be mounted, and what was mounted will be in them. (Not where recovery
    forgets: what is left behind is told in a workload's own terms.)

    A guest that is lost on the way, or an agent that fails or refuses there, leaves the states of which nothing is to
    be believed yet, and all that would have come, without an outcome; a prediction that turns out wrong so leaves all
    that were predicted. The loss is in the answer; who asked may try again.
    """
    # Where recovery forgets, single states say little that is not learnt as all are divided.
    singles = -(-budget // (10 if configuration.forgets else 2))
    whole, torn = plan.search(singles, seed, torn=False), plan.search(budget // 2, seed, torn=True)
    both = None if predicting else plan.search(budget, seed)  # whole and torn ones, in turn
    findings, rounds, lost, died, final = Findings(), None, None, False, False
    closer = Examined((), (), (), ())
    try:
        floor, payload = plan.composer.floor_delta(), plan.composer.payload_since(0)
        watched = plan.composer.sectors.tolist() if predicting else None
        stretches = None
        if predicting and configuration.forgets:
            stretches = Stretches(plan.composer, log_area(configuration.fs.log, base))
        disks = None
        if sights is not None and predicting and not configuration.forgets:
            disks = sights.setdefault(base.name, {})
        session = Session(agent, configuration, base, floor, payload, watched=watched, stretches=stretches)
        findings = session.findings
        rounds = Rounds(session, plan, seed, observed, audit=audit, predicting=predicting, disks=disks)
        if both is None:
            _observe_all(rounds, (candidate.state for candidate in whole))
            landmarks = dict.fromkeys((*plan.controls, *plan.bare))
            rounds.observe([state for state in landmarks if state not in rounds.states], counted=False)
            rounds.check(tuple(landmarks))
            rounds.divide(budget)
            _observe_all(rounds, (candidate.state for candidate in torn))
            rounds.count()
            rounds.look_around()
        else:
            _observe_all(rounds, (candidate.state for candidate in both))
        rounds.settle()
        if predicting:
            closer = examined(session, rounds, plan, seed)
        if disks is not None:
            disks.update(rounds.new_disks)
    except (GuestLost, AgentBroken, UsageError) as loss:
        lost, died = what_happened(loss), isinstance(loss, GuestLost)
    except Mispredicted as wrong:
        lost, final = str(wrong), True
    if rounds is None:
        return Observed((), findings, plan.nothing_explored(), lost, died=died)
    # A state speaks for others by predictions, and after a loss the last of these had no control.
    counts, whole_counts = (rounds.counts, rounds.whole_counts) if lost is None else ({}, {})
    known = tuple(
        Seen(
            plan.in_whole(state),
            rounds.outcomes.get(number),
            counts.get(number, 1),
            whole_counts.get(number, int(not state.torn)),
        )
        for number, state in enumerate(rounds.states)
    )
    coverage = plan.nothing_explored()
    explored = sum(seen.states for seen in known if seen.outcome is not None)
    exhaustive: Literal["writes", "sectors"] | None = None
    if lost is None and known:
        if both is not None:
            exhaustive = both.coverage.exhaustive
        elif rounds.is_complete:
            exhaustive = "sectors" if explored == coverage.legal_sectors else "writes"
    mounted = len(rounds.outcomes.keys() & rounds.mounted)
    coverage = replace(coverage, explored=explored, exhaustive=exhaustive, mounted=mounted)
    return Observed(
        known,
        findings,
        coverage,
        lost,
        frozenset(rounds.outcomes.keys() - rounds.mounted),
        died,
        final=final,
        troubles=closer.troubles,
        normal=closer.normal,
        passing=closer.passing,
        examined=closer.outcomes,
    )


def _observe_all(rounds: Rounds, states: Iterator[CrashState]) -> None:
    while window := list(islice(states, WINDOW)):
        rounds.observe(window)
        if len(window) == WINDOW:
            rounds.settle()
