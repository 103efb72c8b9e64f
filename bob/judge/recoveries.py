"""Crashes during recoveries. bob mounts some crash states of a run, and lets a second crash interrupt the recovery. A
third crash may interrupt the recovery from the second, and so on. This module chooses the crash states whose recoveries
bob crashes, and judges the results. It needs no guest. An *outcome* is what a mount of a crash state showed."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from bob.catalogue.request import ProbeRequest
from bob.claim.idempotence import IDEMPOTENT
from bob.crash.case import Case
from bob.crash.state import CrashState, is_legal_at
from bob.judge.column import Column, RecoveryCrash
from bob.observe.easiest import Easiest
from bob.observe.observation import Observation
from bob.observe.observations import Observations
from bob.schema import decode, older
from bob.store.files import reading
from bob.store.run_directory import RunDirectory
from bob.text import plural
from bob.witness.document import EarlierCrash
from bob.workload.operations import Finish, Workload

NOTHING_YET = CrashState(0)  # the state at the beginning of a recording


@dataclass(frozen=True, slots=True)
class Recovered:
    """A crash state whose recovery bob interrupts by another crash. If no other crash comes, the recovery leads to
    outcome number ``outcome``. If ``after`` is None, the state belongs to the run's workload number ``workload``.
    Otherwise it belongs to recovery number ``after``, which a crash of that workload made necessary."""

    workload: int
    state: CrashState
    outcome: int
    after: int | None = field(default_factory=older(None))


def chosen(runs: Iterable[tuple[int, Observations]], count: int, seed: int) -> list[Recovered]:
    """Choose up to ``count`` crash states at random, with the random seed ``seed``. For each outcome of each workload,
    one state takes part in the draw. Outcomes with a failed mount take no part. Neither do workloads with outcomes that
    bob does not know."""
    every = [Recovered(number, *found) for number, observed in runs for found in _of_each_outcome(observed)]
    drawn = Random(f"{seed} recoveries").sample(range(len(every)), min(count, len(every)))
    return [every[place] for place in sorted(drawn)]


def chosen_again(
    crashed: Iterable[tuple[int, Recovered, Observations]],
    disk: Callable[[int, CrashState], str],
    known: Iterable[str],
    count: int,
    seed: int,
) -> list[Recovered]:
    """Choose up to ``count`` crash states that crashes during recoveries left. Each of the ``crashed`` recoveries has a
    number, and the observations of its crash states. The recoveries take turns to offer a state. They offer no state
    that bob did not mount, since its recovery would read the same data as that of a mounted state. A state is left out
    if its disk has the same content as a disk chosen before, or if ``known`` has the content's name. ``disk`` returns
    this name, given a recovery's number and a state."""
    contents, found = set(known), list[Recovered]()
    turns = [
        (place, of.workload, _offered(observed, Random(f"{seed} recoveries after {place}")))
        for place, of, observed in crashed
    ]
    while turns and len(found) < count:
        for turn in tuple(turns):
            place, workload, offered = turn
            for state, outcome in offered:
                if (content := disk(place, state)) not in contents:
                    contents.add(content)
                    found.append(Recovered(workload, state, outcome, place))
                    break
            else:
                turns.remove(turn)
    return sorted(found[:count], key=lambda one: (one.after or 0, one.state.point))


def _offered(observed: Observations, chance: Random) -> Iterator[tuple[CrashState, int]]:
    """Yield the mounted states with their outcomes. First come states of different outcomes and growth points, those of
    early growth points before others, since they leave most to the next recovery."""
    if observed.lost is not None:
        return
    mounted = [
        (seen.state, seen.outcome)
        for number, seen in enumerate(observed.states)
        if seen.outcome is not None
        and seen.state != NOTHING_YET
        and number not in observed.predicted
        and observed.findings.observation(seen.outcome).mounted
    ]
    chance.shuffle(mounted)
    before = Counter[tuple[int, int]]()
    ranked = []
    for state, outcome in mounted:
        ranked.append((before[state.point, outcome], state.point, outcome, state))
        before[state.point, outcome] += 1
    yield from ((state, outcome) for _rank, _point, outcome, state in sorted(ranked, key=lambda one: one[:3]))


def _of_each_outcome(observed: Observations) -> list[tuple[CrashState, int]]:
    """Return the easiest state of each outcome that mounts, with the outcome."""
    if observed.lost is not None:
        return []
    easiest: dict[int, Easiest[CrashState]] = {}
    for place, seen in enumerate(observed.states):
        if seen.outcome is not None and seen.state != NOTHING_YET:
            easiest.setdefault(seen.outcome, Easiest()).add(seen.state, seen.state, after=(place,))
    return [
        (found.shown, outcome)
        for outcome, found in sorted(easiest.items(), key=lambda one: one[1].rank)
        if observed.findings.observation(outcome).mounted
    ]


def planned(run: RunDirectory) -> list[Recovered] | None:
    """Return the crash states of ``run`` whose recovery another crash is to interrupt, as the run directory lists them.
    Return None if it has no such list yet."""
    about = run.about()
    with reading(run.path / "run.json"):
        if "recoveries" not in about:
            return None
        plan = decode(list[Recovered], about["recoveries"])
        if any(one.after is not None and not 0 <= one.after < place for place, one in enumerate(plan)):
            raise ValueError("a recovery comes after one that is not before it")
        return plan


