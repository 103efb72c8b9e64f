"""Explore a recorded cluster. bob first explores each node's disk alone, like any other disk, and finds the distinct
trees of files that crashes can leave on it. A *tuple* has a tree for each node, and the client's output before the
crash. bob starts the whole cluster on some of the possible tuples, and runs the client's checker."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, combinations, islice

from bob.agent.client import Agent, AgentBroken
from bob.agent.loss import GuestLost
from bob.answer.result import ClusterTuples, NodeGrid
from bob.catalogue.request import ProbeRequest
from bob.crash.coverage import States
from bob.crash.cuts import CutKind, Cuts, Interval, intervals_of
from bob.crash.drafts import spread
from bob.crash.exchanges import Exchanges
from bob.crash.legal import GrowthPoint
from bob.crash.members import ClusterCrash, NodeDisk, node_disks, together
from bob.crash.plan import Plan
from bob.crash.rules import NO_RULES, PaceRule, Rules
from bob.crash.state import CrashState
from bob.crash.tuples import Chosen, Classes, PossibleTuples
from bob.guest.spec import Clock
from bob.judge.looked import Looked
from bob.observe.effort import Effort
from bob.observe.explore import explore
from bob.observe.observation import Node, OutcomeTable
from bob.observe.observations import ExploredState, Observations
from bob.observe.session import session_of
from bob.program.answer import CheckerAnswer, CheckerRun
from bob.program.program import SIGNATURE
from bob.program.transcript import ProgramCase
from bob.progress import Progress
from bob.record.recorder import choose_start
from bob.run.host_clusters import ROOT, HostCluster, TupleCheck
from bob.run.node_trees import NodeTrees
from bob.run.pool import Job, JobQueue, LostGuest, ProgramGuests, StateSink
from bob.run.tuple_checks import NO_CHECKS, GuestsShare, TuplesJob, check_tuples, do_with_program
from bob.subject import DEFAULT_BUDGET, Subject
from bob.text import plural
from bob.trace.messages import messages
from bob.trace.timeline import parse_timeline

MOST_IN_GRID = 80  # a picture of two nodes with more trees would be too wide
MOST_CLASSED = 100_000  # bob looks for classes among so many tuples: each takes some 0.1 ms


def explore_cluster(
    guests: ProgramGuests, case: ProgramCase, request: ProbeRequest, jobs: int
) -> tuple[list[Looked], ClusterTuples]:
    """Explore the crash states of the cluster ``case``, in ``jobs`` guests side by side. Return a result for each
    output of the client, in the order of the outputs, and the numbers of tuples."""
    disks = node_disks(case.plan.trace, case.base, case.plan.model)
    name, step = case.work.name, guests.progress.step
    step(f"exploring the disk of each node of {name}")
    nodes = [_NodeJob(disk, node, request) for disk, node in zip(disks, case.subject.nodes, strict=True)]
    guests.pool().do_all(JobQueue(Clock.REAL, nodes), min(jobs, len(nodes)))
    cluster = _Cluster(case, disks, [node.seen for node in nodes], request)
    if cluster.nothing is not None:
        return [cluster.nothing], cluster.counts([], [])
    host = HostCluster(guests, case.work, request.host.checks, jobs)
    host.prove(cluster.end)
    if host.why_not:
        step(f"guests run the checker: {host.why_not}")
    if SIGNATURE in case.work.scripts and not request.only_durable:
        step(f"starting each node of {name} alone on its trees")
        found = [host.check(cluster.trees_alone(disk.number)) for disk in disks]
        alone = [_SoloJob(*cluster.alone(disk.number), known) for disk, known in zip(disks, found, strict=True)]
        do_with_program(guests, case, [one for one in alone if one.is_needed], jobs)
        cluster.classes = Classes(tuple(node.signatures for node in alone))
    chosen = cluster.chosen()
    possible = plural(cluster.tuples.possible, "combination")
    step(f"{possible} of trees and output possible; checking {len(chosen):,} of them")
    windows = cluster.windows(chosen, guests.progress)
    share = check_tuples(guests, case, windows, host, jobs, request.seed)
    return [window.looked for window in windows], cluster.counts(chosen, windows, share)


class _NodeJob(Job):
    """A job that explores the disk of one node alone. When it is done, ``seen`` has the observations."""

    when = " while exploring a node's disk"
    seen: Observations

    def __init__(self, disk: NodeDisk, subject: Subject, request: ProbeRequest) -> None:
        super().__init__(f"node {disk.number}")
        self._disk, self._subject, self._request = disk, subject, request

    def do(self, agent: Agent, tell: StateSink) -> bool:
        request = self._request
        # bob predicts from the reads of all mounts, and does not trace them if it mounts only durable writes.
        only, budget = request.only_durable, DEFAULT_BUDGET
        effort = Effort(budget, request.seed, request.audit, predicting=not only, closely=True, only_durable=only)
        # The progress counts checks of the cluster, not mounts.
        self.seen = explore(agent, self._subject, self._disk.plan, effort, lambda _states: tell(0))
        if self.seen.died and self.first_loss is None:
            raise LostGuest(self.seen.lost)
        return agent.is_sound


class _SoloJob(Job):
    """A job that starts node number ``number`` alone on each of its trees. ``case`` has a growth point with a crash
    state for each tree. When the job is done, ``signatures`` has the output of the script ``signature`` for each tree:
    what the node recovered. A tree without such an output, also because guests were lost, has a signature of its
    own."""

    when = " while starting a node alone"

    def __init__(
        self, case: ProgramCase, number: int, states: Sequence[CrashState], known: Mapping[int, CheckerAnswer]
    ) -> None:
        super().__init__(f"{case.work.name}, node {number} alone")
        self._case, self._number, self._states, self._known = case, number, states, known
        self.signatures = tuple(f"tree {place}" for place in range(len(states)))
        if not self.is_needed:
            self.signatures = tuple(_signature(known[place], place) for place in range(len(states)))

    @property
    def is_needed(self) -> bool:
        """Whether guests must do the job, because the host has not started the node on each of the trees."""
        return len(self._known) < len(self._states)

    def do(self, agent: Agent, tell: StateSink) -> bool:
        plan, session, found = self._case.plan, session_of(agent, self._case), list[str]()
        choose_start(agent, alone=self._number)
        for place, state in enumerate(self._states):
            tell(0)
            run = CheckerRun(plan.composer.delta(state), b"")
            [answer] = session.check_program([run], plan.composer.payload_since(0), self._case.work.seconds)
            found.append(_signature(answer, place))
        choose_start(agent)
        self.signatures = tuple(found)
        return True

    def give_up(self, error: Exception, reason: str, trace: str = "") -> None:
        if not isinstance(error, GuestLost | AgentBroken):
            raise error


def _signature(answer: CheckerAnswer, place: int) -> str:
    """Return the signature of tree number ``place``: what the node recovered from it. If the script ``signature`` did
    not end in time, was killed or printed nothing, the tree has a signature of its own."""
    says = answer.is_judgement and answer.printed.strip()
    return f"{answer.code}: {answer.printed}" if says else f"tree {place}"


class _Cluster:
    """The possible tuples of a recorded cluster, and those that bob chooses to check."""

    def __init__(
        self, case: ProgramCase, disks: Sequence[NodeDisk], seen: Sequence[Observations], request: ProbeRequest
    ) -> None:
        self._case, self._disks, self._request = case, disks, request
        self._trees = [NodeTrees.of(disk, one) for disk, one in zip(disks, seen, strict=True)]
        self._messages = messages(parse_timeline(case.recording.timeline), len(disks))
        # Without a message there would be no limit to the moments, so an incomplete trace must not count as "any".
        self._kind = request.cut if self._messages else CutKind.INSTANT
        cuts = Cuts(len(disks) + 1, self._messages if self._kind is CutKind.ANY else None)
        intervals = [[tuple(sources) for sources in node.sources] for node in self._trees]
        self._told = _told(case)
        self.classes: Classes | None = None
        # At one instant, a node may lack for long what others have, so a minority of old trees may lose data.
        by_rules = request.by_rules and self._kind is CutKind.ANY
        self._rules = Rules(case.work.rules, case.work.master) if by_rules else NO_RULES
        alike = case.work.alike if request.by_rules else ()
        self._exchanges = Exchanges(alike, [node.files for node in self._trees] if alike else ())
        self.tuples = PossibleTuples(cuts, intervals, [when for _output, when in self._told], request.seed)

    @property
    def nothing(self) -> Looked | None:
        """The result if bob can check nothing, since it knows no tree of some node. Otherwise None."""
        missing = next((node for node in self._trees if not node.outcomes), None)
        if missing is None:
            return None
        why = missing.seen.lost or f"bob knows no tree of node {missing.disk.number}"
        nothing = Observations((), OutcomeTable(), self._case.plan.nothing_explored(), why, final=True)
        return Looked(b"", self._case, nothing, {})

    def chosen(self) -> list[Chosen]:
        """Return the tuples to check: first the states of the disks before and after all, then power cuts, then the
        other tuples in the order of :meth:`PossibleTuples.in_order`."""
        others = iter(()) if self._request.only_durable else self.tuples.in_order(self._rules)
        if self.classes is not None:
            others = self.classes.in_order(islice(others, MOST_CLASSED), self._request.seed)
        found: dict[Chosen, None] = {}
        for one in chain(self._ends(), self._exchanges.distinct(chain(self._ends(), self._power_cuts(), others))):
            found.setdefault(one)
            if len(found) >= self._request.budget + len(self._ends()):
                break
        return list(found)

    def _ends(self) -> list[Chosen]:
        """Return the tuple before all writes and outputs, and the tuple after all. bob leaves one out if it does not
        know a tree."""
        found = []
        for which, told in ((0, 0), (-1, len(self._told) - 1)):
            trees = [node.tree_of(node.disk.plan.controls[which]) for node in self._trees]
            found += [(*(tree for tree in trees if tree is not None), told)] if None not in trees else []
        return found

    def _power_cuts(self) -> Iterator[Chosen]:
        """Yield the tuples of power cuts: each node has only what was durable at one instant. The instants are just
        before a write becomes durable, and just before the client gets its next answer."""
        instants = {time for disk in self._disks for time in disk.changes} | {when.last for _output, when in self._told}
        found: dict[Chosen, None] = {}
        for instant in sorted(instants):
            trees = [node.tree_of(node.disk.bare(instant)) for node in self._trees]
            told = next((n for n, (_output, when) in enumerate(self._told) if when.first <= instant <= when.last), None)
            if told is not None and None not in trees:
                found.setdefault((*(tree for tree in trees if tree is not None), told))
        every = list(found)
        yield from (every[number] for number in spread(len(every)))

    def windows(self, chosen: Sequence[Chosen], progress: Progress) -> list[TuplesJob]:
        """Return a job for each output of the client. It checks those tuples of ``chosen`` that have this output as the
        last one before the crash."""
        crashes = [self._crash(one) for one in chosen]
        cuts = [together(self._disks, crash, number) for number, crash in enumerate(crashes, 1)]
        plan = self._plan([point for point, _state in cuts])
        # The plan's own controls have the trees before and after all calls, which explain what calls changed.
        ends = dict(zip(self._ends(), plan.controls, strict=False)) if len(self._ends()) == len(plan.controls) else {}
        states = [ends.get(one, state) for one, (_point, state) in zip(chosen, cuts, strict=True)]
        found, chunks = self._joined(chosen)
        case = replace(self._case, plan=plan)
        made: list[TuplesJob] = []
        left = 0  # possible tuples after outputs without a chosen tuple
        for told, (output, _when) in reversed(list(enumerate(self._told))):
            mine = [number for number, one in enumerate(chosen) if one[-1] == told]
            if not mine:
                left += self.tuples.possible_after(told)
                continue
            seen = tuple(ExploredState(states[number], place) for place, number in enumerate(mine))
            possible, left = self.tuples.possible_after(told) + left, 0
            is_all = len(mine) == possible and self._are_all
            # Torn states whose trees bob does not know; bob counts them once, and not each of their combinations.
            torn = 0 if made else sum(node.torn_left for node in self._trees)
            coverage = States(len(mine), possible, possible + torn, "writes" if is_all else None)
            table = OutcomeTable([found[number] for number in mine], chunks)
            observed = Observations(seen, table, coverage, self._lost, final=True)
            behind = {place: self.tuples.behind(chosen[number]) for place, number in enumerate(mine)}
            late = {place: self._rules.late(some, len(self._trees), place) for place, some in behind.items()}
            job = TuplesJob(case, told, output, observed, behind, late, self._request, progress)
            job.tuples = tuple(chosen[number] for number in mine)
            job.tree = self._tree
            made.insert(0, job)
        return made

    @property
    def _are_all(self) -> bool:
        return all(node.are_all and not node.unmountable for node in self._trees)

    @property
    def _lost(self) -> str | None:
        return next((node.seen.lost for node in self._trees if node.seen.lost), None)

    def _crash(self, chosen: Chosen) -> ClusterCrash:
        intervals = intervals_of(self.tuples.cuts, self.tuples.states, chosen)
        moments = self.tuples.cuts.cut(intervals)[: len(self._disks)]
        each = zip(self._trees, chosen, intervals, moments, strict=False)
        return ClusterCrash(moments, tuple(node.state(tree, when, moment) for node, tree, when, moment in each))

    def _joined(self, chosen: Sequence[Chosen]) -> tuple[list[str], list[bytes]]:
        """Return the trees of all nodes together, one for each of ``chosen``, as an :class:`OutcomeTable` has them. The
        tree of node number 2 is below /n2."""
        chunks: list[bytes] = []
        trees: list[list[dict[str, object]]] = []
        for number, node in enumerate(self._trees):
            trees.append([node.below(f"/n{number}", tree, len(chunks)) for tree in range(len(node.outcomes))])
            chunks += node.seen.findings.chunks
        root = {"/": {"kind": "directory"}}
        found = []
        for one in chosen:
            tree: dict[str, object] = {**root}
            for of_node, place in zip(trees, one, strict=False):
                tree |= of_node[place]
            found.append(json.dumps({"error": None, "repaired": False, "tree": tree}))
        return found, chunks

    @property
    def end(self) -> TupleCheck | None:
        """The tuple after a clean end, if bob knows its trees."""
        found = [one for one in self._ends() if one[-1] == len(self._told) - 1]
        return TupleCheck("", lambda: self._tree(found[-1]), self._told[-1][0], counts=False) if found else None

    def _tree(self, chosen: Chosen) -> Mapping[str, Node]:
        found: dict[str, Node] = {}
        for node, tree in zip(self._trees, chosen, strict=False):
            found |= node.nodes_below(tree, len(self._trees))
        return found

    def trees_alone(self, number: int) -> list[TupleCheck]:
        """Return a check of each tree of node ``number`` alone, in the order of :meth:`alone`."""
        node = self._trees[number]

        def tree(of: int) -> Mapping[str, Node]:
            return {
                **{f"/n{other}": ROOT for other in range(len(self._trees))},
                **node.nodes_below(of, len(self._trees)),
            }

        return [
            TupleCheck("", partial(tree, one), b"", alone=number, counts=False) for one in range(len(node.outcomes))
        ]

    def alone(self, number: int) -> tuple[ProgramCase, int, list[CrashState]]:
        """Return a case, the number of a node, and a crash state of the case for each tree of this node. The other
        disks have any state."""
        crashes = []
        for tree, intervals in enumerate(self.tuples.states[number]):
            each = [(0, of_node[0][0]) for of_node in self.tuples.states[:-1]]
            each[number] = tree, intervals[0]
            states = [self._trees[node].state(one, when, when.first) for node, (one, when) in enumerate(each)]
            crashes.append(ClusterCrash(tuple(when.first for _one, when in each), tuple(states)))
        joined = [together(self._disks, crash, place) for place, crash in enumerate(crashes, 1)]
        plan = self._plan([point for point, _state in joined])
        return replace(self._case, plan=plan), number, [state for _point, state in joined]

    def _plan(self, cuts: Sequence[GrowthPoint]) -> Plan:
        """Return a plan with the growth points ``cuts``, between the first and the last one of the recording."""
        plan = self._case.plan
        return Plan(plan.trace, self._case.base, plan.model, [plan.points[0], *cuts, plan.points[-1]])

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        is_small = all(len(node.outcomes) <= MOST_IN_GRID for node in self._trees)
        return list(combinations(range(len(self._trees)), 2)) if is_small else []

    def counts(
        self, chosen: Sequence[Chosen], windows: Sequence[TuplesJob], share: GuestsShare = NO_CHECKS
    ) -> ClusterTuples:
        classes = (0, 0, 0)
        codes = {one: job.looked.answers[place].code for job in windows for place, one in job.checked}
        if self.classes is not None:
            some = islice(self.tuples.in_order(self._rules), MOST_CLASSED)
            classes = self.classes.decided(dict.fromkeys([*some, *chosen]), codes)
        trees = tuple(len(node.outcomes) for node in self._trees)
        return ClusterTuples(
            cut=self._kind.value,
            messages=len(self._messages),
            trees=trees,
            possible=self.tuples.possible,
            rules=tuple(rule.value for rule in self._rules.rules),
            set_aside=self.tuples.possible - self.tuples.possible_by(self._rules),
            set_aside_by={rule.value: self._set_aside_by(rule) for rule in self._rules.rules},
            exchanged=self._exchanged(),
            checked=len(codes),
            grids=tuple(NodeGrid(pair, self.tuples.grid(pair, codes)) for pair in self._pairs),
            classes=classes[0],
            decided=classes[1],
            split=classes[2],
            are_all_trees=self._are_all,
            unmountable=sum(node.unmountable for node in self._trees),
            repeated=share.repeated,
            why_guests=share.why_all,
        )

    def _set_aside_by(self, rule: PaceRule) -> int:
        """Return how many tuples ``rule`` alone sets aside."""
        return self.tuples.possible - self.tuples.possible_by(Rules((rule,), self._rules.master))

    def _exchanged(self) -> int:
        """Return how many tuples bob leaves out for others with exchanged trees. It counts at most MOST_CLASSED."""
        if not self._exchanges.alike:
            return 0
        some = [*islice(self.tuples.in_order(self._rules), MOST_CLASSED)]
        return len(some) - sum(1 for _one in self._exchanges.distinct(some))


def _told(case: ProgramCase) -> list[tuple[bytes, Interval]]:
    """Return the client's outputs so far, and the moments between the last of these outputs and the next one."""
    return [(window.output, Interval(window.trace.start.time, window.trace.end.time)) for window in case.windows]
