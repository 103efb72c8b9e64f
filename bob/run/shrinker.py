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

from bob.agent.client import Agent
from bob.claim.claim import Judgeable
from bob.claim.property.judged_case import JudgedCase
from bob.crash.case import Case
from bob.crash.departures import FARTHEST, nearest
from bob.crash.device import DeviceModel
from bob.crash.neighbours import Neighbours, causes
from bob.crash.state import CrashState
from bob.errors import MalformedError, RecordingError, UsageError
from bob.observe.observations import ExploredState, Observations
from bob.observe.session import Session
from bob.progress import Progress
from bob.record.base import drop_base, make_base
from bob.record.recorder import record
from bob.subject import Subject
from bob.text import plural
from bob.trace.base import Base
from bob.witness.attempts import needed, smallest
from bob.witness.document import ShownState, WitnessSize
from bob.workload.operations import Operation, Workload
from bob.workload.simulation import simulate

MOST_STATES = 400
"""So many states of one departure are mounted at most."""
BATCH = 10
"""So many are mounted before they are judged: what shows at all mostly shows in one of the first."""


class Shrinker:
    """Shrinks what breaks ``claim``.

    The agent's guest is in virtual time: workloads are recorded there, and their states observed. (That takes longer
    than in real time, but one guest that waits for another in virtual time takes a whole processor.) A workload that is
    tried has ``budget`` mounts.
    """

    def __init__(self, agent: Agent, configuration: Subject, model: DeviceModel, claim: Judgeable, budget: int) -> None:
        self._agent = agent
        self._configuration = configuration
        self._model = model
        self._claim = claim
        self._budget = budget
        self._bases: dict[tuple[Operation, ...], Base] = {}

    def shrunk(self, workload: Workload, progress: Progress) -> ShownState | None:
        """The smallest that is found of what ``workload`` shows; None where it does not show it any more."""
        best, asked, workload = None, self._claim.operations, self._claim.asking(workload)
        for attempt in (*smallest(workload, asked), workload):
            if (found := self.showing(attempt)) is None:
                continue
            progress.step(f"{in_words(found.size)}: it shows")
            best = best or found
            if found.is_clear:
                best = found
                break
        if best is None:
            return None
        if len(best.case.workload.operations) > len(asked):
            best = self.fewer_operations(best, progress)
        if best.case.workload != needed(best.case.workload):
            best = self.smaller_setup(best, progress)
        return self.explained(self.nearer(best))

    def showing(self, workload: Workload) -> ShownState | None:
        """``workload`` recorded and looked at, if it shows the violation; None if not, or if it cannot be done.

        It is looked at until the violation shows clearly, with the later operation whole where it speaks of one."""
        try:
            simulate(workload)
            base = self._base(workload)
            completion = self._model.completion
            recording = record(self._agent, self._configuration, base, workload, completion=completion)
            case = Case.of(self._configuration, workload, base, recording, self._model)
        except (UsageError, RecordingError, MalformedError):
            return None
        asked = case.asked
        candidates = (asked.in_whole(candidate.state) for candidate in asked.search(self._budget, seed=1))
        looking, found = self._looking(case), None
        looking.at(list(map(asked.in_whole, asked.controls)))
        while (found is None or not found.is_clear) and (states := list(islice(candidates, BATCH))):
            looking.at(states)
            found = self._judged(looking)
        return found

    def fewer_operations(self, best: ShownState, progress: Progress) -> ShownState:
        """Without each operation that the violation does not need, the last one first."""
        number = len(best.case.workload.operations) - 1
        while number >= 0 and len(best.case.workload.operations) > 1:
            operations = best.case.workload.operations
            left = operations[:number] + operations[number + 1 :]
            best = self._better(best, replace(best.case.workload, operations=left), progress)
            number = min(number, len(best.case.workload.operations)) - 1
        return best

    def smaller_setup(self, best: ShownState, progress: Progress) -> ShownState:
        """Without the parts of the initial tree that it does not need: halves first, then ever smaller pieces."""
        size = len(best.case.workload.setup) // 2
        while size:
            start = len(best.case.workload.setup) - size
            while start >= 0:
                setup = best.case.workload.setup
                tried = replace(best.case.workload, setup=setup[:start] + setup[start + size :])
                best = self._better(best, tried, progress)
                start = min(start, len(best.case.workload.setup)) - size
            size //= 2
        return best

    def nearer(self, best: ShownState) -> ShownState:
        """The same with the state that departs least from a clean prefix, at the same growth point."""
        for away in range(min(best.size.departure, FARTHEST + 1)):
            states = list(dict.fromkeys(nearest(best.case.plan.points, best.state.point, away)))[:MOST_STATES]
            looking = self._looking(best.case)
            looking.at(states)
            found = self._judged(looking)
            if found is not None and found.is_clear >= best.is_clear:
                return found
        return best

    def explained(self, best: ShownState) -> ShownState:
        """The same with the writes that it hangs on: its neighbours are mounted."""
        points = best.case.plan.points
        groups = list(Neighbours(points).groups(best.state))
        looking = self._looking(best.case)
        looking.at(list(dict.fromkeys(state for group in groups for _write, state in group)))
        fine = partial(self._claim.kept_in, JudgedCase.of(best.case, looking.observed))
        return replace(best, causes=causes(points, best.state, fine))

    def _looking(self, case: Case) -> _MountedStates:
        floor, payload = case.plan.composer.floor_delta(), case.plan.composer.payload_since(0)
        return _MountedStates(Session(self._agent, self._configuration, case.base, floor, payload), case)

    def _judged(self, looking: _MountedStates) -> ShownState | None:
        """What was seen that shows the violation best."""
        shown = self._claim.easiest(JudgedCase.of(looking.case, looking.observed))
        if shown is None:
            return None
        found, is_clear = shown.found, shown.is_clear
        return ShownState(looking.case, shown.state, shown.claim, shown.evidence, found=found, is_clear=is_clear)

    def _better(self, best: ShownState, tried: Workload, progress: Progress) -> ShownState:
        found = self.showing(tried)
        if found is None or found.is_clear < best.is_clear:
            return best
        progress.step(f"{in_words(found.size)}: it still shows")
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
class _MountedStates:
    """Crash states of ``case`` as they are mounted, one after the other."""

    session: Session
    case: Case
    seen: list[ExploredState] = field(default_factory=list)

    def at(self, states: Sequence[CrashState]) -> None:
        """Mount these."""
        composer = self.case.plan.composer
        outcomes = self.session.observe([composer.delta(state) for state in states], composer.payload_since(0))
        self.seen += [ExploredState(state, outcome) for state, outcome in zip(states, outcomes, strict=True)]

    @property
    def observed(self) -> Observations:
        """What was seen so far."""
        return Observations(tuple(self.seen), self.session.findings, self.case.plan.nothing_explored())


def in_words(size: WitnessSize) -> str:
    """How large a witness is, for people. A program has no operations that could be left out."""
    off = f"{plural(size.departure, 'write')} off a clean prefix"
    return f"{size.operations} operations, {size.setup} in the initial tree, {off}" if size.operations else off
