"""Exploring with an agent that is made up: what is sent, what is predicted, what is known after a loss and claimed."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob.agent.client import AgentBroken
from bob.agent.inside.documents import subject_from
from bob.agent.loss import GuestLost, Loss, LossCause
from bob.crash.coverage import States
from bob.crash.neighbours import Neighbours
from bob.crash.plan import Plan, writes_of_operations
from bob.crash.state import CrashState, departure
from bob.errors import BobError, UsageError
from bob.observe import controls, examine, ledger, leftovers, observation, rounds
from bob.observe import explore as windows
from bob.observe.effort import Effort
from bob.observe.events import AccessEvent, Bio, ReadAhead
from bob.observe.explore import explore
from bob.observe.mount_cache import Sights
from bob.observe.observation import Node, Observation, OutcomeTable, split
from bob.observe.observations import ExploredState, Observations
from bob.observe.session import NO_BLOCKS
from bob.subject import DEFAULT_AUDIT, Subject
from bob.trace.model import SECTOR_BYTES
from mediums import image_of
from wording import text_with

from .traces import LAYOUTS, pages

LOSS = GuestLost(Loss(LossCause.VANISHED, ""), "QEMU is gone")


COMMIT, JOURNAL, DATA = 22, (20, 21), 8
"""What writes 3, 2 and 1 of the trace change."""
BY_A_SIGHT = "from the same disk in another workload"
AHEAD: list[AccessEvent] = [ReadAhead((COMMIT,), 1)]


class FakeAgent:
    """Builds each state from what it was sent, and fails at request ``fails``.

    Its recovery reads the commit block; only if that is there also the journal; and then the data. What it read is the
    outcome. With ``forgets`` it does not tell that it read that sector, with ``lies`` its device does not count it.
    From the request numbered ``ahead`` on it reads the commit block ahead.
    """

    forgets = lies = -1
    ahead = 10**9

    def __init__(self, fails: int = 10**9, failure: BobError = LOSS) -> None:
        self.left = fails
        self.failure = failure
        self.requests: list[str] = []
        self.states: list[bytes] = []
        self.outcomes: list[bytes] = []
        self.audits: list[bool] = []
        self.bases: set[str] = set()
        self.lookups: list[list[int]] = []
        self.examined: list[bytes] = []

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

    def put_base(self, blob: bytes, base: str, disks: list[int], cell: str) -> tuple[dict[str, Any], bytes]:
        assert (blob, disks, cell) == (samples.BASE.packed, [samples.BASE.length], "<stale--medium!>")
        self.bases.add(base)
        return {}, b""

    def observe_prepare(
        self,
        blob: bytes,
        base: str,
        subject: list[Any],
        floor: list[int],
        reads: bool,
        stretches: list[int],
        exempt: list[int] | None,
        closely: bool,
    ) -> tuple[dict[str, Any], bytes]:
        assert base in self.bases
        assert not stretches
        assert exempt in (None, []), "no log was declared"
        self.tells_left = exempt is not None
        assert subject_from(subject).driver == "ext4"
        assert subject_from(subject).options == "data=ordered"
        self.payload = blob
        self.reads = reads
        self.image = bytearray(image_of(samples.BASE))
        self.put(self.image, floor)
        return {"events": LAYOUTS, "disk": None, "clock": 0}, b""

    def observe(
        self, blob: bytes, states: list[list[int]], audit: bool, lookups: list[int]
    ) -> tuple[dict[str, Any], bytes]:
        self.lookups.append(lookups)
        self.payload += blob
        self.audits.append(audit)
        numbers, known, new = [], len(self.outcomes), b""
        traces: list[bytes] = []
        counts: list[int] = []
        for runs in states:
            image = bytearray(self.image)
            self.put(image, runs)
            self.states.append(bytes(image))
            seen = bytearray(32 * SECTOR_BYTES)
            read = self.recover(image, seen)
            bios = [Bio(True, sector, 1) for sector in read if sector != self.forgets]
            traces.append(pages(AHEAD * (len(self.lookups) >= self.ahead) + bios))
            counts.append(sum(sector != self.lies for sector in read))
            if bytes(seen) not in self.outcomes:
                self.outcomes.append(bytes(seen))
                new += seen
            numbers.append(self.outcomes.index(bytes(seen)))
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
        header |= {"complaints": [0] * len(numbers), "new_complaints": []}
        if not self.reads:
            return {**header, "traces": [], "sectors_read": [], "left": [], "elsewhere": []}, new
        header |= {"traces": [len(trace) for trace in traces], "sectors_read": counts}
        header |= {name: [[] for _ in states] if self.tells_left else [] for name in ("left", "elsewhere")}
        return header, new + b"".join(traces)

    def examine(self, blob: bytes, states: list[list[int]]) -> tuple[dict[str, Any], bytes]:
        self.payload += blob
        self.examined += [bytes(self.built(runs)) for runs in states]
        return {"wrong": [self.wrong(self.built(runs)) for runs in states], "seconds": 0.1}, b""

    def wrong(self, _image: bytearray) -> list[tuple[str, str]]:
        """What a closer look at a disk finds, as kind and words."""
        return []

    def built(self, runs: list[int]) -> bytearray:
        image = bytearray(self.image)
        self.put(image, runs)
        return image

    def recover(self, image: bytearray, seen: bytearray) -> list[int]:
        """The sectors that are read, which are ``seen`` then."""
        read = [COMMIT]
        if image[COMMIT * SECTOR_BYTES] == ord("c"):
            read += JOURNAL
        read.append(DATA)
        for sector in read:
            place = slice(sector * SECTOR_BYTES, (sector + 1) * SECTOR_BYTES)
            seen[place] = image[place]
        return read

    def put(self, image: bytearray, runs: list[int]) -> None:
        for sector, source, count in zip(runs[::3], runs[1::3], runs[2::3], strict=True):
            data = self.payload[source * SECTOR_BYTES : (source + count) * SECTOR_BYTES]
            assert len(data) == count * SECTOR_BYTES
            image[sector * SECTOR_BYTES : (sector + count) * SECTOR_BYTES] = data


def explored(
    agent: FakeAgent,
    budget: int = 100,
    predicting: bool = False,
    sights: Sights | None = None,
    audit: float = DEFAULT_AUDIT,
    configuration: Subject = samples.CONFIGURATION,
) -> tuple[Observations, list[int], Plan]:
    plan, told = samples.plan(), list[int]()
    seen = explore(
        agent,  # type: ignore[arg-type]
        configuration,
        plan,
        Effort(budget, 1, audit, predicting),
        told.append,
        sights,
    )
    return seen, told, plan


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three states to a window, a request, and an audit."""
    monkeypatch.setattr(windows, "WINDOW", 3)
    monkeypatch.setattr(rounds, "BATCH", 3)
    monkeypatch.setattr(ledger, "AUDIT_EVERY", 3)


