"""Exploring with an agent that is made up: what is sent, what is known after a loss, and what is claimed."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest
import samples_of_runs as samples

from bob.crash.plan import Plan, writes_of_operations
from bob.errors import BobError, UsageError
from bob.guest.agent_client import AgentBroken
from bob.guest.loss import Cause, GuestLost, Loss
from bob.observe import explore as module
from bob.observe.explore import explore
from bob.observe.observation import Findings, Observation
from bob.result import States
from bob.store import Observed
from bob.trace.model import SECTOR_BYTES

LOSS = GuestLost(Loss(Cause.VANISHED, ""), "QEMU is gone")


class FakeAgent:
    """Builds each state from what it was sent; its first 32 sectors are its outcome. Fails at request ``fails``."""

    def __init__(self, fails: int = 10**9, failure: BobError = LOSS) -> None:
        self.left = fails
        self.failure = failure
        self.requests: list[str] = []
        self.states: list[bytes] = []
        self.outcomes: list[bytes] = []
        self.bases: set[str] = set()

    def ask(self, do: str, *, timeout: float, blob: bytes = b"", **arguments: Any) -> tuple[dict[str, Any], bytes]:
        assert timeout > 0
        self.requests.append(do)
        self.left -= 1
        if self.left < 0:
            raise self.failure
        answer: tuple[dict[str, Any], bytes] = getattr(self, do)(blob, **json.loads(json.dumps(arguments)))
        return answer

    def has_base(self, _blob: bytes, base: str) -> tuple[dict[str, Any], bytes]:
        return {"has": base in self.bases}, b""

    def put_base(self, blob: bytes, base: str, length: int, cell: str) -> tuple[dict[str, Any], bytes]:
        assert (blob, length, cell) == (samples.BASE.packed, samples.BASE.length, "<stale--medium!>")
        self.bases.add(base)
        return {}, b""

    def observe_prepare(
        self, blob: bytes, base: str, recovery: dict[str, Any], floor: list[int], payload: int
    ) -> tuple[dict[str, Any], bytes]:
        assert base in self.bases
        assert recovery["fs"] == "ext4"
        assert recovery["options"] == "data=ordered"
        self.payload = zlib.decompress(blob[:payload])
        self.image = bytearray(samples.BASE.image())
        self.put(self.image, floor)
        return {}, b""

    def observe(self, blob: bytes, states: list[list[int]]) -> tuple[dict[str, Any], bytes]:
        self.payload += zlib.decompress(blob) if blob else b""
        numbers, known, new = [], len(self.outcomes), b""
        for runs in states:
            image = bytearray(self.image)
            self.put(image, runs)
            self.states.append(bytes(image))
            seen = bytes(image[: 32 * SECTOR_BYTES])
            if seen not in self.outcomes:
                self.outcomes.append(seen)
                new += seen
            numbers.append(self.outcomes.index(seen))
        found = [
            json.dumps(
                {
                    "error": None,
                    "repaired": False,
                    "tree": {"/x": {"kind": "file", "content": [number], "size": 32 * SECTOR_BYTES}},
                }
            )
            for number in range(known, len(self.outcomes))
        ]
        header = {"outcomes": numbers, "new_outcomes": found, "chunks": [32 * SECTOR_BYTES] * len(found)}
        return header, zlib.compress(new)

    def put(self, image: bytearray, runs: list[int]) -> None:
        for sector, source, count in zip(runs[::3], runs[1::3], runs[2::3], strict=True):
            data = self.payload[source * SECTOR_BYTES : (source + count) * SECTOR_BYTES]
            assert len(data) == count * SECTOR_BYTES
            image[sector * SECTOR_BYTES : (sector + count) * SECTOR_BYTES] = data


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 3)


def explored(agent: FakeAgent, budget: int = 100) -> tuple[Observed, list[int], Plan]:
    plan, told = samples.plan(), list[int]()
    seen = explore(
        agent,  # type: ignore[arg-type]
        samples.CONFIGURATION,
        samples.BASE,
        plan,
        budget=budget,
        seed=1,
        observed=told.append,
    )
    return seen, told, plan


def test_everything_is_explored() -> None:
    agent = FakeAgent()
    seen, told, plan = explored(agent)
    # The overwrite (1 sector) and the journal (2) become durable first, then the commit (1): 2^2 - 1 + 2^1 - 1 + 1
    # whole states, with tears 2^3 - 1 + 2^1 - 1 + 1.
    assert seen.coverage == States(9, 5, 9, "sectors")
    assert seen.lost is None
    assert len({state for state, _outcome in seen.states}) == 9
    assert sum(told) == 9
    assert len(set(agent.states)) == 9
    for (state, outcome), image in zip(seen.states, agent.states, strict=True):
        wanted = bytearray(samples.BASE.image())
        for sector, data in plan.runs(state):
            wanted[sector * SECTOR_BYTES : sector * SECTOR_BYTES + len(data)] = data
        assert image == bytes(wanted)
        assert outcome is not None
        assert seen.findings.observation(outcome).tree["/x"].content == image[: 32 * SECTOR_BYTES]  # type: ignore[index]


def test_a_budget_that_ends_is_no_claim() -> None:
    seen, _told, _plan = explored(FakeAgent(), budget=4)
    assert (seen.coverage, len(seen.states), seen.lost) == (States(4, 5, 9, None), 4, None)


@pytest.mark.parametrize("failure", [LOSS, AgentBroken("the agent failed at observe: it broke"), UsageError("refused")])
@pytest.mark.parametrize("fails", range(7))
def test_a_loss_leaves_what_was_known(failure: BobError, fails: int) -> None:
    whole, _told, _plan = explored(FakeAgent())
    seen, told, _plan = explored(FakeAgent(fails, failure))
    batches = max(0, fails - 3)  # has_base, put_base and observe_prepare come first
    known = [(state, outcome) for state, outcome in seen.states if outcome is not None]
    if fails < 6:
        assert seen.lost == f"the guest was lost: {failure}"
        assert len(known) == 3 * batches == sum(told) == seen.coverage.explored
        assert seen.coverage.exhaustive is None
        assert seen.coverage.legal_sectors == 9
    assert list(whole.states[: len(known)]) == known
    for _state, outcome in known:
        assert outcome is not None
        assert outcome < len(seen.findings.found)


def test_writes_are_known_by_what_they_carry() -> None:
    assert writes_of_operations(samples.TRACE) == (frozenset({1}),)
    assert samples.plan().nothing_explored() == States(0, 5, 9, None)


def test_findings_grow_and_are_put_together_again() -> None:
    findings = Findings()
    findings.add([samples.outcome(("/a", 11, [0, 1], 8))], [4, 4], b"aaaabbbb")
    tree = {
        "/d": {"kind": "directory", "inode": 5, "fault": "cannot be listed"},
        "/l": {"kind": "symlink", "target": "x"},
    }
    tree["/a"] = {"kind": "file", "size": 4, "links": 2, "content": [2], "xattrs": {"user.x": 1}}  # type: ignore[dict-item]
    findings.add([json.dumps({"error": "no", "repaired": True, "tree": tree})], [4], b"cccc")
    first, second = findings.observations()
    assert isinstance(first, Observation)
    assert first.tree is not None
    assert first.tree["/a"].content == b"aaaabbbb"
    assert second.tree is not None
    assert (second.mounted, second.error, second.repaired) == (False, "no", True)
    assert (second.tree["/d"].fault, second.tree["/l"].target) == ("cannot be listed", "x")
    assert (second.tree["/a"].xattrs, second.tree["/a"].links) == ({"user.x": b"bbbb"}, 2)
    assert list(findings.observations()[1:]) == [second]
    assert len(findings.observations()) == 2


@pytest.mark.parametrize(
    ("observation", "summary"),
    [
        (Observation(True, None, {}), "mounted, 0 names"),
        (Observation(False, "no", None), "does not mount (no)"),
        (Observation(False, "no", None, True), "does not mount (no); repair did not help"),
        (Observation(False, "no", {}, True), "does not mount (no); repaired"),
    ],
)
def test_summaries(observation: Observation, summary: str) -> None:
    assert observation.summary == summary
