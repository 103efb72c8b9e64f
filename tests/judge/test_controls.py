"""The two controls of a workload: what each must show, or nothing that is said of the workload is believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from bob.catalogue.probe_files import shipped_probes
from bob.claim.property.bench import Bench
from bob.crash.coverage import States
from bob.crash.state import CrashState
from bob.observe.observation import Node, Observation
from bob.observe.observed import Seen
from bob.result import Verdict
from bob.workload.language import parse
from bob.workload.operations import At, Finish, Workload
from claim.worlds import World

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
    seen = [Seen(state, number) for number, (state, _observation) in enumerate(states)]
    found = Bench(workload, known, seen, observations, States(3, 8, 16, "writes"), lost, LAST).judge(ORDER)
    assert found is not None
    return found.result.verdict, found.result.reason


def test_with_both_controls_as_they_should_be_it_holds() -> None:
    assert verdict((FIRST, NOTHING), (LAST, ALL), (BETWEEN, ONE)) == (Verdict.HOLDS, None)


def test_what_speaks_for_no_state_is_no_state_that_mounts() -> None:
    late = replace(WORKLOAD, at=At.END)
    known = [{path: WORLD.numbers[thing] for path, thing in WORLD.history.steps[at].names.items()} for at in (0, -1)]
    seen = [Seen(BETWEEN, 0, 1, 1), Seen(CrashState(1, (3,)), 1, 0, 0)]
    found = Bench(late, known, seen, [NO_MOUNT, ALL], States(1, 8, 16, None), None).judge(ORDER)
    assert found is not None
    assert found.result.verdict is Verdict.UNKNOWN
    assert found.result.reason == "no crash state that was explored could be mounted"


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
        seen = [Seen(FIRST, 0), Seen(LAST, 1)]
        bench = Bench(overlapping, known, seen, [one, other], States(2, 2, 2, "writes"), None, LAST)
        assert bench.distrust is not None
        assert bench.distrust.startswith(f"a control failed: {when} ")
        found = bench.judge(ORDER)
        assert found is not None
        assert found.result.verdict is Verdict.UNKNOWN


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
    assert verdict(*states, (BETWEEN, ONE)) == (Verdict.UNKNOWN, f"a control was not seen: the state {which}")
    assert verdict(*states, (BETWEEN, OUT_OF_ORDER))[0] is Verdict.FAILS, "what was seen was seen"


def test_a_lost_guest_is_the_reason_where_it_took_the_control_with_it() -> None:
    assert verdict((FIRST, NOTHING), (BETWEEN, ONE), lost="it is gone") == (Verdict.UNKNOWN, "it is gone")


def test_a_crash_after_the_last_operation_does_not_leave_the_state_from_before_all() -> None:
    late = replace(WORKLOAD, at=At.END)
    assert verdict((LAST, ALL), (BETWEEN, ALL), workload=late) == (Verdict.HOLDS, None)
    assert verdict((BETWEEN, ALL), workload=late)[0] is Verdict.UNKNOWN