@pytest.fixture
def one_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """One control of each kind: with three of each all nine states would be mounted."""
    monkeypatch.setattr(controls, "LEAST", 1)


def test_lookups_are_traced_where_something_is_read_ahead_only(few: None) -> None:
    agent = FakeAgent()
    explored(agent, predicting=True)
    assert len(agent.lookups) > 3
    assert agent.lookups == [[], *[NO_BLOCKS] * (len(agent.lookups) - 1)]

    agent = FakeAgent()
    agent.ahead = 2
    explored(agent, predicting=True)
    assert len(agent.lookups) > 3
    assert agent.lookups == [[], NO_BLOCKS, [], *[[COMMIT, COMMIT]] * (len(agent.lookups) - 3)]


def test_everything_is_explored() -> None:
    agent = FakeAgent()
    seen, told, plan = explored(agent)
    # The overwrite (1 sector) and the journal (2) become durable first, then the commit (1): 2^2 - 1 + 2^1 - 1 + 1
    # whole states, with tears 2^3 - 1 + 2^1 - 1 + 1.
    assert seen.coverage == States(9, 5, 9, "sectors", 9)
    assert (seen.lost, seen.predicted) == (None, frozenset())
    assert len({one.state for one in seen.states}) == 9
    assert sum(told) == 9
    assert len(set(agent.states)) == 9
    for (state, outcome, _count, _whole), image in zip(seen.states, agent.states, strict=True):
        wanted = bytearray(image_of(samples.BASE))
        for sector, data in plan.runs(state):
            wanted[sector * SECTOR_BYTES : sector * SECTOR_BYTES + len(data)] = data
        assert image == bytes(wanted)
        assert outcome is not None
        found = seen.findings.observation(outcome).tree["/x"].content  # type: ignore[index]
        for sector in (COMMIT, DATA):
            place = slice(sector * SECTOR_BYTES, (sector + 1) * SECTOR_BYTES)
            assert found[place] == image[place]


def test_a_power_cut_leaves_what_was_durable_at_each_point_and_bob_looks_at_the_end_too() -> None:
    plan, agent = samples.plan(), FakeAgent()
    effort = Effort(100, 1, predicting=False, only_durable=True)
    seen = explore(agent, samples.CONFIGURATION, plan, effort, lambda _states: None)  # type: ignore[arg-type]
    assert {one.state for one in seen.states} == {*plan.bare, *plan.controls}
    assert seen.coverage == States(3, 5, 9, None, 3)


