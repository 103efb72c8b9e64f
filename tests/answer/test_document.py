"""The document of a result: what is written is read again, each recording stands once, and damage is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from bob.answer.answer import Answer, ByRecording, ClaimWords, Way
from bob.answer.document import SEVERAL, from_json, results_in, to_json
from bob.answer.result import Environment, Result, Run, SubjectResult
from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.crash.device import DeviceModel, DeviceModelDocument
from bob.errors import MalformedError
from bob.schema import LATER
from bob.trace.recording import Completion

from .samples import RESULTS

CLAIM = ClaimWords("property", "append-any", "ordering", "an append is persisted before any later operation")
ALL, SOME = States(7, 7, 9, "writes", 7, 7), States(812, 4096, 2**88, None, 203, 700)
RECORDINGS = (
    ByRecording("w", "natural", Verdict.FAILS, SOME, 2**70),
    ByRecording("w", "sync", Verdict.HOLDS, ALL),
)
FAILS = Answer(CLAIM, Verdict.FAILS, SOME, (Way("the append is not there", 2**70, "witnesses/a.json"),), RECORDINGS)
HOLDS = Answer(ClaimWords("property", "directory-op"), Verdict.HOLDS, ALL, (), RECORDINGS[1:])
SMALL = Result(
    Run("20261121T230021-1f2e3d", "2026-11-21T23:00:21Z", "2026-11-21T23:04:33Z", "0.1.0", 1, 200),
    Environment("6.1.0-31-amd64", "debian-bookworm", "tcg", "virtual", "7.2.0", "9.0.0", "1.47.0"),
    DeviceModelDocument.of(DeviceModel()),
    (SubjectResult("ext4", "ext4", answers=(FAILS, HOLDS)),),
)


def written(result: Result) -> dict[str, Any]:
    """The document as it is in a file."""
    document: dict[str, Any] = json.loads(json.dumps(to_json(result)))
    return document


@settings(max_examples=60)
@given(RESULTS)
def test_what_is_written_is_read_again(result: Result) -> None:
    assert from_json(written(result)) == result


@settings(max_examples=60)
@given(RESULTS)
def test_each_recording_stands_once_and_each_answer_names_its_own(result: Result) -> None:
    for subject, document in zip(result.subjects, written(result)["subjects"], strict=True):
        recordings = document["recordings"]
        assert all(recordings.count(one) == 1 for one in recordings)
        named = {one["recording"] for answer in document["answers"] for one in answer.get("recordings", ())}
        assert named == set(range(len(recordings)))
        for answer, plain in zip(subject.answers, document["answers"], strict=True):
            names = [recordings[one["recording"]]["name"] for one in plain["recordings"]]
            assert names == [one.name for one in answer.recordings]


def test_counts_past_2_53_are_text_and_exact() -> None:
    [subject] = written(SMALL)["subjects"]
    assert subject["answers"][0]["ways"][0]["states"] == str(2**70)
    assert subject["recordings"][0]["states"]["legal_sectors"] == str(2**88)


def test_a_list_of_results_is_read_as_several() -> None:
    document = {"schema": SEVERAL, "results": [written(SMALL), written(SMALL)]}
    assert results_in(document) == [SMALL, SMALL]
    assert results_in(written(SMALL)) == [SMALL]
    with pytest.raises(MalformedError, match="lacks a list of results"):
        results_in({"schema": SEVERAL})


def tables(part: Any) -> Iterator[dict[str, Any]]:
    """All tables in a document."""
    if isinstance(part, dict):
        yield part
        yield from (table for inner in part.values() for table in tables(inner))
    elif isinstance(part, list):
        yield from (table for inner in part for table in tables(inner))


def test_a_later_bob_may_add_fields() -> None:
    document = written(SMALL)
    for table in list(tables(document)):
        table["added later"] = True
    assert from_json(document) == SMALL


def test_a_result_that_is_older_than_the_choice_of_completion_was_prompt() -> None:
    document = written(SMALL)
    del document["device_model"]["completion"]
    assert from_json(document).model.completion is Completion.PROMPT


@pytest.mark.parametrize("document", [{}, [], None, "x", {"schema": None}, {"schema": "bob.result/3"}, {"schema": []}])
def test_other_documents_are_refused(document: Any) -> None:
    with pytest.raises(MalformedError, match=r"is not 'bob\.result/2'") as refused:
        from_json(document)
    is_later = isinstance(document, dict) and document.get("schema") == "bob.result/3"
    assert (refused.value.hint == LATER) == is_later


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("run", None),
        ("run", {"id": "x"}),
        ("run.seed", "many"),
        ("environment", []),
        ("device_model", {}),
        ("device_model.write_cache", "none of ours"),
        ("device_model.atomic_write_bytes", 500),
        ("subjects", None),
        ("subjects", ["x"]),
        ("subjects.0", {}),
        ("subjects.0.answers", "x"),
        ("subjects.0.answers.0.verdict", "perhaps"),
        ("subjects.0.answers.0.states", None),
        ("subjects.0.answers.0.states.explored", "many"),
        ("subjects.0.answers.0.ways.0.states", -1.5),
        ("subjects.0.answers.0.ways.0.witness", 3),
        ("subjects.0.answers.0.recordings", [5]),
        ("subjects.0.answers.0.recordings.0.recording", -1),
        ("subjects.0.answers.0.recordings.0.recording", 10**9),
        ("subjects.0.recordings", "x"),
        ("subjects.0.recordings.0.states", 0),
        ("protocols", [{"configuration": "ext4"}]),
    ],
)
def test_damage_is_told_in_one_line(path: str, value: Any) -> None:
    document = written(SMALL)
    *above, last = [int(word) if word.isdigit() else word for word in path.split(".")]
    table: Any = document
    for word in above:
        table = table[word]
    table[last] = value
    with pytest.raises(MalformedError) as caught:
        from_json(document)
    assert caught.value.message.startswith("the result document is damaged: ")
    assert "\n" not in caught.value.message


def test_a_recording_that_several_answers_rest_on_counts_once() -> None:
    [subject] = SMALL.subjects
    assert subject.states.explored == SOME.explored + ALL.explored
    assert SubjectResult("empty").states.legal_sectors == 0
