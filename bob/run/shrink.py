"""Make witnesses smaller, with fewer operations, a smaller initial tree, and a crash state that is easier to explain. A
*witness* is a file about one crash state that breaks a *claim* (what each crash state should satisfy). To test whether
the violation needs an operation, bob records the workload without it. If the violation then no longer shows, bob keeps
the operation. For a witness of a program, bob only looks for an easier crash state.

The easiest crash states are near a *clean prefix*. A clean prefix has the k pending writes that were sent first, and no
other pending write. A disk without a cache would have such a state."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from bob.agent.client import Agent
from bob.agent.shared import ROOT
from bob.claim.checking import CheckerClaim, evidence
from bob.claim.claim import Judgeable
from bob.claim.property.judged_case import JudgedCase
from bob.crash.case import Case
from bob.crash.departures import FARTHEST, distance, nearest
from bob.crash.device import DeviceModel
from bob.crash.neighbours import Neighbours, causes
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.errors import MalformedError, RecordingError, UsageError
from bob.guest.spec import Clock
from bob.image import Image
from bob.judge.reliance import Explaining, calls_with_effects, effects_of
from bob.observe.observation import Observation
from bob.observe.observations import ExploredState, Observations, without_numbers
from bob.observe.session import session_of
from bob.program.answer import CheckerAnswer, CheckerRun
from bob.program.strace import SystemCall
from bob.program.transcript import ProgramCase
from bob.progress import Progress
from bob.protocol.presence import presence
from bob.record.base import drop_base, make_base, put_base
from bob.record.recorder import put_program, record, record_program
from bob.run.program_recording import case_of, framed, framed_if_any, look_at_ends, tellings
from bob.run.witness_image import WitnessFile, by_image, each_witness
from bob.story.timeline import ProgramCallEvent
from bob.subject import Subject
from bob.text import plural
from bob.trace.base import Base
from bob.witness import document as witness
from bob.witness.attempts import needed, smallest
from bob.witness.document import ShownState, Witness, WitnessSize
from bob.workload.operations import Operation, Workload
from bob.workload.simulation import simulate

MOST_STATES = 400  # most mounts for a workload, of states that differ in the same number of writes from a clean prefix
BATCH = 10  # bob judges after so many mounts, since a violation mostly shows in one of the first states
RECORDINGS = 3  # bob records a program up to so many times, since the kernel's commits vary


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A witness that bob tried to shrink. ``document`` is the smaller witness, or None if a new recording of the
    workload does not show the violation. ``before`` and ``after`` are the sizes of the witness."""

    path: Path
    document: Mapping[str, Any] | None
    before: WitnessSize
    after: WitnessSize


def shrink(
    paths: Sequence[Path], *, image: str | None, connect: str | None, budget: int, progress: Progress
) -> Iterator[Shrunk]:
    """Shrink each witness in ``paths``, and yield the results. bob tries smaller workloads, and mounts at most
    ``budget`` states of each. A smaller witness names the kernel that bob used. This kernel is of the same series as
    that of the old witness, but perhaps of another Debian package.

    Before a guest starts, raise MalformedError for a file that is not a witness. Raise UsageError for a kernel of
    another series, or for a witness that bob cannot shrink, for example of a crash during recovery."""
    witnesses = [(path, witness.read(path)) for path in paths]
    for path, found in witnesses:
        if (refusal := found.no_shrinking) is not None:
            raise UsageError(f"the witness {path.name} is of {refusal.reason}", hint=refusal.hint)
    shrink_one = partial(_shrink, budget=budget, progress=progress)
    return each_witness(by_image(witnesses, image, progress), Clock.VIRTUAL, shrink_one, progress, connect)


def _shrink(agent: Agent, image: Image, each: WitnessFile, *, budget: int, progress: Progress) -> Shrunk:
    path, found = each
    before = found.shrunk_from or found.size
    calls: Sequence[ProgramCallEvent] = ()
    progress.step(f"{path}: {_in_words(found.size)}")
    if isinstance(found.claim, CheckerClaim):
        smaller, calls = _ProgramShrinker(agent, found, found.claim, budget, progress).shrunk()
    else:
        assert isinstance(found.claim, Judgeable)
        shrinker = Shrinker(agent, found.configuration, found.model, found.claim, budget, progress)
        smaller = shrinker.shrunk(found.workload)
    if smaller is None:
        progress.step("a new recording does not show the violation; the witness stays as it is")
        return Shrunk(path, None, before, found.size)
    progress.step(f"{_in_words(smaller.size)}: done")
    document = witness.write(
        smaller,
        environment={**found.environment, "kernel": image.kernel_release, "image": image.named},
        shrunk_from=before,
        calls=calls,
    )
    return Shrunk(path, document, before, smaller.size)


