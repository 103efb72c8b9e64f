"""Makes a witness smaller: fewer operations, a smaller initial tree, a crash state that is easier to believe.

Whatever is left out, the rest is recorded anew, its crash states are explored, and the property is judged as in a
probe: what does not show the violation any more is put back. In the end the state is looked for that departs least from
a clean prefix, by mounting all that do, nearest first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bob import witness
from bob.config import Configuration
from bob.crash.departures import FARTHEST, distance, nearest
from bob.crash.device import DeviceModel
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.errors import MalformedError, RecordingError, UsageError
from bob.guest.agent_client import Agent
from bob.guest.hypervisor import Hypervisor
from bob.guest.spec import Clock
from bob.image import ensure
from bob.judge.rules import Property
from bob.judge.verdicts import Bench, Evidence
from bob.observe.explore import explore
from bob.observe.session import Session
from bob.pipeline import agent_in
from bob.probe_files import shipped_probes
from bob.progress import Progress
from bob.record.base import drop_base, make_base
from bob.record.check import checked
from bob.record.recorder import record
from bob.request import DEFAULT_IMAGE
from bob.store import Seen
from bob.trace.base import Base
from bob.trace.recording import Recording
from bob.workload.history import simulate
from bob.workload.operations import Workload

MOST_STATES = 400
"""So many states of one departure are mounted at most."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a witness is: operations, operations of the initial tree, and by how many writes the crash state
    departs from a clean prefix."""

    operations: int
    setup: int
    departure: int


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A smaller witness as a ``document``, and how large it was ``before`` and is ``after``."""

    document: Mapping[str, Any]
    before: Size
    after: Size


@dataclass(frozen=True, slots=True)
class _Showing:
    """A workload that shows the violation, with its recording and the best evidence."""

    workload: Workload
    base: Base
    recording: Recording
    plan: Plan
    evidence: Evidence

    @property
    def size(self) -> Size:
        state = self.evidence.state
        pending = self.plan.points[state.point].pending
        return Size(len(self.workload.operations), len(self.workload.setup), distance(pending, state))


def shrink(path: Path, *, image: str | None, connect: str | None, budget: int, progress: Progress) -> Shrunk:
    """The witness in ``path``, smaller; each workload that is tried has ``budget`` mounts.

    Raises MalformedError for what is no witness, and UsageError where its property has no question, the image's kernel
    is another, or the violation does not show when its workload is recorded again.
    """
    found = witness.read(path)
    if found.property is None:
        raise UsageError("a state that does not mount has no question to keep", hint="shrink the witness of a property")
    built = ensure(image or DEFAULT_IMAGE, progress.step)
    if built.kernel_release != found.kernel:
        raise UsageError(
            f"the witness {path.name} is of kernel {found.kernel}, the image has {built.kernel_release}",
            hint="name an image with that kernel by --image",
        )
    prop = shipped_probes((found.property,))[0].property
    with Hypervisor.open(connect, progress.step) as hypervisor, agent_in(hypervisor, built, Clock.VIRTUAL) as agent:
        shrinker = _Shrinker(agent, found.configuration, found.model, prop, budget)
        first = shrinker.showing(found.workload)
        if first is None:
            raise UsageError(
                "the violation does not show when the workload is recorded again",
                hint="it may need a larger --budget, or hang on something that differs from run to run",
            )
        progress.step(f"{_words(first.size)}: recorded again, and it shows")
        smaller = shrinker.fewer_operations(first, progress)
        smaller = shrinker.smaller_setup(smaller, progress)
        smaller = shrinker.nearer(smaller)
        progress.step(f"{_words(smaller.size)}: done")
    return Shrunk(_document(found, prop, smaller), first.size, smaller.size)


