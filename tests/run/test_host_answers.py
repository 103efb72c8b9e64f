"""Which answers of the host bob believes, with hosts that are wrong in any way."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from bob.observe.observations import without_numbers
from bob.program.answer import CheckerAnswer
from bob.run.host_answers import OF_EACH_WAY, SAMPLED, SHARE, HostAnswers

CODES = st.sampled_from([0, 0, 0, 10, 11, 13])
HOST_CODES = st.sampled_from([0, 0, 10, 11, 13, 127, -9, None])


def answers(codes: dict[int, int | None]) -> dict[int, CheckerAnswer]:
    return {one: CheckerAnswer(code, f"it ends with state {one}") for one, code in codes.items()}


def in_words(codes: Sequence[tuple[int | None, str]]) -> dict[int, CheckerAnswer]:
    return {one: CheckerAnswer(code, f"state {one} is {words}") for one, (code, words) in enumerate(codes)}


def settled(host: HostAnswers[int], guests: dict[int, CheckerAnswer]) -> dict[int, CheckerAnswer]:
    """What guests have answered in the end."""
    for _round in range(20):
        found = {one: guests[one] for one in host.repeated}
        if not host.compare(found):
            return found
    raise AssertionError("it does not end")


@given(st.lists(st.tuples(CODES, HOST_CODES | st.just("none")), max_size=60), st.integers(0, 9))
def test_what_fails_has_failed_in_a_guest_in_the_same_way(codes: list[tuple[int, int | str | None]], seed: int) -> None:
    truth = answers({n: code for n, (code, _host) in enumerate(codes)})
    said = answers({n: code for n, (_code, code) in enumerate(codes) if not isinstance(code, str)})
    host = HostAnswers(range(len(codes)), said, seed)
    in_guests = settled(host, truth)
    assert set(host.believed) | set(in_guests) == set(truth)
    assert not set(host.believed) & set(in_guests)
    refused = {answer.code for answer in in_guests.values()} - {0}
    for answer in host.believed.values():
        assert answer.code == 0 or answer.code in refused
    if host.doubt is not None:
        assert not host.believed


WORDED = st.tuples(CODES, st.sampled_from(["old", "lost"]))


@given(st.lists(st.tuples(WORDED, WORDED), max_size=60), st.integers(0, 9))
@example([((10, "old"), (10, "lost"))] * 3, 0)
def test_what_fails_has_failed_in_a_guest_in_the_same_words(
    both: list[tuple[tuple[int, str], tuple[int, str]]], seed: int
) -> None:
    host = HostAnswers(range(len(both)), in_words([of_host for _truth, of_host in both]), seed)
    in_guests = settled(host, in_words([truth for truth, _host in both]))
    shown = {(answer.code, without_numbers(answer.evidence)) for answer in in_guests.values()}
    for answer in host.believed.values():
        assert answer.code == 0 or (answer.code, without_numbers(answer.evidence)) in shown
    assert set(host.believed) | set(in_guests) == set(range(len(both)))


@given(st.lists(CODES, max_size=200), st.integers(0, 9))
def test_a_right_host_leaves_little_to_guests(codes: list[int], seed: int) -> None:
    truth = answers(dict(enumerate(codes)))
    host = HostAnswers(range(len(codes)), truth, seed)
    in_guests = settled(host, truth)
    assert host.doubt is None
    assert host.believed | in_guests == truth
    ways = len({code for code in codes if code})
    assert len(in_guests) <= OF_EACH_WAY * ways + max(SAMPLED, -(-codes.count(0) // SHARE))


@given(st.lists(CODES, min_size=1, max_size=60), st.integers(0, 9))
def test_a_way_that_no_guest_confirms_is_not_believed(codes: list[int], seed: int) -> None:
    host = HostAnswers(range(len(codes)), answers(dict(enumerate(codes))), seed)
    assert not host.compare({})
    assert not host.believed


@given(st.integers(1, 60), st.integers(0, 9))
def test_a_guest_that_refuses_what_the_host_accepts_ends_all_trust(count: int, seed: int) -> None:
    host = HostAnswers(range(count), answers(dict.fromkeys(range(count), 0)), seed)
    [first, *_rest] = host.repeated
    in_guests = settled(host, answers({n: 10 if n == first else 0 for n in range(count)}))
    assert host.doubt is not None and len(in_guests) == count