def _in_words(size: WitnessSize) -> str:
    off = f"{plural(size.departure, 'write')} off a clean prefix"
    return f"{size.operations} operations, {size.setup} in the initial tree, {off}" if size.operations else off


class _MountedStates(ABC):
    """The mounted crash states of one recording (``case``), each with its outcome."""

    def __init__(self, agent: Agent, case: Case, *, closely: bool = False) -> None:
        self.case, self.session = case, session_of(agent, case, closely=closely)
        self.outcomes: dict[CrashState, int] = {}

    def look(self, states: Sequence[CrashState]) -> None:
        composer = self.case.plan.composer
        outcomes = self.session.observe([composer.delta(state) for state in states], composer.payload_since(0))
        self.outcomes.update(zip(states, outcomes, strict=True))

    @abstractmethod
    def shown(self) -> ShownState | None:
        """Return a mounted state that shows the violation, or None if no state does. Prefer the states that show the
        violation clearly. Among these, return the state that is easiest to explain."""

    @abstractmethod
    def keeps_claim(self) -> Callable[[CrashState], bool]:
        """Return a function that says whether bob has mounted a given crash state, and knows that this state does not
        break the claim."""

    def first_clear(self, states: Iterator[CrashState]) -> ShownState | None:
        """Mount ``states`` in batches until a state shows the violation clearly
        (:class:`bob.witness.document.ShownState`). Return the state that shows it best, or None if no state shows
        it."""
        found = None
        while (found is None or not found.is_clear) and (some := list(islice(states, BATCH))):
            self.look(some)
            found = self.shown()
        return found

    def explained(self, best: ShownState) -> ShownState:
        """Return ``best`` with the writes that the violation depends on. To find them, mount the neighbours of
        ``best``: the crash states that differ from it in one write."""
        points = best.case.plan.points
        groups = Neighbours(points).groups(best.state)
        self.look(list(dict.fromkeys(state for group in groups for _write, state in group)))
        return replace(best, causes=causes(points, best.state, self.keeps_claim()))


class _JudgedStates(_MountedStates):
    def __init__(self, agent: Agent, case: Case, claim: Judgeable) -> None:
        super().__init__(agent, case)
        self._claim = claim

    def shown(self) -> ShownState | None:
        if (shown := self._claim.easiest(self._judged_case())) is None:
            return None
        found, is_clear = shown.found, shown.is_clear
        return ShownState(self.case, shown.state, shown.claim, shown.evidence, found=found, is_clear=is_clear)

    def keeps_claim(self) -> Callable[[CrashState], bool]:
        return partial(self._claim.kept_in, self._judged_case())

    def _judged_case(self) -> JudgedCase:
        states = tuple(ExploredState(state, outcome) for state, outcome in self.outcomes.items())
        return JudgedCase.of(self.case, Observations(states, self.session.findings, self.case.plan.nothing_explored()))


