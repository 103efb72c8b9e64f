"""The states of a model, as they are handed out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bob.apm.crashes import Tries
from bob.program.answer import Batches, CheckerAnswer
from bob.run.state_queue import StateQueue
from tests.apm.cases import NOTHING, graph_of


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
