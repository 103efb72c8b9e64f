"""From observations to cells: FAILS dominates, and HOLDS is only said of what was seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.answer.answer import ByRecording
from bob.catalogue.probe_files import shipped_probes
from bob.claim.property.account import EffectExtent
from bob.claim.property.judged_case import JudgedCase, WorkloadVerdict
from bob.claim.property.readings import inodes_of_things
from bob.claim.property.rules import Property, Rule
from bob.claim.property.vocabulary import Call
from bob.claim.verdict import Verdict
from bob.crash.coverage import States, total
from bob.crash.state import CrashState, departure
from bob.judge.column import cell
from bob.observe.observation import Observation
from bob.observe.observations import ExploredState, MixedStates
from bob.observe.unknown_torn import CauseCount, TornCause
from bob.workload.kinds import ChangeKind
from bob.workload.language import parse
from bob.workload.operations import At, Finish, Workload
from bob.workload.simulation import simulate
from claim.worlds import World

ORDER = next(probe.property for probe in shipped_probes() if probe.property.name == "overwrite-any")
ATOMIC = next(probe.property for probe in shipped_probes() if probe.property.name == "directory-op")
BLOCK = next(probe.property for probe in shipped_probes() if probe.property.name == "single-block-overwrite")
OTHER = next(probe.property for probe in shipped_probes() if probe.property.name == "trunc-append-any")
NATURAL = Finish("natural", natural=True)
WORKLOAD = Workload("w", parse("write /a 0 8K; write /b 0 4K"), parse("write /a 0 4K; create /n"), NATURAL)
WORLD = World.of(WORKLOAD)
COVERAGE = States(3, 8, 2**60, "writes")

NOTHING, ALL, ONE, OUT_OF_ORDER = (WORLD.crash(there) for there in [(), (1, 2), (1,), (2,)])
UNMOUNTABLE = Observation(False, "Structure needs cleaning", None)
REPAIRED = replace(OUT_OF_ORDER, mounted=False, error="Bad message")
FIRST, LAST = CrashState(0), CrashState(2, (4, 5))


def bench(
    states: Sequence[tuple[CrashState, int | None] | ExploredState],
    observations: Sequence[Observation],
    coverage: States = COVERAGE,
    lost: str | None = None,
    workload: Workload = WORKLOAD,
    mixtures: Sequence[MixedStates] = (),
    unknown_torn: Sequence[CauseCount] = (),
) -> JudgedCase:
    known = [{path: WORLD.numbers[thing] for path, thing in WORLD.history.steps[at].names.items()} for at in (0, -1)]
    seen = [ExploredState(*state) for state in states]
    more = {"mixtures": mixtures, "unknown_torn": unknown_torn}
    return JudgedCase(workload, known, seen, observations, coverage, lost, LAST, **more)  # type: ignore[arg-type]


def judged(*arguments: object, **more: object) -> WorkloadVerdict:
    found = bench(*arguments, **more).judge(ORDER)  # type: ignore[arg-type]
    assert found is not None
    return found


def test_what_is_in_order_holds() -> None:
    found = judged([(FIRST, 0), (LAST, 1), (CrashState(1), 2)], [NOTHING, ALL, ONE])
    assert found.evidence is None
    assert found == WorkloadVerdict(Verdict.HOLDS, replace(COVERAGE, explored_writes=8))


def test_what_is_out_of_order_fails_with_the_simplest_state() -> None:
    torn = (CrashState(1, (2, 4), ((3, ((0, 1),)),)), 2)
    sparse, dense = (CrashState(1, (2, 4)), 2), (CrashState(1, (2, 3, 4)), 2)
    found = judged([(FIRST, 0), (LAST, 1), torn, sparse, dense], [NOTHING, ALL, OUT_OF_ORDER])
    assert found.verdict is Verdict.FAILS
    assert found.violations == 3
    assert found.evidence is not None
    assert (found.evidence.state, found.evidence.outcome) == dense
    assert found.evidence.violation.question.required == (1,)
    told = {one.number: one.extent for one in found.evidence.violation.accounts}
    assert told == {1: EffectExtent.NOTHING, 2: EffectExtent.WHOLE}


def torn(*there: bool) -> Observation:
    """The tree before the operations, with these sectors of the overwritten block."""
    assert NOTHING.tree is not None
    assert ALL.tree is not None
    before, after = NOTHING.tree["/a"], ALL.tree["/a"].content
    pieces = [(after if new else before.content)[512 * n : 512 * (n + 1)] for n, new in enumerate(there)]
    content = b"".join(pieces) + before.content[512 * len(there) :]
    return replace(NOTHING, tree={**NOTHING.tree, "/a": replace(before, content=content)})


EACH_TWO = [(False,) * 8, (True,) * 8, (True, False) * 4, (False, True) * 4]
"""Not each two sectors in all ways: the judge relies on the rows that it is given."""


def mixed_bench(
    prop: Property, *, mixture: MixedStates, extra: Observation | None = None, **more: Any
) -> WorkloadVerdict:
    rows = [torn(*there) for there in EACH_TWO]
    observations = [NOTHING, ALL, *rows, *([] if extra is None else [extra])]
    states = [(FIRST, 0), (LAST, 1), *((CrashState(1, (number,)), number) for number in range(2, len(observations)))]
    found = bench(states, observations, States(40, 8, 2**60, "writes"), mixtures=[mixture], **more).judge(prop)
    assert found is not None
    return found


ROWS = (2, 3, 4, 5)


def test_mixtures_count_for_properties_that_hold() -> None:
    mixture = MixedStates(2**59, ROWS)
    found = mixed_bench(ORDER, mixture=mixture)
    assert found.verdict is Verdict.HOLDS
    assert found.states.explored_torn == 2**59 + 32
    assert found.states.exhaustive == "writes"
    every = mixed_bench(ORDER, mixture=MixedStates(2**60 - 40, ROWS))
    assert every.states.exhaustive == "sectors"
    assert every.states.explored == every.states.legal_sectors
    fails = mixed_bench(ORDER, mixture=mixture, extra=OUT_OF_ORDER)
    assert fails.verdict is Verdict.FAILS
    assert fails.states.explored_torn == 32
    lost = mixed_bench(ORDER, mixture=mixture, lost="it is gone")
    assert lost.verdict is Verdict.UNKNOWN
    assert lost.states.explored_torn == 32


def test_a_row_breaks_what_mixtures_break() -> None:
    found = mixed_bench(BLOCK, mixture=MixedStates(2**59, ROWS))
    assert found.verdict is Verdict.FAILS
    assert found.states.explored_torn == 32


def test_mixtures_do_not_count_for_durability() -> None:
    """Durability needs all sectors of an operation at once."""
    workload = replace(WORKLOAD, operations=parse("write /a 0 4K; fsync /a"), at=At.END)
    durable = Property("durable", "durability", "", Rule.DURABLE, kinds=(ChangeKind.OVERWRITE,), call=Call.FSYNC_FILE)
    whole = World.of(workload).crash((1, 2))
    states, mixtures = [(CrashState(1), 0), (LAST, 0)], [MixedStates(2**59, (0, 1))]
    made = bench(states, [whole], States(2, 8, 2**60, "writes"), workload=workload, mixtures=mixtures)
    found = made.judge(durable)
    assert found is not None
    assert found.verdict is Verdict.HOLDS
    assert made._coverage_with_mixtures.explored == found.states.explored + 2**59


def test_mixtures_with_a_row_that_does_not_mount_do_not_count() -> None:
    mixture = MixedStates(2**59, (*ROWS, 6))
    found = mixed_bench(ORDER, mixture=mixture, extra=UNMOUNTABLE)
    assert found.verdict is Verdict.HOLDS
    assert found.states.explored_torn == 32


def test_mixtures_whose_bytes_are_of_no_operation_do_not_count() -> None:
    assert NOTHING.tree is not None
    strange = replace(NOTHING.tree["/a"], content=b"\xa5" * 8192)
    observations = [NOTHING, ALL, replace(NOTHING, tree={**NOTHING.tree, "/a": strange})]
    made = bench([(FIRST, 0), (LAST, 1), (CrashState(1, (2,)), 2)], observations, mixtures=[MixedStates(2**59, (0, 2))])
    assert made._coverage_with_mixtures.explored_torn == made.coverage.explored_torn


CAUSES = [CauseCount(TornCause.MIXED, 70), CauseCount(TornCause.APPENDED, 20), CauseCount(TornCause.JOURNAL, 10)]


def test_a_property_with_few_known_torn_states_has_a_cause() -> None:
    few, many = MixedStates(2**50, ROWS), MixedStates(2**59, ROWS)
    assert mixed_bench(ORDER, mixture=few, unknown_torn=CAUSES).unknown_torn is TornCause.APPENDED
    assert mixed_bench(ORDER, mixture=many, unknown_torn=CAUSES).unknown_torn is TornCause.APPENDED
    # bob looks for causes before it counts mixtures: these may make most torn states known.
    legal = 2**60 - 8
    for mixture, cause in ((legal - 32, None), (legal * 3 // 4 - 32, None), (legal * 3 // 4 - 33, TornCause.APPENDED)):
        found = mixed_bench(ORDER, mixture=MixedStates(mixture, ROWS), unknown_torn=CAUSES)
        assert found.verdict is Verdict.HOLDS
        assert found.unknown_torn is cause
    # A mixture that cannot be judged is itself the cause.
    unjudged = MixedStates(2**59, (*ROWS, 6))
    found = mixed_bench(ORDER, mixture=unjudged, extra=UNMOUNTABLE, unknown_torn=CAUSES)
    assert found.unknown_torn is TornCause.MIXED
    assert mixed_bench(ORDER, mixture=few, extra=OUT_OF_ORDER, unknown_torn=CAUSES).unknown_torn is None
    assert mixed_bench(ORDER, mixture=few).unknown_torn is None


def test_what_does_not_mount_is_not_among_the_explored() -> None:
    states = [ExploredState(FIRST, 0, 1, 1), ExploredState(LAST, 1, 1, 1), ExploredState(CrashState(1), 2, 40, 6)]
    found = judged(states, [NOTHING, ALL, UNMOUNTABLE], States(42, 8, 2**60, "writes", 0))
    assert found.verdict is Verdict.HOLDS
    assert found.states == States(2, 8, 2**60, None, 0, 2, 40, 6)
    result = ByRecording("w", "natural", found.verdict, found.states)
    assert cell(ORDER, [result], None).states == found.states


def test_only_what_is_known_and_mounts_satisfies_a_property() -> None:
    torn, unseen, refused = CrashState(1, (2,)), CrashState(1, (3,)), CrashState(1, (4,))
    states = [(FIRST, 0), (LAST, 1), (torn, 2), (refused, 3), (CrashState(1), None)]
    made = bench(states, [NOTHING, ALL, OUT_OF_ORDER, UNMOUNTABLE])
    asked = {state: (made.satisfies(ORDER, state), made.satisfies(None, state)) for state, _outcome in states}
    assert asked == {
        FIRST: (True, True),
        LAST: (True, True),
        torn: (False, True),
        refused: (False, False),
        CrashState(1): (False, False),
    }
    assert not made.satisfies(ORDER, unseen)


def test_violations_are_all_legal_states_that_are_spoken_for() -> None:
    spoken_for = [
        ExploredState(CrashState(1, (2, 4)), 2, 2**70),
        ExploredState(CrashState(1, (2, 3)), 2, 0),
        ExploredState(CrashState(1, ()), 0, 9),
    ]
    found = judged([(FIRST, 0), (LAST, 1), *spoken_for], [NOTHING, ALL, OUT_OF_ORDER])
    assert found.violations == 2**70


def test_a_property_that_is_not_asked_has_no_verdict() -> None:
    assert bench([(FIRST, 0)], [NOTHING]).judge(OTHER) is None
    assert JudgedCase.asks(ORDER, WORKLOAD)
    assert JudgedCase.asks(ATOMIC, WORKLOAD)
    assert not JudgedCase.asks(OTHER, WORKLOAD)


def test_fails_wins_over_a_lost_guest() -> None:
    found = judged([(FIRST, 0), (CrashState(1, (2,)), 1), (LAST, None)], [NOTHING, OUT_OF_ORDER], lost="it is gone")
    assert found.verdict is Verdict.FAILS
    assert found.reason is None


def test_a_lost_guest_is_unknown() -> None:
    found = judged([(FIRST, 0), (LAST, None)], [NOTHING], lost="it is gone")
    assert (found.verdict, found.reason) == (Verdict.UNKNOWN, "it is gone")


def test_nothing_explored_is_unknown() -> None:
    found = judged([], [], States(0, 8, 16, None))
    assert (found.verdict, found.reason) == (Verdict.UNKNOWN, snapshot("no crash state was explored"))


@pytest.mark.parametrize("observation", [UNMOUNTABLE, REPAIRED])
def test_states_that_do_not_mount_are_not_judged(observation: Observation) -> None:
    states = [(FIRST, 0), (LAST, 1), (CrashState(1, (2,)), 2), (CrashState(1, (3,)), 2)]
    seen = bench(states, [NOTHING, ALL, observation])
    found = seen.judge(ORDER)
    assert found is not None
    assert found.verdict is Verdict.HOLDS
    assert [one[:2] for one in seen.unmountable] == states[2:]


def test_nothing_mountable_is_unknown() -> None:
    found = judged([(FIRST, 0), (LAST, 0)], [UNMOUNTABLE])
    assert found.verdict is Verdict.UNKNOWN
    assert "mounted" in (found.reason or "")


@pytest.mark.parametrize(
    ("states", "words"),
    [
        (
            [(FIRST, 1), (LAST, 0)],
            snapshot("a control failed: before the operations operation 1 (write /a 0 4096) is there"),
        ),
        ([(FIRST, 2), (LAST, 0)], snapshot("a control failed: before the operations operation 2 (create /n) is there")),
        (
            [(FIRST, 3), (LAST, 0)],
            snapshot("a control failed: with every write there operation 2 (create /n) is not there"),
        ),
        (
            [(FIRST, 3), (LAST, 2)],
            snapshot("a control failed: with every write there operation 1 (write /a 0 4096) is not there"),
        ),
    ],
)
def test_controls(states: list[tuple[CrashState, int]], words: str) -> None:
    # Where bob misunderstands what it sees, it must not accuse: not even by the states that seem to show something.
    found = judged([*states, (CrashState(1), 2)], [ONE, ALL, OUT_OF_ORDER, NOTHING])
    assert found.evidence is None
    assert found.verdict is Verdict.UNKNOWN
    assert found.reason == words
    assert found.violations == 0


def test_a_finish_that_leaves_things_unwritten_is_no_control() -> None:
    synced = replace(WORKLOAD, finish=Finish("fsync /n", parse("fsync /n")))
    found = judged([(FIRST, 1), (LAST, 0)], [OUT_OF_ORDER, NOTHING], workload=synced)
    assert found.verdict is Verdict.FAILS
    found = judged(
        [(FIRST, 1), (LAST, 0)], [OUT_OF_ORDER, NOTHING], workload=replace(synced, finish=Finish("sync", parse("sync")))
    )
    assert found.verdict is Verdict.UNKNOWN


def workload_result(verdict: Verdict, exhaustive: str | None = "writes", reason: str | None = None) -> ByRecording:
    return ByRecording("w", "natural", verdict, States(5, 8, 2**70, exhaustive), 0, reason)


HOLDS = workload_result(Verdict.HOLDS)
FAILS = workload_result(Verdict.FAILS)
UNKNOWN = workload_result(Verdict.UNKNOWN, None, "the guest was lost")


@pytest.mark.parametrize(
    ("results", "refused", "verdict", "reason"),
    [
        ([HOLDS], None, Verdict.HOLDS, None),
        ([HOLDS, HOLDS], None, Verdict.HOLDS, None),
        ([HOLDS, FAILS], None, Verdict.FAILS, None),
        ([UNKNOWN, FAILS, HOLDS], None, Verdict.FAILS, None),
        ([FAILS], "not recorded", Verdict.FAILS, None),
        ([HOLDS, UNKNOWN], None, Verdict.UNKNOWN, "the guest was lost"),
        ([HOLDS], "not recorded", Verdict.UNKNOWN, "not recorded"),
        ([], "not recorded", Verdict.UNKNOWN, "not recorded"),
        ([], None, Verdict.UNKNOWN, "no workload asks for it"),
    ],
)
def test_cells(results: list[ByRecording], refused: str | None, verdict: Verdict, reason: str | None) -> None:
    found = cell(ORDER, results, refused)
    assert (found.verdict, found.reason) == (verdict, reason)
    assert found.recordings == tuple(results)
    assert found.states.explored == 5 * len(results)
    assert found.states.legal_sectors == 2**70 * len(results)
    if refused or not results or UNKNOWN in results:
        assert found.states.exhaustive is None


LEVELS = (None, "writes", "sectors")


@given(st.lists(st.tuples(st.sampled_from(LEVELS), st.integers(0, 2**70), st.integers(0, 99) | st.none()), max_size=4))
def test_several_workloads_are_exhausted_only_as_far_as_each_is(
    drawn: list[tuple[str | None, int, int | None]],
) -> None:
    parts = [States(5, 8, legal, level, 4, whole, 3, 2) for level, legal, whole in drawn]
    found, count = total(parts), len(parts)
    assert found.exhaustive == min((level for level, *_counts in drawn), key=LEVELS.index, default=None)
    assert found.legal_sectors == sum(legal for _level, legal, _whole in drawn)
    assert (found.explored, found.legal_writes, found.mounted) == (5 * count, 8 * count, 4 * count)
    assert (found.unmountable, found.unmountable_writes) == (3 * count, 2 * count)
    whole = [one for _level, _legal, one in drawn]
    assert found.explored_writes == (None if None in whole else sum(one or 0 for one in whole))


def test_departure_prefers_whole_writes_then_few_gaps() -> None:
    states = [
        CrashState(0),
        CrashState(0, (3, 4, 5)),
        CrashState(0, (0, 1, 3)),
        CrashState(0, (0, 2, 4)),
        CrashState(0, (), ((1, ((0, 1),)),)),
        CrashState(0, (0, 2), ((1, ((0, 1),)),)),
    ]
    assert [departure(state) for state in states] == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 2)]


def test_inode_numbers_of_things() -> None:
    history = simulate(
        Workload("w", parse("create /a; create /b"), parse("rename /a /c; create /a; create /t; unlink /t"))
    )[0]
    numbers = inodes_of_things(history, {"/": 2, "/a": 11, "/b": 12}, {"/": 2, "/a": 14, "/b": 12, "/c": 11})
    assert numbers == {0: 2, 1: 11, 2: 12, 3: 14}