class Shrinker:
    """A shrinker of a witness that shows how operations break ``claim``. One guest records the workloads and mounts
    their crash states. It runs in virtual time (its clock counts instructions). A second such guest would use a whole
    processor even while it waits."""

    def __init__(
        self, agent: Agent, subject: Subject, model: DeviceModel, claim: Judgeable, budget: int, progress: Progress
    ) -> None:
        self._agent, self._subject, self._model = agent, subject, model
        self._claim, self._budget, self._progress = claim, budget, progress
        self._bases: dict[tuple[Operation, ...], Base] = {}

    def shrunk(self, workload: Workload) -> ShownState | None:
        """Shrink ``workload``. Return a crash state of the smallest workload that shows the violation. This state is as
        near as possible to a clean prefix. Return None if even the whole ``workload`` does not show the violation."""
        best, asked, workload = None, self._claim.operations, self._claim.asking(workload)
        for attempt in (*smallest(workload, asked), workload):
            if (found := self.showing(attempt)) is None:
                continue
            self._progress.step(f"{_in_words(found.size)}: it shows")
            best = best or found
            if found.is_clear:
                best = found
                break
        if best is None:
            return None
        if len(best.case.workload.operations) > len(asked):
            best = self.fewer_operations(best)
        if best.case.workload != needed(best.case.workload):
            best = self.smaller_setup(best)
        best = self.nearer(best)
        return self.states_of(best.case).explained(best)

    def states_of(self, case: Case) -> _JudgedStates:
        return _JudgedStates(self._agent, case, self._claim)

    def showing(self, workload: Workload) -> ShownState | None:
        """Record ``workload``, and mount some of its crash states. Return the mounted state that shows the violation
        best: prefer a clear breach, then an easy explanation. Return None if no state shows it, or if the recording
        fails."""
        try:
            simulate(workload)
            base = self._base(workload)
            recording = record(self._agent, self._subject, base, workload, completion=self._model.completion)
            case = Case.of(self._subject, workload, base, recording, self._model)
        except (UsageError, RecordingError, MalformedError):
            return None
        asked, states = case.asked, self.states_of(case)
        states.look(list(map(asked.in_whole, asked.controls)))
        return states.first_clear(asked.in_whole(candidate.state) for candidate in asked.search(self._budget, seed=1))

    def fewer_operations(self, best: ShownState) -> ShownState:
        """Leave out each operation that the violation does not need, beginning with the last operation. Return the
        state that shows the violation best after the remaining operations."""
        return self._without("operations", best, [1], least=1)

    def smaller_setup(self, best: ShownState) -> ShownState:
        """Leave out operations of the setup that the violation does not need. First try to leave out half of them, then
        ever smaller parts. Return the state that shows the violation best with the remaining setup."""
        count = len(best.case.workload.setup)
        return self._without("setup", best, [count >> half for half in range(1, count.bit_length())], least=0)

    def _without(self, part: str, best: ShownState, sizes: Sequence[int], least: int) -> ShownState:
        for size in sizes:
            start = len(getattr(best.case.workload, part)) - size
            while start >= 0:
                operations = getattr(best.case.workload, part)
                if len(operations) - size < least:
                    break
                rest = operations[:start] + operations[start + size :]
                found = self.showing(replace(best.case.workload, **{part: rest}))
                if found is not None and found.is_clear >= best.is_clear:
                    self._progress.step(f"{_in_words(found.size)}: it still shows")
                    best = found
                start = min(start, len(getattr(best.case.workload, part))) - size
        return best

    def nearer(self, best: ShownState) -> ShownState:
        """Return a state that shows the violation, and differs from a clean prefix in as few writes as possible. bob
        tries only states that a crash at the time of ``best`` can leave. If bob finds no nearer state, return
        ``best``."""
        for away in range(min(best.size.departure, FARTHEST + 1)):
            states = self.states_of(best.case)
            near = dict.fromkeys(nearest(best.case.plan.points, best.state.point, away))
            states.look(list(near)[:MOST_STATES])
            found = states.shown()
            if found is not None and found.is_clear >= best.is_clear:
                return found
        return best

    def _base(self, workload: Workload) -> Base:
        if workload.setup not in self._bases:
            made = make_base(self._agent, self._subject, workload.setup, workload.pattern)
            for old in self._bases.values():  # the old base image stays if making the new one fails
                drop_base(self._agent, old)
            self._bases = {workload.setup: made}
        return self._bases[workload.setup]


class _CheckedStates(_MountedStates):
    """The mounted crash states of a program, with the checker's answer to each tree. ``found`` is the witness that bob
    shrinks."""

    case: ProgramCase

    def __init__(self, agent: Agent, case: ProgramCase, found: Witness, claim: CheckerClaim) -> None:
        super().__init__(agent, case, closely=True)
        self._claim, self._evidence = claim, without_numbers(found.evidence)
        self._answers: dict[int, CheckerAnswer] = {}

    def look(self, states: Sequence[CrashState]) -> None:
        for start in range(0, len(states), BATCH):
            some = dict.fromkeys(states[start : start + BATCH])
            if new := [state for state in some if state not in self.outcomes]:
                super().look(new)
                self._check(new)

    def _check(self, states: Sequence[CrashState]) -> None:
        new: dict[int, CrashState] = {}
        for state in states:
            outcome = self.outcomes[state]
            seen = self.session.findings.observation(outcome)
            if (
                outcome not in self._answers and seen.mounted and seen.unseen is None
            ):  # if something is unseen, an outcome may be several trees
                new.setdefault(outcome, state)
        if new:
            composer = self.case.plan.composer
            runs = [CheckerRun(composer.delta(state), self._claim.output) for state in new.values()]
            answers = self.session.check_program(runs, composer.payload_since(0), self._claim.program.seconds)
            self._answers.update(zip(new, answers, strict=True))

    def shown(self) -> ShownState | None:
        for state, outcome in self.outcomes.items():
            answer = self._answers.get(outcome)
            if answer and answer.consequence and without_numbers(evidence(answer)) == self._evidence:
                return ShownState(self.case, state, self._claim, evidence(answer))
        return None

    def keeps_claim(self) -> Callable[[CrashState], bool]:
        accepted = {outcome for outcome, answer in self._answers.items() if answer.consequence is None}
        return lambda state: self.outcomes.get(state) in accepted

    def found(self, state: CrashState) -> Observation:
        return self.session.findings.observation(self.outcomes[state])


