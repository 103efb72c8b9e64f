"""The sets of rows: their probes, and how they are asked for."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bob.catalogue.sets import Rows, asked_probes, probes_of
from bob.claim.property.declaration import declaration, declared
from bob.claim.property.rules import questions
from bob.claim.property.subjects import Span
from bob.errors import UsageError
from bob.request import ProbeRequest, request_from_json, request_to_json
from bob.run.prober import distinct
from bob.subject import configuration
from bob.workload.operations import At
from bob.workload.simulation import simulate

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("rows", Rows)
def test_the_probes_of_a_set(rows: Rows) -> None:
    probes = probes_of(rows)
    names = [probe.property.name for probe in probes]
    assert len(set(names)) == len(names)
    assert [probe.row for probe in probes] == list(range(1, len(probes) + 1))
    for probe in probes:
        assert probe.workloads
        assert declared(json.loads(json.dumps(declaration(probe.property)))) == probe.property
    recordings = distinct(workload for probe in probes for workload in probe.workloads)
    assert f"| `{rows.value}` | {len(probes)} | {len(recordings)} |" in (DOCS / "finer-tables.md").read_text()


@pytest.mark.parametrize("rows", [Rows.DURABILITY, Rows.UNITS])
def test_each_workload_asks_for_what_it_is_in(rows: Rows) -> None:
    for probe in probes_of(rows):
        for workload in probe.workloads:
            assert questions(probe.property, simulate(workload)[0])
            assert (workload.at is At.END) == (rows is Rows.DURABILITY)


def test_units_are_sizes_of_writes() -> None:
    spans = {probe.property.name: probe.property.spans for probe in probes_of(Rows.UNITS)}
    assert spans["append.sector"] == (Span.SECTOR,)
    assert spans["overwrite.whole"] == (Span.BLOCKS,)
    assert spans["rename-over.whole"] == ()


def test_names_are_looked_up_in_their_set() -> None:
    [probe] = asked_probes(("sync.data",), (), Rows.DURABILITY)
    assert probe.property.name == "sync.data"
    with pytest.raises(UsageError, match=re.escape("unknown property 'sync.data'")):
        asked_probes(("sync.data",), ())


def test_a_request_keeps_its_rows() -> None:
    request = ProbeRequest(configuration("ext4"), ("sync.data",), rows=Rows.DURABILITY)
    document = json.loads(json.dumps(request_to_json(request)))
    assert request_from_json(document) == request
    del document["rows"]
    assert request_from_json(document) == replace(request, rows=Rows.TABLE1)


def test_workloads_that_differ_in_when_the_crash_comes_are_two() -> None:
    [workload, *_more] = probes_of(Rows.DURABILITY)[0].workloads
    assert len(distinct([workload, replace(workload, at=At.ANY), workload])) == 2
