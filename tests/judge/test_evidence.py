"""Each state that a result shows as a violation is one that a guest recovers, if the host recovered it before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import samples_of_runs as samples
from bob.catalogue.request import ProbeRequest
from bob.claim.expectation.language import parse
from bob.claim.property.judged_case import JudgedCase, WorkloadVerdict
from bob.claim.property.rules import Property
from bob.crash.state import CrashState
from bob.judge.column import Column
from bob.judge.expectations import said_by, together
from bob.observe.observations import ExploredState, Observations
from bob.run.prober import evidence_of
from bob.schema import decode

FOUND = [samples.NOTHING, samples.ALL, samples.OUT_OF_ORDER, samples.UNMOUNTABLE, samples.OVERWRITTEN_ALONE]
STATES = [
    *(CrashState(0, kept) for kept in ((1,), (2,), (1, 2))),
    *(CrashState(0, kept, ((torn, ((0, 1),)),)) for kept, torn in (((), 2), ((1,), 2))),
    *(CrashState(1, kept) for kept in ((), (3,))),
]
REQUEST = ProbeRequest(samples.CONFIGURATION)


@st.composite
def explored(draw: st.DrawFn) -> Observations:
    states = draw(st.lists(st.sampled_from(STATES), unique=True))
    seen = [ExploredState(state, draw(st.sampled_from(range(len(FOUND))))) for state in states]
    controls = [ExploredState(samples.FIRST, 0), ExploredState(samples.LAST, 1)]
    return replace(samples.observed(found=FOUND), states=(*controls, *seen))


def recovered(request: ProbeRequest, observed: Observations, *texts: str) -> set[CrashState]:
    """The states that a guest recovers."""
    case = samples.case()
    return evidence_of(request, [parse(text) for text in texts])(JudgedCase.of(case, observed), case, observed)


@settings(max_examples=60)
@given(explored(), st.booleans())
def test_a_guest_recovers_what_a_witness_of_a_probe_is_made_of(observed: Observations, by_cause: bool) -> None:
    shown = set[CrashState]()

    def keep(name: str, document: Mapping[str, Any]) -> str:
        shown.add(decode(CrashState, document["crash"]["state"]))
        return name

    request = replace(REQUEST, by_cause=by_cause)
    properties = [probe.property for probe in request.asked]
    column = Column(samples.CONFIGURATION, properties, samples.ENVIRONMENT, keep, by_cause=by_cause)
    column.add(samples.case(), observed)
    column.result(column.cells())
    assert shown <= recovered(request, observed)


@settings(max_examples=60)
@given(explored())
def test_a_guest_recovers_what_breaks_an_expectation(observed: Observations) -> None:
    text = "exists /n implies content /a = op1"
    case = samples.case()
    said = said_by([parse(text)], JudgedCase.of(case, observed), observed, case.complete)
    _answer, shown = together(parse(text), said)
    refused = {one.state for one in observed.states if one.outcome == FOUND.index(samples.UNMOUNTABLE)}
    found = recovered(REQUEST, observed, text)
    assert {*shown} <= found
    assert bool(refused) == bool(refused & found)


def test_each_kind_of_evidence_occurs() -> None:
    """So that the tests above can fail."""
    states = ((CrashState(0, (2,)), 2), (CrashState(0, (1,)), 3), (CrashState(1), 2))
    observed = samples.observed((samples.FIRST, 0), (samples.LAST, 1), *states, found=FOUND)
    assert CrashState(0, (1,)) in recovered(REQUEST, observed), "it does not mount"
    assert recovered(REQUEST, observed) > {CrashState(0, (1,))}, "a property is broken"
    assert len(recovered(REQUEST, observed, "exists /n implies content /a = op1")) > 1


def test_a_property_that_bob_cannot_judge_does_not_hide_the_evidence_against_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    observed = samples.observed((samples.FIRST, 0), (samples.LAST, 1), (CrashState(0, (2,)), 2), found=FOUND)
    before, judge, faults = recovered(REQUEST, observed), JudgedCase.judge, list[str]()

    def faulty(bench: JudgedCase, prop: Property) -> WorkloadVerdict | None:
        if not faults:
            faults.append(prop.name)
            raise LookupError("a fault of bob")
        return judge(bench, prop)

    monkeypatch.setattr(JudgedCase, "judge", faulty)
    assert recovered(REQUEST, observed) == before
    assert faults
