"""The page of a quick question, parsed: what was asked, the answers, their witnesses, one legend, text of others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bob.answer.answer import Answer, ByRecording, ClaimWords, Way
from bob.answer.result import Result, SubjectResult
from bob.claim.verdict import Verdict
from bob.crash.coverage import NOTHING, States
from bob.crash.device import DeviceModelDocument
from bob.report.answer_pages import pages, to_html
from bob.story.timeline import Fate
from bob.workload.language import parse as operations
from bob.workload.operations import At, Finish, Workload
from bob.workload.plain import WorkloadDocument
from samples_of_runs import CONFIGURATION

from .html_pages import NASTY, Page, parse
from .samples import result, unmountable
from .test_matrix import html, leads
from .witnesses import documents, witness

STATES = States(812, 4096, 2**88, None, 17, unmountable=3)
KEPT = ("witnesses/one.json", "witnesses/two.json")
WAYS = tuple(
    Way(f"/a is wrong in way {number}", 2**number, witness, by_recording=(2**number, 0))
    for number, witness in zip((5, 6, 7), (*KEPT, None), strict=True)
)


def by_recordings(verdict: Verdict, reason: str | None = None, **more: Any) -> tuple[ByRecording, ...]:
    """What the recordings say: one with a finish that the kernel makes, and one that is not believed."""
    natural = ByRecording("try", "natural", verdict, STATES, reason=reason, **more)
    why = "the recording is not believed"
    return natural, ByRecording("try", "sync", Verdict.UNKNOWN, NOTHING, reason=why, is_recorded=False)


def expects(text: str) -> ClaimWords:
    return ClaimWords("expectation", text)


FAILS = Answer(
    expects("content /a = new"),
    Verdict.FAILS,
    STATES,
    WAYS,
    by_recordings(Verdict.FAILS, violations=224, needs_no_crash=True),
)
HOLDS = Answer(expects("exists /a"), Verdict.HOLDS, STATES, (), by_recordings(Verdict.HOLDS))
LOST = "the guest was lost: it hung"
UNKNOWN = Answer(expects("size /a > 0"), Verdict.UNKNOWN, STATES, (), by_recordings(Verdict.UNKNOWN, LOST), LOST)


def tried(folder: Path) -> Result:
    """Answers of each kind. In ``folder`` are witnesses: of two of three ways, and of what does not mount."""
    (folder / "witnesses").mkdir()
    for path, name in zip(
        (*KEPT, "witnesses/unmountable.json"), ("overwrite-any",) * 2 + ("unmountable",), strict=True
    ):
        (folder / path).write_text(json.dumps(documents()[name]))
    subject = SubjectResult(
        CONFIGURATION.name,
        CONFIGURATION.fs.name,
        "",
        "",
        "rw,relatime",
        (FAILS, HOLDS, UNKNOWN),
        (unmountable(3, "witnesses/unmountable.json", "Structure needs cleaning"),),
        notes=("a note",),
    )
    workload = Workload(
        "try",
        operations("write /b 0 9"),
        operations("write /a 0 4096; fsync /a"),
        Finish("natural", natural=True),
        At.END,
    )
    model = DeviceModelDocument.of(witness("overwrite-any", folder).model)
    made = result()
    return replace(made, device_model=model, subjects=(subject,), workload=WorkloadDocument.of(workload))


def changed(found: Result, **more: Any) -> Result:
    """The same with another subject."""
    return replace(found, subjects=(replace(found.subjects[0], **more),))


def text_of(page: Page) -> str:
    return " ".join(page.by_id("top").text.split())


def test_what_was_asked_and_each_answer_is_on_one_page(tmp_path: Path) -> None:
    page = parse(to_html(tried(tmp_path), tmp_path))
    text = text_of(page)
    for said in (
        "write /b 0 9",
        "write /a 0 4096",
        "fsync /a",
        "The crash comes after the last operation has returned.",
        "Can break in 3 ways, in 224 crash states.",
        "The state with every write breaks it, too",
        "Holds in all explored legal crash states that can be mounted: ",
        "The guest was lost: it hung.",
        *(way.evidence for way in WAYS),
        f"bob replay {tmp_path / KEPT[0]}",
        "3 crash states could not be mounted The answers above do not count them. Structure needs cleaning",
        "not recorded: the recording is not believed",
        "A note.",
    ):
        assert said in text, said
    words = [one.text.strip() for one in page.all("a") if one.parent and one.parent.tag == "td"]
    assert words == ["× fails", "· holds", "? unknown"]
    assert leads({"index.html": page}) == {"index.html": {"index.html"}}


def test_each_witness_has_its_picture_and_all_have_one_legend(tmp_path: Path) -> None:
    page = parse(to_html(tried(tmp_path), tmp_path))
    assert len(page.with_class("svg", "bob-timeline")) == 3, "of the way without a witness there is none"
    folded = [
        one for one in page.all("details") if one.parent and one.parent.parent and one.parent.parent.tag == "article"
    ]
    assert ["open" in one.attributes for one in folded] == [True, False], "that of the easiest is in sight"
    assert len(page.with_class("svg", "bob-mark")) == len(Fate)
    drawn = [one for one in page.all("text") if "surely on the disk" in one.text]
    assert drawn == []


def test_as_several_pages_each_witness_has_its_own(tmp_path: Path) -> None:
    made = html(pages(tried(tmp_path), tmp_path))
    names = {"answer-1-1", "answer-1-2", "unmountable"}
    assert made.keys() == {"index.html", *(f"witnesses/{name}.html" for name in names)}
    for place, targets in leads(made).items():
        assert targets == (set(made) if place == "index.html" else {place, "index.html"})
    assert not made["index.html"].with_class("svg", "bob-timeline")
    assert not made["index.html"].with_class("svg", "bob-mark"), "where there is no picture there is no legend"


def test_a_witness_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    page = parse(to_html(tried(tmp_path), tmp_path / "elsewhere"))
    assert not page.with_class("svg", "bob-timeline") and WAYS[0].evidence in text_of(page)


@pytest.mark.parametrize("is_asked", [False, True])
def test_what_does_not_mount_counts_where_it_is_asked(tmp_path: Path, is_asked: bool) -> None:
    found = tried(tmp_path)
    mounts = replace(HOLDS, claim=expects("mounts"))
    page = parse(to_html(changed(found, answers=(FAILS, mounts if is_asked else HOLDS, UNKNOWN)), tmp_path))
    text = text_of(page)
    assert ("Only expectations with mounts count them." in text) == is_asked
    assert ("crash states that can be mounted" in text) != is_asked


def test_text_of_others_is_text(tmp_path: Path) -> None:
    found = tried(tmp_path)
    ways = (replace(WAYS[0], evidence=NASTY),)
    answers = (replace(FAILS, ways=ways), replace(UNKNOWN, reason=NASTY))
    others = (unmountable(3, "witnesses/unmountable.json", NASTY),)
    nasty = changed(found, effective_mount_options=NASTY, notes=(NASTY,), beside=others, answers=answers)
    page = parse(to_html(nasty, tmp_path))
    assert text_of(page).count('alert("1")') > 4
    assert not page.all("script") and not page.all("img")
