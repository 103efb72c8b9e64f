"""What is known about layers from their documentation and code is what bob answers. The answers are data, in
known-answers.toml; each takes a guest one to five minutes."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from bob.catalogue.request import ProbeRequest
from bob.claim.verdict import Verdict
from bob.progress import Silent
from bob.run.prober import probe
from bob.subject import Subject, configuration
from claims import own

ANSWERS = tomllib.loads(Path(__file__).with_name("known-answers.toml").read_text())["answers"]
SINGLE = ("single-sector-overwrite", "single-block-overwrite")
KEYS = {"name", "says", "image", "fs", "stack", "lost", "holds", "breaks", "never"}
BUDGET = 20
NEVER = "a control failed: before the operations the file system could not be mounted"


def subject_of(known: dict[str, Any]) -> Subject:
    fs = known.get("fs", "ext4")
    options = "data=ordered" if fs == "ext4" else ""
    return configuration(fs, mount_options=options, on=known.get("stack", ""), lost=tuple(known.get("lost", ())))


def test_the_answers_are_of_layers_that_there_are() -> None:
    assert len({known["name"] for known in ANSWERS}) == len(ANSWERS)
    for known in ANSWERS:
        assert set(known) <= KEYS
        assert {*known.get("holds", ()), *known.get("breaks", ())} <= {"untouched", *SINGLE}
        assert bool(known.get("never")) != bool(known.get("holds") or known.get("breaks"))
        assert subject_of(known).layers or known["name"] == "1-bare"


@pytest.mark.vm
@pytest.mark.long
@pytest.mark.parametrize("known", ANSWERS, ids=[known["name"] for known in ANSWERS])
def test_a_known_answer(tmp_path: Path, known: dict[str, Any]) -> None:
    subject = subject_of(known)
    asked = [name for name in SINGLE if name in {*known.get("holds", ()), *known.get("breaks", ())}]
    rows = ("untouched",) if subject.layers else ()
    image = known.get("image", "debian-bookworm")
    request = ProbeRequest(subject, rows, budget=BUDGET, image=image, probes=own(*(asked if rows else SINGLE)))
    [found] = probe(request, tmp_path / "run", Silent())[0].subjects
    verdicts = {answer.name.removeprefix("my-"): answer.verdict for answer in found.answers}
    if known.get("never"):
        assert {answer.reason for answer in found.answers} == {NEVER}, verdicts
        assert found.unmountable is not None
        return
    expected = dict.fromkeys(known.get("holds", ()), Verdict.HOLDS)
    expected |= dict.fromkeys(known.get("breaks", ()), Verdict.FAILS)
    assert {name: verdicts.get(name) for name in expected} == expected, [answer.reason for answer in found.answers]
    assert all(answer.states.mounted > 0 for answer in found.answers)
