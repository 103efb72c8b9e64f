"""A lost guest: its work is begun anew once, the rest goes on in the new guest, and a second loss ends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bob.agent.client import AgentBroken
from bob.agent.loss import Cause, GuestLost, Loss
from bob.apm.crashes import Tries
from bob.errors import UsageError
from bob.guest.spec import Clock
from bob.program.answer import CheckerAnswer
from bob.progress import Silent
from bob.run import second_chances
from bob.run.program_models import Queue
from bob.run.second_chances import SecondChances, each_in_a_guest
from tests.apm.cases import NOTHING, graph_of

LOSS = GuestLost(Loss(Cause.HUNG, ""), "no answer")
ITEMS = [(f"item {number}", number) for number in range(4)]


class Told(Silent):
    """Keeps the lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def step(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What became of the guests, in order."""
    story: list[str] = []

    @contextmanager
    def agent_in(*_: object) -> Iterator[int]:
        story.append("start")
        try:
            yield story.count("start")
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


def queue(most: int, answers: dict[bytes, CheckerAnswer] | None = None) -> tuple[Queue, Tries]:
    """The states of a workload of eight sectors under a model that promises nothing: 2**8 trees."""
    asked = graph_of("write /a 0 4096", "write /a 0 4096")
    tries = Tries(asked, NOTHING, [b"", b""], 10_000)
    return Queue(tries, most, {} if answers is None else answers), tries


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
