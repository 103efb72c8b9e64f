"""The page of a program, parsed: answers and witnesses are there, links resolve, and text of others is text."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bob.judge.program_result import Programs, Safety
from bob.report.programs_page import pages, to_html
from bob.report.saved import programs
from bob.witness import bundle

from .html_pages import NASTY, Page, parse
from .test_programs_document import KEPT, kept
from .test_site import leads


def found(folder: Path) -> Programs:
    """The answers of a run in ``folder``, with its witnesses: one that is kept, and one where all is well."""
    [document] = [one for one in kept() if one["program"]["name"] == "replace-mv"]
    [answer] = [one for one in document["configurations"] if one["name"] == "ext4"]
    well = {**answer, "name": "ext4-journal", "safety": "safe", "vulnerabilities": []}
    folder.joinpath("result.json").write_text(json.dumps({**document, "configurations": [answer, well]}))
    shutil.copy(KEPT / bundle.FILE, folder)
    answers = programs(folder)
    assert answers is not None
    return answers


def text_of(page: Page) -> str:
    return " ".join(page.by_id("top").text.split())


def test_every_answer_and_its_witness_is_on_one_page(tmp_path: Path) -> None:
    answers = found(tmp_path)
    page = parse(to_html(answers, tmp_path))
    text = text_of(page)
    harms = [one for result in answers.results for one in result.vulnerabilities]
    assert harms
    for result in answers.results:
        assert result.configuration in text and result.mount in text
    for one in harms:
        for said in (one.evidence, f"bob replay {tmp_path / str(one.witness)}", *(it.sentence for it in one.relied_on)):
            assert " ".join(said.split()) in text, said
    assert len(page.with_class("svg", "bob-timeline")) == len(harms)
    assert leads({"index.html": page}) == {"index.html": {"index.html"}}


def test_as_several_pages_each_witness_has_its_own(tmp_path: Path) -> None:
    answers = found(tmp_path)
    made = {str(place): parse(text) for place, text in pages(answers, tmp_path)}
    assert len(made) == 1 + sum(len(result.vulnerabilities) for result in answers.results) > 1
    for place, targets in leads(made).items():
        assert targets == (set(made) if place == "index.html" else {place, "index.html"})


def test_a_witness_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    answers = found(tmp_path)
    page = parse(to_html(answers, tmp_path / "elsewhere"))
    assert not page.with_class("svg", "bob-timeline")
    assert answers.results[0].vulnerabilities[0].evidence in text_of(page)


@pytest.mark.parametrize("safety", Safety)
def test_what_is_not_vulnerable_has_its_word_and_its_reason(tmp_path: Path, safety: Safety) -> None:
    answers = found(tmp_path)
    other = replace(
        answers.results[0], safety=safety, vulnerabilities=(), reason="a guest was lost", notes=("so be it",)
    )
    page = parse(to_html(replace(answers, results=(other,)), tmp_path))
    says = {Safety.SAFE: "· safe as far as explored", Safety.VULNERABLE: "× vulnerable", Safety.UNKNOWN: "? not known"}
    [answer] = [one.text for one in page.all("a", href="#answer-1") if one.parent and one.parent.tag == "td"]
    assert answer == says[safety]
    text = text_of(page)
    assert "A guest was lost." in text and "So be it." in text


def test_text_of_programs_is_text(tmp_path: Path) -> None:
    answers = found(tmp_path)
    [first, *_] = answers.results
    harm = replace(first.vulnerabilities[0], evidence=NASTY, told=NASTY.encode())
    nasty = replace(first, configuration=NASTY, mount=NASTY, vulnerabilities=(harm,), notes=(NASTY,))
    page = parse(to_html(Programs(NASTY, NASTY, (nasty,), NASTY), tmp_path))
    assert text_of(page).count('alert("1")') > 5
    assert not page.all("script") and not page.all("img")
