"""ext2 recovered by e2fsck in a sandbox on the host: the outcomes are those of a guest that does all by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bob.agent.client import Agent
from bob.agent.inside.devices import EPOCH
from bob.crash.plan import Plan
from bob.image import ensure, unpacked
from bob.observe.effort import Effort
from bob.observe.explore import explore
from bob.observe.host_checks import HostCheckers
from bob.observe.observations import Observations
from bob.sandbox.agents import sandbox
from bob.sandbox.bubblewrap import owner
from bob.subject import configuration
from bob.trace.model import SECTOR_BYTES

from .conftest import Inhabited
from .test_predict import shown
from .workloads import Taken, observe, take, workload

pytestmark = pytest.mark.vm

BUDGET = 60
SUPERBLOCK = 2  # sector
DAY = 24 * 3600
LAST_WRITE = 0x30  # the place of s_wtime in the superblock


@pytest.fixture(scope="module")
def confined() -> Iterator[Agent]:
    with sandbox(unpacked(ensure("debian-bookworm", print).root, owner(), print)) as agent:
        yield agent


def explored(agent: Agent, taken: Taken, checkers: HostCheckers | None) -> Observations:
    plan = Plan(taken.trace, taken.base, taken.plan.composer.model)
    return explore(agent, taken.configuration, plan, Effort(BUDGET, 1), lambda _states: None, None, checkers)


class Counting:
    """A sandbox that counts the states that it recovered. If it ``lies``, it undoes what e2fsck repaired."""

    def __init__(self, agent: Agent, *, lies: bool = False) -> None:
        self.agent, self.lies, self.states = agent, lies, 0
        self.checked: set[int] = set()  # times of a check, as superblocks say

    def ask(self, do: str, **asked: object) -> object:
        header, data = self.agent.ask(do, **asked)  # type: ignore[arg-type]
        self.states += len(header.get("digests", ()))
        position = 0
        for sector, count in (run for one in header.get("changed", ()) for run in one):
            if sector <= SUPERBLOCK < sector + count:
                at = position + (SUPERBLOCK - sector) * SECTOR_BYTES + LAST_WRITE
                self.checked.add(int.from_bytes(data[at : at + 4], "little"))
            position += count * SECTOR_BYTES
        if self.lies and do == "recover":
            header["changed"] = [[] for _ in header["digests"]]
            data = b""
        return header, data


def test_a_sandbox_recovers_as_the_guest_does(recording: Inhabited, confined: Agent) -> None:
    """Directory operations and writes: e2fsck has orphans, counts and bitmaps to repair. Some 30 s."""
    each = take(recording.agent, workload("write /d/a 4096 4096; mkdir /d/new; append /b 4096"), configuration("ext2"))
    counting, told = Counting(confined), list[str]()
    found = explored(recording.agent, each, HostCheckers(counting, told.append))  # type: ignore[arg-type]
    assert found.lost is None
    assert not told
    assert counting.states > 10
    [checked] = counting.checked
    assert EPOCH <= checked < EPOCH + DAY, "the guest's time: it has recorded, and this sets its clock"
    states = [one.state for one in found.states]
    for one, mounted in zip(found.states, observe(recording.agent, each, states), strict=True):
        assert one.outcome is not None
        assert shown(found.findings.observation(one.outcome)) == shown(mounted)

    lying = Counting(confined, lies=True)
    doubted = explored(recording.agent, each, HostCheckers(lying, told.append))  # type: ignore[arg-type]
    assert doubted.lost is not None
    assert doubted.lost.startswith("a control of the predictions failed")
    trusted = {one.state: one.outcome for one in doubted.states if one.outcome is not None}
    right = {one.state: one.outcome for one in found.states}
    for state, outcome in trusted.items():
        if state in right:
            there = found.findings.observation(right[state])  # type: ignore[arg-type]
            assert shown(doubted.findings.observation(outcome)) == shown(there)