class _Shrinker:
    def __init__(
        self, agent: Agent, configuration: Configuration, model: DeviceModel, prop: Property, budget: int
    ) -> None:
        self._agent = agent
        self._configuration = configuration
        self._model = model
        self._property = prop
        self._budget = budget
        self._bases: dict[tuple[object, ...], Base] = {}

    def showing(self, workload: Workload) -> _Showing | None:
        """``workload`` recorded and explored, if it shows the violation; None if not, or if it cannot be done."""
        try:
            simulate(workload)
            base = self._base(workload)
            recording = record(self._agent, self._configuration, base, workload, virtual=True)
            plan = Plan(checked(recording, base), base, self._model)
        except (UsageError, RecordingError, MalformedError):
            return None
        seen = explore(
            self._agent, self._configuration, base, plan, budget=self._budget, seed=1, observed=lambda _states: None
        )
        bench = Bench(
            workload,
            (recording.inodes_before, recording.inodes_after),
            seen.states,
            seen.findings.observations(),
            seen.coverage,
            seen.lost,
            CrashState(len(plan.points) - 1, plan.points[-1].pending),
        )
        judged = bench.judge(self._property)
        if judged is None or judged.evidence is None:
            return None
        return _Showing(workload, base, recording, plan, judged.evidence)

    def fewer_operations(self, best: _Showing, progress: Progress) -> _Showing:
        """Without each operation that the violation does not need, the last one first."""
        number = len(best.workload.operations) - 1
        while number >= 0 and len(best.workload.operations) > 1:
            left = best.workload.operations[:number] + best.workload.operations[number + 1 :]
            best = self._better(best, replace(best.workload, operations=left), progress)
            number = min(number, len(best.workload.operations)) - 1
        return best

    def smaller_setup(self, best: _Showing, progress: Progress) -> _Showing:
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

    def nearer(self, best: _Showing) -> _Showing:
        """The same with the state that departs least from a clean prefix, at the same growth point."""
        composer, state = best.plan.composer, best.evidence.state
        for departure in range(min(best.size.departure, FARTHEST + 1)):
            states = list(dict.fromkeys(nearest(best.plan.points, state.point, departure)))[:MOST_STATES]
            session = Session(
                self._agent, self._configuration, best.base, composer.floor_delta(), composer.payload_since(0)
            )
            deltas = [composer.delta(one) for one in states]
            outcomes = session.observe(deltas, composer.payload_since(0))
            seen = [Seen(one, outcome) for one, outcome in zip(states, outcomes, strict=True)]
            bench = Bench(
                best.workload,
                (best.recording.inodes_before, best.recording.inodes_after),
                seen,
                session.findings.observations(),
                best.plan.nothing_explored(),
                None,
            )
            judged = bench.judge(self._property)
            if judged is not None and judged.evidence is not None:
                return replace(best, evidence=judged.evidence)
        return best

    def _better(self, best: _Showing, tried: Workload, progress: Progress) -> _Showing:
        found = self.showing(tried)
        if found is None:
            return best
        progress.step(f"{_words(found.size)}: it still shows")
        return found

    def _base(self, workload: Workload) -> Base:
        if workload.setup not in self._bases:
            made = make_base(self._agent, self._configuration, workload.setup)  # may be refused: then the old one stays
            for old in self._bases.values():
                drop_base(self._agent, old)
            self._bases = {workload.setup: made}
        return self._bases[workload.setup]


def _words(size: Size) -> str:
    return f"{size.operations} operations, {size.setup} in the initial tree, {size.departure} writes off a clean prefix"


def _document(found: witness.Witness, prop: Property, smaller: _Showing) -> Mapping[str, Any]:
    violation, state = smaller.evidence.violation, smaller.evidence.state
    return witness.write(
        prop,
        violation.evidence,
        violation.question,
        environment=found.environment,
        configuration=found.configuration,
        model=found.model,
        workload=smaller.workload,
        inodes=(smaller.recording.inodes_before, smaller.recording.inodes_after),
        base=smaller.base,
        trace=smaller.plan.trace,
        point=smaller.plan.points[state.point],
        state=state,
        runs=smaller.plan.runs(state),
    )
