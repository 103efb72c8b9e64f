"""A model in prose: what is said to hold and what not, and the evidence; as a page and for a terminal. And which model
is weaker than which: the order, reduced, and the picture of it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from random import Random
from xml.etree import ElementTree as Xml

import pytest
from inline_snapshot import snapshot

from bob.apm.builtin import builtin, names
from bob.apm.clauses import Clause, clause_of, every_clause, matching
from bob.apm.export.claims import IdiomsDeclaration, claims, groups
from bob.apm.export.lattice import APART, boxes, lattice, picture_in_words, stronger
from bob.apm.export.prose import origin, page, text
from bob.apm.export.standing import Standing, standing
from bob.apm.model import ClauseFinding, ClauseStatus, Model, Refutation
from bob.crash.state import CrashState
from bob.errors import MissingProgramError
from bob.schema import ShapeError, declared
from tests.apm.cases import EVERYTHING, NOTHING, model, without_order
from wording import line_with, text_with

SAFE = {clause_of("ordered append rename-over same-file"), clause_of("whole rename-over whole")}
REPLACED = "A file that a program replaces"


def refuting(clause: Clause, evidence: str, witness: str | None = None) -> Model:
    made = Refutation("run", "a <b>workload</b>", "natural", "folder", CrashState(0), evidence, witness=witness)
    strong = model(EVERYTHING)
    findings = [
        replace(one, status=ClauseStatus.REFUTED, promised=False, refutation=made) if one.clause == clause else one
        for one in strong.findings
    ]
    return replace(strong, findings=tuple(findings))


def section(whole: str, title: str) -> str:
    return whole.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_what_is_promised_can_be_relied_on_and_what_is_refuted_cannot() -> None:
    assert REPLACED in section(text(model(SAFE)), "What you can rely on")
    one = next(iter(SAFE))
    whole = text(refuting(one, "the new name is there, the data is not"))
    assert REPLACED not in section(whole, "What you can rely on")
    told = section(whole, "What you cannot rely on")
    assert REPLACED in told and line_with(told, 1, 2) == snapshot(
        "- A file that a program replaces (it renames a new one over it, without fsync) has its old or its new contents. (1 of the 2 clauses that it needs are promised; refuted: the new name is there, the data is not)"
    )
    unknown = section(text(model(NOTHING)), "What is not promised")
    assert REPLACED in unknown and section(text(model(NOTHING)), "What you can rely on") == snapshot("""\

