"""One workload's crash states: enumerate, observe, keep count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from bob.config import Configuration
from bob.crash.device import DeviceModel
from bob.crash.image import Composer
from bob.crash.legal import count_sectors, count_writes, growth_points
from bob.crash.search import Search, search
from bob.crash.state import CrashState
from bob.guest.agent_client import Agent
from bob.guest.loss import GuestLost
from bob.observe.observation import Findings
from bob.observe.session import Session
from bob.record.base import Base
from bob.result import States
from bob.store import Observed
from bob.trace.model import SECTOR_BYTES, Trace
from bob.workload.pattern import FIRST_SETUP_NUMBER, operations_in

BATCH = 50
"""Crash states per request: few round trips, but a progress display that moves."""


class Plan:
    """The crash states of one trace, in the order in which they are tried."""

    def __init__(self, trace: Trace, base: Base, model: DeviceModel) -> None:
        image = base.image()
        self.trace = trace
        self.points = growth_points(trace, model)
        self.composer = Composer(
            trace, self.points, model, lambda sector: image[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES]
        )

    def search(self, budget: int, seed: int) -> Search:
        """The search of up to ``budget`` states."""
        return search(
            self.trace, self.points, self.composer, budget=budget, seed=seed, focus=writes_of_operations(self.trace)
        )

    def runs(self, state: CrashState) -> list[tuple[int, bytes]]:
        """The sectors of ``state`` on top of the base: (first sector, data), the floor first."""
        delta = self.composer.delta(state)
        payload = self.composer.payload_since(0)
        return [
            (sector, payload[source * SECTOR_BYTES : (source + count) * SECTOR_BYTES])
            for sector, source, count in [*self.composer.floor_delta(), *delta]
        ]

    def nothing_explored(self) -> States:
        """The coverage of a trace of which no outcome is known."""
        return States(0, count_writes(self.points), count_sectors(self.points), None)


def writes_of_operations(trace: Trace) -> tuple[frozenset[int], ...]:
    """For each operation of the workload, the indexes of the writes that carry its data."""
    writes: dict[int, set[int]] = {}
    for write in trace.writes:
        for operation in operations_in(write.data):
            if operation < FIRST_SETUP_NUMBER:
                writes.setdefault(operation, set()).add(write.index)
    return tuple(frozenset(writes[operation]) for operation in sorted(writes))


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

    ``observed`` is told how many more states were dealt with. A guest that is lost on the way leaves the states that it
    had, and all that would have come, without an outcome: the loss is in the answer, and never retried away.
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
    except GuestLost as loss:
        findings = session.findings if session is not None else Findings()
        return Observed(tuple(states), findings, _coverage(plan, searching, states), f"the guest was lost: {loss}")
    return Observed(tuple(states), session.findings, _coverage(plan, searching, states))


def _coverage(plan: Plan, searching: Search, states: Sequence[tuple[CrashState, int | None]]) -> States:
    known = sum(outcome is not None for _state, outcome in states)
    coverage = searching.coverage
    complete = known == len(states) and known > 0
    return States(known, coverage.legal_writes, coverage.legal_sectors, coverage.exhaustive if complete else None)
