"""One word for each thing: the words of older documents are translated where they are read, and no others are."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

import samples_of_runs as samples
from bob.apm.clauses import every_clause
from bob.catalogue.sets import Rows, probes_of
from bob.claim.property.declaration import declaration
from bob.claim.property.of_property import OfProperty
from bob.claim.property.rules import Question
from bob.claim.property.vocabulary import clause_of_today, row_of_today
from bob.crash.device import DeviceModel
from bob.errors import MalformedError
from bob.report.saved import read_result
from bob.request import ProbeRequest, request_from_json, request_to_json
from bob.result import to_json
from bob.witness import document as witness
from bob.workload.operations import At
from report.samples import finer
from witness.test_witness import stored

CALLS = ["fsync-file", "fdatasync-file", "fsync-directory", "msync", "o-sync", "o-dsync", "syncfs", "sync", "returned"]
WHATS = ["data", "size", "new-entry", "other-names", "parent-entry", "attribute", "everything"]
OLD_ROWS = [f"{call}.{what}" for call, what in product(CALLS, WHATS)][:-1]
PROBES = {probe.property.name: probe for probe in probes_of(Rows.DURABILITY)}
ENTRY = PROBES["returned.entry"].property


def test_each_row_of_before_is_a_row_of_today_in_the_same_order() -> None:
    assert [row_of_today(name) for name in OLD_ROWS] == list(PROBES)


def test_what_is_written_today_is_read_as_it_is() -> None:
    rows = [probe.property.name for rows in Rows for probe in probes_of(rows)]
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
    found = finer(Rows.DURABILITY)
    [column] = found.configurations
    older = tuple(replace(cell, name=was) for cell, was in zip(column.properties, OLD_ROWS, strict=True))
    written = to_json(replace(found, configurations=(replace(column, properties=older),)))
    (tmp_path / "result.json").write_text(json.dumps(written))
    assert read_result(tmp_path) == found


def test_a_request_of_before_asks_for_the_rows_of_today() -> None:
    asked = ProbeRequest(samples.CONFIGURATION, ("fsync-file.new-entry", "sync.data"), rows=Rows.DURABILITY)
    read = request_from_json(request_to_json(asked))
    assert read.properties == ("fsync-file.entry", "sync.data")


def written(name: str) -> dict[str, object]:
    """A witness of the row ``returned.entry``, under this name."""
    prop = replace(ENTRY, name=name)
    case = samples.case(replace(samples.WORKLOAD, at=At.END))
    showing = witness.Showing(case, samples.LAST, OfProperty(name, Question((2,), returned=2), prop), "it is gone")
    return witness.write(
        showing, environment=samples.ENVIRONMENT, configuration=samples.CONFIGURATION, model=DeviceModel()
    )


def test_a_witness_of_before_is_of_the_row_of_today(tmp_path: Path) -> None:
    read = witness.read(stored(tmp_path, written("returned.new-entry")))
    assert read == witness.read(stored(tmp_path, written("returned.entry")))
    assert isinstance(read.claim, OfProperty) and read.claim.resolved == ENTRY


@pytest.mark.parametrize(
    "call", ["return", "o-sync-write", "fsync-fiel", "fsync", "", "Sync", 5, None, [], {}, ["sync"]]
)
def test_a_witness_of_an_unknown_call_is_refused_in_a_line(tmp_path: Path, call: object) -> None:
    probe = declaration(ENTRY)
    made = {**written(ENTRY.name), "probe": {**probe, "judge": {**probe["judge"], "call": call}}}
    with pytest.raises(MalformedError, match="is none of fsync-file, ") as caught:
        witness.read(stored(tmp_path, made))
    assert "\n" not in caught.value.message