@pytest.mark.usefixtures("one_each")
def test_what_verdicts_are_controlled_by_is_mounted_and_so_is_what_was_durable_at_each_point() -> None:
    seen, _told, plan = explored(FakeAgent(), predicting=True)
    assert seen.predicted
    numbers = {one.state: number for number, one in enumerate(seen.states)}
    assert len({*plan.controls, *plan.bare}) == 3
    assert not {numbers[state] for state in (*plan.controls, *plan.bare)} & seen.predicted


def in_words(seen: Observations) -> list[object]:
    return [(one.state, None if one.outcome is None else seen.findings.observation(one.outcome)) for one in seen.states]


@pytest.mark.usefixtures("one_each")
def test_what_is_predicted_is_what_would_have_been_seen() -> None:
    agent = FakeAgent()
    seen, told, _plan = explored(agent, predicting=True)
    without, _told, _plan = explored(FakeAgent())
    assert in_words(seen) == in_words(without)
    # With the commit, without it and the data, without it and with the data; and one control in 6 that are left.
    assert seen.coverage == States(9, 5, 9, "sectors", len(agent.states))
    assert 3 <= len(agent.states) <= 3 + 3 + 1
    assert len(seen.predicted) == 9 - len(agent.states)
    assert sum(told) == 9
    assert agent.audits[-1]
    assert sum(agent.audits) == 1
    mounted = {number for number in range(9) if number not in seen.predicted}
    for outcome in {one.outcome for one in seen.states}:
        alike = [number for number, one in enumerate(seen.states) if one.outcome == outcome]
        assert min(alike, key=lambda number: departure(seen.states[number].state)) in mounted, (
            "what a witness is made of"
        )


def test_recovery_may_forget_though_every_stretch_is_too_long_to_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with one write of a megabyte: then the guest has nothing to tell of what was left."""
    monkeypatch.setattr(leftovers, "LONGEST", 0)
    forgetful = replace(samples.CONFIGURATION, fs=replace(samples.CONFIGURATION.fs, forgets=True))
    seen, _told, _plan = explored(FakeAgent(), predicting=True, configuration=forgetful)
    assert seen.lost is None
    honest = {one.state: found for one, found in zip(*_seen_with_words(FakeAgent()), strict=True)}
    assert len(seen.states) > 3
    for one in seen.states:
        assert one.outcome is not None
        assert seen.findings.observation(one.outcome) == honest[one.state]
    assert seen.coverage.exhaustive is not None


def _seen_with_words(agent: FakeAgent) -> tuple[list[ExploredState], list[Observation]]:
    seen, _told, _plan = explored(agent)
    return list(seen.states), [seen.findings.observation(one.outcome or 0) for one in seen.states]


def test_the_same_seed_gives_the_same_answer() -> None:
    assert in_words(explored(FakeAgent(), predicting=True)[0]) == in_words(explored(FakeAgent(), predicting=True)[0])
    assert explored(FakeAgent(), predicting=True)[0].predicted == explored(FakeAgent(), predicting=True)[0].predicted


def built(plan: Plan, state: CrashState) -> bytearray:
    """The disk of a crash state."""
    image = bytearray(image_of(samples.BASE))
    for sector, data in plan.runs(state):
        image[sector * SECTOR_BYTES : sector * SECTOR_BYTES + len(data)] = data
    return image


def is_new(image: bytes | bytearray) -> bool:
    """Whether the operation's data is there."""
    return image[DATA * SECTOR_BYTES :].startswith(b"[op")


class Blind(FakeAgent):
    """Its look at the file ends early where the commit block is there: all of these look alike to it."""

    def observe(self, blob: bytes, **arguments: Any) -> tuple[dict[str, Any], bytes]:
        known = len(self.outcomes)
        header, contents = super().observe(blob, **arguments)
        for place, number in enumerate(range(known, len(self.outcomes))):
            if self.outcomes[number][COMMIT * SECTOR_BYTES] == ord("c"):
                found = json.loads(header["new_outcomes"][place])
                found["tree"]["/x"] |= {"fault": "more than is looked at", "unseen": True}
                header["new_outcomes"][place] = json.dumps(found)
        return header, contents


@pytest.mark.parametrize("predicting", [False, True])
def test_what_was_not_seen_whole_is_no_outcome_and_nothing_is_exhaustive(*, predicting: bool) -> None:
    seen, _told, plan = explored(Blind(), predicting=predicting)
    assert seen.lost is not None
    assert text_with(seen.lost, "/x") == snapshot("bob could not see everything: /x: more than is looked at")
    assert seen.final
    assert seen.coverage.exhaustive is None
    with_commit = {one.state for one in seen.states if built(plan, one.state)[COMMIT * SECTOR_BYTES] == ord("c")}
    assert {one.state for one in seen.states if one.outcome is None} == with_commit
    assert 0 < len(with_commit) < len(seen.states)
    assert seen.coverage.explored < seen.coverage.legal_sectors