def recovery_of(workload: Workload, *states: CrashState) -> Workload:
    """Return the recovery after crashes that left ``states``, as a workload. The first crash interrupted ``workload``.
    Each later crash interrupted the recovery from the crash before it."""
    points = " and ".join(str(state.point) for state in states)
    after = "" if len(states) == 1 else f" after {len(states)} crashes"
    s = "" if len(states) == 1 else "s"
    return Workload(f"recovery of {workload.title}{after}, at growth point{s} {points}", (), (), Finish("mounted"))


class Recoveries:
    """The recoveries that bob crashes in ``run``. ``plan[n]`` is the crash state where recovery number ``n`` begins."""

    def __init__(
        self, run: RunDirectory, plan: Sequence[Recovered], workloads: Sequence[Workload], request: ProbeRequest
    ) -> None:
        self.run, self.plan, self._workloads, self._request = run, plan, workloads, request
        self._case: tuple[Path, Case] | None = None

    def chain(self, place: int) -> list[Recovered]:
        """Return the crash states that led to recovery number ``place``, the first one first."""
        found = [self.plan[place]]
        while (after := found[0].after) is not None:
            found.insert(0, self.plan[after])
        return found

    def depth(self, place: int) -> int:
        """Return how many crashes led to recovery number ``place``: the one of the workload, and those of earlier
        recoveries."""
        return len(self.chain(place))

    def at(self, depth: int) -> list[int]:
        return [place for place in range(len(self.plan)) if self.depth(place) == depth]

    def workload(self, place: int) -> Workload:
        chain = self.chain(place)
        return recovery_of(self._workloads[chain[0].workload], *(one.state for one in chain))

    def origin(self, one: Recovered) -> Path:
        """Return the folder of the recording that the state of ``one`` belongs to."""
        if one.after is not None:
            return self.run.recovery_folder(one.after)
        return self.run.folder(one.workload, self._workloads[one.workload])

    def case(self, folder: Path) -> Case:
        """Return the case of the recording in ``folder``: what bob needs to explore its crash states. To read a case
        takes time, so this object keeps the case that it read last."""
        if self._case is None or self._case[0] != folder:
            self._case = folder, self.run.case(folder, self._request.configuration, self._request.model)
        return self._case[1]

    def expected(self, one: Recovered) -> Observation:
        """Return the tree after the recovery from the state of ``one``, if no other crash comes."""
        return self.run.observed(self.origin(one)).findings.observation(one.outcome)

    def single(self, place: int) -> Iterator[Observation]:
        """Yield the observed trees that a single crash, of the workload, could have left. This crash comes at the same
        time as the first crash that led to recovery number ``place``, but may lose other writes."""
        first = self.chain(place)[0]
        folder = self.origin(first)
        points, observed = self.case(folder).plan.points, self.run.observed(folder)
        legal = {
            seen.outcome
            for seen in observed.states
            if seen.outcome is not None and is_legal_at(points, seen.state, first.state.point)
        }
        yield from (found for outcome in sorted(legal) if (found := observed.findings.observation(outcome)).mounted)

    def earlier(self, place: int) -> tuple[EarlierCrash, ...]:
        """Return the crashes before a crash during recovery number ``place``."""
        found = []
        for one in self.chain(place):
            title = self._workloads[one.workload].title if one.after is None else self.workload(one.after).title
            found.append(EarlierCrash(title, one.state, _lacks(self.case(self.origin(one)), one.state)))
        return tuple(found)


def _lacks(case: Case, state: CrashState) -> str:
    pending = len(case.plan.points[state.point].pending)
    kept, torn = len(state.kept), len(state.torn)
    return f"{plural(pending, 'write')} not flushed: {kept} on the disk, {torn} torn, {pending - kept - torn} lost"


def add_recoveries(column: Column, run: RunDirectory, workloads: Sequence[Workload], request: ProbeRequest) -> None:
    """Judge all crashes of recoveries in ``run``, and add the verdicts to ``column`` (the verdicts on one
    configuration). If bob found no crash state whose recovery it could crash, the verdict is UNKNOWN."""
    plan = planned(run)
    if not plan:
        column.refuse_property(IDEMPOTENT, "bob did not find any crash state whose recovery it could crash")
        return
    all_of_them = Recoveries(run, plan, workloads, request)
    for place, recovered in enumerate(plan):
        folder = run.recovery_folder(place)
        if refused := run.unobserved(folder):
            column.refuse_property(IDEMPOTENT, refused.reason)
            continue
        if not run.is_observed(folder):
            column.refuse_property(IDEMPOTENT, "the run was stopped before bob had crashed all recoveries")
            continue
        crash = RecoveryCrash(
            all_of_them.expected(recovered),
            all_of_them.depth(place),
            partial(all_of_them.single, place),
            partial(all_of_them.earlier, place),
        )
        column.add_recovery(all_of_them.case(folder), run.observed(folder), crash)
    for depth in range(2, request.recovery_depth + 1):
        if not all_of_them.at(depth):
            said = f"bob did not find any state after {depth} crashes in a row whose recovery it could crash"
            column.refuse_property(IDEMPOTENT, said)
