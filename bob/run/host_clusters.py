"""Clusters on the host. A sandbox starts the nodes natively on trees of files in memory, and runs the client's checker.
bench/nodes.py measures how fast that is, beside emulated guests. The sandbox has a network of its own for the nodes,
and its clock is the real one."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bob.agent.client import Agent, AgentBroken, what_happened
from bob.agent.loss import GuestLost
from bob.agent.shared import seconds_of_check
from bob.catalogue.request import CheckPlace
from bob.errors import GuestError, ImageError
from bob.guest.given_machine import GivenImage
from bob.guest.spec import Clock
from bob.image import unpacked
from bob.observe.observation import Node, letters
from bob.observe.tree_builder import TreeBuilder
from bob.program.answer import CheckerAnswer, CheckerRun
from bob.program.program import Program
from bob.record.recorder import choose_start, put_program
from bob.run.agents import Sandboxes
from bob.run.pool import Job, JobQueue, ProgramGuests, StateSink
from bob.sandbox.agents import why_none
from bob.sandbox.bubblewrap import owner

PARTS = 4  # for each sandbox: the last sandboxes to end have little left
QUICKER = 10  # a check on the host may take this part of the time that a guest, perhaps emulated, may take
LEAST_SECONDS = 30.0  # but at least this time: the host does not skip the time limits of elections
SIDE_BY_SIDE = 4  # sandboxes for each guest that would run: the nodes mostly wait for each other
ROOT = Node("directory", mode=0o755)
Files = Mapping[str, Node]


@dataclass(frozen=True, slots=True)
class TupleCheck:
    """A tuple to check. Its tree is ``tree()``, with the files of node number 2 below /n2. Before the crash, the client
    had printed ``output``. The node ``late`` starts after the others (-1: all together). If ``alone`` is not -1, only
    this node starts, and the script ``signature`` runs in place of the check. The script ``spoiler`` damages the tree
    first (empty: none does). If ``counts`` is true, the progress counts the check as a state of ``title``."""

    title: str
    tree: Callable[[], Files]
    output: bytes
    late: int = -1
    alone: int = -1
    spoiler: str = ""
    counts: bool = True


class HostCluster:
    """The sandboxes for one cluster. ``why_not`` is the reason for having no sandboxes (None: there are some; empty:
    the user wants guests). Raise GuestError if the user wants sandboxes, but there are none."""

    def __init__(self, guests: ProgramGuests, cluster: Program, checks: CheckPlace, jobs: int) -> None:
        self._guests = replace(guests, source=Sandboxes(guests.progress.step))
        self._checks, self._jobs = checks, SIDE_BY_SIDE * jobs
        self._cluster = replace(
            cluster,
            seconds=_on_host(cluster.seconds),
            ready_seconds=_on_host(cluster.ready_seconds),
        )
        self._builders: dict[Agent, TreeBuilder] = {}
        self.why_not: str | None = None
        self._refuse("" if checks is CheckPlace.GUEST else self._why_none())

    def prove(self, end: TupleCheck | None) -> None:
        """Let the checker look at damaged copies of ``end``, the tuple with all writes and outputs. Use no sandboxes if
        it accepts one. ``end`` is None if bob does not know this tuple."""
        if self.why_not is not None:
            return
        if end is None:
            self._refuse("bob does not know the trees with all writes")
            return
        for spoiler in self._cluster.must_fail:
            tried = replace(end, spoiler=spoiler)
            [answer] = [*self.check([tried]).values()] or [CheckerAnswer(None, "")]
            if answer.code == 0 or not answer.is_judgement:
                what = f"the end, damaged by {spoiler}, gets the exit code {answer.code} there"
                self._refuse(f"{what}: {answer.evidence}")
                return

    def _refuse(self, why: str | None) -> None:
        self.why_not = why
        if why and self._checks is CheckPlace.HOST:
            raise GuestError(f"the cluster cannot run on the host: {why}", hint="--checks auto runs it in guests then")

    def _why_none(self) -> str | None:
        if isinstance(self._guests.image, GivenImage):
            return "the files of a given machine are not on the host"
        try:
            disk = self._guests.world(self._cluster) or self._guests.image.root
            if (why := why_none(unpacked(disk, owner(), self._guests.progress.step))) is not None:
                return why
            self._guests.ask(self._cluster, Clock.REAL, lambda agent: put_program(agent, self._cluster))
        except (GuestLost, AgentBroken) as failure:
            return what_happened(failure)
        except ImageError as failure:
            return str(failure)
        return None

    def check(self, asked: Sequence[TupleCheck]) -> dict[int, CheckerAnswer]:
        """Return the checker's answers, by the place of each tuple in ``asked``. A tuple has no answer if there are no
        sandboxes, if its files cannot be made in one, or if its sandbox was lost."""
        found: dict[int, CheckerAnswer] = {}
        if self.why_not is not None or not asked:
            return found
        size, numbered = -(-len(asked) // (PARTS * self._jobs)), list(enumerate(asked))
        jobs = [_PartJob(self, dict(numbered[at : at + size]), found) for at in range(0, len(asked), size)]
        world = self._guests.world(self._cluster)
        queue = JobQueue(Clock.REAL, jobs, world, lambda agent: put_program(agent, self._cluster))
        self._guests.pool().do_all(queue, min(self._jobs, len(jobs)))
        self._builders.clear()
        return found

    def checked(self, agent: Agent, asked: TupleCheck, tree: Files) -> CheckerAnswer:
        """Return the checker's answer from the sandbox of ``agent``. Raise SandboxLost if the sandbox is lost."""
        if agent not in self._builders:
            self._builders[agent] = TreeBuilder(agent, ROOT)
        choose_start(agent, asked.late, alone=asked.alone)
        seconds = self._cluster.seconds
        longest = seconds_of_check(seconds, self._cluster.ready_seconds)
        run = CheckerRun(tree, asked.output, asked.spoiler)
        return self._builders[agent].check([run], seconds, longest=longest)[0]


def _on_host(seconds: float) -> float:
    return min(seconds, max(seconds / QUICKER, LEAST_SECONDS))


class _PartJob(Job):
    """A job that checks some tuples, and puts the answers into ``found``."""

    when = " while checking on the host"

    def __init__(self, cluster: HostCluster, asked: Mapping[int, TupleCheck], found: dict[int, CheckerAnswer]) -> None:
        super().__init__(next(iter(asked.values())).title)
        self._cluster, self._asked, self._found = cluster, asked, found

    def do(self, agent: Agent, tell: StateSink) -> bool:
        for place, one in self._asked.items():
            # Another sandbox may have checked it, and was lost afterwards; the progress has forgotten that.
            if place not in self._found and can_be_made(tree := one.tree()):
                self._found[place] = self._cluster.checked(agent, one, tree)
            tell(int(one.counts))
        return True

    def give_up(self, error: Exception, reason: str, trace: str = "") -> None:
        if not isinstance(error, GuestLost | AgentBroken):
            raise error


def can_be_made(tree: Files) -> bool:
    """Return whether a sandbox can make the files of ``tree`` as they are. All files there belong to one user, and
    have no extended attributes. All names of a file must be in the tree."""
    names = Counter(node.inode for node in tree.values() if node.kind == "file")
    return all(
        node.kind in ("file", "directory", "symlink")
        and node.fault is None
        and (node.kind != "file" or node.links == names[node.inode])
        and not (node.uid or node.gid or node.xattrs or letters(node.flags) or node.project)
        for node in tree.values()
    )
