"""Documents of older versions: each verdict, count and witness of them is in the result that is made of them."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bob import counts, documents
from bob.answer.document import from_json, results_in, to_json
from bob.answer.result import Result, SubjectResult
from bob.claim.property.vocabulary import row_of_today
from bob.claim.verdict import Verdict
from bob.errors import MalformedError
from bob.schema import encode

SAMPLES = Path(__file__).parent
TABLES = [SAMPLES / f"{name}-1.json.xz" for name in ("durability", "osdi14", "pairs")]
PROGRAMS = [SAMPLES / f"{name}-1.json.xz" for name in ("apps", "models")]


def read(path: Path) -> Any:
    data = path.read_bytes()
    return documents.opened(lzma.decompress(data) if path.suffix == ".xz" else data)


def every(path: Path) -> Iterator[tuple[Mapping[str, Any], Result]]:
    """Each old document in a file, with what is made of it."""
    document = read(path)
    yield from zip(document.get("programs", [document]), results_in(document), strict=True)


def whole(states: Mapping[str, Any]) -> dict[str, Any]:
    """The states of an old document, their counts as numbers."""
    return {
        name: value if value is None or name == "exhaustive" else counts.read(value) for name, value in states.items()
    }


def states_of(found: Any) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__dataclass_fields__}


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name.partition("-")[0])
def test_a_table_says_what_it_said(path: Path) -> None:
    [(old, result)] = every(path)
    assert result.run.id == old["run"]["id"]
    for column, subject in zip(old["configurations"], result.subjects, strict=True):
        assert (subject.name, subject.notes) == (column["name"], tuple(column["notes"]))
        for cell, answer in zip(column["properties"], subject.answers, strict=True):
            assert (answer.name, answer.family, answer.verdict) == (
                row_of_today(cell["name"]),
                cell["family"],
                cell["verdict"],
            )
            assert (answer.evidence, answer.witness, answer.reason) == (
                cell["evidence"],
                cell["witness"],
                cell["reason"],
            )
            assert states_of(answer.states) == whole(cell["states"])
            rows = [
                (one["name"], one["finish"], one["verdict"], counts.read(one.get("violations", 0)), one.get("reason"))
                for one in cell["workloads"]
            ]
            assert rows == [(r.name, r.finish, r.verdict, r.violations, r.reason) for r in answer.recordings]
            assert answer.violations == sum(row[3] for row in rows)
            for one, recording in zip(cell["workloads"], answer.recordings, strict=True):
                states = column["states"][one["states"]] if isinstance(one["states"], int) else one["states"]
                assert states_of(recording.states) == whole(states)
        refused = column["unmountable"]
        known = subject.unmountable
        told = (0, None, None) if known is None else (known.states, known.evidence, known.witness)
        assert told == (counts.read(refused["states"]), refused["error"], refused["witness"])
        troubles = sorted((kind.value, way.states, way.evidence, way.witness) for kind, way in subject.troubles())
        assert troubles == sorted(
            (one["kind"], counts.read(one["states"]), one["words"], one["witness"]) for one in column["troubles"]
        )


SAFETY = {"safe": Verdict.HOLDS, "vulnerable": Verdict.FAILS, "unknown": Verdict.UNKNOWN}


def check_ways(old: Mapping[str, Any], subject: SubjectResult, states: str) -> None:
    [answer] = subject.answers
    assert (answer.verdict, answer.reason) == (SAFETY[old["safety"]], old["reason"])
    assert subject.notes == tuple(old["notes"])
    assert subject.checks is not None
    assert (subject.checks.trees, subject.checks.runs) == (old["trees"], old["checks"])
    for one, way in zip(old["vulnerabilities"], answer.ways, strict=True):
        assert (way.evidence, way.witness, way.consequence) == (one["evidence"], one.get("witness"), one["consequence"])
        assert (way.states, way.trees, way.told) == (counts.read(one[states]), one["trees"], one["told"])
        assert dict(way.crossed) == one.get("crossed", {})
        for old_need, need in zip(one["relied_on"], way.relied_on, strict=True):
            explained = need.explanation
            assert (explained.reliance, list(explained.missing), list(explained.there)) == (
                old_need["reliance"],
                old_need["missing"],
                old_need["there"],
            )
            assert (need.sentence, need.trees, need.kind) == (
                old_need["sentence"],
                old_need["trees"],
                old_need.get("kind", ""),
            )
            calls = [(one["number"], one["words"], tuple(one["stack"])) for one in old_need["calls"]]
            assert calls == [(one.number, one.words, one.stack) for one in need.calls]


@pytest.mark.parametrize("path", PROGRAMS, ids=["file systems", "models"])
def test_a_program_has_the_answers_that_it_had(path: Path) -> None:
    for old, result in every(path):
        assert result.program is not None and result.program.name == old["program"]["name"]
        real = [subject for subject in result.subjects if subject.model is None]
        for one, subject in zip(old["configurations"], real, strict=True):
            check_ways(one, subject, "states")
            assert subject.name == one["name"]
            states = states_of(subject.answers[0].states)
            named = {**one, "mounted": one["mounted_states"]}
            assert states == whole({name: named[name] for name in states})
        modelled = [subject for subject in result.subjects if subject.model is not None]
        for one, subject in zip(old.get("models", ()), modelled, strict=True):
            check_ways(one, subject, "trees")
            model = subject.model
            assert model is not None
            assert (subject.name, model.about, model.tried, model.is_all) == (
                one["model"],
                one["about"],
                one["tried"],
                one["all"],
            )
            assert model.allowed == (counts.read(one["allowed"]) if "allowed" in one else None)
            assert [missed.evidence for missed in model.missed] == [missed["evidence"] for missed in one["missed"]]
        steps = [len(protocol["steps"]) for protocol in old.get("protocols", ())]
        assert steps == [len(protocol.steps) for protocol in result.protocols]


QUESTIONS: Mapping[str, Any] = json.loads(Path(__file__).with_name("try-1.json").read_text())
"""Documents that an older version wrote."""


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_has_the_answers_that_it_had(name: str) -> None:
    old = QUESTIONS[name]
    result = from_json(old)
    [subject] = result.subjects
    assert result.workload is not None
    assert result.workload.operations == tuple(old["workload"]["operations"])
    assert (result.workload.at.value, subject.notes) == (old["at"], tuple(old["notes"]))
    assert (subject.name, subject.effective_mount_options) == (
        old["configuration"]["name"],
        old["effective_mount_options"],
    )
    for one, answer in zip(old["expectations"], subject.answers, strict=True):
        told = (answer.name, answer.verdict, answer.violations, answer.reason, answer.needs_no_crash)
        assert told == tuple(one[key] for key in ("expectation", "verdict", "violations", "reason", "needs_no_crash"))
        assert states_of(answer.states) == whole(old["states"])
        ways = [(way.evidence, way.states, way.witness, way.place, list(way.by_recording)) for way in answer.ways]
        assert ways == [
            tuple(way[key] for key in ("evidence", "violations", "witness", "finish", "by_finish"))
            for way in one["ways"]
        ]
        each = [(by.verdict, by.violations, by.reason, by.needs_no_crash) for by in answer.recordings]
        assert each == [
            tuple(by[key] for key in ("verdict", "violations", "reason", "needs_no_crash")) for by in one["by_finish"]
        ]
    refused = subject.unmountable
    assert (0 if refused is None else refused.states) == old["unmountable"]["states"]
    unmountable = next((answer.ways for answer in subject.beside), ())
    shown = {way.place: (way.states, way.evidence, way.witness) for way in unmountable}
    for place, finish in enumerate(old["finishes"]):
        recording = subject.answers[0].recordings[place]
        assert (recording.finish, states_of(recording.states)) == (finish["name"], whole(finish["states"]))
        assert recording.is_recorded == (finish["refused"] is None)
        assert (None if recording.fall is None else encode(recording.fall)) == finish["fall"]
        one = finish["unmountable"]
        assert shown.get(place, (0, None, None)) == (one["states"], one["error"], one["witness"])


def test_a_question_that_was_asked_after_one_finish_has_that_of_its_workload() -> None:
    old = json.loads(json.dumps(QUESTIONS["one finish"]))
    del old["finishes"]
    for one in old["expectations"]:
        del one["by_finish"]
        for way in one["ways"]:
            del way["finish"], way["by_finish"]
    assert from_json(old) == from_json(QUESTIONS["one finish"])


@pytest.mark.parametrize("path", [*TABLES, *PROGRAMS], ids=lambda path: path.name.partition("-")[0])
def test_what_is_made_of_it_is_a_document_of_today(path: Path) -> None:
    for _old, result in every(path):
        assert from_json(json.loads(json.dumps(to_json(result)))) == result


@pytest.mark.parametrize("place", [1, -1, True, 10**9])
def test_a_place_in_a_list_of_states_that_has_no_such_place(place: int) -> None:
    document = read(TABLES[0])
    column = document["configurations"][0]
    column["states"] = column["states"][:1]
    column["properties"][0]["workloads"][0]["states"] = place
    with pytest.raises(MalformedError, match="damaged"):
        from_json(document)


@pytest.mark.parametrize("field", ["run", "configurations", "environment", "device_model"])
def test_a_table_that_lacks_a_field_is_refused(field: str) -> None:
    document = read(TABLES[0])
    del document[field]
    with pytest.raises(MalformedError, match=f"damaged: '{field}' is missing"):
        from_json(document)