class Troubled(FakeAgent):
    """Its checker finds fault where the commit block is there, and where it is not if ``always``; its kernel warns of
    what has new data, in numbers of its own."""

    always = False

    def wrong(self, image: bytearray) -> list[tuple[str, str]]:
        there = image[COMMIT * SECTOR_BYTES] == ord("c")
        return [("checker", f"inode {sum(image)} is wrong")] if there or self.always else []

    def observe(self, blob: bytes, **arguments: Any) -> tuple[dict[str, Any], bytes]:
        known = len(self.states)
        header, contents = super().observe(blob, **arguments)
        numbers = [int(is_new(image)) for image in self.states[known:]]
        new = [("kernel-message", "EXT4-fs error: inode 7")] if any(numbers) and not self.told else []
        self.told |= any(numbers)
        return {**header, "complaints": numbers, "new_complaints": new}, contents

    told = False


def test_what_is_wrong_with_states_that_mount_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examine, "MOST_EXAMINED", 10)
    monkeypatch.setattr(observation, "CONTENTS", ())
    agent = Troubled()
    seen, _told, plan = explored(agent, predicting=True)
    images = {number: built(plan, one.state) for number, one in enumerate(seen.states)}
    warned = {one.state for one in seen.troubles if one.kind == "kernel-message"}
    mounted = images.keys() - seen.predicted
    assert warned == {number for number in mounted if is_new(images[number])}
    assert warned
    faulty = [one for one in seen.troubles if one.kind == "checker"]
    assert faulty
    assert {one.words for one in faulty} == {f"inode {sum(images[one.state])} is wrong" for one in faulty}
    assert all(images[one.state][COMMIT * SECTOR_BYTES] == ord("c") for one in faulty)
    outcomes = {one.outcome for one in seen.states}
    [before] = [one.outcome for one in seen.states if one.state == plan.controls[0]]
    assert {*seen.examined} == outcomes - {before}
    assert agent.examined[-1] == built(plan, plan.controls[0])
    assert seen.normal == ()
    assert explored(FakeAgent(), predicting=True)[0].troubles == ()


def test_what_is_wrong_without_a_crash_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examine, "MOST_EXAMINED", 10)
    monkeypatch.setattr(observation, "CONTENTS", ())
    agent = Troubled()
    agent.always = True
    seen, _told, plan = explored(agent, predicting=True)
    assert {one.kind for one in seen.troubles} == {"kernel-message"}
    number = sum(built(plan, plan.controls[0]))
    assert [words.replace(str(number), "N") for words in seen.normal] == [snapshot("inode N is wrong")]


class ForgetfulKernel(Troubled):
    """At the mounts ``silent`` of a disk, counted from 1, it says nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.said: Counter[bytes] = Counter()

    def observe(self, blob: bytes, **arguments: Any) -> tuple[dict[str, Any], bytes]:
        known = len(self.states)
        header, contents = super().observe(blob, **arguments)
        for place, image in enumerate(self.states[known:]):
            self.said[image] += 1
            header["complaints"][place] *= self.said[image] not in self.silent
        return header, contents

    silent: frozenset[int] = frozenset()


@pytest.mark.parametrize(("silent", "is_found"), [({2, 3, 4}, False), ({2, 3}, True), (set(), True)])
def test_what_the_kernel_does_not_say_again_is_no_finding(
    monkeypatch: pytest.MonkeyPatch, silent: set[int], is_found: bool
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(examine.time, "sleep", pauses.append)
    agent = ForgetfulKernel()
    agent.silent = frozenset(silent)
    seen, _told, _plan = explored(agent, predicting=True)
    assert any(one.kind == "kernel-message" for one in seen.troubles) is is_found
    assert seen.passing == (() if is_found else ("EXT4-fs error: inode 7",))
    assert pauses == [examine.PAUSE_SECONDS] * min(2, len(silent))


def test_of_trees_that_differ_in_contents_only_one_is_examined_and_the_result_says_how_many() -> None:
    agent = Troubled()
    seen, _told, _plan = explored(agent, predicting=True)
    assert len({one.outcome for one in seen.states}) > 2
    assert len(seen.examined) == 1
    assert len(agent.examined) == 1 + bool(seen.troubles)  # and the control, where something is wrong


class Growing(FakeAgent):
    """A file system whose tree has one more name where the operation's data is there."""

    def observe(
        self, blob: bytes, states: list[list[int]], audit: bool, lookups: list[int]
    ) -> tuple[dict[str, Any], bytes]:
        known = len(self.outcomes)
        header, contents = super().observe(blob, states, audit, lookups)
        told = [json.loads(found) for found in header["new_outcomes"]]
        for found, seen in zip(told, self.outcomes[known:], strict=True):
            if is_new(seen):
                found["tree"]["/y"] = {"kind": "file", "content": [], "size": 0}
        return {**header, "new_outcomes": [json.dumps(found) for found in told]}, contents


