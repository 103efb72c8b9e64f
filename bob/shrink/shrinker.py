"""Makes a witness smaller: fewer operations, a smaller initial tree, a crash state that is easier to believe.

Whatever is left out, the rest is recorded anew, its crash states are mounted one by one, in the order of a probe, and
the property is judged: what does not show the violation any more is put back. In the end the state is looked for that
departs least from a clean prefix, by mounting all that do, nearest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from bob.config import Configuration
from bob.crash.departures import FARTHEST, nearest
from bob.crash.device import DeviceModel
from bob.crash.neighbours import Neighbours, causes
from bob.crash.plan import Plan
from bob.crash.state import CrashState, departure
from bob.errors import MalformedError, RecordingError, UsageError
from bob.guest.agent_client import Agent
from bob.judge.rules import Property, Question
from bob.judge.verdicts import Bench
from bob.observe.session import Session
from bob.progress import Progress
from bob.record.base import drop_base, make_base
from bob.record.check import checked
from bob.record.recorder import record
from bob.shrink.attempts import needed, operations_of, smallest
from bob.store import Seen
from bob.trace.base import Base
from bob.trace.recording import Recording
from bob.witness import Showing
from bob.workload.history import simulate
from bob.workload.operations import Operation, Workload

MOST_STATES = 400
"""So many states of one departure are mounted at most."""
BATCH = 10
"""So many are mounted before they are judged: what shows at all mostly shows in one of the first."""


class Shrinker:
    """Shrinks what ``prop`` is broken by (what does not mount, where it is None).

    The agent's guest is in virtual time: workloads are recorded there, and their states observed. (That takes longer
    than in real time, but one guest that waits for another in virtual time takes a whole processor.) A workload that is
    tried has ``budget`` mounts.
    """

    def __init__(
        self, agent: Agent, configuration: Configuration, model: DeviceModel, prop: Property | None, budget: int
    ) -> None:
        self._agent = agent
        self._configuration = configuration
        self._model = model
        self._property = prop
        self._budget = budget
        self._bases: dict[tuple[Operation, ...], Base] = {}

    def shrunk(self, workload: Workload, question: Question | None, progress: Progress) -> Showing | None:
        """The smallest that is found of what ``workload`` shows; None where it does not show it any more."""
        best = None
        for attempt in (*smallest(workload, question), workload):
            if best := self.showing(attempt):
                progress.step(f"{in_words(best)}: it shows")
                break
        if best is None:
            return None
        if len(best.workload.operations) > len(operations_of(question)):
            best = self.fewer_operations(best, progress)
        if best.workload != needed(best.workload):
            best = self.smaller_setup(best, progress)
        return self.explained(self.nearer(best))

    def showing(self, workload: Workload) -> Showing | None:
        """``workload`` recorded and looked at, if it shows the violation; None if not, or if it cannot be done."""
        try:
            simulate(workload)
            base = self._base(workload)
            completion = self._model.completion
            recording = record(self._agent, self._configuration, base, workload, virtual=True, completion=completion)
            plan = Plan(checked(recording, base), base, self._model)
        except (UsageError, RecordingError, MalformedError):
            return None
        asked = plan.asked(workload.at, len(workload.operations))
        candidates = (asked.in_whole(candidate.state) for candidate in asked.search(self._budget, seed=1))
        looking = _Looking(self._session(base, plan), plan)
        looking.at(list(map(asked.in_whole, asked.controls)))
        while states := list(islice(candidates, BATCH)):
            looking.at(states)
            if found := self._judged(workload, base, recording, looking):
                return found
        return None

    def fewer_operations(self, best: Showing, progress: Progress) -> Showing:
        """Without each operation that the violation does not need, the last one first."""
        number = len(best.workload.operations) - 1
        while number >= 0 and len(best.workload.operations) > 1:
            left = best.workload.operations[:number] + best.workload.operations[number + 1 :]
            best = self._better(best, replace(best.workload, operations=left), progress)
            number = min(number, len(best.workload.operations)) - 1
        return best

    def smaller_setup(self, best: Showing, progress: Progress) -> Showing:
        """Without the parts of the initial tree that it does not need: halves first, then ever smaller pieces."""
        size = len(best.workload.setup) // 2
        while size:
            start = len(best.workload.setup) - size
            while start >= 0:
                setup = best.workload.setup
                tried = replace(best.workload, setup=setup[:start] + setup[start + size :])
                best = self._better(best, tried, progress)
                start = min(start, len(best.workload.setup)) - size
            size //= 2
        return best

    def nearer(self, best: Showing) -> Showing:
        """The same with the state that departs least from a clean prefix, at the same growth point."""
        for away in range(min(best.size.departure, FARTHEST + 1)):
            states = list(dict.fromkeys(nearest(best.plan.points, best.state.point, away)))[:MOST_STATES]
            looking = _Looking(self._session(best.base, best.plan), best.plan)
            looking.at(states)
            if found := self._judged(best.workload, best.base, best.recording, looking):
                return found
        return best

    def explained(self, best: Showing) -> Showing:
        """The same with the writes that it hangs on: its neighbours are mounted."""
        groups = list(Neighbours(best.plan.points).groups(best.state))
        looking = _Looking(self._session(best.base, best.plan), best.plan)
        looking.at(list(dict.fromkeys(state for group in groups for _write, state in group)))
        bench = self._bench(best.workload, best.recording, looking)
        fine = partial(bench.satisfies, self._property)
        return replace(best, causes=causes(best.plan.points, best.state, fine))

    def _session(self, base: Base, plan: Plan) -> Session:
        composer = plan.composer
        return Session(self._agent, self._configuration, base, composer.floor_delta(), composer.payload_since(0))

    def _judged(self, workload: Workload, base: Base, recording: Recording, looking: _Looking) -> Showing | None:
        """What was seen that shows the violation best."""
        plan, observations = looking.plan, looking.session.findings.observations()
        bench = self._bench(workload, recording, looking)
        if self._property is None:
            found = min(bench.unmountable, key=lambda seen: departure(seen.state), default=None)
            if found is None or found.outcome is None:
                return None
            return Showing(workload, base, recording, plan, found.state, None, observations[found.outcome].error or "")
        judged = bench.judge(self._property)
        if judged is None or judged.evidence is None:
            return None
        shown = judged.evidence
        violation = shown.violation
        return Showing(workload, base, recording, plan, shown.state, violation.question, violation.evidence)

    def _bench(self, workload: Workload, recording: Recording, looking: _Looking) -> Bench:
        inodes, plan = (recording.inodes_before, recording.inodes_after), looking.plan
        observations = looking.session.findings.observations()
        statuses = recording.status_before, recording.status_after
        coverage, complete = plan.nothing_explored(), plan.controls[-1]
        return Bench(workload, inodes, looking.seen, observations, coverage, None, complete, statuses)

    def _better(self, best: Showing, tried: Workload, progress: Progress) -> Showing:
        found = self.showing(tried)
        if found is None:
            return best
        progress.step(f"{in_words(found)}: it still shows")
        return found

    def _base(self, workload: Workload) -> Base:
        if workload.setup not in self._bases:
            # If it is refused, the old one stays.
            made = make_base(self._agent, self._configuration, workload.setup, workload.pattern)
            for old in self._bases.values():
                drop_base(self._agent, old)
            self._bases = {workload.setup: made}
        return self._bases[workload.setup]


@dataclass(slots=True)
class _Looking:
    """Crash states of ``plan`` as they are mounted, one after the other."""

    session: Session
    plan: Plan
    seen: list[Seen] = field(default_factory=list)

    def at(self, states: Sequence[CrashState]) -> None:
        """Mount these."""
        composer = self.plan.composer
        outcomes = self.session.observe([composer.delta(state) for state in states], composer.payload_since(0))
        self.seen += [Seen(state, outcome) for state, outcome in zip(states, outcomes, strict=True)]


def in_words(showing: Showing) -> str:
    """How large its witness is, for people."""
    size = showing.size
    return f"{size.operations} operations, {size.setup} in the initial tree, {size.departure} writes off a clean prefix"
