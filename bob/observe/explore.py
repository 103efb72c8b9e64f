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
from bob.observe.rounds import Mispredicted, Rounds
from bob.observe.session import Session
from bob.result import States
from bob.store import Observed
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
    predicting: bool = True,
) -> Observed:
    """Find the outcomes of up to ``budget`` crash states of ``plan``, by mounting them in the agent's guest.

    ``observed`` is told how many more states were dealt with. Where not ``predicting``, each state is mounted; the
    outcomes are the same. A guest that is lost on the way, or an agent that fails or refuses there, leaves the states
    of which nothing is to be believed yet, and all that would have come, without an outcome; a prediction that turns
    out wrong so leaves all that were predicted. The loss is in the answer, and never retried away.
    """
    searching = plan.search(budget, seed)
    states: list[CrashState] = []
    findings, rounds, lost = Findings(), None, None
    try:
        floor, payload = plan.composer.floor_delta(), plan.composer.payload_since(0)
        watched = plan.composer.sectors.tolist() if predicting else None
        session = Session(agent, configuration, base, floor, payload, watched=watched)
        findings = session.findings
        rounds = Rounds(session, plan, seed, observed, predicting=predicting)
        while window := [candidate.state for candidate in islice(searching, WINDOW)]:
            states += window
            rounds.observe(window)
    except (GuestLost, AgentBroken, UsageError) as loss:
        lost = f"the guest was lost: {loss}"
    except Mispredicted as wrong:
        lost = str(wrong)
    outcomes = rounds.outcomes if rounds is not None else {}
    predicted = outcomes.keys() - rounds.mounted if rounds is not None else set()
    return Observed(
        tuple((state, outcomes.get(number)) for number, state in enumerate(states)),
        findings,
        _coverage(plan, searching, states, len(outcomes), len(outcomes) - len(predicted)),
        lost,
        frozenset(predicted),
    )


def _coverage(plan: Plan, searching: Search, states: Sequence[CrashState], known: int, mounted: int) -> States:
    coverage = searching.coverage
    complete = known == len(states) and known > 0
    exhaustive = coverage.exhaustive if complete else None
    return States(known, coverage.legal_writes, coverage.legal_sectors, exhaustive, mounted)
