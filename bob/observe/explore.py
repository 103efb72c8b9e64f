"""One workload's crash states: enumerate, observe, keep count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from bob.config import Configuration
from bob.crash.plan import Plan
from bob.crash.search import Search
from bob.crash.state import CrashState
from bob.errors import UsageError
from bob.guest.agent_client import Agent, AgentBroken
from bob.guest.loss import GuestLost
from bob.observe.observation import Findings
from bob.observe.session import Session
from bob.result import States
from bob.store import Observed
from bob.trace.base import Base

BATCH = 50
"""Crash states per request: few round trips, but a progress display that moves."""


def explore(
    agent: Agent,
    configuration: Configuration,
    base: Base,
    plan: Plan,
    *,
    budget: int,
    seed: int,
    observed: Callable[[int], None],
) -> Observed:
    """Observe up to ``budget`` crash states of ``plan`` in the agent's guest.

    ``observed`` is told how many more states were dealt with. A guest that is lost on the way, or an agent that fails
    or refuses there, leaves the states that it had, and all that would have come, without an outcome: the loss is in
    the answer, and never retried away.
    """
    searching = plan.search(budget, seed)
    states: list[tuple[CrashState, int | None]] = []
    session = None
    try:
        session = Session(agent, configuration, base, plan.composer.floor_delta(), plan.composer.payload_since(0))
        while batch := [candidate.state for candidate in islice(searching, BATCH)]:
            deltas = [plan.composer.delta(state) for state in batch]
            states.extend((state, None) for state in batch)
            outcomes = session.observe(deltas, plan.composer.payload_since(0))
            states[-len(batch) :] = zip(batch, outcomes, strict=True)
            observed(len(batch))
    except (GuestLost, AgentBroken, UsageError) as loss:
        findings = session.findings if session is not None else Findings()
        return Observed(tuple(states), findings, _coverage(plan, searching, states), f"the guest was lost: {loss}")
    return Observed(tuple(states), session.findings, _coverage(plan, searching, states))


def _coverage(plan: Plan, searching: Search, states: Sequence[tuple[CrashState, int | None]]) -> States:
    known = sum(outcome is not None for _state, outcome in states)
    coverage = searching.coverage
    complete = known == len(states) and known > 0
    return States(known, coverage.legal_writes, coverage.legal_sectors, coverage.exhaustive if complete else None)