def test_of_each_shape_one_is_examined_but_of_the_tree_before_the_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Growing()
    explored(agent, predicting=True)
    assert [is_new(image) for image in agent.examined] == [True]
    monkeypatch.setattr(observation, "CONTENTS", ())
    for most in (1, 2):
        monkeypatch.setattr(examine, "MOST_EXAMINED", most)
        assert len(explored(Growing(), predicting=True)[0].examined) == most


@pytest.mark.parametrize("sector", [COMMIT, JOURNAL[0], DATA])
def test_a_trace_without_a_read_that_the_device_has_counted_is_refused(sector: int) -> None:
    agent = FakeAgent()
    agent.forgets = sector
    seen, _told, _plan = explored(agent, predicting=True)
    assert seen.lost == snapshot("the agent failed: the trace of recovery's reads is incomplete")
    assert {one.outcome for one in seen.states} == {None}


@pytest.mark.usefixtures("one_each")
def test_a_prediction_that_is_wrong_is_noticed_and_no_prediction_is_believed() -> None:
    agent, honest = FakeAgent(), in_words(explored(FakeAgent())[0])
    agent.forgets = agent.lies = DATA
    seen, _told, _plan = explored(agent, predicting=True)
    assert seen.lost is not None
    assert seen.lost == snapshot(
        "a control of the predictions failed: bob predicted from the reads of recovery that crash state 2 has outcome 1 (mounted, 1 name), but when it was mounted it had outcome 2 (mounted, 1 name)"
    )
    assert seen.predicted == frozenset()
    assert seen.coverage.explored == seen.coverage.mounted == len(set(agent.states)) < 9
    assert seen.coverage.exhaustive is None
    for (state, found), wanted in zip(in_words(seen), honest, strict=True):  # type: ignore[misc]
        assert found is None or (state, found) == wanted


def test_it_can_be_stopped_while_it_divides() -> None:
    class Stopped(Exception):
        pass

    def observed(states: int) -> None:
        if not states:
            raise Stopped

    with pytest.raises(Stopped):
        explore(
            FakeAgent(),  # type: ignore[arg-type]
            samples.CONFIGURATION,
            samples.plan(),
            Effort(2, 1),
            observed,
        )


@pytest.mark.parametrize("budget", range(1, 12))
def test_what_was_seen_speaks_for_every_state_that_is_counted(budget: int) -> None:
    seen, told, _plan = explored(FakeAgent(), budget=budget, predicting=True)
    assert seen.lost is None
    assert seen.coverage.explored == sum(one.states for one in seen.states)
    assert sum(told) <= budget
    assert all(one.states >= 0 for one in seen.states)
    alone, _told, _plan = explored(FakeAgent())
    outcome_of = {one.state: alone.findings.observation(one.outcome or 0) for one in alone.states}
    assert len(outcome_of) == 9, "every state with contents of its own"
    for one in seen.states:
        assert one.outcome is not None
        assert seen.findings.observation(one.outcome) == outcome_of[one.state]
    there_are = Counter(map(repr, outcome_of.values()))
    spoken_for: Counter[str] = Counter()
    for one in seen.states:
        spoken_for[repr(seen.findings.observation(one.outcome or 0))] += one.states
    assert spoken_for <= there_are
    assert spoken_for == there_are  # with the controls, the least budget suffices here
    assert seen.coverage.exhaustive == "sectors"
    assert whole_of(seen) == there_are_whole(alone)


def whole_of(seen: Observations) -> Counter[str]:
    """How many states of whole writes are counted for each outcome."""
    counted: Counter[str] = Counter()
    for one in seen.states:
        assert 0 <= one.whole_states <= one.states
        counted[repr(seen.findings.observation(one.outcome or 0))] += one.whole_states
    return counted


def there_are_whole(alone: Observations) -> Counter[str]:
    """The same, where each state was mounted and speaks for itself."""
    whole = [one for one in alone.states if not one.state.torn]
    assert len(whole) == 5
    return Counter(repr(alone.findings.observation(one.outcome or 0)) for one in whole)


@pytest.mark.parametrize("budget", range(1, 6))
def test_what_is_next_to_the_easiest_states_is_known_and_not_counted(budget: int) -> None:
    seen, _told, plan = explored(FakeAgent(), budget=budget, predicting=True)
    alone, _told, _plan = explored(FakeAgent())
    outcomes = {one.state: one.outcome for one in seen.states}
    right = {one.state: alone.findings.observation(one.outcome or 0) for one in alone.states}
    assert len(outcomes) == len(seen.states), "no state is there twice"
    for outcome in {one.outcome for one in seen.states if one.states}:
        easiest = min((one.state for one in seen.states if one.outcome == outcome), key=departure)
        for _write, state in (pair for group in Neighbours(plan.points).groups(easiest) for pair in group):
            assert seen.findings.observation(outcomes[state] or 0) == right[state], "all courses are known here"
    assert sum(one.states for one in seen.states) == 9


