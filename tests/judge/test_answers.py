"""From what was seen to answers: how many states break an expectation, in which ways, and when nothing can be said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

import samples_of_runs as samples
from bob.claim.expectation.language import parse
from bob.claim.property.bench import Bench
from bob.crash.state import CrashState
from bob.judge.answers import Answer, answers, together
from bob.observe.observed import Observed, Seen
from bob.result import Verdict
from bob.workload.operations import Finish, Fsync, Workload

TORN = CrashState(0, (), ((1, ((0, 1),)),))
SCATTERED = CrashState(0, (0, 2))
LOST = CrashState(1, (3,))
NOT_MADE = samples.outcome(("/a", 11, [1], 4096))
FOUND = [samples.NOTHING, samples.ALL, samples.OUT_OF_ORDER, samples.TORN, samples.UNMOUNTABLE, NOT_MADE]


def asked(observed: Observed, *texts: str, workload: Workload = samples.WORKLOAD) -> list[Answer]:
    bench = Bench(
        workload,
        (samples.BEFORE, samples.AFTER),
        observed.states,
        observed.findings.observations(),
        observed.coverage,
        observed.lost,
        samples.LAST,
    )
    return list(answers([parse(text) for text in texts], bench, observed, samples.LAST))


def observed(*states: tuple[CrashState, int | None], lost: str | None = None) -> Observed:
    return samples.observed((samples.FIRST, 0), (samples.LAST, 1), *states, found=FOUND, lost=lost)


def test_states_that_show_the_same_are_one_way() -> None:
    seen = observed((TORN, 2), (LOST, 2), (SCATTERED, 3))
    seen = replace(
        seen, states=tuple(Seen(one.state, one.outcome, 2**number) for number, one in enumerate(seen.states))
    )
    [answer] = asked(seen, "content /a = new")
    assert answer.verdict is Verdict.FAILS
    # /n is there in one of them and not in the others, but nobody asked about it.
    assert [(way.evidence, way.states, way.easiest) for way in answer.ways] == [
        ("/a has initial data (4,096 B)", 1 + 4 + 8, samples.FIRST),
        ("/a has operation 1 (256 B), initial data (3,840 B)", 16, SCATTERED),
    ]
    assert (answer.states, answer.needs_no_crash) == (29, False)


def test_each_expectation_has_its_own_answer() -> None:
    verdicts = [
        (answer.verdict, answer.states)
        for answer in asked(observed((LOST, 2)), "exists /a", "exists /n", "exists /n implies content /a = new")
    ]
    assert verdicts == [(Verdict.HOLDS, 0), (Verdict.FAILS, 1), (Verdict.FAILS, 1)]


def test_what_does_not_hold_without_a_crash_says_so() -> None:
    [wrong, right] = asked(observed(), "size /a = 4095", "exists /n")
    assert (wrong.needs_no_crash, right.needs_no_crash) == (True, False)


def test_a_state_that_does_not_mount_breaks_only_that_it_mounts() -> None:
    [names, both, mounts, guarded] = asked(
        observed((LOST, 4), (SCATTERED, 4)), "exists /a", "mounts and exists /a", "mounts", "mounts implies exists /a"
    )
    assert [names.verdict, guarded.verdict] == [Verdict.HOLDS, Verdict.HOLDS]
    told = "the file system does not mount: Structure needs cleaning: EXT4-fs (loop): bad geometry"
    for answer in (both, mounts):
        assert answer.verdict is Verdict.FAILS
        assert [(way.evidence, way.states, way.easiest) for way in answer.ways] == [(told, 2, LOST)]


def test_that_something_does_not_mount_is_believed_whatever_a_control_says() -> None:
    seen = samples.observed((samples.FIRST, 0), (samples.LAST, 2), (LOST, 4), found=FOUND)
    [mounts, names] = asked(seen, "mounts", "mounts and content /a = new")
    assert [answer.verdict for answer in (mounts, names)] == [Verdict.FAILS, Verdict.FAILS]
    assert [way.states for way in names.ways] == [1]  # what the others hold is not believed


def test_where_not_everything_is_written_at_the_end_the_last_state_loses_something() -> None:
    """An fsync of the root leaves data in memory: that an expectation breaks then says nothing of the expectation."""
    synced = replace(samples.WORKLOAD, finish=Finish("fsync /", (Fsync("/"),)))
    [answer] = asked(observed(), "size /a = 4095", workload=synced)
    assert (answer.verdict, answer.needs_no_crash) == (Verdict.FAILS, False)


HOLDS, UNKNOWN = observed(), observed(lost="the guest was lost: it hung")
BREAKS = observed((LOST, 2))


@pytest.mark.parametrize(
    ("each", "verdict"),
    [
        ((HOLDS, HOLDS), Verdict.HOLDS),
        ((HOLDS, UNKNOWN), Verdict.UNKNOWN),
        ((UNKNOWN, HOLDS, HOLDS), Verdict.UNKNOWN),
        ((HOLDS, BREAKS), Verdict.FAILS),
        ((UNKNOWN, BREAKS, HOLDS), Verdict.FAILS),
        ((BREAKS,), Verdict.FAILS),
    ],
)
def test_an_answer_over_several_recordings(each: Sequence[Observed], verdict: Verdict) -> None:
    answers = [asked(one, "exists /n implies content /a = new")[0] for one in each]
    answer = together(["natural", "fsync /d", "fsync /"][: len(each)], answers)
    assert answer.verdict is verdict
    assert answer.states == sum(one.states for one in answers)
    assert len(answer.each) == (len(each) if len(each) > 1 else 0)
    assert (answer.reason is None) is (verdict is not Verdict.UNKNOWN)


def test_what_is_unknown_names_the_finish() -> None:
    answers = [asked(one, "exists /a")[0] for one in (HOLDS, UNKNOWN)]
    assert together(["natural", "fsync /"], answers).reason == "finish fsync /: the guest was lost: it hung"


def test_recordings_that_show_the_same_show_one_way_and_the_easiest_state_says_where_it_is_from() -> None:
    torn, whole, other = (
        asked(one, "content /a = new implies exists /n")[0]
        for one in (observed((TORN, 5)), observed((LOST, 5), (SCATTERED, 5)), observed())
    )
    answer = together(["a", "b", "c"], [torn, whole, other])
    [way] = answer.ways
    assert (way.states, way.easiest, way.place) == (3, LOST, 1)
    assert answer.counts(way) == (1, 2, 0)


def test_a_loss_leaves_what_broke_and_makes_the_rest_unknown() -> None:
    [broken, open_] = asked(observed((LOST, 2), lost="the guest was lost: it hung"), "exists /n", "exists /a")
    assert broken.verdict is Verdict.FAILS
    assert (open_.verdict, open_.reason) == (Verdict.UNKNOWN, "the guest was lost: it hung")


def test_nothing_is_said_where_a_control_fails() -> None:
    """In the state with every write the overwrite is missing: bob misunderstands what it sees."""
    seen = samples.observed((samples.FIRST, 0), (samples.LAST, 2), found=FOUND)
    for answer in asked(seen, "exists /a", "content /a = new"):
        assert answer.verdict is Verdict.UNKNOWN
        assert "a control failed" in (answer.reason or "")


def test_nothing_is_said_where_nothing_was_seen() -> None:
    none = samples.observed(found=[], lost=None)
    [answer] = asked(replace(none, coverage=replace(none.coverage, explored=0)), "exists /a")
    assert (answer.verdict, answer.reason) == (Verdict.UNKNOWN, "no crash state was explored")
    [answer] = asked(samples.observed((LOST, 0), found=[samples.UNMOUNTABLE]), "exists /a")
    assert (answer.verdict, answer.reason) == (Verdict.UNKNOWN, "no crash state that was explored could be mounted")