class _ProgramShrinker:
    """A shrinker of ``found``, a witness of a program. A guest in virtual time, which has the program's packages,
    mounts the states.

    bob first tries the states that are a clean prefix. Then it tries the states that differ from a clean prefix in one
    write, and then in two. In each of these steps, it tries at most ``budget`` states of each growth point (a time with
    one set of pending writes). At the end it tries the other states, in the same order as when it explores the
    program."""

    def __init__(self, agent: Agent, found: Witness, claim: CheckerClaim, budget: int, progress: Progress) -> None:
        self._agent, self._found, self._claim, self._budget, self._progress = agent, found, claim, budget, progress

    def shrunk(self) -> tuple[ShownState | None, Sequence[ProgramCallEvent]]:
        """Record the program again, and look for the violation of the old witness. Return the state that shows it and
        is nearest to a clean prefix, and the program's calls up to the crash. Return None and () if no state shows
        it."""
        put_program(self._agent, self._claim.program)
        drop_base(self._agent, self._found.base)  # another run's base of the same configuration has the same name
        put_base(self._agent, self._found.base)
        for number in range(RECORDINGS):
            if number:
                words = f"the violation does not show; recording the program again, {number + 1} of {RECORDINGS}"
                self._progress.step(words)
            smaller, calls = self._recorded_again()
            if smaller is not None:
                return smaller, calls
        return None, ()

    def _recorded_again(self) -> tuple[ShownState | None, Sequence[ProgramCallEvent]]:
        found, program = self._found, self._claim.program
        try:
            completion = found.model.completion
            recorded = record_program(self._agent, found.configuration, found.base, program, completion=completion)
            again = case_of(found.configuration, program, found.base, recorded, found.model)
        except (UsageError, RecordingError, MalformedError):
            return None, ()
        window = next((window for window in again.windows if window.output == self._claim.output), None)
        if window is None:
            return None, ()
        ends = look_at_ends(self._agent, again)
        states = _CheckedStates(self._agent, again.within(window), found, self._claim)
        for what, candidates in _candidates(states.case.plan, self._budget):
            self._progress.step(what)
            if (best := states.first_clear(candidates)) is not None:
                showing = states.explained(best)
                return showing, self._calls(showing, states, again, ends)
        return None, ()

    def _calls(
        self, best: ShownState, states: _CheckedStates, again: ProgramCase, ends: Sequence[Observation]
    ) -> Sequence[ProgramCallEvent]:
        """Return the program's calls and outputs as events of a time line. Return () if bob cannot follow the calls."""
        start, tree = best.case.plan.trace.start.seconds, states.found(best.state).tree or {}
        said = again.transcript.with_frames(framed_if_any(self._look_at_frames, self._progress))
        explaining = Explaining()
        effects = explaining.made(partial(effects_of, said.calls, ROOT, *(end.tree for end in ends)), None)
        if said.offset is None or effects is None:
            return ()
        there, offset = partial(presence, effects, tree), said.offset - start
        calls = explaining.made(lambda: calls_with_effects(said.calls, effects, there(), offset), [])
        for note in explaining.notes:
            self._progress.step(note)
        return (*calls, *tellings(said, start))

    def _look_at_frames(self) -> tuple[SystemCall, ...]:
        """Run the program once more for the stack frames of its calls. This comes last, so that it cannot disturb a
        recording."""
        return framed(self._agent, self._found.configuration, self._found.base, self._claim.program)


def _candidates(plan: Plan, budget: int) -> Iterator[tuple[str, Iterator[CrashState]]]:
    for away in range(FARTHEST + 1):
        yield f"crash states that are {plural(away, 'write')} off a clean prefix", _departing(plan, away, budget)
    yield "other crash states", (candidate.state for candidate in plan.search(budget, seed=1))


def _departing(plan: Plan, away: int, most: int) -> Iterator[CrashState]:
    """Yield the crash states that differ from the nearest clean prefix in exactly ``away`` writes. Yield at most
    ``most`` of them at each growth point (a time with one set of pending writes). If several states give the same disk,
    yield one of them."""
    seen: set[tuple[object, ...]] = set()
    each = (islice(nearest(plan.points, number, away), most) for number in range(len(plan.points)))
    for state in chain.from_iterable(each):
        if (
            distance(plan.points[state.point].pending, state) > away
        ):  # this state also belongs to an earlier growth point
            continue
        contents = tuple(map(tuple, plan.composer.delta(state)))
        if contents not in seen:
            seen.add(contents)
            yield state
