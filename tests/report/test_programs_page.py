"""The page of a program, parsed: answers, witnesses, links, text of others; and the table of programs."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from inline_snapshot import snapshot
from msgspec import structs

from bob.answer.answer import Answer, Cross
from bob.answer.document import to_json
from bob.answer.result import Allowed, AskedProgram, Checks, ClusterTuples, NodeGrid, Result, SubjectResult
from bob.claim.verdict import Verdict
from bob.errors import UsageError
from bob.program.answer import Consequence
from bob.program.folder import shipped_programs
from bob.protocol.contrast import Explanation, Reliance
from bob.protocol.diagram import MOST_NEEDS, DiagramStep, Need, Protocol, StepKind, diagram
from bob.report.answer_pages import pages, to_html
from bob.report.cluster_drawing import told
from bob.report.programs_document import page as table
from bob.report.promises import left_open, promises
from bob.report.protocol_drawing import picture, svg
from bob.report.saved import load, load_every
from bob.witness import bundle
from samples_of_programs import by_model, of_program, way
from wording import line_with, text_with

from .html_pages import NASTY, Page, parse
from .test_matrix import html, leads

SVG = "{http://www.w3.org/2000/svg}"


def found(folder: Path) -> Result:
    """The answers of a run in ``folder``, with its witnesses: one that is kept, and one where all is well."""
    [program] = [one for one in every() if one.program_name == "replace-mv"]
    [subject] = [one for one in program.file_systems if one.name == "ext4"]
    well = answered(replace(subject, name="ext4-journal"), verdict=Verdict.HOLDS, ways=())
    made = replace(program, subjects=(subject, well), protocols=())
    folder.joinpath("result.json").write_text(json.dumps(to_json(made)))
    shutil.copy(KEPT / bundle.FILE, folder)
    answers = load(folder).result
    assert answers == made
    return answers


def answered(subject: SubjectResult, **more: Any) -> SubjectResult:
    """The same subject with a changed answer."""
    changed: Answer = replace(subject.answer, **more)
    return replace(subject, answers=(changed,))


def text_of(page: Page) -> str:
    return " ".join(page.by_id("top").text.split())


def test_every_answer_and_its_witness_is_on_one_page(tmp_path: Path) -> None:
    answers = found(tmp_path)
    page = parse(to_html(answers, tmp_path))
    text = text_of(page)
    harms = [one for answer in answers.answers for one in answer.ways]
    assert harms
    for subject in answers.file_systems:
        assert subject.name in text and subject.effective_mount_options in text
    for one in harms:
        for said in (one.evidence, f"bob replay {tmp_path / str(one.witness)}", *(it.sentence for it in one.relied_on)):
            assert " ".join(said.split()) in text, said
    assert len(page.with_class("svg", "bob-timeline")) == len(harms)
    assert leads({"index.html": page}) == {"index.html": {"index.html"}}


def test_a_cluster_has_counts_a_grid_and_the_nodes_with_an_old_tree(tmp_path: Path) -> None:
    answers = found(tmp_path)
    grid = NodeGrid((0, 2), ("x.", "? "))
    counts = ClusterTuples(
        "any", 7, (2, 3, 2), 9, 5, are_all_trees=True, rules=("R1", "R3"), set_aside=2, grids=(grid,)
    )
    counts = replace(counts, set_aside_by={"R1": 3, "R3": 4}, exchanged=8, classes=4, decided=6, split=1)
    subject = answers.file_systems[0]
    ways = tuple(replace(way, behind=(0, 2)) for way in subject.answer.ways)
    subject = replace(answered(subject, ways=ways), tuples=counts)
    page = parse(to_html(replace(answers, subjects=(subject,)), tmp_path))
    assert text_with(text_of(page), counts.words, "It is enough that n0 and n2 keep an old tree.")
    [picture] = page.with_class("svg", "bob-grids")
    assert told((grid,)) in " ".join(picture.text.split()) and "some check refused: 1" in told((grid,))
    assert text_with(counts.words, "checked 5 of 9 ", "7 messages", "R1", "4 classes", "6 combinations", "2, 3, 2")
    assert text_with(counts.words, "R1 alone: 3, R3 alone: 4", "8 differ")
    exact = replace(counts, cut="instant", are_all_trees=False, rules=(), classes=0)
    assert text_with(exact.words, "at one instant", "at least 9", "perhaps also others")


def test_as_several_pages_each_witness_has_its_own(tmp_path: Path) -> None:
    answers = found(tmp_path)
    made = html(pages(answers, tmp_path))
    assert len(made) == 1 + sum(len(answer.ways) for answer in answers.answers) > 1
    for place, targets in leads(made).items():
        assert targets == (set(made) if place == "index.html" else {place, "index.html"})


def test_a_witness_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    answers = found(tmp_path)
    page = parse(to_html(answers, tmp_path / "elsewhere"))
    assert not page.with_class("svg", "bob-timeline")
    assert answers.answers[0].ways[0].evidence in text_of(page)


@pytest.mark.parametrize("verdict", [Verdict.HOLDS, Verdict.FAILS, Verdict.UNKNOWN])
def test_what_is_not_vulnerable_has_its_word_and_its_reason(tmp_path: Path, verdict: Verdict) -> None:
    answers = found(tmp_path)
    other = answered(answers.subjects[0], verdict=verdict, ways=(), reason="a guest was lost")
    page = parse(to_html(replace(answers, subjects=(replace(other, notes=("so be it",)),)), tmp_path))
    says = {Verdict.HOLDS: "· safe as far as explored", Verdict.FAILS: "× vulnerable", Verdict.UNKNOWN: "? not known"}
    [answer] = [one.text for one in page.all("a", href="#answer-1") if one.parent and one.parent.tag == "td"]
    assert answer == says[verdict]
    text = text_of(page)
    assert "A guest was lost." in text and "So be it." in text


def test_what_the_documentation_leaves_open_has_another_colour_and_its_reason(tmp_path: Path) -> None:
    answers = found(tmp_path)
    assert answers.program is not None
    [one] = left_open(answers.program)
    hung = replace(answers.subjects[0].answer.ways[0], consequence=Consequence.HANG)
    for ways, tone in ((answers.subjects[0].answer.ways, "unknown"), ((hung,), "fails")):
        page = parse(to_html(replace(answers, subjects=(answered(answers.subjects[0], ways=ways),)), tmp_path))
        [cell] = [link.parent for link in page.all("a", href="#answer-1") if link.parent and link.parent.tag == "td"]
        assert cell.attributes["class"] == tone and ("not promised" in cell.text) == (tone == "unknown")
        assert one.because[:-1] in text_of(page)
    for mine in (replace(answers.program, name="mine"), replace(answers.program, digest="0123456789abcdef")):
        assert "promised" not in text_of(parse(to_html(replace(answers, program=mine), tmp_path)))


def test_text_of_programs_is_text(tmp_path: Path) -> None:
    answers = found(tmp_path)
    [first, *_] = answers.subjects
    harm = replace(first.answer.ways[0], evidence=NASTY, told=NASTY.encode().decode("latin-1"))
    nasty = replace(first, name=NASTY, effective_mount_options=NASTY, notes=(NASTY,))
    nasty = answered(nasty, ways=(harm,))
    page = parse(to_html(of_program(NASTY, NASTY, nasty, kernel=NASTY), tmp_path))
    assert text_of(page).count('alert("1")') > 5
    assert not page.all("script") and not page.all("img")


def test_the_answer_of_a_model_is_there_too_and_its_text_is_text(tmp_path: Path) -> None:
    answers = found(tmp_path)
    relied_on = (replace(answers.answers[0].ways[0].relied_on[0], kind="ordering: safe rename"),)
    crossed = {"ext4": Cross.NOT_REACHABLE}
    harm = way(Consequence.LOST, NASTY, 3, 3, step="prefix", relied_on=relied_on, crossed=crossed)
    allowed, checks = Allowed(NASTY, 4, 21, 14, is_all=True), Checks(0, 10, 13)
    model = by_model("ext4-o", Verdict.FAILS, (harm,), allowed, checks, notes=("so be it",))
    page = parse(to_html(replace(answers, subjects=(*answers.subjects, model)), tmp_path))
    text = text_of(page)
    assert [one.text for one in page.all("a", href="#model-1")] == ["model ext4-o", "× vulnerable, not promised"]
    assert "14, all that it allows" in text and "On ext4: not reachable." in text and "So be it." in text
    assert f"{relied_on[0].sentence} (ordering: safe rename)" in text
    assert not page.all("script") and not page.all("img")
    assert not parse(to_html(answers, tmp_path)).all("a", href="#model-1")


STEPS = (
    DiagramStep(0, StepKind.CHANGE, "create", f"/{NASTY}", program=NASTY, function=NASTY),
    *(
        DiagramStep(number, StepKind.CHANGE, "append", f"/{NASTY}", f"{number} bytes at 0", program=NASTY)
        for number in range(1, 9)
    ),
    DiagramStep(9, StepKind.SYNC, "fsync", f"/{NASTY}", program=NASTY, covers=tuple(range(1, 9))),
    DiagramStep(10, StepKind.CHANGE, "rename", f"/{NASTY}", f"to {NASTY}", program=NASTY),
    DiagramStep(11, StepKind.TOLD, "tells", "", told=NASTY),
)


def with_protocol(folder: Path) -> Result:
    """Answers of a real file system and a model, with what the program did."""
    answers = found(folder)
    [first, *others] = answers.subjects
    [harm, *_] = first.answer.ways
    relied = replace(harm.relied_on[0], explanation=Explanation(Reliance.ORDER, (3,), (10,)))
    harm = replace(harm, relied_on=(replace(relied, sentence=NASTY),))
    lost = replace(relied, sentence="so", explanation=Explanation(Reliance.DURABLE, (10,), ()))
    predicted = way(Consequence.LOST, "lost", 3, 3, NASTY.encode(), step="prefix", relied_on=(lost,))
    allowed, checks = Allowed("a model", 4, 21, 14, is_all=True), Checks(0, 10, 13)
    model = by_model("ext4-o", Verdict.FAILS, (predicted,), allowed, checks)
    subjects = (answered(first, ways=(harm,)), *others, model)
    return replace(answers, subjects=subjects, protocols=(Protocol(first.name, STEPS),))


def test_the_update_protocol_stands_with_each_answer_about_its_recording(tmp_path: Path) -> None:
    answers = with_protocol(tmp_path)
    page = parse(to_html(answers, tmp_path))
    pictures = page.with_class("svg", "bob-protocol")
    assert len(pictures) == 2, "of ext4 and of the model; of the other configuration none is known"
    for one in pictures:
        text = one.text
        assert one.attributes["role"] == "img" and "and what it relies on" in str(one.attributes["aria-label"])
        assert "append × 8" in text or ("append × 2" in text and "append 3 bytes at 0" in text and "append × 5" in text)
        assert f"/{NASTY} · {NASTY}" in text
    assert NASTY in pictures[0].text and "1 so" in " ".join(pictures[1].text.split())
    assert not page.all("script") and not page.all("img")
    assert not parse(to_html(found(tmp_path), tmp_path)).with_class("svg", "bob-protocol")


def test_the_protocol_by_itself_has_what_all_answers_about_it_say(tmp_path: Path) -> None:
    answers = with_protocol(tmp_path)
    made = Xml.fromstring(picture(answers))
    assert (made[0].tag, made[0].text) == (
        f"{SVG}title",
        snapshot("The update protocol of replace-mv, recorded on ext4"),
    )
    assert [badge.text for badge in made.iter(f"{SVG}text") if badge.get("class") == "number"] == ["1", "2"]
    graph = picture(answers, is_dot=True)
    declared = set(re.findall(r"^ +(s\d+) \[", graph, flags=re.M))
    joined = re.findall(r"^ +(s\d+) -> (s\d+) \[", graph, flags=re.M)
    assert declared == {one for edge in joined for one in edge} and graph.count("style=dashed") == 2
    assert graph.replace('\\"', "").count('"') % 2 == 0 and graph.count("{") == graph.count("}")
    with pytest.raises(UsageError) as refused:
        picture(found(tmp_path))
    assert str(refused.value) == snapshot("this run of replace-mv lacks an update protocol")


def test_a_folded_row_has_no_detail_that_is_of_some_of_its_steps_only() -> None:
    loop = [
        DiagramStep(2 * at + more, StepKind.CHANGE, verb, "/f", f"{said} {at * more}")
        for at in range(9)
        for more, (verb, said) in enumerate((("truncate", "to"), ("append", "at")))
    ]
    text = [one.text for one in Xml.fromstring(svg(diagram(loop), "loop")).iter(f"{SVG}text")]
    assert text[:4] == ["/f · process 1", "truncate to 0", "append", "× 9"]


def test_nothing_of_a_picture_is_outside_of_it_and_lines_do_not_lie_on_each_other(tmp_path: Path) -> None:
    steps = [
        DiagramStep(
            2 * at + more,
            (StepKind.CHANGE, StepKind.SYNC)[more],
            ("append", "fsync")[more],
            f"/{at}",
            covers=(2 * at,) * more,
        )
        for at in range(40)
        for more in (0, 1)
    ]
    steps = [structs.replace(step, path=f"/{step.number % 7}", verb=f"{step.verb}{step.number}") for step in steps]
    needs = [Need(f"need {number}", (4 * number,), (4 * number + 9,)) for number in range(MOST_NEEDS)]
    made = Xml.fromstring(svg(diagram(steps, needs), "many"))
    _x, _y, width, height = map(float, str(made.get("viewBox")).split())
    spans: dict[float, list[tuple[float, float]]] = {}
    for line in made.iter(f"{SVG}path"):
        numbers = [float(one) for one in re.findall(r"-?\d+\.?\d*", str(line.get("d")))]
        assert min(numbers[0], 1) >= 0 and numbers[0] <= width and numbers[1] <= height
        if found_span := re.fullmatch(r"M(\d+) (\d+) V(\d+)", str(line.get("d"))):
            x, top, bottom = map(float, found_span.groups())
            assert 0 < x < width
            assert all(bottom < low or high < top for low, high in spans.get(x, []))
            spans.setdefault(x, []).append((top, bottom))
    assert sum(map(len, spans.values())) == len(needs)
    for text in made.iter(f"{SVG}text"):
        if text.get("text-anchor") == "start":
            assert float(str(text.get("x"))) + len(text.text or "") * 7.3 <= width + 8, text.text


# What documentation promises


def test_what_is_left_open_is_of_shipped_programs_and_was_seen() -> None:
    """Each entry explains a × of the reference; that of SQLite names the program that asks for more and is safe."""
    results = {program.program_name: program for program in every()}
    for one in promises():
        assert set(one.programs) <= shipped_programs().keys()
        for program in one.programs:
            ways = [way for answer in results[program].answers for way in answer.ways]
            assert {way.consequence for way in ways} & set(one.losses), program
    [sqlite] = left_open(asked(results["sqlite-rollback"]))
    assert sqlite.losses == (Consequence.LOST,) and "sqlite-rollback-extra" in sqlite.because
    assert {answer.verdict for answer in results["sqlite-rollback-extra"].answers} == {Verdict.HOLDS}


def test_the_table_of_programs_says_what_is_not_promised() -> None:
    rows = {line.split("]")[0]: line for line in table(every(), COLUMNS, "x").splitlines() if line.startswith("| [")}
    assert rows["| [sqlite-rollback"].count("*not promised*: × lost acknowledged data (") == len(COLUMNS)
    mixed = rows["| [replace-truncate"].split(" | ")
    assert mixed[2] == "*not promised*: × corruption"
    assert mixed[6].startswith("× corruption, lost acknowledged data ("), "what was synced is promised"
    for program in every():
        losses = {way.consequence for answer in program.answers for way in answer.ways}
        is_open = losses & {loss for one in left_open(asked(program)) for loss in one.losses}
        assert ("not promised" in rows[f"| [{program.program_name}"]) == bool(is_open), program.program_name


# The table of programs × file systems


ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "reports" / "reference" / "apps-linux-6.1"
COLUMNS = ["ext4", "ext4-writeback", "ext4-journal", "xfs", "btrfs", "f2fs"]


def every() -> list[Result]:
    return [one.result for one in load_every(KEPT / "apps.json.xz")]


def asked(program: Result) -> AskedProgram:
    assert program.program is not None
    return program.program


def test_the_page_is_what_is_made_of_the_results() -> None:
    made, _heading, _by_hand = (KEPT / "README.md").read_text().partition("\n## What to see here\n")
    assert made == table(every(), COLUMNS, KEPT.relative_to(ROOT).as_posix())


def test_every_violation_has_its_witness_and_every_witness_a_violation() -> None:
    named = {KEPT / str(one.witness) for program in every() for answer in program.answers for one in answer.ways}
    assert named == set(bundle.within(KEPT))


def test_a_sentence_stands_once_and_what_is_left_out_is_counted() -> None:
    program = next(one for one in every() if any(it.ways for it in one.answers))
    subject = next(one for one in program.file_systems if one.answer.ways)
    harm = next(one for one in subject.answer.ways if one.relied_on)
    relied = harm.relied_on[0]
    several = [relied, relied, *(replace(relied, sentence=f"other {number}") for number in range(4))]
    harmed = answered(subject, ways=(replace(harm, relied_on=tuple(several)),))
    lines = table([replace(program, subjects=(harmed,))], [subject.name], "x").splitlines()
    said = [line.removeprefix("    - ") for line in lines if line.startswith("    - ")]
    assert text_with(said[0], 2) == snapshot(
        "must be durable by then: ‘python3: overwrite 4647 bytes at 6217 of /env/log.0000000001 (\\_\\_os\\_io in libdb-5.3.so)’, ‘python3: append 512 bytes at 5120 of /env/records.db (\\_\\_os\\_io in libdb-5.3.so)’, ‘python3: append 512 bytes at 5632 of /env/records.db (\\_\\_os\\_io in libdb-5.3.so)’, 8 more, for each of 2 such calls"
    ) and said[1:3] == ["other 0", "other 1"]
    assert text_with(said[3], 2, "apps.json.xz") == snapshot("and 2 other reasons: apps.json.xz has them")
    assert said[4].startswith("`bob replay x/") and len(said) == 5


def test_a_cell_names_the_paces_where_they_differ_and_what_an_earlier_pace_has_stands_once() -> None:
    program = next(one for one in every() if any(it.ways for it in one.answers))
    harmed = next(one for one in program.file_systems if one.answer.ways)
    named = [replace(harmed, name=name) for name in ("ext4", "ext4-slow", "ext4-slower")]
    safe = answered(replace(harmed, name="ext4-busy"), verdict=Verdict.HOLDS, ways=())
    made = table([replace(program, subjects=(*named, safe))], ["ext4"], "x").splitlines()
    [row] = [line for line in made if line.startswith("| [")]
    assert row.endswith(" (undisturbed, slow, slower); safe (busy) |")
    assert sum(line.startswith("  - ") for line in made) == len(harmed.answer.ways)
    assert sum("all of them as above" in line for line in made) == 2
    alike = table([replace(program, subjects=tuple(named))], ["ext4"], "x").splitlines()
    assert not any("undisturbed" in line for line in alike if line.startswith("| ["))


def test_what_is_not_known_is_not_safe_and_what_was_not_asked_is_empty() -> None:
    program = every()[0]
    unknown = answered(program.subjects[0], verdict=Verdict.UNKNOWN, reason="a guest was lost", ways=())
    made = table([replace(program, subjects=(unknown,))], COLUMNS, "x")
    row = next(line for line in made.splitlines() if line.startswith("| ["))
    assert row.endswith("| ? | – | – | – | – | – |")
    assert line_with(made, "guest") == snapshot(
        "- **ext4**: ?: a guest was lost (2^54 of 2^58 crash states, 29 outcomes, 32 checks)"
    )
