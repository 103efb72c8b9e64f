"""What a column counts, and whose witness it keeps, against all states of all workloads gone through one by one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import samples_of_runs as samples
from bob.answer.answer import Answer, ClaimWords
from bob.answer.unseen import notes_of
from bob.catalogue.probe_files import shipped_probes
from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.crash.state import CrashState, departure
from bob.judge.column import Column
from bob.observe.observations import ExploredState, MixedStates, Observations, StateTrouble
from bob.observe.unknown_torn import CauseCount, TornCause
from bob.schema import decode
from bob.subject import configuration
from bob.workload.language import parse
from bob.workload.operations import Workload
from wording import text_with

FOUND = [samples.NOTHING, samples.ALL, samples.OUT_OF_ORDER, samples.UNMOUNTABLE]
LONGER = replace(samples.WORKLOAD, name="longer", operations=(*samples.WORKLOAD.operations, *parse("sleep 1")))
STATES = [
    *(CrashState(0, kept) for kept in ((1,), (2,), (1, 2))),
    *(CrashState(0, kept, ((torn, ((0, 1),)),)) for kept, torn in (((), 2), ((1,), 2))),
    *(CrashState(1, kept) for kept in ((), (3,))),
]


@st.composite
def explored(draw: st.DrawFn) -> tuple[Workload, Observations]:
    """A workload, with the controls and some other states, for each of which many others are spoken for."""
    states = draw(st.lists(st.sampled_from(STATES), unique=True))
    counted = st.integers(1, 2**40)
    seen = [ExploredState(state, draw(st.sampled_from(range(len(FOUND)))), draw(counted), 0) for state in states]
    seen = [ExploredState(samples.FIRST, 0), ExploredState(samples.LAST, 1), *seen]
    mounting = [number for number, one in enumerate(seen) if one.outcome != 3]
    troubled = draw(st.lists(st.sampled_from(mounting), max_size=4))
    made = samples.observed(found=FOUND)
    troubles = tuple(StateTrouble(number, "checker", f"inode {number} is wrong") for number in troubled)
    return draw(st.sampled_from([samples.WORKLOAD, LONGER])), replace(made, states=tuple(seen), troubles=troubles)


def rank(operations: Sequence[object], state: CrashState) -> tuple[int, ...]:
    return len(operations), *departure(state)


@settings(max_examples=60)
@given(st.lists(explored(), min_size=1, max_size=3))
def test_everything_is_counted_and_the_easiest_is_kept(runs: list[tuple[Workload, Observations]]) -> None:
    kept: dict[str, Mapping[str, Any]] = {}

    def keep(name: str, document: Mapping[str, Any]) -> str:
        kept[name] = json.loads(json.dumps(document))
        return name

    properties = [probe.property for probe in shipped_probes(("overwrite-any",))]
    column = Column(samples.CONFIGURATION, properties, samples.ENVIRONMENT, keep)
    for workload, observed in runs:
        column.add(samples.case(workload), observed)
    result = column.result(column.cells())

    def all_with(outcome: int) -> list[tuple[Workload, ExploredState]]:
        return [(workload, one) for workload, observed in runs for one in observed.states if one.outcome == outcome]

    def easiest(found: list[tuple[Workload, CrashState]]) -> tuple[int, ...] | None:
        return min((rank(workload.operations, state) for workload, state in found), default=None)

    def of_witness(name: str) -> tuple[int, ...] | None:
        if name not in kept:
            return None
        return rank(kept[name]["workload"]["operations"], decode(CrashState, kept[name]["crash"]["state"]))

    refused, wrong = all_with(3), all_with(2)
    assert (result.unmountable.states if result.unmountable else 0) == sum(one.states for _workload, one in refused)
    first = next((run for run in runs if any(one.outcome == 3 for one in run[1].states)), None)
    in_first = [] if first is None else [(first[0], one.state) for one in first[1].states if one.outcome == 3]
    assert of_witness("unmountable") == easiest(in_first)
    [cell] = result.answers
    assert sum(one.violations for one in cell.recordings) == sum(one.states for _workload, one in wrong)
    assert of_witness("overwrite-any") == easiest([(w, one.state) for w, one in wrong])
    troubled = [(workload, seen.states[one.state].state) for workload, seen in runs for one in seen.troubles]
    assert [way.states for _kind, way in result.troubles()] == ([len(troubled)] if troubled else [])
    assert of_witness("checker") == easiest(troubled)


def test_mixtures_and_causes_reach_the_table() -> None:
    """From observations to a cell, its document and its note."""
    properties = [probe.property for probe in shipped_probes(("overwrite-any", "single-sector-overwrite"))]
    column = Column(samples.CONFIGURATION, properties, samples.ENVIRONMENT, lambda name, _document: name)
    seen = samples.observed(
        *((samples.FIRST, 0), (samples.LAST, 1), (CrashState(0, (1,)), 2)),
        found=[samples.NOTHING, samples.ALL, samples.OVERWRITTEN_ALONE],
    )
    causes = (CauseCount(TornCause.MIXED, 60), CauseCount(TornCause.METADATA, 30), CauseCount(TornCause.JOURNAL, 9))
    column.add(samples.case(), replace(seen, mixtures=(MixedStates(2**66, (0, 2)),), unknown_torn=causes))
    result = column.result(column.cells())
    for cell in result.answers:
        [one] = cell.recordings
        assert cell.verdict is Verdict.HOLDS
        assert one.unknown_torn is TornCause.METADATA
        assert cell.states.explored_torn == 2**66 + 3
    [note] = set(notes_of(result)) - set(result.notes)
    assert text_with(note, "overwrite-any", "single-sector-overwrite", "(natural), where recovery reads torn metadata")


def test_a_promise_is_kept_only_where_somebody_looked() -> None:
    column = Column(configuration("ext4", on="raid5"), (), {"mkfs_version": ""}, lambda *_: "")
    kept = Answer(ClaimWords("property", "untouched"), Verdict.HOLDS, States(4, 8, 2**80))
    for states, verdict, words in (
        (kept.states, Verdict.HOLDS, "raid5 keeps its promise (untouched) in all explored crash states: md by"),
        (
            replace(kept.states, unmountable=2**75),
            Verdict.HOLDS,
            "raid5 keeps its promise (untouched) in all explored crash states that mount; 2^75 do not: md by",
        ),
        (kept.states, Verdict.FAILS, "raid5 breaks its promise (untouched): md by"),
        (kept.states, Verdict.UNKNOWN, "raid5 may keep its promise (untouched): md by"),
    ):
        notes = column.result([replace(kept, states=states, verdict=verdict)]).notes
        assert [note.startswith(words) for note in notes if "promise" in note] == [True]
