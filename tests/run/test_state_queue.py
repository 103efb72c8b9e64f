"""The states of a model, as they are handed out to guests that are made up."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.agent.client import Agent
from bob.agent.loss import GuestLost, Loss, LossCause
from bob.apm.model_states import ModelState, ModelStates
from bob.errors import UsageError
from bob.program.answer import Batches, CheckerAnswer
from bob.progress import Silent
from bob.run import pool
from bob.run.pool import Pool
from bob.run.state_queue import BuiltTrees, StateQueue
from tests.apm.cases import NOTHING, graph_of

LOSS = GuestLost(Loss(LossCause.HUNG, ""), "no answer")
FINE = CheckerAnswer(0, "")


@dataclass
class Guests:
    """Made-up guests, and what their checker was asked; ``saying`` is told what was asked before, and may raise."""

    saying: Callable[[ModelState, int], CheckerAnswer] = lambda _state, _times: FINE
    asked: Counter[bytes] = field(default_factory=Counter)
    requests: list[int] = field(default_factory=list)
    started: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def agent_in(self, *_: object) -> Iterator[object]:
        with self.lock:
            self.started += 1
        yield SimpleNamespace(is_sound=True)

    def check(self, _agent: Agent, built: BuiltTrees) -> list[CheckerAnswer]:
        with self.lock:
            self.requests.append(len(built))
            answers = []
            for state, _tree in built:
                answers.append(self.saying(state, self.asked[state.digest]))
                self.asked[state.digest] += 1
            return answers


class Watching(Silent):
    """Counts states."""

    states = 0

    def observed(self, workload: str, states: int) -> None:
        self.states += states


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch) -> Guests:
    made = Guests()
    monkeypatch.setattr(pool, "agent_in", made.agent_in)
    return made


def worked(guests: Guests, most: int = 1000, jobs: int = 2, **more: Any) -> tuple[StateQueue, ModelStates, Watching]:
    """The states of a workload of eight sectors under a model that promises nothing, 2**8 trees, all handed out."""
    asked = graph_of("write /a 0 4096", "write /a 0 4096")
    tries = ModelStates(asked, NOTHING, [b"", b""], 10_000)
    answers: dict[bytes, CheckerAnswer] = more.pop("answers", {})
    queue, watching = StateQueue("nothing", tries, most, answers, guests.check, **more), Watching()
    Pool(None, None, watching).do_all(queue, jobs)  # type: ignore[arg-type]
    return queue, tries, watching


@pytest.mark.parametrize("jobs", [1, 2, 5])
@pytest.mark.parametrize("lost", [0, 1, 7])
def test_each_state_of_a_model_is_checked_and_those_of_a_lost_guest_in_another_one(
    guests: Guests, jobs: int, lost: int
) -> None:
    left = [lost]

    def saying(_state: ModelState, _times: int) -> CheckerAnswer:
        left[0] -= 1
        if not left[0]:
            raise LOSS
        return FINE

    guests.saying = saying
    queue, tries, watching = worked(guests, jobs=jobs)
    assert len(queue.states) == 2**8 == watching.states and tries.is_all
    assert all(queue.checked.answers.get(state.digest) == FINE for state in queue.states)
    assert queue.lost is None and queue.handed_out == 2**8
    assert guests.started <= jobs + bool(lost)


@pytest.mark.parametrize("error", [LOSS, UsageError("no such thing")])
def test_states_that_are_lost_twice_have_no_answer_and_the_others_have(guests: Guests, error: Exception) -> None:
    def saying(state: ModelState, _times: int) -> CheckerAnswer:
        if state.digest == unlucky:
            raise error
        return FINE

    unlucky = worked(guests)[0].states[100].digest
    guests.saying = saying
    queue, _tries, _watching = worked(guests)
    without = [state.digest for state in queue.states if queue.checked.answers.get(state.digest) is None]
    assert unlucky in without and len(without) <= 20
    assert str(error) in (queue.lost or "")


def test_states_that_an_earlier_model_has_left_are_not_handed_out(guests: Guests) -> None:
    answers: dict[bytes, CheckerAnswer] = {}
    worked(guests, most=60, answers=answers)
    known = set(answers)
    assert len(known) == 60
    guests.asked.clear()
    queue, tries, _watching = worked(guests, answers=answers)
    assert not known & guests.asked.keys() and queue.handed_out == 2**8 - 60
    assert len(queue.states) == 2**8 and tries.is_all


def test_no_guest_is_started_where_all_is_known(guests: Guests) -> None:
    answers: dict[bytes, CheckerAnswer] = {}
    worked(guests, answers=answers)
    started = guests.started
    assert worked(guests, answers=answers, again=3)[0].rechecks == 0
    assert guests.started == started


def test_a_budget_of_trees_ends_the_work_on_a_model_and_is_no_proof(guests: Guests) -> None:
    queue, tries, _watching = worked(guests, most=45)
    assert queue.handed_out == len(queue.states) == sum(guests.asked.values()) == 45
    assert max(guests.requests) <= 20
    assert not tries.is_all


@pytest.mark.parametrize("jobs", [1, 3])
def test_some_trees_are_checked_once_more_and_a_checker_that_says_two_things_is_told(guests: Guests, jobs: int) -> None:
    queue, _tries, watching = worked(guests, jobs=jobs, again=6)
    assert queue.rechecks == 6 and sorted(guests.asked.values())[-6:] == [2] * 6
    assert queue.checked.disagreed is None and watching.states == 2**8
    guests.asked.clear()
    guests.saying = lambda _state, times: CheckerAnswer(10 * times, "")
    queue, _tries, _watching = worked(guests, jobs=jobs, again=6)
    assert "contradicts itself" in (queue.checked.disagreed or "")


def test_a_check_that_did_not_end_is_made_once_more_and_is_no_answer_beside_another(guests: Guests) -> None:
    guests.saying = lambda state, times: CheckerAnswer(None, "") if state.digest[0] < 16 and not times else FINE
    queue, _tries, _watching = worked(guests)
    hung = [state for state in queue.states if state.digest[0] < 16]
    assert queue.rechecks == len(hung) > 0
    assert (
        all(queue.checked.answers.get(state.digest) == FINE for state in queue.states)
        and queue.checked.disagreed is None
    )
    for answer in (CheckerAnswer(None, ""), FINE):
        queue.checked.take(hung[0].digest, answer)
    assert queue.checked.answers[hung[0].digest] == FINE and queue.checked.disagreed is None


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
