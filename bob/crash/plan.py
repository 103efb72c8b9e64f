"""The plan for the exploration of a trace's crash states. It has the legal states, the order that bob tries them in,
and their contents. A plan may be limited to crashes in the last part of the trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from bob.crash.coverage import States
from bob.crash.device import DeviceModel
from bob.crash.drafts import legal_states, view
from bob.crash.image import Composer
from bob.crash.legal import GrowthPoint, count_sectors, count_writes, growth_points
from bob.crash.search import StateSearch
from bob.crash.state import CrashState
from bob.crash.units import WriteUnits
from bob.errors import RecordingError
from bob.trace.base import Base
from bob.trace.model import SECTOR_BYTES, Trace
from bob.workload.operations import At
from bob.workload.pattern import FIRST_SETUP_NUMBER, operations_in


class Plan:
    """The crash states of one trace. ``legal`` has the legal states of whole writes. ``parts`` also has the legal
    states with torn writes. A growth point is a time when the set of possible states changes. If the plan is only about
    crashes in the last part of the trace, ``earlier`` is the number of growth points before that part.

    A plan for a cluster may have growth ``points`` of its own, where each disk is at another moment
    (:func:`bob.crash.members.together`). The first has the fewest durable writes, and the last has every write."""

    def __init__(
        self, trace: Trace, base: Base, model: DeviceModel, points: Sequence[GrowthPoint] | None = None
    ) -> None:
        self.earlier = 0
        self.base, self.model = base, model
        self.trace = trace
        self.points = growth_points(trace, model) if points is None else tuple(points)
        views = [view(number, point) for number, point in enumerate(self.points)]
        self.legal = legal_states(views)
        self.parts = WriteUnits(trace, self.points, model)
        self.composer = Composer(trace, self.points, model, base.sector)

    @property
    def controls(self) -> tuple[CrashState, ...]:
        """The two extreme states. The first has only the writes that are durable at the start of the window (the time
        when the crash may come). The second has every write."""
        return tuple(dict.fromkeys((CrashState(0), CrashState(len(self.points) - 1, self.points[-1].pending))))

    @property
    def bare(self) -> tuple[CrashState, ...]:
        """For each growth point (a time just before some write becomes durable), the state that has only the writes
        that are durable then."""
        return tuple(CrashState(number) for number in range(len(self.points)))

    def asked(self, at: At, operations: int) -> Plan:
        """Return this plan if ``at`` is ``At.ANY``. If it is ``At.END``, return the plan for crashes after the last
        operation has returned. ``operations`` is the number of the workload's operations. Raises RecordingError for
        ``At.END`` if the recording does not say when the last operation returned."""
        if at is At.ANY:
            return self
        part = Plan(after_return(self.trace, operations), self.base, self.model)
        part.earlier = len(self.points) - len(part.points)
        return part

    def in_whole(self, state: CrashState) -> CrashState:
        """Return ``state``, a state of this plan, with its growth point numbered as in the plan of the whole trace."""
        return replace(state, point=state.point + self.earlier)

    def search(self, budget: int, seed: int, *, torn: bool | None = None) -> StateSearch:
        """Return an iterator that searches for up to ``budget`` states. If ``torn`` is True, it yields only states with
        torn writes, and if ``torn`` is False, only states without them. If ``torn`` is None, it yields both."""
        return StateSearch(
            self.trace, self.points, self.composer, budget=budget, seed=seed, focus=self._focus, torn=torn
        )

    @cached_property
    def _focus(self) -> tuple[frozenset[int], ...]:
        return writes_of_operations(self.trace)

    def medium(self, state: CrashState) -> int:
        return sum(1 << index for index in (*self.points[state.point].durable, *state.kept))

    def runs(self, state: CrashState) -> list[tuple[int, bytes]]:
        """Return the runs of sectors that turn the base (the medium before the recording) into ``state``. Each item has
        the first sector of a run and the run's data. A later item may overwrite sectors of an earlier one."""
        delta = self.composer.delta(state)
        payload = self.composer.payload_since(0)
        return [
            (sector, payload[source * SECTOR_BYTES : (source + count) * SECTOR_BYTES])
            for sector, source, count in [*self.composer.floor_delta(), *delta]
        ]

    def nothing_explored(self) -> States:
        return States(0, count_writes(self.points), count_sectors(self.points))


def writes_of_operations(trace: Trace) -> tuple[frozenset[int], ...]:
    """Return, for each operation of the workload that wrote data, the indexes of the writes that carry this data."""
    writes: dict[int, set[int]] = {}
    for write in trace.writes:
        for operation in operations_in(write.data):
            if operation < FIRST_SETUP_NUMBER:
                writes.setdefault(operation, set()).add(write.index)
    return tuple(frozenset(writes[operation]) for operation in sorted(writes))


def after_return(trace: Trace, operation: int) -> Trace:
    """Return ``trace`` with a window that begins when operation number ``operation`` has returned.

    The new window has only the last growth points (times when the set of possible states changes) of the whole trace.
    At each of these growth points, the same writes are durable as in the whole trace. A cache that keeps an order may
    lose writes that completed before the window. The resulting states are legal in the whole trace, too. Raises
    RecordingError if the recording does not say when the operation returned."""
    found = [mark.at for mark in trace.marks if mark.text == f"op {operation} end"]
    if len(found) != 1 or not trace.start.time <= found[0].time <= trace.end.time:
        raise RecordingError(f"the recording does not say when operation {operation} returned", hint="record again")
    return replace(trace, start=found[0])