@pytest.mark.parametrize("budget", range(1, 12))
def test_states_of_whole_writes_are_counted_where_not_all_were_divided(
    budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "MOST_PARTS", 0)
    alone, _told, _plan = explored(FakeAgent())
    seen, _told, _plan = explored(FakeAgent(), budget=budget, predicting=True)
    assert (seen.lost, seen.coverage.exhaustive) == (None, None)
    counted, there_are = whole_of(seen), there_are_whole(alone)
    assert counted <= there_are
    # Of an outcome that some state has shown each state is known, as it takes the same course here.
    assert counted == Counter({told: count for told, count in there_are.items() if told in counted})


def test_a_budget_that_ends_is_no_claim() -> None:
    seen, _told, _plan = explored(FakeAgent(), budget=4)
    assert (seen.coverage, len(seen.states), seen.lost) == (States(4, 5, 9, None, 4), 4, None)


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (LOSS, f"the guest was lost: {LOSS}"),
        (AgentBroken("the agent failed at observe: it broke"), snapshot("the agent failed at observe: it broke")),
        (UsageError("no such thing"), snapshot("the guest refused it: no such thing")),
    ],
)
@pytest.mark.parametrize("fails", range(6))
@pytest.mark.usefixtures("few")
def test_a_loss_leaves_what_was_known(failure: BobError, words: str, fails: int) -> None:
    whole, _told, _plan = explored(FakeAgent())
    seen, told, _plan = explored(FakeAgent(fails, failure))
    requests = max(0, fails - 3)  # has_base, put_base and observe_prepare come first
    known = [one for one in seen.states if one.outcome is not None]
    assert seen.lost == words
    assert len(known) == 3 * requests == sum(told) == seen.coverage.explored
    assert seen.coverage.exhaustive is None
    assert seen.coverage.legal_sectors == 9
    assert list(whole.states[: len(known)]) == known
    for one in known:
        assert one.outcome is not None
        assert one.outcome < len(seen.findings.found)


@pytest.mark.parametrize("fails", range(8))
@pytest.mark.usefixtures("few", "one_each")
def test_no_prediction_is_believed_before_its_controls(fails: int) -> None:
    agent = FakeAgent(fails)
    whole, _told, _plan = explored(FakeAgent(), predicting=True)
    seen, _told, _plan = explored(agent, predicting=True)
    assert text_with(seen.lost, LOSS) == snapshot("the guest was lost: the guest vanished: QEMU is gone")
    assert len(whole.predicted) > 1
    assert seen.coverage.exhaustive is None
    assert seen.coverage.explored == sum(one.outcome is not None for one in seen.states), "nobody speaks for others"
    for number in seen.predicted:  # a control that passed is one of all that was predicted before
        assert all(one.outcome is not None for one in seen.states[: number + 1])
    for one, wanted in zip(seen.states, whole.states, strict=False):
        assert one[:2] == wanted[:2] or one.outcome is None


@pytest.mark.usefixtures("few", "one_each")
def test_predictions_that_have_passed_their_controls_are_believed_after_a_loss() -> None:
    believed = [explored(FakeAgent(fails), predicting=True)[0] for fails in range(20)]
    assert any(seen.lost and seen.predicted for seen in believed)


def test_the_medium_of_a_state_has_what_was_durable_too() -> None:
    plan = samples.plan()
    for candidate in plan.search(100, 1, torn=False):
        medium = plan.medium(candidate.state)
        image = bytearray(image_of(samples.BASE))
        for write in samples.TRACE.writes:
            if medium >> write.index & 1:
                image[write.sector * SECTOR_BYTES : write.sector * SECTOR_BYTES + len(write.data)] = write.data
        assert image == built(plan, candidate.state)


def test_writes_are_known_by_what_they_carry() -> None:
    assert writes_of_operations(samples.TRACE) == (frozenset({1}),)
    assert samples.plan().nothing_explored() == States(0, 5, 9, None)


def test_of_a_long_file_what_is_in_it_is_read_where_it_is() -> None:
    entry = {"kind": "file", "size": 6 * GIB, "content": [0, 1], "places": [0, 5 * GIB], "flags": 0x80010}
    tree = {"/far": entry, "/part": {"kind": "file", "fault": "more than is looked at", "unseen": True}}
    found = [json.dumps({"error": None, "repaired": False, "tree": one}) for one in (tree, {"/far": entry})]
    findings = OutcomeTable(found, split(b"aaaabbbb", [4, 4]))
    seen = findings.observation(0)
    assert seen.tree is not None
    node = seen.tree["/far"]
    assert (node.content, node.size, node.flags) == (b"", 6 * GIB, 0x80010)
    assert node.read(2, 6) == b"aa\0\0"
    assert node.read(5 * GIB - 1, 5 * GIB + 5) == b"\0bbbb\0"
    assert node.read(6 * GIB - 1, 6 * GIB + 5) == b"\0"
    assert findings.unseen(0) == seen.unseen == "/part: more than is looked at"
    assert findings.unseen(1) is findings.observation(1).unseen is None


