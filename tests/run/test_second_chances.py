"""A lost guest: its work is begun anew once, the rest goes on in the new guest, and a second loss ends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.agent.client import Agent, AgentBroken
from bob.agent.inside.frames import encode
from bob.agent.loss import Cause, GuestLost, Loss
from bob.apm.crashes import Tries
from bob.errors import UsageError
from bob.guest.spec import Clock
from bob.program.answer import Batches, CheckerAnswer
from bob.progress import Silent
from bob.run import agents, second_chances
from bob.run.agents import KeptGuests, unshared
from bob.run.second_chances import SecondChances, each_in_a_guest
from bob.run.state_queue import StateQueue
from tests.apm.cases import NOTHING, graph_of

LOSS = GuestLost(Loss(Cause.HUNG, ""), "no answer")
ITEMS = [(f"item {number}", number) for number in range(4)]


class Told(Silent):
    """Keeps the lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def step(self, text: str) -> None:
        self.lines.append(text)


class Numbered(int):
    """An agent, by the number of its guest."""

    is_sound = True


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What became of the guests, in order."""
    story: list[str] = []

    @contextmanager
    def agent_in(*_: object) -> Iterator[Numbered]:
        story.append("start")
        try:
            yield Numbered(story.count("start"))
        finally:
            story.append("end")

    monkeypatch.setattr(second_chances, "agent_in", agent_in)
    return story


def done(fails: dict[tuple[int, int], Exception], told: Told) -> Iterator[tuple[int, int]]:
    """What is done of the items, as (guest, item); guest and item that fail."""

    def do(agent: int, item: int) -> tuple[int, int]:
        if (agent, item) in fails:
            raise fails[agent, item]
        return agent, item

    return each_in_a_guest(None, None, Clock.REAL, ITEMS, do, told)  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", [LOSS, AgentBroken("the agent failed")])
def test_what_a_lost_guest_was_doing_is_begun_anew_and_the_rest_goes_on(guests: list[str], loss: Exception) -> None:
    told = Told()
    assert list(done({(1, 1): loss, (2, 3): loss}, told)) == [(1, 0), (2, 1), (2, 2), (3, 3)]
    assert guests == ["start", "end"] * 3
    assert [line.partition(":")[0] for line in told.lines] == ["item 1", "item 3"]
    assert all(line.endswith("another guest begins it anew") for line in told.lines)


def test_an_agent_that_failed_at_something_that_was_done_all_the_same_does_no_more(guests: list[str]) -> None:
    """It may still give the answer that was not waited for, and the next question would get it."""

    def do(agent: Numbered, item: int) -> tuple[int, int]:
        agent.is_sound = item != 1
        return int(agent), item

    found = each_in_a_guest(None, None, Clock.REAL, ITEMS, do, Told())  # type: ignore[arg-type]
    assert list(found) == [(1, 0), (1, 1), (2, 2), (2, 3)]
    assert guests == ["start", "end"] * 2


def test_the_second_loss_of_one_item_ends_it(guests: list[str]) -> None:
    found = done({(1, 1): LOSS, (2, 1): LOSS}, Told())
    assert next(found) == (1, 0)
    with pytest.raises(GuestLost):
        next(found)
    assert guests == ["start", "end"] * 2


def test_what_is_refused_is_not_begun_anew(guests: list[str]) -> None:
    with pytest.raises(UsageError):
        list(done({(1, 0): UsageError("no")}, Told()))
    assert guests == ["start", "end"]


def test_no_items_need_no_guest(guests: list[str]) -> None:
    assert list(each_in_a_guest(None, None, Clock.REAL, [], lambda *_: None, Told())) == []  # type: ignore[arg-type]
    assert not guests


def test_each_work_has_one() -> None:
    told = Told()
    chances = SecondChances(told)
    assert [chances.has(work, "w", "lost") for work in (1, 2, 1, 2)] == [True, True, False, False]
    assert (chances.loss(1), chances.loss(3)) == ("lost", None)
    assert len(told.lines) == 2


def queue(most: int, answers: dict[bytes, CheckerAnswer] | None = None) -> tuple[StateQueue, Tries]:
    """The states of a workload of eight sectors under a model that promises nothing: 2**8 trees."""
    asked = graph_of("write /a 0 4096", "write /a 0 4096")
    tries = Tries(asked, NOTHING, [b"", b""], 10_000)
    return StateQueue(tries, most, {} if answers is None else answers), tries


def test_each_state_of_a_model_is_handed_out_once_and_those_of_a_lost_guest_once_more() -> None:
    handing, tries = queue(1000)
    seen: list[bytes] = []
    lost: list[bytes] = []
    while batch := handing.batch():
        digests = [state.digest for state, _tree in batch]
        if not lost:
            lost = digests
            handing.put_back([state for state, _tree in batch])
        else:
            seen += digests
    assert len(seen) == len(set(seen)) == 2**8 == len(handing.states)
    assert set(lost) < set(seen) and tries.is_all


def test_states_that_an_earlier_model_has_left_are_not_handed_out() -> None:
    first, _tries = queue(1000)
    fine = CheckerAnswer(0, "")
    answers = {state.digest: fine for _ in range(3) for state, _tree in first.batch()}
    second, tries = queue(1000, answers)
    handed = set()
    while batch := second.batch():
        handed |= {state.digest for state, _tree in batch}
    assert not handed & answers.keys() and len(handed) == 2**8 - len(answers)
    assert len(second.states) == 2**8 and tries.is_all


def test_a_budget_of_trees_ends_the_work_on_a_model_and_is_no_proof() -> None:
    handing, tries = queue(45)
    sizes = []
    while batch := handing.batch():
        sizes.append(len(batch))
    assert sum(sizes) == len(handing.states) == 45
    assert not tries.is_all


def test_a_checker_that_says_two_things_of_one_tree_is_told_and_a_hang_is_no_answer() -> None:
    handing, _tries = queue(10)
    [(state, _tree), (other, _), *_more] = handing.batch()
    for answer in (CheckerAnswer(None, ""), CheckerAnswer(0, ""), CheckerAnswer(None, ""), CheckerAnswer(0, "")):
        handing.take(state, answer)
    assert handing.answer(state) == CheckerAnswer(0, "") and handing.disagreed is None
    handing.take(other, CheckerAnswer(0, ""))
    handing.take(other, CheckerAnswer(10, "lost"))
    assert "contradicts itself" in (handing.disagreed or "")


def test_nothing_is_handed_out_after_an_interrupt() -> None:
    handing, _tries = queue(1000)
    handing.put_back([state for state, _tree in handing.batch()])
    handing.stop()
    assert handing.batch() == []


@given(st.lists(st.tuples(st.floats(0.001, 300), st.booleans()), max_size=20), st.integers(1, 20))
def test_a_request_asks_for_no_more_checks_than_take_ten_seconds(drawn: list[tuple[float, bool]], most: int) -> None:
    """As the last request says: then an interrupt waits for no more than that, or for one check."""
    batches = Batches(most)
    assert batches.size == 1
    for each, is_last_one in drawn:
        asked = 1 if is_last_one else batches.size
        batches.took(asked, asked * each)
        assert 1 <= batches.size <= most and (batches.size == 1 or batches.size * each <= 10.001)
        assert batches.size == most or (batches.size + 1) * each > 9.999


class Answers:
    """A stream with these answers, after the first one; then the guest is lost."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self._left = BytesIO(b"".join(encode(one, b"") for one in ({"ok": True}, *answers)))
        self.is_closed = False

    def read_exactly(self, length: int, timeout: float) -> bytes:
        if len(data := self._left.read(length)) < length:
            raise LOSS
        return data

    def write(self, data: bytes) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True


