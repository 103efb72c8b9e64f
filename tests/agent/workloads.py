"""What the tests of the agent record and observe, and the tree that they expect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from bob.agent.client import Agent
from bob.crash.case import Case
from bob.crash.device import DeviceModel
from bob.crash.plan import Plan
from bob.crash.state import CrashState
from bob.observe.observation import Node, Observation
from bob.observe.session import Session
from bob.record.base import make_base
from bob.record.recorder import record
from bob.subject import Subject, configuration
from bob.trace.base import Base
from bob.trace.check import checked
from bob.trace.model import Trace
from bob.trace.recording import Completion, Recording
from bob.workload.history import TIME, FileKind, History
from bob.workload.language import LATEST, parse
from bob.workload.operations import Finish, Workload
from bob.workload.simulation import simulate

EXT4 = configuration("ext4", mount_options="data=ordered")
SETUP = parse("mkdir /d; write /d/a 0 16K; write /b 0 10000; setxattr /b user.old 100; symlink /d/a /s")
NATURAL = Finish("natural", natural=True)
FSYNC = Finish("fsync", parse("fsync /b"))


@dataclass(frozen=True)
class Taken:
    """A recording that passed its check, with all that belongs to it."""

    configuration: Subject
    workload: Workload
    base: Base
    recording: Recording
    trace: Trace
    plan: Plan

    @property
    def case(self) -> Case:
        return Case(self.configuration, self.workload, self.base, self.recording, self.plan)

    @property
    def history(self) -> History:
        return simulate(self.workload)[0]

    @property
    def first(self) -> CrashState:
        """The state in which nothing of the operations is there."""
        return CrashState(0)

    @property
    def last(self) -> CrashState:
        """The state in which everything is there."""
        return CrashState(len(self.plan.points) - 1, self.plan.points[-1].pending)

    def states(self, count: int) -> list[CrashState]:
        """The first ``count`` states of a search, torn ones among them."""
        return [candidate.state for candidate in self.plan.search(count, seed=1)]


def workload(operations: str, finish: Finish = NATURAL) -> Workload:
    return Workload("test", SETUP, parse(operations), finish)


WRITES = workload("write /d/a 4096 4096; mkdir /d/new; append /b 4096; rename /d/a /d/new/a")


def take(
    agent: Agent,
    workload: Workload,
    configuration: Subject = EXT4,
    base: Base | None = None,
    completion: Completion = Completion.PROMPT,
) -> Taken:
    """Record ``workload`` and check the recording."""
    base = base or make_base(agent, configuration, workload.setup)
    recording = record(agent, configuration, base, workload, completion=completion)
    trace = checked(recording, base)
    return Taken(configuration, workload, base, recording, trace, Plan(trace, base, DeviceModel()))


_taken: dict[Workload, Taken] = {}


def taken_once(agent: Agent, workload: Workload) -> Taken:
    """A recording of ``workload`` that the tests share: observing needs one, but not one of its own."""
    if workload not in _taken:
        _taken[workload] = take(agent, workload)
    return _taken[workload]


def session(agent: Agent, taken: Taken, *, watched: Sequence[int] | None = None) -> Session:
    """Prepare to observe the states of ``taken``."""
    composer = taken.plan.composer
    payload = composer.payload_since(0)
    return Session(agent, taken.configuration, taken.base, composer.floor_delta(), payload, watched=watched)


def observe(agent: Agent, taken: Taken, states: Sequence[CrashState]) -> list[Observation]:
    """What is found in each of the states, by a session of its own."""
    deltas = [taken.plan.composer.delta(state) for state in states]
    looking = session(agent, taken)
    numbers = looking.observe(deltas, taken.plan.composer.payload_since(0))
    return [looking.findings.observation(number) for number in numbers]


@cache
def expected(workload: Workload, step: int) -> dict[str, object]:
    """The tree after operation ``step`` (0: the initial tree) as :func:`found` tells it."""
    history, *_ = simulate(workload)
    tree: dict[str, object] = {}
    for name, identity in history.steps[step].names.items():
        thing, inode = history.things[identity], history.steps[step].inodes[identity]
        match thing.kind:
            case FileKind.FILE:
                tree[name] = ("file", inode.links, inode.content, dict(inode.attributes))
            case FileKind.SYMLINK | FileKind.OTHER:
                tree[name] = (thing.kind.value, thing.target)
            case FileKind.DIRECTORY if name != "/":
                tree[name] = ("directory", dict(inode.attributes))
    return tree


def found(observation: Observation) -> dict[str, object]:
    """The tree of an observation, in which nothing may be at fault."""
    assert observation.mounted, observation.summary
    assert observation.tree is not None
    tree: dict[str, object] = {}
    for path, node in observation.tree.items():
        assert node.fault is None, (path, node.fault)
        match node.kind:
            case "file":
                tree[path] = ("file", node.links, node.content, attributes_of(node))
                assert node.size == len(node.content)
            case "symlink" | "other":
                tree[path] = (node.kind, node.target)
            case _:
                tree[path] = (node.kind, attributes_of(node))
    return tree


def attributes_of(node: Node) -> dict[str, bytes]:
    """Those that an operation may have set: not the time at which the base image was made."""
    return {name: value for name, value in node.attributes.items() if name != TIME or int(value) <= LATEST}