GIB = 2**30


def test_findings_are_put_together_again() -> None:
    tree = {
        "/d": {"kind": "directory", "inode": 5, "fault": "cannot be listed"},
        "/l": {"kind": "symlink", "target": "x"},
    }
    tree["/a"] = {"kind": "file", "size": 4, "links": 2, "content": [2], "xattrs": {"user.x": 1}}  # type: ignore[dict-item]
    found = [samples.outcome(("/a", 11, [0, 1], 8)), json.dumps({"error": "no", "repaired": True, "tree": tree})]
    findings = OutcomeTable(found, split(b"aaaabbbbcccc", [4, 4, 4]))
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
        (Observation(True, None, {"/d": Node("directory")}), "mounted, 1 name"),
        (Observation(False, "no", None), snapshot("does not mount (no)")),
        (Observation(False, "no", None, True), snapshot("does not mount (no); repair did not help")),
        (Observation(False, "no", {}, True), snapshot("does not mount (no); repaired")),
    ],
)
def test_summaries(observation: Observation, summary: str) -> None:
    assert observation.summary == summary


@pytest.mark.usefixtures("one_each")
def test_what_was_mounted_in_another_workload_is_recalled_but_for_the_sample() -> None:
    sights: Sights = {}
    first, _told, _plan = explored(FakeAgent(), predicting=True, sights=sights)
    (disks,) = sights.values()
    assert len(disks) == first.coverage.mounted
    agent = FakeAgent()
    second, _told, _plan = explored(agent, predicting=True, sights=sights)
    assert second.lost is None
    assert in_words(second) == in_words(first)
    assert [seen.states for seen in second.states] == [seen.states for seen in first.states]
    assert (second.predicted, second.coverage.explored) == (first.predicted, first.coverage.explored)
    assert second.coverage.exhaustive == first.coverage.exhaustive == "sectors"
    assert second.coverage == first.coverage
    assert 0 < len(agent.states) < second.coverage.mounted
    sights["another base"] = sights.pop(samples.BASE.name)
    agent = FakeAgent()
    third, _told, _plan = explored(agent, predicting=True, sights=sights)
    assert third.coverage.mounted == len(agent.states) == first.coverage.mounted, "the base is another one"


def spoil(sights: Sights) -> None:
    """Have all contents that were seen be zeros."""
    for disks in sights.values():
        for disk, sight in disks.items():
            contents = tuple(zlib.compress(bytes(len(chunk))) for chunk in sight.chunks)
            disks[disk] = replace(sight, packed_chunks=contents)


class ThoroughAgent(FakeAgent):
    """Its recovery reads all that states differ in: nothing can be predicted."""

    def recover(self, image: bytearray, seen: bytearray) -> list[int]:
        image[COMMIT * SECTOR_BYTES] = ord("c")
        return super().recover(image, seen)


def test_where_not_all_torn_states_are_known_only_whole_ones_are_exhausted() -> None:
    seen, _told, _plan = explored(ThoroughAgent(), budget=4, predicting=True)
    assert seen.lost is None
    assert sum(not one.state.torn for one in seen.states) == seen.coverage.legal_writes == 5
    assert seen.coverage.explored < seen.coverage.legal_sectors == 9
    assert seen.coverage.exhaustive == "writes"


@pytest.mark.parametrize(("audit", "controls"), [(0.01, 3), (0.5, 5), (1, 9)])
def test_some_of_what_is_recalled_is_mounted_too_where_nothing_is_predicted(audit: float, controls: int) -> None:
    sights: Sights = {}
    first, _told, _plan = explored(ThoroughAgent(), predicting=True, sights=sights)
    assert (first.coverage.mounted, first.predicted) == (9, frozenset())
    agent = ThoroughAgent()
    second, _told, _plan = explored(agent, predicting=True, sights=sights, audit=audit)
    assert len(agent.states) == len(set(agent.states)) == controls
    assert second.lost is None
    assert in_words(second) == in_words(first)
    assert second.coverage == first.coverage


