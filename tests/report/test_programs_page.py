"""The page of a program, parsed: answers, witnesses, links, text of others; and the table of programs."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bob.judge.program_result import Cross, ModelResult, Predicted, Programs, Safety
from bob.program.answer import Consequence
from bob.report.programs_document import page as table
from bob.report.programs_page import pages, to_html
from bob.report.saved import programs
from bob.witness import bundle

from .html_pages import NASTY, Page, parse
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


def test_the_answer_of_a_model_is_there_too_and_its_text_is_text(tmp_path: Path) -> None:
    answers = found(tmp_path)
    relied_on = (replace(answers.results[0].vulnerabilities[0].relied_on[0], kind="ordering: safe rename"),)
    harm = Predicted(Consequence.LOST, NASTY, 3, b"", "prefix", relied_on, {"ext4": Cross.NOT_REACHABLE})
    model = ModelResult("ext4-o", NASTY, Safety.VULNERABLE, 4, 21, 14, True, 10, 13, (harm,), notes=("so be it",))
    page = parse(to_html(replace(answers, models=(model,)), tmp_path))
    text = text_of(page)
    assert [one.text for one in page.all("a", href="#model-1")] == ["model ext4-o", "× vulnerable"]
    assert "14, all that it allows" in text and "On ext4: not reachable." in text and "So be it." in text
    assert f"{relied_on[0].sentence} (ordering: safe rename)" in text
    assert not page.all("script") and not page.all("img")
    assert not parse(to_html(answers, tmp_path)).all("a", href="#model-1")


# The table of programs × file systems


ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "reports" / "reference" / "apps-linux-6.1"
COLUMNS = ["ext4", "ext4-writeback", "ext4-journal", "xfs", "btrfs", "f2fs"]


def kept() -> list[dict[str, Any]]:
    programs: list[dict[str, Any]] = json.loads((KEPT / "apps.json").read_text())["programs"]
    return programs


def test_the_page_is_what_is_made_of_the_results() -> None:
    assert (KEPT / "README.md").read_text() == table(kept(), COLUMNS, KEPT.relative_to(ROOT).as_posix())


def test_every_violation_has_its_witness_and_every_witness_a_violation() -> None:
    named = {
        KEPT / one["witness"]
        for program in kept()
        for answer in program["configurations"]
        for one in answer["vulnerabilities"]
    }
    assert named == set(bundle.within(KEPT))


def test_what_is_not_known_is_not_safe_and_what_was_not_asked_is_empty() -> None:
    [program] = kept()[:1]
    unknown = {**program["configurations"][0], "safety": "unknown", "reason": "a guest was lost", "vulnerabilities": []}
    made = table([{**program, "configurations": [unknown]}], COLUMNS, "x")
    row = next(line for line in made.splitlines() if line.startswith("| ["))
    assert row.endswith("| ? | – | – | – | – | – |")
    assert "?: a guest was lost" in made
