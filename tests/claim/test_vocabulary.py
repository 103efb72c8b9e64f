"""One word for each thing: the words of older documents are translated where they are read, and no others are."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob.answer.document import to_json
from bob.apm.clauses import every_clause
from bob.catalogue.request import ProbeRequest, request_from_json, request_to_json
from bob.catalogue.sets import RowSet, probes_of
from bob.claim.kinds import KINDS, claim_of
from bob.claim.mounting import Mountable, Sound
from bob.claim.property.declaration import PropertyDocument
from bob.claim.property.of_property import OfProperty
from bob.claim.property.rules import Question
from bob.claim.property.vocabulary import clause_of_today, row_of_today
from bob.claim.verdict import judged_states
from bob.crash.coverage import States
from bob.crash.state import CrashState
from bob.errors import MalformedError
from bob.observe.observations import ExploredState, TroubleKind
from bob.report.saved import load
from bob.schema import encode
from bob.witness import document as witness
from bob.workload.operations import At, Workload
from report.samples import finer
from witness.test_witness import stored
from wording import text_with

CALLS = ["fsync-file", "fdatasync-file", "fsync-directory", "msync", "o-sync", "o-dsync", "syncfs", "sync", "returned"]
WHATS = ["data", "size", "new-entry", "other-names", "parent-entry", "attribute", "everything"]
OLD_ROWS = [f"{call}.{what}" for call, what in product(CALLS, WHATS)][:-1]
PROBES = {probe.property.name: probe for probe in probes_of(RowSet.DURABILITY)}
ENTRY = PROBES["returned.entry"].property


def test_each_row_of_before_is_a_row_of_today_in_the_same_order() -> None:
    assert [row_of_today(name) for name in OLD_ROWS] == list(PROBES)


def test_what_is_written_today_is_read_as_it_is() -> None:
    rows = [probe.property.name for rows in RowSet for probe in probes_of(rows)]
    assert [row_of_today(name) for name in rows] == rows
    clauses = [clause.name for clause in every_clause()]
    assert [clause_of_today(name) for name in clauses] == clauses


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("durable o-sync-write data", "durable o-sync data"),
        ("durable o-dsync-write other-names", "durable o-dsync other-names"),
        ("durable return entry", "durable returned entry"),
        ("durable returns entry", "durable returns entry"),
        ("durable", "durable"),
        ("return data", "return data"),
        ("ordered return append", "ordered return append"),
    ],
)
def test_calls_of_before_are_translated_in_clauses_of_durability(was: str, now: str) -> None:
    assert clause_of_today(was) == now


def test_a_result_of_before_has_the_rows_of_today(tmp_path: Path) -> None:
    found = to_json(finer(RowSet.DURABILITY))
    [subject] = found["subjects"]
    rows = [
        {**answer["claim"], "name": was, "verdict": answer["verdict"], "states": answer["states"], "workloads": [],
         "witness": None, "evidence": None, "reason": None}
        for answer, was in zip(subject["answers"], OLD_ROWS, strict=True)
    ]  # fmt: skip
    refused = {"states": 0, "witness": None, "error": None}
    column = {"name": "ext4", "fs": "ext4", "properties": rows, "unmountable": refused}
    older = {**found, "schema": "bob.result/1", "configurations": [column]}
    (tmp_path / "result.json").write_text(json.dumps(older))
    [read] = load(tmp_path).result.subjects
    assert [answer.name for answer in read.answers] == [answer["claim"]["name"] for answer in subject["answers"]]


def test_a_request_of_before_asks_for_the_rows_of_today() -> None:
    asked = ProbeRequest(samples.CONFIGURATION, ("fsync-file.new-entry", "sync.data"), rows=RowSet.DURABILITY)
    read = request_from_json(request_to_json(asked))
    assert read.properties == ("fsync-file.entry", "sync.data")


def written(name: str) -> dict[str, object]:
    """A witness of the row ``returned.entry``, under this name."""
    prop = replace(ENTRY, name=name)
    case = samples.case(replace(samples.WORKLOAD, at=At.END))
    showing = witness.ShownState(case, samples.LAST, OfProperty(name, Question((2,), returned=2), prop), "it is gone")
    return witness.write(showing, environment=samples.ENVIRONMENT)


def test_a_witness_of_before_is_of_the_row_of_today(tmp_path: Path) -> None:
    read = witness.read(stored(tmp_path, written("returned.new-entry")))
    assert read == witness.read(stored(tmp_path, written("returned.entry")))
    assert isinstance(read.claim, OfProperty) and read.claim.resolved == ENTRY


@pytest.mark.parametrize(
    "call", ["return", "o-sync-write", "fsync-fiel", "fsync", "", "Sync", 5, None, [], {}, ["sync"]]
)
def test_a_witness_of_an_unknown_call_is_refused_in_a_line(tmp_path: Path, call: object) -> None:
    probe = encode(PropertyDocument.of(ENTRY))
    made = {**written(ENTRY.name), "probe": {**probe, "judge": {**probe["judge"], "call": call}}}
    with pytest.raises(MalformedError, match=r"expected one of fsync-file, |needs a 'call'") as caught:
        witness.read(stored(tmp_path, made))
    assert "\n" not in caught.value.message


# States that do not mount are counted apart, no claim of completeness covers them; which kind a claim is of

WHOLE, TORN = CrashState(0, (1,)), CrashState(0, (), ((1, ((0, 1),)),))
LEVELS = (None, "writes", "sectors")


@pytest.mark.parametrize(
    ("level", "refused", "claimed"),
    [
        ("sectors", ExploredState(TORN, 1, 3, 0), "writes"),
        ("sectors", ExploredState(WHOLE, 1, 3, 1), None),
        ("writes", ExploredState(TORN, 1, 3, 0), "writes"),
        ("writes", ExploredState(WHOLE, 1, 3, 2), None),
        (None, ExploredState(TORN, 1, 3, 0), None),
    ],
)
def test_what_does_not_mount_is_not_covered(level: str | None, refused: ExploredState, claimed: str | None) -> None:
    found = judged_states(
        States(100, 8, 100, level, 4), [ExploredState(WHOLE, 0, 97, 8 - refused.whole_states), refused], {0}
    )
    assert found == States(97, 8, 100, claimed, 4, 8 - refused.whole_states, 3, refused.whole_states)


@pytest.mark.parametrize("level", LEVELS)
def test_where_all_mount_the_claim_stands(level: str | None) -> None:
    found = judged_states(
        States(100, 8, 100, level, 4), [ExploredState(WHOLE, 0, 97, 8), ExploredState(TORN, 0, 3, 0)], {0}
    )
    assert found == States(100, 8, 100, level, 4, 8)


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, None]), st.integers(0, 5), st.integers(0, 5)), max_size=8),
    st.sampled_from(LEVELS),
)
def test_each_state_is_counted_once(rows: list[tuple[int | None, int, int]], level: str | None) -> None:
    states = [ExploredState(CrashState(0), outcome, whole + torn, whole) for outcome, whole, torn in rows]
    known = [row for row in rows if row[0] is not None]
    total_whole, total = sum(row[1] for row in known), sum(row[1] + row[2] for row in known)
    legal = States(total, total_whole + (level is None), total + 1 - (level == "sectors"), level)
    found = judged_states(legal, states, {0})
    mounting = [row for row in known if row[0] == 0]
    assert found.explored == sum(row[1] + row[2] for row in mounting)
    assert found.explored_writes == sum(row[1] for row in mounting)
    assert found.explored_torn == sum(row[2] for row in mounting)
    assert found.explored + found.unmountable == total
    if found.exhaustive is not None:
        assert found.explored_writes == found.legal_writes
    if found.exhaustive == "sectors":
        assert found.explored == found.legal_sectors


def test_of_an_old_observation_at_least_the_states_themselves_are_whole() -> None:
    found = judged_states(
        States(9, 8, 100, None),
        [ExploredState(WHOLE, 0, 5), ExploredState(TORN, 0, 4), ExploredState(WHOLE, 0, 0)],
        {0},
    )
    assert (found.explored, found.explored_writes) == (9, 1)


# Which kind of claim a witness is of


NOTHING = Workload("w", (), ())
CLAIMS = (Mountable(), Sound(TroubleKind.READ_ONLY))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.kind)
@pytest.mark.parametrize("is_named", [True, False])
def test_a_claim_is_read_back_by_its_name_and_in_older_documents_without_it(
    claim: Mountable | Sound, is_named: bool
) -> None:
    document = {**({"claim": claim.kind} if is_named else {}), **claim.to_json()}
    assert claim_of(document, NOTHING, {}) == claim
    assert claim.kind in KINDS


def test_a_kind_that_this_bob_does_not_know_is_no_state_that_does_not_mount() -> None:
    with pytest.raises(MalformedError) as refused:
        claim_of({"claim": "too-long", **Mountable().to_json()}, NOTHING, {})
    assert text_with(str(refused.value), "too-long") == snapshot(
        "its claim is of the kind 'too-long', which this bob does not know"
    )


def test_a_kind_without_what_it_needs_is_refused() -> None:
    with pytest.raises(ValueError) as refused:
        claim_of({"claim": "trouble", **Mountable().to_json()}, NOTHING, {})
    assert text_with(str(refused.value), "unmountable") == snapshot(
        "its claim has the fields of the kind 'unmountable', but names the kind 'trouble'"
    )
