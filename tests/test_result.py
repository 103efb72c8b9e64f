"""The result document: numbers stay exact, and totals claim no more than each part."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.claim.verdict import Verdict
from bob.counts import written
from bob.crash.caches import CACHES
from bob.crash.coverage import NOTHING, States, total
from bob.crash.device import DeviceModel
from bob.errors import MalformedError
from bob.observe.observations import TroubleKind
from bob.result import (
    SCHEMA,
    Cause,
    ConfigurationResult,
    Environment,
    Finding,
    PropertyResult,
    Result,
    Run,
    Trouble,
    Unmountable,
    WorkloadResult,
    condensed,
    from_json,
    to_json,
)
from bob.schema import decode
from bob.trace.recording import Completion
from wording import sentence_with

TEXT = st.text(max_size=20)
MAYBE = st.none() | TEXT
COUNT = st.one_of(st.integers(0, 100), st.integers(2**53 - 2, 2**53 + 2), st.integers(0, 2**300))
LEVEL = st.sampled_from([None, "writes", "sectors"])
STATES = st.builds(States, COUNT, COUNT, COUNT, LEVEL, COUNT, st.none() | COUNT, COUNT, COUNT)
WORKLOADS = st.builds(WorkloadResult, TEXT, TEXT, st.sampled_from(Verdict), STATES, COUNT, MAYBE)
PROPERTIES = st.builds(
    PropertyResult,
    TEXT,
    TEXT,
    st.sampled_from(Verdict),
    STATES,
    st.lists(WORKLOADS, max_size=2).map(tuple),
    MAYBE,
    MAYBE,
    MAYBE,
    TEXT,
)
TEXTS = st.lists(TEXT, max_size=2).map(tuple)
FINDINGS = st.builds(
    Finding,
    st.builds(Cause, *[TEXT] * 5, TEXTS),
    TEXT,
    TEXTS,
    TEXTS,
    st.integers(1, 9),
    TEXT,
    TEXT,
    st.integers(1, 9),
    TEXT,
    MAYBE,
)
COLUMNS = st.builds(
    ConfigurationResult,
    *[TEXT] * 5,
    st.lists(PROPERTIES, max_size=2).map(tuple),
    st.builds(Unmountable, COUNT, MAYBE, MAYBE),
    st.lists(TEXT, max_size=2).map(tuple),
    TEXT,
    st.lists(st.builds(Trouble, st.sampled_from(TroubleKind), COUNT, TEXT, MAYBE), max_size=2).map(tuple),
    COUNT,
    COUNT,
    st.lists(FINDINGS, max_size=2).map(tuple),
)
RESULTS = st.builds(
    Result,
    st.builds(Run, TEXT, TEXT, TEXT, TEXT, COUNT, COUNT, MAYBE),
    st.builds(Environment, *[TEXT] * 7),
    st.sampled_from([DeviceModel(), DeviceModel(CACHES["none"], 4096, Completion.OLDEST_FIRST)]),
    st.lists(COLUMNS, max_size=2).map(tuple),
)


@given(RESULTS)
def test_documents_read_back_the_same(result: Result) -> None:
    document = json.loads(json.dumps(to_json(result)))
    assert from_json(document) == result
    assert all(abs(number) <= 2**53 for number in numbers(document))
    assert result.has_unknown == any(
        cell.verdict is Verdict.UNKNOWN for column in result.configurations for cell in column.properties
    )


@given(RESULTS)
def test_what_older_results_say_of_searches_in_cells_is_left_out(result: Result) -> None:
    document = to_json(result)
    del document["run"]["search"]
    for cell in (cell for column in document["configurations"] for cell in column["properties"]):
        cell["searched"] = {"workloads": 3, "failing": 1, "searches": {"x": "bounds small"}, "verdict": "holds"}
    assert from_json(document) == replace(result, run=replace(result.run, search=None))


@given(RESULTS)
def test_an_older_result_says_nothing_of_troubles(result: Result) -> None:
    document = to_json(result)
    for column in document["configurations"]:
        for name in ("troubles", "examined", "examinable", "findings"):
            column.pop(name, None)
    for column in from_json(document).configurations:
        assert (column.troubles, column.examined, column.examinable, column.findings) == ((), 0, 0, ())


def test_findings_are_there_where_there_are_some() -> None:
    [column] = SMALL.configurations
    assert "findings" not in to_json(SMALL)["configurations"][0]
    one = Finding(Cause("durable"), "words", ("p",), (), 1, "w", "natural", 1, "evidence")
    made = to_json(replace(SMALL, configurations=(replace(column, findings=(one,)),)))
    assert made["configurations"][0]["findings"][0]["cause"]["rule"] == "durable"


def numbers(value: Any) -> list[int]:
    match value:
        case dict():
            return [number for inner in value.values() for number in numbers(inner)]
        case list():
            return [number for inner in value for number in numbers(inner)]
        case int():
            return [value]
    return []


SMALL = Result(
    Run("id", "then", "later", "0.1", 1, 200),
    Environment(*"abcdefg"),
    DeviceModel(),
    (
        ConfigurationResult(
            "ext4-ordered", "ext4", "", "data=ordered", "rw", (PropertyResult("p", "f", Verdict.HOLDS, NOTHING),)
        ),
    ),
)


@given(COUNT)
def test_counts_beyond_what_json_readers_have_are_digits(count: int) -> None:
    cell = replace(SMALL.configurations[0].properties[0], states=States(1, count, count, "writes"))
    document = to_json(replace(SMALL, configurations=(replace(SMALL.configurations[0], properties=(cell,)),)))
    told = document["configurations"][0]["properties"][0]["states"]["legal_sectors"]
    assert told == (count if count <= 2**53 else written(count))
    assert decode(States, {"explored": "1", "legal_writes": told, "legal_sectors": told, "exhaustive": None}) == States(
        1, count, count, None, mounted=1
    ), "before there were predictions, all were mounted"


def test_a_result_that_is_older_than_the_choice_of_completion_was_prompt() -> None:
    model = DeviceModel(completion=Completion.YOUNGEST_FIRST)
    document = to_json(replace(SMALL, model=model))
    assert from_json(document).model == model
    del document["device_model"]["completion"]
    assert from_json(document).model.completion is Completion.PROMPT


@given(RESULTS)
def test_a_condensed_document_says_the_same(result: Result) -> None:
    document = to_json(result)
    kept = json.loads(json.dumps(condensed(document)))
    assert from_json(kept) == result
    assert document == to_json(result), "it was not changed"
    for column in kept["configurations"]:
        assert all(column["states"].count(states) == 1 for states in column["states"])


@pytest.mark.parametrize("place", [1, -1, True, 10**9])
def test_a_place_in_a_list_that_has_no_such_place(place: int) -> None:
    row = WorkloadResult("w", "natural", Verdict.HOLDS, NOTHING)
    cell = replace(SMALL.configurations[0].properties[0], workloads=(row,))
    document = condensed(
        to_json(replace(SMALL, configurations=(replace(SMALL.configurations[0], properties=(cell,)),)))
    )
    document["configurations"][0]["properties"][0]["workloads"][0]["states"] = place
    with pytest.raises(MalformedError, match="damaged"):
        from_json(document)


def test_a_later_bob_may_add_fields() -> None:
    document = to_json(SMALL)
    for table in (
        document,
        document["run"],
        document["environment"],
        document["device_model"],
        document["configurations"][0],
        document["configurations"][0]["unmountable"],
        document["configurations"][0]["properties"][0],
        document["configurations"][0]["properties"][0]["states"],
    ):
        table["shrunk"] = True
    assert from_json(document) == SMALL


@pytest.mark.parametrize(
    "document", [{}, [], None, "x", {"schema": None}, {"schema": "bob.result/2"}, {"schema": "bob.witness/1"}]
)
def test_other_documents_are_refused(document: Any) -> None:
    with pytest.raises(MalformedError, match=r"is not 'bob\.result/1'"):
        from_json(document)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("run", None),
        ("run", {"id": "x"}),
        ("run.seed", "many"),
        ("environment", []),
        ("device_model", {}),
        ("configurations", None),
        ("configurations", ["x"]),
        ("configurations.0", {}),
        ("configurations.0.properties", "x"),
        ("configurations.0.properties.0.verdict", "perhaps"),
        ("configurations.0.properties.0.states", None),
        ("configurations.0.properties.0.states.explored", "many"),
        ("configurations.0.properties.0.workloads", [5]),
        ("configurations.0.unmountable", None),
    ],
)
def test_damage_is_told_in_one_line(path: str, value: Any) -> None:
    document = json.loads(json.dumps(to_json(SMALL)))
    *above, last = [int(word) if word.isdigit() else word for word in path.split(".")]
    table = document
    for word in above:
        table = table[word]
    table[last] = value
    with pytest.raises(MalformedError) as caught:
        from_json(document)
    assert sentence_with(caught.value.message, "document") == snapshot("the result document is damaged:")
    assert "\n" not in caught.value.message


@given(st.lists(STATES, max_size=5))
def test_totals(parts: list[States]) -> None:
    whole = total(parts)
    assert whole.explored == sum(part.explored for part in parts)
    assert whole.legal_writes == sum(part.legal_writes for part in parts)
    assert whole.unmountable == sum(part.unmountable for part in parts)
    assert whole.unmountable_writes == sum(part.unmountable_writes for part in parts)
    told = [part.explored_writes for part in parts if part.explored_writes is not None]
    assert whole.explored_writes == (sum(told) if len(told) == len(parts) else None)
    assert whole.legal_sectors == sum(part.legal_sectors for part in parts)
    order = [None, "writes", "sectors"]
    assert whole.exhaustive == (min((part.exhaustive for part in parts), key=order.index) if parts else None)


def test_the_schema_is_the_one_that_is_documented() -> None:
    assert to_json(SMALL)["schema"] == SCHEMA == "bob.result/1"
