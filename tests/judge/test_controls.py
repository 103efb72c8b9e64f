"""The two controls of a workload: what each must show, or nothing that is said of the workload is believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob.answer.answer import Answer
from bob.catalogue.probe_files import shipped_probes
from bob.claim.expectation.language import parse as expectation
from bob.claim.property.judged_case import JudgedCase
from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.crash.state import CrashState
from bob.judge.expectations import SaidByRecording, said_by, together
from bob.observe.observation import Node, Observation
from bob.observe.observations import ExploredState, Observations
from bob.workload.language import parse
from bob.workload.operations import At, Finish, Fsync, Workload
from claim.worlds import World
from wording import text_with

ORDER = next(probe.property for probe in shipped_probes() if probe.property.name == "overwrite-any")
WORKLOAD = Workload("w", parse("write /a 0 8K"), parse("write /a 0 8K; create /n"), Finish("natural", natural=True))
WORLD = World.of(WORKLOAD)
NOTHING, ALL, ONE, OUT_OF_ORDER = (WORLD.crash(there) for there in [(), (1, 2), (1,), (2,)])
FIRST, LAST, BETWEEN = CrashState(0), CrashState(2, (4, 5)), CrashState(1)
NO_MOUNT = Observation(False, "Structure needs cleaning", None)
REPAIRED = Observation(False, "Structure needs cleaning", ALL.tree, repaired=True)


def with_content(observation: Observation, content: bytes) -> Observation:
    tree: Mapping[str, Node] = observation.tree or {}
    return replace(observation, tree={**tree, "/a": replace(tree["/a"], content=content)})


HALF = with_content(ALL, (ALL.tree or {})["/a"].content[:4096] + (NOTHING.tree or {})["/a"].content[4096:])
"""Of the write one block is there: PARTIAL, and no other operation is wrong."""
HALF_AND_NO_MORE = with_content(NOTHING, (HALF.tree or {})["/a"].content)
STRAY, STRAY_AT_FIRST = (
    replace(each, tree={**(each.tree or {}), "/stray": Node("file", 99)}) for each in (ALL, NOTHING)
)
GARBAGE = b"\xa5" * 512
"""No operation wrote it, and nothing was there before."""


def verdict(
    *states: tuple[CrashState, Observation], lost: str | None = None, workload: Workload = WORKLOAD
) -> tuple[Verdict, str | None]:
    known = [{path: WORLD.numbers[thing] for path, thing in WORLD.history.steps[at].names.items()} for at in (0, -1)]
    observations: Sequence[Observation] = [observation for _state, observation in states]
    seen = [ExploredState(state, number) for number, (state, _observation) in enumerate(states)]
    found = JudgedCase(workload, known, seen, observations, States(3, 8, 16, "writes"), lost, LAST).judge(ORDER)
    assert found is not None
    return found.verdict, found.reason


def test_with_both_controls_as_they_should_be_it_holds() -> None:
    assert verdict((FIRST, NOTHING), (LAST, ALL), (BETWEEN, ONE)) == (Verdict.HOLDS, None)


def test_what_speaks_for_no_state_is_no_state_that_mounts() -> None:
    late = replace(WORKLOAD, at=At.END)
    known = [{path: WORLD.numbers[thing] for path, thing in WORLD.history.steps[at].names.items()} for at in (0, -1)]
    seen = [ExploredState(BETWEEN, 0, 1, 1), ExploredState(CrashState(1, (3,)), 1, 0, 0)]
    found = JudgedCase(late, known, seen, [NO_MOUNT, ALL], States(1, 8, 16, None), None).judge(ORDER)
    assert found is not None
    assert found.verdict is Verdict.UNKNOWN
    assert found.reason == snapshot("no crash state that was explored could be mounted")


@pytest.mark.parametrize("between", [ONE, OUT_OF_ORDER])
@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        (ONE, ALL, "before the operations operation 1 (write /a 0 8192) is there"),
        (HALF_AND_NO_MORE, ALL, "before the operations operation 1 (write /a 0 8192) is there in part"),
        (NOTHING, HALF, "with every write there operation 1 (write /a 0 8192) is there in part"),
        (NOTHING, ONE, "with every write there operation 2 (create /n) is not there"),
        (NO_MOUNT, ALL, "before the operations the file system could not be mounted"),
        (REPAIRED, ALL, "before the operations the file system could not be mounted"),
        (NOTHING, NO_MOUNT, "with every write there the file system could not be mounted"),
        (NOTHING, REPAIRED, "with every write there the file system could not be mounted"),
        (NO_MOUNT, NO_MOUNT, "before the operations the file system could not be mounted"),
    ],
)
def test_a_control_that_fails_leaves_nothing_to_be_believed(
    first: Observation, last: Observation, words: str, between: Observation
) -> None:
    assert verdict((FIRST, first), (LAST, last), (BETWEEN, between)) == (Verdict.UNKNOWN, f"a control failed: {words}")


def shared(observation: Observation) -> Observation:
    """Where two writes overlap there is what neither wrote: damage, of which none can be accused alone."""
    content = (observation.tree or {})["/a"].content
    return with_content(observation, GARBAGE + content[512:])


def test_damage_in_a_control_leaves_nothing_to_be_believed() -> None:
    overlapping = replace(WORKLOAD, operations=parse("write /a 0 8K; write /a 0 8K; create /n"))
    world = World.of(overlapping)
    known = [{path: world.numbers[thing] for path, thing in world.history.steps[at].names.items()} for at in (0, -1)]
    first, last = world.crash(()), world.crash(world.all)
    assert all(shared(each) != each for each in (first, last))
    for one, other, when in [
        (shared(first), last, "before the operations"),
        (first, shared(last), "with every write there"),
    ]:
        reading = world.oracle().read(one if when.startswith("before") else other)
        assert reading.damage
        seen = [ExploredState(FIRST, 0), ExploredState(LAST, 1)]
        bench = JudgedCase(overlapping, known, seen, [one, other], States(2, 2, 2, "writes"), None, LAST)
        assert bench.distrust is not None
        assert text_with(bench.distrust, when).partition(":")[0] == snapshot("a control failed")
        found = bench.judge(ORDER)
        assert found is not None
        assert found.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("first", "last", "when"),
    [(NOTHING, STRAY, "with every write there"), (STRAY_AT_FIRST, ALL, "before the operations")],
)
def test_what_no_operation_was_to_change_is_undamaged_in_a_control(
    first: Observation, last: Observation, when: str
) -> None:
    words = f"a control failed: {when} the name /stray: a file of 0 B, which no operation made"
    assert verdict((FIRST, first), (LAST, last), (BETWEEN, ONE)) == (Verdict.UNKNOWN, words)


@pytest.mark.parametrize(
    ("states", "which"),
    [
        ([(LAST, ALL)], "before the operations"),
        ([(FIRST, NOTHING)], "with every write there"),
        ([], "before the operations"),
    ],
)
def test_where_a_control_was_not_seen_nothing_holds(states: list[tuple[CrashState, Observation]], which: str) -> None:
    found, reason = verdict(*states, (BETWEEN, ONE))
    assert found is Verdict.UNKNOWN
    assert text_with(reason, which).replace(which, "WHICH") == snapshot("bob did not see a control: the state WHICH")
    assert verdict(*states, (BETWEEN, OUT_OF_ORDER))[0] is Verdict.FAILS, "what was seen was seen"


def test_a_lost_guest_is_the_reason_where_it_took_the_control_with_it() -> None:
    assert verdict((FIRST, NOTHING), (BETWEEN, ONE), lost="it is gone") == (Verdict.UNKNOWN, "it is gone")


def test_a_crash_after_the_last_operation_does_not_leave_the_state_from_before_all() -> None:
    late = replace(WORKLOAD, at=At.END)
    assert verdict((LAST, ALL), (BETWEEN, ALL), workload=late) == (Verdict.HOLDS, None)
    assert verdict((BETWEEN, ALL), workload=late)[0] is Verdict.UNKNOWN


# From what was seen to answers: how many states break an expectation, in which ways, and when nothing can be said

TORN = CrashState(0, (), ((1, ((0, 1),)),))
SCATTERED = CrashState(0, (0, 2))
LOST = CrashState(1, (3,))
NOT_MADE = samples.outcome(("/a", 11, [1], 4096))
FOUND = [samples.NOTHING, samples.ALL, samples.OUT_OF_ORDER, samples.TORN, samples.UNMOUNTABLE, NOT_MADE]


class Asked(NamedTuple):
    """What one recording says of an expectation, and the answer by it alone, with the easiest state of each way."""

    said: SaidByRecording
    answer: Answer
    easiest: tuple[CrashState, ...]

    @property
    def ways(self) -> list[tuple[str, int, CrashState]]:
        shown = zip(self.answer.ways, self.easiest, strict=True)
        return [(way.evidence, way.states, easiest) for way, easiest in shown]


def asked(observed: Observations, *texts: str, workload: Workload = samples.WORKLOAD) -> list[Asked]:
    bench = JudgedCase(
        workload,
        (samples.BEFORE, samples.AFTER),
        observed.states,
        observed.findings.observations(),
        observed.coverage,
        observed.lost,
        samples.LAST,
    )
    expectations = [expectation(text) for text in texts]
    every = zip(expectations, said_by(expectations, bench, observed, samples.LAST), strict=True)
    return [Asked(said, *together(one, [said])) for one, said in every]


def over(text: str, finishes: Sequence[str], each: Sequence[Observations]) -> tuple[Answer, tuple[CrashState, ...]]:
    """The answer over recordings with these finishes."""
    said = [asked(one, text)[0].said for one in each]
    named = [
        replace(one, recording=replace(one.recording, finish=finish))
        for one, finish in zip(said, finishes, strict=True)
    ]
    return together(expectation(text), named)


def observed(*states: tuple[CrashState, int | None], lost: str | None = None) -> Observations:
    return samples.observed((samples.FIRST, 0), (samples.LAST, 1), *states, found=FOUND, lost=lost)


def test_states_that_show_the_same_are_one_way() -> None:
    seen = observed((TORN, 2), (LOST, 2), (SCATTERED, 3))
    seen = replace(
        seen, states=tuple(ExploredState(one.state, one.outcome, 2**number) for number, one in enumerate(seen.states))
    )
    [found] = asked(seen, "content /a = new")
    assert found.answer.verdict is Verdict.FAILS
    # /n is there in one of them and not in the others, but nobody asked about it.
    assert found.ways == [
        (snapshot("/a has initial data (4,096 B)"), 1 + 4 + 8, samples.FIRST),
        (snapshot("/a has operation 1 (256 B), initial data (3,840 B)"), 16, SCATTERED),
    ]
    assert (found.answer.violations, found.answer.needs_no_crash) == (29, False)


def test_each_expectation_has_its_own_answer() -> None:
    verdicts = [
        (found.answer.verdict, found.answer.violations)
        for found in asked(observed((LOST, 2)), "exists /a", "exists /n", "exists /n implies content /a = new")
    ]
    assert verdicts == [(Verdict.HOLDS, 0), (Verdict.FAILS, 1), (Verdict.FAILS, 1)]


def test_what_does_not_hold_without_a_crash_says_so() -> None:
    [wrong, right] = asked(observed(), "size /a = 4095", "exists /n")
    assert (wrong.answer.needs_no_crash, right.answer.needs_no_crash) == (True, False)


def test_a_state_that_does_not_mount_breaks_only_that_it_mounts() -> None:
    [names, both, mounts, guarded] = asked(
        observed((LOST, 4), (SCATTERED, 4)), "exists /a", "mounts and exists /a", "mounts", "mounts implies exists /a"
    )
    assert [names.answer.verdict, guarded.answer.verdict] == [Verdict.HOLDS, Verdict.HOLDS]
    told = "the file system does not mount: Structure needs cleaning: EXT4-fs (loop): bad geometry"
    for found in (both, mounts):
        assert found.answer.verdict is Verdict.FAILS
        assert found.ways == [(told, 2, LOST)]


def test_that_something_does_not_mount_is_believed_whatever_a_control_says() -> None:
    seen = samples.observed((samples.FIRST, 0), (samples.LAST, 2), (LOST, 4), found=FOUND)
    [mounts, names] = asked(seen, "mounts", "mounts and content /a = new")
    assert [found.answer.verdict for found in (mounts, names)] == [Verdict.FAILS, Verdict.FAILS]
    assert [way.states for way in names.answer.ways] == [1]  # what the others hold is not believed


def test_where_not_everything_is_written_at_the_end_the_last_state_loses_something() -> None:
    """An fsync of the root leaves data in memory: that an expectation breaks then says nothing of the expectation."""
    synced = replace(samples.WORKLOAD, finish=Finish("fsync /", (Fsync("/"),)))
    [found] = asked(observed(), "size /a = 4095", workload=synced)
    assert (found.answer.verdict, found.answer.needs_no_crash) == (Verdict.FAILS, False)


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
def test_an_answer_over_several_recordings(each: Sequence[Observations], verdict: Verdict) -> None:
    text, finishes = "exists /n implies content /a = new", ["natural", "fsync /d", "fsync /"][: len(each)]
    alone = [asked(one, text)[0].answer for one in each]
    answer, _easiest = over(text, finishes, each)
    assert answer.verdict is verdict
    assert answer.violations == sum(one.violations for one in alone)
    assert [one.verdict for one in answer.recordings] == [one.verdict for one in alone]
    assert (answer.reason is None) is (verdict is not Verdict.UNKNOWN)


def test_what_is_unknown_names_the_finish() -> None:
    answer, _easiest = over("exists /a", ["natural", "fsync /"], (HOLDS, UNKNOWN))
    assert answer.reason == snapshot("finish fsync /: the guest was lost: it hung")


def test_recordings_that_show_the_same_show_one_way_and_the_easiest_state_says_where_it_is_from() -> None:
    torn, whole, other = observed((TORN, 5)), observed((LOST, 5), (SCATTERED, 5)), observed()
    answer, [easiest] = over("content /a = new implies exists /n", "abc", (torn, whole, other))
    [way] = answer.ways
    assert (way.states, way.place, way.by_recording) == (3, 1, (1, 2, 0))
    assert easiest == LOST


def test_a_loss_leaves_what_broke_and_makes_the_rest_unknown() -> None:
    [broken, open_] = asked(observed((LOST, 2), lost="the guest was lost: it hung"), "exists /n", "exists /a")
    assert broken.answer.verdict is Verdict.FAILS
    assert (open_.answer.verdict, open_.answer.reason) == (Verdict.UNKNOWN, snapshot("the guest was lost: it hung"))


def test_nothing_is_said_where_a_control_fails() -> None:
    """In the state with every write the overwrite is missing: bob misunderstands what it sees."""
    seen = samples.observed((samples.FIRST, 0), (samples.LAST, 2), found=FOUND)
    for found in asked(seen, "exists /a", "content /a = new"):
        assert found.answer.verdict is Verdict.UNKNOWN
        assert "a control failed" in (found.answer.reason or "")


def test_nothing_is_said_where_nothing_was_seen() -> None:
    none = samples.observed(found=[], lost=None)
    [found] = asked(replace(none, coverage=replace(none.coverage, explored=0)), "exists /a")
    assert (found.answer.verdict, found.answer.reason) == (Verdict.UNKNOWN, snapshot("no crash state was explored"))
    [found] = asked(samples.observed((LOST, 0), found=[samples.UNMOUNTABLE]), "exists /a")
    assert (found.answer.verdict, found.answer.reason) == (
        Verdict.UNKNOWN,
        snapshot("no crash state that was explored could be mounted"),
    )
