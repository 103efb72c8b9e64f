"""From what was seen to answers: how many states break an expectation, in which ways, and when nothing can be said."""

from __future__ import annotations

from dataclasses import replace

import samples_of_runs as samples

from bob.crash.state import CrashState
from bob.expect.answers import Answer, answers
from bob.expect.language import parse
from bob.judge.verdicts import Bench
from bob.result import Verdict
from bob.store import Observed, Seen

TORN = CrashState(0, (), ((1, ((0, 1),)),))
SCATTERED = CrashState(0, (0, 2))
LOST = CrashState(1, (3,))
FOUND = [samples.NOTHING, samples.ALL, samples.OUT_OF_ORDER, samples.TORN, samples.UNMOUNTABLE]


def asked(observed: Observed, *texts: str) -> list[Answer]:
    bench = Bench(
        samples.WORKLOAD,
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


def test_a_state_that_does_not_mount_breaks_nothing() -> None:
    [answer] = asked(observed((LOST, 4)), "exists /a")
    assert answer.verdict is Verdict.HOLDS


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
