"""The exploration of one workload's crash states: enumerate, observe, count. An *outcome* is what a mount of a crash
state shows. A *growth point* is a time when the set of possible crash states changes."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from bob.agent.client import Agent, AgentBroken, what_happened
from bob.agent.loss import GuestLost
from bob.blocks.xfs_geometry import log_area
from bob.crash.drafts import spread
from bob.crash.plan import Plan
from bob.crash.search import StateSearch
from bob.crash.state import CrashState
from bob.errors import UsageError
from bob.observe.effort import Effort
from bob.observe.examine import NOT_EXAMINED, Examination, examined
from bob.observe.host_checks import HostCheckers
from bob.observe.leftovers import Stretches
from bob.observe.mount_cache import Disks, Sights
from bob.observe.observation import OutcomeTable
from bob.observe.observations import ExploredState, KnownCube, Observations
from bob.observe.rounds import HostMistaken, Misprediction, Rounds, StateCounts
from bob.observe.session import Session
from bob.observe.unknown_torn import CauseCount
from bob.schema import adapt
from bob.subject import Subject

# Crash states in one round: enough to choose controls from, and few enough that no prediction waits long for a control.
EvidenceStates = Callable[[Observations], Collection[CrashState]]
"""A function that returns the states of the whole trace that show violations: a mistake there would be a false ×."""

WINDOW = 200


def explore(
    agent: Agent,
    subject: Subject,
    plan: Plan,
    effort: Effort,
    told: Callable[[int], None],
    sights: Sights | None = None,
    checkers: HostCheckers | None = None,
    evidence: EvidenceStates | None = None,
) -> Observations:
    """Find the outcomes of crash states of ``plan``, by mounts in the agent's guest. ``effort`` limits the number of
    mounts.

    bob first draws states of whole writes, one by one, and spends up to half of the mounts on them. Then it explores
    all legal states of whole writes in groups, if that does not take too many mounts. Then it draws torn states, one by
    one. For file systems whose recovery *forgets* blocks, the first draws get only a tenth of the mounts. Recovery
    forgets a block if the disk after recovery is the same, whatever the block contained before
    (:mod:`bob.observe.predict`).

    From time to time, bob calls ``told`` with the number of drawn states whose outcomes it has found since the last
    call. ``plan`` may cover only the last part of the trace. The result still numbers growth points as in the whole
    trace.

    ``sights`` has the outcomes of disks that bob mounted for other workloads. A crash state with the same disk needs no
    mount. The exploration adds the outcomes of its own mounts to ``sights``, except for file systems whose recovery
    forgets blocks. If the guest is lost, the result says so.

    With ``checkers``, the host may run the file system's check instead of the guest
    (:class:`bob.observe.session.Session`). To verify the host's results, the guest itself recovers a sample of the
    states that the host has recovered. The guest also recovers the states that ``evidence`` returns: those that bob
    will show to the user as violations.

    The result lacks outcomes that bob does not trust. It also lacks outcomes that bob could not see completely, since
    two such outcomes may look alike, and still differ."""
    exploration = _WorkloadExploration(agent, subject, plan, effort, told, checkers, evidence)
    try:
        if effort.only_durable:
            exploration.cut_power()
        elif effort.predicting:
            exploration.predict(sights)
        else:
            exploration.mount_each()
    except (GuestLost, AgentBroken, UsageError) as failure:
        exploration.drop_uncontrolled()
        return exploration.observed(what_happened(failure), died=isinstance(failure, GuestLost))
    except Misprediction as wrong:
        if checkers is not None and isinstance(wrong, HostMistaken):
            checkers.doubt(wrong)
        return exploration.observed(str(wrong), final=True)
    return exploration.observed()


@dataclass(slots=True)
class _WorkloadExploration:
    """The exploration of one workload. Its progress can be read even after a failure."""

    agent: Agent
    subject: Subject
    plan: Plan
    effort: Effort
    told: Callable[[int], None]
    checkers: HostCheckers | None = None
    evidence: EvidenceStates | None = None
    session: Session | None = None
    rounds: Rounds | None = None
    # Before all states are settled, the last predictions lack a control. So each state then represents only itself.
    counts: StateCounts = field(default_factory=StateCounts)
    is_complete: bool = False
    is_controlled: bool = False  # a guest has recovered the states that show violations
    search: StateSearch | None = None
    closer: Examination = NOT_EXAMINED
    unknown_torn: tuple[CauseCount, ...] = ()
    cubes: tuple[KnownCube, ...] = ()

    def predict(self, sights: Sights | None) -> None:
        plan, subject, effort = self.plan, self.subject, self.effort
        # If recovery forgets, the division of all states teaches bob more than single states do.
        singles = -(-effort.budget // (10 if subject.forgets else 2))
        whole = plan.search(singles, effort.seed, torn=False)
        torn = plan.search(effort.budget // 2, effort.seed, torn=True)
        stretches, disks = None, None
        if subject.forgets:
            stretches = Stretches(plan.composer, log_area(subject.fs.log, plan.base))
        elif sights is not None:
            disks = sights.setdefault(plan.base.name, {})
        session, rounds = self._begin(disks, watched=plan.composer.sectors.tolist(), stretches=stretches)
        _observe_all(rounds, (candidate.state for candidate in whole))
        landmarks = dict.fromkeys((*plan.controls, *plan.bare))
        rounds.observe([state for state in landmarks if rounds.ledger.number_of(state) is None], counted=False)
        rounds.check(tuple(landmarks))
        division = rounds.divide()
        _observe_all(rounds, (candidate.state for candidate in torn))
        if not effort.closely:
            rounds.mix()
        counts = rounds.count(division)
        rounds.look_around(counts)
        rounds.settle()
        self.counts, self.is_complete = counts, division.is_complete
        self.cubes = tuple(KnownCube(one.cube, one.outcome) for one in division.courses if division.is_complete)
        self.unknown_torn = rounds.causes(counts, subject)
        self._control_evidence(rounds)
        self.closer = examined(session, rounds, plan, effort.seed)
        if disks is not None:
            disks.update(rounds.mounts.new_disks)

    def _control_evidence(self, rounds: Rounds) -> None:
        """If the host has recovered states, let the guest recover the states that show violations, unless a guest has
        already mounted them."""
        if self.evidence is not None and rounds.mounts.only_on_host:
            shown = set(self.evidence(self.observed()))
            known = rounds.mounts.mounted - rounds.mounts.only_on_host
            left = [
                n for n, _state in enumerate(rounds.ledger.states) if n in rounds.mounts.outcomes and n not in known
            ]
            rounds.control([n for n in left if self.plan.in_whole(rounds.ledger.states[n]) in shown])
        self.is_controlled = True

    def drop_uncontrolled(self) -> None:
        """After a failure, drop the outcomes that rest on the host's word, unless the guest has already recovered the
        states that show violations."""
        if self.rounds is not None and self.rounds.mounts.only_on_host and not self.is_controlled:
            self.rounds.mounts.believe_own()

    def cut_power(self) -> None:
        """Mount states that have only durable writes, at growth points (times just before a write becomes durable). If
        there are more of them than the budget allows mounts, take some that cover the trace evenly. Also mount the
        state with every write: the trees before and after all calls show the effects of the calls."""
        bare = self.plan.bare
        chosen = [bare[number] for number in islice(spread(len(bare)), self.effort.budget)]
        _session, rounds = self._begin()
        rounds.observe(dict.fromkeys((*chosen, *self.plan.controls)))
        rounds.settle()

    def mount_each(self) -> None:
        """Mount all states that the budget allows."""
        search = self.plan.search(self.effort.budget, self.effort.seed)
        _session, rounds = self._begin()
        _observe_all(rounds, (one.state for one in search))
        rounds.settle()
        self._control_evidence(rounds)
        self.search = search

    def _begin(self, disks: Disks | None = None, **traced: Any) -> tuple[Session, Rounds]:
        composer, closely = self.plan.composer, self.effort.closely
        floor, payload = composer.floor_delta(), composer.payload_since(0)
        self.session = Session(
            self.agent, self.subject, self.plan.base, floor, payload, closely=closely, checkers=self.checkers, **traced
        )
        self.rounds = Rounds(self.session, self.plan, self.effort, self.told, disks)
        return self.session, self.rounds

    def observed(self, lost: str | None = None, *, died: bool = False, final: bool = False) -> Observations:
        coverage = self.plan.nothing_explored()
        if self.session is None or self.rounds is None:
            return Observations((), OutcomeTable(), coverage, lost, died=died)
        mounts, findings = self.rounds.mounts, self.session.findings
        in_part = {outcome: words for outcome in {*mounts.outcomes.values()} if (words := findings.unseen(outcome))}
        if in_part and lost is None:
            lost, final = f"bob could not see everything: {min(in_part.values())}", True
        outcomes = {number: outcome for number, outcome in mounts.outcomes.items() if outcome not in in_part}
        known = tuple(
            ExploredState(
                self.plan.in_whole(state),
                outcomes.get(number),
                self.counts.states.get(number, 1),
                self.counts.whole.get(number, int(not state.torn)),
            )
            for number, state in enumerate(self.rounds.ledger.states)
        )
        explored = sum(seen.states for seen in known if seen.outcome is not None)
        exhaustive: str | None = None
        if lost is None and known:
            if self.search is not None:
                exhaustive = self.search.exhaustive
            elif self.is_complete:
                exhaustive = "sectors" if explored == coverage.legal_sectors else "writes"
        mounted = len(outcomes.keys() & mounts.mounted)
        return adapt(
            Observations,
            self.closer,
            states=known,
            findings=findings,
            coverage=replace(coverage, explored=explored, exhaustive=exhaustive, mounted=mounted),
            lost=lost,
            predicted=frozenset(outcomes.keys() - mounts.mounted),
            died=died,
            final=final,
            mixtures=self.counts.mixtures,
            unknown_torn=self.unknown_torn,
            cubes=self.cubes if lost is None else (),
        )


def _observe_all(rounds: Rounds, states: Iterator[CrashState]) -> None:
    while window := list(islice(states, WINDOW)):
        rounds.observe(window)
        if len(window) == WINDOW:
            rounds.settle()