OK, REFUSED, BROKEN = {"ok": True}, {"ok": False, "error": "no"}, {"ok": False, "error": "no", "broken": True}


@pytest.mark.parametrize(
    ("answers", "is_sound"),
    [((), False), ((OK,), True), ((REFUSED,), True), ((BROKEN,), False), ((BROKEN, OK), False)],
)
def test_an_agent_that_failed_is_sound_no_more(answers: tuple[dict[str, Any], ...], is_sound: bool) -> None:
    agent = Agent(Answers(*answers))
    assert agent.is_sound
    for _answer in answers or (None,):
        with suppress(GuestLost, AgentBroken, UsageError):
            agent.ask("something", timeout=1)
    assert agent.is_sound is is_sound


class Booted:
    """A hypervisor of which each guest has another number; the ``story`` says what became of them."""

    def __init__(self) -> None:
        self.story: list[str] = []
        self.streams: list[Answers] = []

    @contextmanager
    def guest(self, _spec: object) -> Iterator[Any]:
        number = sum(one.startswith("start") for one in self.story) + 1
        self.story.append(f"start {number}")
        try:
            yield self
        finally:
            self.story.append(f"end {number}")

    awake = suppress


@pytest.fixture
def booted(monkeypatch: pytest.MonkeyPatch) -> Booted:
    found = Booted()

    def stream(_guest: object) -> Answers:
        found.streams.append(Answers(OK))
        return found.streams[-1]

    monkeypatch.setattr(agents, "agent_stream", stream)
    monkeypatch.setattr(agents, "GuestSpec", lambda *_, **__: None)
    return found


def test_a_guest_is_handed_on_where_its_user_ended_well_and_all_end_with_the_block(booted: Booted) -> None:
    class Image:
        name = "an-image"

    image: Any = Image()
    with KeptGuests(booted) as guests:  # type: ignore[arg-type]

        def use(clock: Clock = Clock.REAL, world: Path | None = None, *, asks: int = 1) -> Agent:
            with agents.agent_in(guests, image, clock, world) as agent:
                for _time in range(asks):
                    agent.ask("something", timeout=1)
                return agent

        first = use()
        assert use(asks=0) is first
        assert unshared(guests) is booted is unshared(booted), "no script that spoils things leaves any in these"  # type: ignore[arg-type]
        with agents.agent_in(guests, image, Clock.REAL) as held:
            assert use() is not held is first
        assert booted.story == ["start 1", "start 2"]
        use(world=Path("/a/world"), asks=0)
        assert booted.story[2:] == ["start 3"]
        use(Clock.VIRTUAL)
        use(Clock.VIRTUAL)
        assert booted.story[3:] == ["start 4", "end 4", "start 5", "end 5"]
        del booted.story[:]
        with pytest.raises(GuestLost):
            use(asks=1)  # the first guest has no answer left
        with pytest.raises(ZeroDivisionError), agents.agent_in(guests, image, Clock.REAL):
            raise ZeroDivisionError
        assert len(booted.story) == 2 and all(one.startswith("end") for one in booted.story)
    assert len(booted.story) == 3 and all(stream.is_closed for stream in booted.streams)


def test_an_agent_that_was_lost_and_let_go_in_silence_is_not_handed_on(booted: Booted) -> None:
    class Image:
        name = "an-image"

    image: Any = Image()
    asked: list[Agent] = []

    def do(agent: Agent, _item: int) -> None:
        asked.append(agent)
        agent.ask("something", timeout=1)

    with KeptGuests(booted) as guests:  # type: ignore[arg-type]
        assert len(list(each_in_a_guest(guests, image, Clock.REAL, ITEMS[:3], do, Told()))) == 3
    assert len(set(map(id, asked))) == 3  # each guest here has one answer