Nothing that programs usually rely on.
""")


def test_every_claim_is_told_once() -> None:
    for one in (model(EVERYTHING), model(NOTHING), model(SAFE), builtin("ext4-o"), refuting(next(iter(SAFE)), "x")):
        whole = text(one).split("## Marks")[0]
        for claim in claims(one):
            assert whole.count(claim.sentence.replace("_", "\\_")) == 1


def test_an_idiom_rests_on_clauses_in_file_order_and_not_on_a_slip() -> None:
    place = {clause: at for at, clause in enumerate(every_clause())}
    for group in groups():
        for idiom in group.idiom:
            assert idiom.rests_on or idiom.row or idiom.program
            for words in idiom.rests_on:
                at = [place[clause] for clause in matching(words)]
                assert at == sorted(at)
    slip = 'group = [{title = "t", about = "a", idiom = [{sentence = "s", rests_on = ["whole apend whole"]}]}]'
    with pytest.raises(ShapeError) as caught:
        declared(IdiomsDeclaration, slip)
    assert str(caught.value) == snapshot("group[0].idiom[0]: no clause matches 'whole apend whole'")
    with pytest.raises(ShapeError):
        declared(IdiomsDeclaration, slip.replace("rests_on", "rest_on"))


def test_each_way_to_stand_has_a_mark_of_its_own() -> None:
    clause = every_clause()[0]
    found = [
        standing(ClauseFinding(clause, status, promised))
        for status, promised in [
            (ClauseStatus.EXHAUSTIVE, True), (ClauseStatus.SAMPLED, True), (ClauseStatus.ASSUMED, True), (ClauseStatus.SAMPLED, False),
            (ClauseStatus.REFUTED, False), (ClauseStatus.ASSUMED, False),
        ]
    ]  # fmt: skip
    assert found == list(Standing)
    assert len({one.mark for one in Standing}) == len(Standing)


def test_the_matrix_shows_each_order_at_its_place() -> None:
    promised = {clause_of("ordered append rename-over same-file"), clause_of("durable sync size")}
    told = text(model(promised))
    same_file = told.split("### Changes of the same file")[1].split("###")[0]
    head = re.search(r"^ +1  2  3.*$", same_file, re.M)
    row = re.search(r"^ +2  append .*$", same_file, re.M)
    assert head and row
    assert row[0].index("✓") == head[0].index("12") + 1 and row[0].count("✓") == 1
    assert " 12  rename over" in same_file
    durable = re.search(r"^ +sync .*$", section(told, "What is durable when a call has returned"), re.M)
    assert durable and durable[0].split() == ["sync", "–", "✓", *"–––––––––"]


def test_the_page_leads_from_a_refuted_clause_to_its_evidence_and_witness() -> None:
    clause = clause_of("ordered append append same-file")
    whole = page(refuting(clause, "<script> is there", "witnesses/x/a.json"), folder="apm/")
    assert 'href="#refuted-ordered-append-append-same-file"' in whole
    assert whole.count('id="refuted-ordered-append-append-same-file"') == 1
    assert 'href="apm/witnesses/x/a.json"' in whole
    assert "<script>" not in whole and "&lt;script&gt; is there" in whole and "<b>" not in whole
    ids = re.findall(r'id="([^"]+)"', whole)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', whole)) <= set(ids)


def test_a_picture_of_others_is_on_the_page_where_there_is_one() -> None:
    assert "<svg id=x>" in page(model(SAFE), "<svg id=x>") and "Beside others" in page(model(SAFE), "<svg id=x>")
    assert "Beside others" not in page(model(SAFE))


def test_where_it_is_from_is_short() -> None:
    source = {
        "runs": ["a", "b"],
        "held_out": [str(n) for n in range(30)],
        "seed": None,
        "made": {"fs": "ext4", "x": ""},
    }
    assert origin(source) == [("runs", "a, b"), ("held out", "30 of them"), ("made", "fs ext4")]


ONE, TWO, *_REST = every_clause()
SVG = "{http://www.w3.org/2000/svg}"


def test_a_model_is_tied_to_the_next_stronger_ones_only() -> None:
    chain = [model(NOTHING, "none"), model({ONE}, "one"), model({TWO}, "two"), model({ONE, TWO}, "both")]
    found = boxes([*chain, model(EVERYTHING, "all")])
    tied = {found[at].names[0]: sorted(found[one].names[0] for one in others) for at, others in stronger(found).items()}
    assert tied == {"none": ["one", "two"], "one": ["both"], "two": ["both"], "both": ["all"], "all": []}


def test_models_that_promise_the_same_share_a_box() -> None:
    found = boxes([model({ONE}, "b"), model({ONE}, "a"), model({TWO}, "c")])
    assert sorted(box.names for box in found) == [("a", "b"), ("c",)]
    assert "none is weaker" in picture_in_words(found, stronger(found))


def test_the_papers_models_are_in_their_order() -> None:
    found = boxes(builtin(name) for name in names())
    said = picture_in_words(found, stronger(found))
    for tie in ("btrfs weaker than ext4-o", "ext4-o weaker than ext3-o", "ext3-o weaker than ext3-j"):
        assert tie in said


def test_every_model_and_every_tie_is_drawn_once() -> None:
    for seed in range(4):
        rng, sets = Random(seed), [NOTHING]
        for _ in range(16):
            sets.append(rng.choice(sets) | frozenset(rng.sample(every_clause(), rng.choice([0, 5, 50]))))
        picture = Xml.fromstring(lattice([model(one, f"model-{number}") for number, one in enumerate(sets)]))
        said = [text for text in _texts(picture) if text.startswith("model-")]
        assert sorted(said) == sorted(f"model-{n}" for n in range(17))
        found = boxes([model(one, "x") for one in sets])
        assert len(_groups(picture, "node")) == len(found)
        assert len(_groups(picture, "edge")) == sum(map(len, stronger(found).values()))


def test_models_without_an_order_are_below_with_a_word_that_says_so() -> None:
    low, high, alone = model({ONE}, "low"), model({ONE, TWO}, "high"), model(without_order() - {ONE, TWO}, "<&>")
    for models in ([model(NOTHING)], [model({ONE}, "one"), model({TWO}, "two")], [low, high, alone]):
        picture = Xml.fromstring(lattice(models))
        height = {text.text: float(text.attrib["y"]) for text in picture.iter(f"{SVG}text")}
        assert {one.name for one in models} <= set(height)
        assert APART in height and height[APART] == max(height.values())
    assert height["high"] < height["low"] < height["<&>"]
    assert APART not in _texts(Xml.fromstring(lattice([low, high])))


def test_without_graphviz_there_is_no_picture_and_a_hint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingProgramError) as raised:
        lattice([model(NOTHING)])
    assert str(raised.value) == snapshot("bob needs Graphviz to draw models, and dot is missing")
    assert text_with(raised.value.hint, "apt-get") == snapshot("install it: apt-get install graphviz")


def _texts(picture: Xml.Element) -> list[str]:
    return [element.text or "" for element in picture.iter(f"{SVG}text")]


def _groups(picture: Xml.Element, kind: str) -> list[Xml.Element]:
    return [group for group in picture.iter(f"{SVG}g") if group.get("class") == kind]
