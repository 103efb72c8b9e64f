"""A host whose check lies about one disk, so rarely that a sample misses it: what bob must not claim all the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import samples_of_runs as samples
from bob.agent.client import AgentBroken
from bob.crash.state import CrashState
from bob.errors import BobError
from bob.observe.controls import Controls
from bob.observe.effort import Effort
from bob.observe.explore import explore
from bob.observe.host_checks import HostCheckers
from bob.observe.mount_cache import Sights
from bob.observe.observations import Observations
from bob.subject import DEFAULT_AUDIT
from bob.trace.model import SECTOR_BYTES
from mediums import image_of

from .test_explore import DATA, LOSS, FakeAgent

CONFIGURATION = replace(
    samples.CONFIGURATION, fs=replace(samples.CONFIGURATION.fs, check=("fsck", "DEVICE"), check_on_host=True)
)
LIE = b"lie!" * (SECTOR_BYTES // 4)

pytestmark = pytest.mark.usefixtures("one_each")


@pytest.fixture
def one_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """One control of each kind, as with three of each all nine states would be mounted."""
    monkeypatch.setattr("bob.observe.controls.LEAST", 1)


class Guest(FakeAgent):
    """Its check changes nothing."""

    def observe(self, blob: bytes, checks: bool = True, **arguments: Any) -> tuple[dict[str, Any], bytes]:
        del checks
        return super().observe(blob, **arguments)


class Host(FakeAgent):
    """A sandbox, whose check also changes nothing, but for the disk ``lies``: there it overwrites the data."""

    def __init__(self, lies: bytes = b"", *, reads: int = 0) -> None:
        super().__init__()
        self.lies_about = lies
        # Its check reads the whole disk, so that bob predicts nothing, or a few sectors.
        self.reads = reads or len(image_of(samples.BASE)) // SECTOR_BYTES
        self.disks: list[bytes] = []

    def recover_prepare(
        self, blob: bytes, base: str, check: list[str], floor: list[int], clock: int
    ) -> tuple[dict[str, Any], bytes]:
        assert base in self.bases
        assert (check, clock) == (["fsck", "DEVICE"], 0)
        self.payload = blob
        self.image = bytearray(image_of(samples.BASE))
        self.put(self.image, floor)
        return {}, b""

    def recover(self, blob: bytes, states: list[list[int]]) -> tuple[dict[str, Any], bytes]:  # type: ignore[override]
        self.payload += blob
        digests, changed, data = list[str](), list[list[list[int]]](), b""
        for runs in states:
            image = self.built(runs)
            self.disks.append(bytes(image))
            is_lie = bytes(image) == self.lies_about
            changed.append([[DATA, 1]] if is_lie else [])
            if is_lie:
                image[DATA * SECTOR_BYTES : (DATA + 1) * SECTOR_BYTES] = LIE
                data += LIE
            digests.append(hashlib.sha256(image).hexdigest())
        return {"digests": digests, "accesses": [[1, 0, self.reads]] * len(states), "changed": changed}, data


def lying(seen: Observations) -> set[CrashState]:
    """The states whose outcome is the lie. A claim that it breaks would have one of them as its evidence."""
    return {one.state for one in seen.states if one.outcome is not None and is_lie(seen, one.outcome)}


def is_lie(seen: Observations, outcome: int) -> bool:
    tree = seen.findings.observation(outcome).tree or {}
    return tree["/x"].content[DATA * SECTOR_BYTES :].startswith(b"lie!")  # type: ignore[index]


def nothing(_seen: Observations) -> set[CrashState]:
    return set()


def explored(
    host: Host, sights: Sights | None, evidence: Any, guest: FakeAgent | None = None, *, audit: float = DEFAULT_AUDIT
) -> Observations:
    checkers = HostCheckers(host, lambda _reason: None)  # type: ignore[arg-type]
    agent: Any = guest or Guest()
    return explore(agent, CONFIGURATION, samples.plan(), Effort(100, 1, audit), int, sights, checkers, evidence)


def missed() -> Iterator[tuple[bytes, Sights]]:
    """The disks that a host may lie about without notice, with what a workload then leaves for others."""
    host = Host()
    assert explored(host, {}, nothing).lost is None
    for disk in sorted(set(host.disks)):
        sights: Sights = {}
        if explored(Host(disk), sights, nothing).lost is None:
            yield disk, sights


def test_a_lie_that_another_workload_remembers_is_no_evidence() -> None:
    noticed = 0
    for disk, sights in missed():
        seen = explored(Host(disk), sights, lying)
        assert not lying(seen), "a guest recovers the evidence, though the disk was mounted before"
        noticed += seen.lost is not None
    assert noticed


@pytest.mark.parametrize("failure", [LOSS, AgentBroken("the agent failed")])
def test_a_lie_is_no_evidence_if_the_guest_fails_before_it_controls_it(failure: BobError) -> None:
    believed = 0
    for disk, _sights in missed():
        for fails in range(3, 20):
            guest = Guest(fails, failure)
            seen = explored(Host(disk), None, lying, guest)
            believed += sum(one.outcome is not None for one in seen.states)
            if guest.left < 0:
                assert seen.lost is not None
                assert not lying(seen), f"request {fails} fails"
    assert believed


def predicted_lies(seen: Observations) -> set[CrashState]:
    states = [seen.states[number] for number in seen.predicted]
    return {one.state for one in states if one.outcome is not None and is_lie(seen, one.outcome)}


def test_a_lie_about_one_state_is_no_evidence_in_the_states_that_bob_predicts_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A search takes the state with the smallest loss, which bob may not have mounted."""
    monkeypatch.setattr(Controls, "wanted", lambda *_, **_more: 0)  # a sample that misses all
    host, believed = Host(reads=1), 0
    explored(host, None, nothing)
    for disk in sorted(set(host.disks)):
        believed += len(predicted_lies(explored(Host(disk, reads=1), None, nothing)))
        assert not predicted_lies(explored(Host(disk, reads=1), None, predicted_lies))
    assert believed


def test_a_host_that_was_wrong_once_recovers_no_more() -> None:
    host, doubted = Host(), 0
    explored(host, None, nothing)
    for disk in sorted(set(host.disks)):
        told: list[str] = []
        checkers = HostCheckers(Host(disk), told.append)  # type: ignore[arg-type]
        seen = explore(Guest(), CONFIGURATION, samples.plan(), Effort(100, 1), int, None, checkers, nothing)  # type: ignore[arg-type]
        assert checkers.is_doubted == (checkers.agent is None) == (seen.lost is not None)
        assert len(told) == checkers.is_doubted
        doubted += checkers.is_doubted
    assert doubted


def test_with_audit_1_each_lie_is_noticed() -> None:
    host = Host()
    explored(host, None, nothing)
    for disk in sorted(set(host.disks)):
        seen = explored(Host(disk), None, nothing, audit=1)
        assert seen.lost is not None
        assert not lying(seen)