def test_a_wrong_sight_is_noticed_where_nothing_is_predicted() -> None:
    sights: Sights = {}
    honest, _told, _plan = explored(ThoroughAgent(), predicting=True, sights=sights)
    spoil(sights)
    agent = ThoroughAgent()
    seen, _told, _plan = explored(agent, predicting=True, sights=sights)
    assert seen.lost is not None
    assert text_with(seen.lost, BY_A_SIGHT) == snapshot(
        "a control of the predictions failed: bob predicted from the same disk in another workload that crash state 0 has outcome 0 (mounted, 1 name), but when it was mounted it had outcome 1 (mounted, 1 name)"
    )
    assert seen.coverage.explored == seen.coverage.mounted == len(agent.states) == 3, "nothing else is believed"
    assert seen.coverage.exhaustive is None
    for (state, found), wanted in zip(in_words(seen), in_words(honest), strict=True):  # type: ignore[misc]
        assert found is None or (state, found) == wanted


def test_what_is_recalled_is_not_believed_before_its_controls() -> None:
    sights: Sights = {}
    explored(ThoroughAgent(), predicting=True, sights=sights)
    seen, _told, _plan = explored(ThoroughAgent(3), predicting=True, sights=sights)
    assert text_with(seen.lost, LOSS) == snapshot("the guest was lost: the guest vanished: QEMU is gone")
    assert {one.outcome for one in seen.states} == {None}


class Audited(FakeAgent):
    """Knows how many of its states an audit has passed; reads all that states differ in where it is ``thorough``."""

    passed = 0

    def __init__(self, fails: int = 10**9, *, thorough: bool = False) -> None:
        super().__init__(fails)
        self.thorough = thorough

    def recover(self, image: bytearray, seen: bytearray) -> list[int]:
        image[COMMIT * SECTOR_BYTES] = ord("c") if self.thorough else image[COMMIT * SECTOR_BYTES]
        return super().recover(image, seen)

    def observe(self, blob: bytes, states: list[list[int]], audit: bool, lookups: list[int]) -> Any:
        answer = super().observe(blob, states, audit, lookups)
        self.passed = len(self.states) if audit else self.passed
        return answer


@pytest.mark.parametrize("fails", [*range(3, 14), 10**9])
@pytest.mark.parametrize("thorough", [False, True])
@pytest.mark.parametrize("recalled", [0, 4])
def test_before_all_is_settled_just_what_an_audit_has_passed_is_believed(
    monkeypatch: pytest.MonkeyPatch, recalled: int, *, thorough: bool, fails: int
) -> None:
    """Nothing that was mounted since the last audit, nothing that was predicted, and nothing that was recalled."""
    monkeypatch.setattr(rounds, "BATCH", 1)
    monkeypatch.setattr(ledger, "AUDIT_EVERY", 2)
    sights: Sights = {}
    explored(Audited(thorough=thorough), predicting=True, sights=sights)
    [base] = sights
    known = sights[base] = dict(list(sights[base].items())[:recalled])
    agent = Audited(fails, thorough=thorough)
    seen, _told, plan = explored(agent, predicting=True, sights=sights)
    believed = [bytes(built(plan, one.state)) for one in seen.states if one.outcome is not None]
    if agent.requests[-1] == "examine":  # what comes when all is settled
        assert agent.passed == len(agent.states)
        assert len(believed) == len(seen.states)
        assert seen.coverage.explored == sum(one.states for one in seen.states) == 9
    else:
        assert seen.lost is not None
        assert seen.coverage.explored == len(believed), "nobody speaks for others"
        assert sorted(believed) == sorted(agent.states[: agent.passed])
        assert list(sights[base]) == list(known)


@pytest.mark.parametrize("fails", range(3, 9))
def test_what_no_audit_has_passed_is_not_recalled(few: None, fails: int) -> None:
    whole: Sights = {}
    explored(FakeAgent(), predicting=True, sights=whole)
    sights: Sights = {}
    seen, _told, _plan = explored(FakeAgent(fails), predicting=True, sights=sights)
    disks = sights.get(samples.BASE.name, {})
    assert disks == ({} if seen.lost else whole[samples.BASE.name])


def test_nothing_is_recalled_of_a_workload_of_which_a_control_failed() -> None:
    sights: Sights = {}
    agent = FakeAgent()
    agent.forgets = agent.lies = DATA
    seen, _told, _plan = explored(agent, predicting=True, sights=sights)
    assert seen.lost is not None
    assert seen.coverage.mounted, "some passed an audit"
    assert sights == {samples.BASE.name: {}}


def test_a_wrong_sight_is_noticed_and_no_prediction_is_believed() -> None:
    sights: Sights = {}
    explored(FakeAgent(), predicting=True, sights=sights)
    spoil(sights)
    seen, _told, _plan = explored(FakeAgent(), predicting=True, sights=sights)
    assert seen.lost is not None
    assert text_with(seen.lost, BY_A_SIGHT) == snapshot(
        "a control of the predictions failed: bob predicted from the same disk in another workload that crash state 0 has outcome 0 (mounted, 1 name), but when it was mounted it had outcome 1 (mounted, 1 name)"
    )
    assert seen.predicted == frozenset()
