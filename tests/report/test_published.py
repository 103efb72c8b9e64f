"""The published table and the reasons are about configurations and properties that exist."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from rich.console import Console

from bob.answer.answer import CallWords, Cross, ReliedOn, Way
from bob.answer.result import Allowed, Missed, Result, SubjectResult
from bob.apm.builtin import builtin, names
from bob.catalogue.probe_files import load_rows
from bob.claim.verdict import Verdict
from bob.errors import MalformedError
from bob.program.answer import Consequence
from bob.protocol.contrast import Explanation, Reliance
from bob.protocol.kinds import TYPES
from bob.report.answer_pages import to_html as html_of
from bob.report.comparison.sides import Said, Side, known_reasons, named_side, published_side
from bob.report.programs import print_programs
from bob.report.published import (
    EXPLODE,
    OSDI14,
    PUBLISHED,
    Difference,
    Direction,
    Reason,
    load_reasons,
    osdi14,
    osdi14_reasons,
    published,
    reason_for,
    reasons_of,
)
from bob.report.rows import FAMILIES
from bob.report.vulnerability_tables import (
    Sheet,
    by_consequence,
    by_cross_check,
    by_file_system,
    by_type,
    print_sheets,
    to_csv,
    to_html,
    to_json,
    to_latex,
    to_markdown,
)
from bob.report.vulnerability_tables import published as published_counts
from bob.resources import shipped
from bob.subject import load_set
from bob.witness.traits import Trait, Traits
from samples_of_programs import by_model, file_system, of_program, way

from .html_pages import NASTY, parse
from .samples import result as sample

ROWS = [name for names in FAMILIES.values() for name in names]

GOOD = """
[[reason]]
title = "t"
direction = "found"
configurations = ["ext2"]
properties = ["append-any"]
because = "b"
shows = { lost = ["journal"], later = ["overwrite", "append"] }
"""


def test_the_table_has_the_published_shape() -> None:
    table = osdi14()
    assert len(table.configurations) == len(set(table.configurations)) == 16
    assert list(table.fails) == ROWS
    for configurations in table.fails.values():
        assert configurations <= set(table.configurations)


def test_some_cells_as_they_are_printed() -> None:
    fails = osdi14().fails
    assert fails["single-sector-overwrite"] == frozenset()
    assert fails["multi-block-append"] == set(osdi14().configurations)
    assert fails["directory-op-any"] == {"ext2", "btrfs", "reiserfs-nolog"}
    assert sum(map(len, fails.values())) == 84


def test_table_2_of_explode() -> None:
    """Ten file systems, each with three calls, and mounted with ``sync``. All fail a write with O_SYNC."""
    table = published(EXPLODE)
    side = published_side(table)
    assert len(table.configurations) == 20
    assert set(side.columns["ext2"]) == {"sync", "fsync", "o-sync"}
    assert set(side.columns["ext2-sync"]) == {"mount-sync"}
    for name, configurations in table.fails.items():
        assert name in table.properties
        assert all(table.asks(one, name) and one in table.configurations for one in configurations)
    failing = {
        one: [row for row, answer in cells.items() if answer.said is Said.FAILS] for one, cells in side.columns.items()
    }
    assert all("o-sync" in failing[one] for one in table.configurations if not one.endswith("-sync"))
    assert (failing["ext2"], failing["ext3"], failing["vfat"]) == (["fsync", "o-sync"], ["o-sync"], ["sync", "o-sync"])
    assert (failing["ext3-sync"], failing["jfs-sync"]) == ([], ["mount-sync"])


def test_the_rows_of_a_published_table_are_those_of_the_set() -> None:
    chosen = load_set("sync-table")
    assert chosen.rows is not None
    assert {probe.property.name for probe in load_rows(chosen.rows)} >= {*published(EXPLODE).properties}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_run_is_explained_by_its_own_table(name: str) -> None:
    table = published_side(published(name))
    run = Side("run", {}, result=sample())
    assert known_reasons(run, table) == known_reasons(table, run) == reasons_of(name)
    assert known_reasons(run, run) == ()
    assert (named_side(name).name, table.title) == (name, published(name).title)


@pytest.mark.parametrize(("name", "least"), [(OSDI14, 6), (EXPLODE, 1)])
def test_every_reason_is_about_known_cells(name: str, least: int) -> None:
    table, reasons = published(name), reasons_of(name)
    assert len(reasons) >= least
    for reason in reasons:
        assert reason.title and reason.because
        for glob in reason.configurations:
            assert any(fnmatchcase(one, glob) for one in table.configurations), glob
        for glob in reason.properties:
            assert any(fnmatchcase(one, glob) for one in table.properties), glob


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_reason_speaks_of_cells_that_can_differ_so(name: str) -> None:
    """A reason for a × where the paper has one already, or for a blank where it has none, can never be told."""
    table = published(name)
    for reason in reasons_of(name):
        cells = [
            (configuration, row)
            for configuration in table.configurations
            for row in table.properties
            if table.asks(configuration, row)
            and reason.speaks_of(
                configuration, row, Direction.NOT_FOUND if configuration in table.fails[row] else Direction.FOUND
            )
        ]
        assert cells, reason.title
        if not any("*" in glob for glob in (*reason.configurations, *reason.properties)):
            assert len(cells) == len(reason.configurations) * len(reason.properties), reason.title


def test_every_reason_says_what_was_found() -> None:
    for reason in osdi14_reasons():
        assert reason.background or bool(reason.shows) == (reason.direction is not Direction.NOT_FOUND)
        assert reason.like is None or reason.like in osdi14().configurations


@pytest.mark.parametrize(
    ("name", "missing", "torn"), [("append-any", "size", "metadata"), ("directory-op-any", "names", "nothing")]
)
def test_a_sync_mount_on_a_disk_without_a_cache(name: str, missing: str, torn: str) -> None:
    """What the two witnesses showed of `bob probe --fs ext2 --mount-opts sync --write-cache none` on Linux 6.1."""
    words = {Trait.MISSING: missing, Trait.TORN: torn}
    shown = {trait: frozenset({words.get(trait, "nothing")}) for trait in Trait}
    told = reason_for(osdi14_reasons(), Difference("ext2-sync", name, Direction.FOUND, shown))
    assert told is not None and told.title == snapshot("A sync mount does not write everything at once")


def test_what_is_known_of_ext4_ordered() -> None:
    found = [name for name in ROWS if "ext4-ordered" not in osdi14().fails[name]]
    known = [one for one in osdi14_reasons() if not one.background]
    explained = {name for name in found if any(one.speaks_of("ext4-ordered", name, Direction.FOUND) for one in known)}
    assert set(found) - explained == {"single-sector-overwrite", "directory-op"}


@given(
    st.lists(st.dictionaries(st.sampled_from(Trait), st.frozensets(st.sampled_from("abc"), min_size=1))),
    st.one_of(
        st.none(),
        st.fixed_dictionaries({trait: st.frozensets(st.sampled_from("abcd"), min_size=1) for trait in Trait}),
    ),
)
def test_the_first_reason_is_told_that_the_witness_fits(
    asked: list[dict[Trait, frozenset[str]]], shown: Traits
) -> None:
    reasons = [
        Reason(
            f"{place}",
            Direction.FOUND,
            ("ext2",),
            ("*",),
            "b",
            shows={trait: tuple(words) for trait, words in shows.items()},
        )
        for place, shows in enumerate(asked)
    ]
    told = reason_for(reasons, Difference("ext2", "append-any", Direction.FOUND, shown))
    fitting = [
        str(place)
        for place, shows in enumerate(asked)
        if not shows or (shown and not any(shown[trait].isdisjoint(words) for trait, words in shows.items()))
    ]
    assert (told.title if told else None) == (fitting[0] if fitting else None)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "t"', "", "reason.0.: 'title' is missing"),
        ('title = "t"', 'title = "t"\nurl = "u"', "unknown key 'url'"),
        ('"found"', '"lost"', "invalid value 'lost'; expected one of found, not found, any"),
        ('["append-any"]', '["append-all"]', "unknown property 'append-all'"),
        ('["append-any"]', '"append-any"', "properties: expected array, got 'append-any'"),
        ('["ext2"]', "[]", "configurations: expected array of length >= 1"),
        ('shows = { lost = ["journal"], later = ["overwrite", "append"] }', "", "does not say what a witness shows"),
        ("shows = {", 'shows = { "lots" = ["x"],', "Invalid enum value 'lots'"),
        ('["journal"]', '["jornal"]', "unknown word 'jornal' for lost"),
        ('["journal"]', "[]", "expected array of length >= 1"),
        ('because = "b"', 'because = "b"\nlike = 1', "like: expected str"),
        ("[[reason]]", "[reason]", "reason: expected array"),
        ("[[reason]]", "[[cause]]", "unknown key 'cause'"),
        ("[[reason]]", "[[reason", "reasons.toml: "),
    ],
)
def test_damaged_reasons(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "reasons.toml"
    path.write_text(GOOD)
    (good,) = load_reasons(path)
    assert (good.direction, good.background, good.measured) == (Direction.FOUND, False, ())
    assert good.shows == {Trait.LATER: ("overwrite", "append"), Trait.LOST: ("journal",)}
    assert old in GOOD
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(MalformedError, match=message):
        load_reasons(path)


# Programs


def test_the_published_numbers_add_up_as_the_paper_has_them() -> None:
    document = json.loads((shipped("reports/published") / "programs.json").read_text())
    osdi = document["osdi14"]
    assert osdi["types"] == list(TYPES)
    rows = osdi["programs"].values()
    assert [sum(row["types"][place] for row in rows) for place in range(9)] == [6, 4, 3, 9, 6, 3, 18, 5, 7]
    assert sum(row["unique"] for row in rows) == 60
    assert [sum(row["models"][place] for row in rows) for place in range(5)] == [16, 12, 10, 17, 31]
    assert all(row["unique"] <= sum(row["types"]) for row in rows)
    assert set(osdi["models"]) == set(names()) - {"ccfs"}
    for name in ("ccfs", "ccfs-reproduced"):
        assert set(document[name]["programs"]) <= set(osdi["programs"]) | {"LevelDB"}
    assert set(document["names"].values()) <= set(osdi["programs"]) | {"LevelDB"}
    assert published_counts("ccfs")["hg-commit"] == {"ext4-ordered": 5, "ccfs": 2}
    assert published_counts("ccfs-reproduced")["leveldb"]["ext4-writeback"] is None


def predicted(kind: str, call: str, consequence: Consequence = Consequence.LOST) -> Way:
    relied = ReliedOn(Explanation(Reliance.DURABLE, (1,)), "so", (CallWords(1, call, ()),), 1, kind)
    return way(consequence, call, step="prefix", relied_on=(relied,))


def model(
    name: str, *harms: Way, verdict: Verdict | None = None, about: str | None = None, missed: tuple[Missed, ...] = ()
) -> SubjectResult:
    found = verdict or (Verdict.FAILS if harms else Verdict.HOLDS)
    about = about if about is not None else builtin(name).about if name in names() else "derived"
    allowed = Allowed(about, 1, 1, 1, is_all=True, missed=missed)
    return by_model(name, found, harms, allowed, reason="lost" if found is Verdict.UNKNOWN else None)


APPEND, RENAME = predicted("ordering: other", "p: append /a"), predicted("ordering: safe rename", NASTY)
CUT = predicted("", "p: append /a", Consequence.CORRUPT)
FOUND = [
    of_program("git-commit", "git", model("ext4-o", APPEND, RENAME), model("btrfs", APPEND), model("xfs")),
    of_program("mine", NASTY, model("ext4-o", CUT), model("btrfs", verdict=Verdict.UNKNOWN)),
    of_program("git-commit", "git", model("ext3-j")),
]


def test_vulnerabilities_by_type_consequence_and_file_system() -> None:
    types, consequences, systems = (make(FOUND) for make in (by_type, by_consequence, by_file_system))
    assert dict(types.rows)["git-commit"] == ("·", "·", "·", "·", "·", "1", "1", "·", "·", "·", "2")
    assert types.rows[1] == ("  in 2014", ("1", "·", "·", "1", "2", "1", "3", "·", "1", "", "9"))
    assert types.rows[2] == ("mine", ("·",) * 9 + ("1", "1"))
    assert consequences.rows == (("git-commit", ("2", "·", "·", "·")), ("mine", ("·", "1", "·", "·")))
    assert systems.columns == ("model ext4-o", "model btrfs", "model xfs", "model ext3-j")
    assert systems.rows == (
        ("git-commit", ("2 (2)", "1 (5)", "0", "0 (2)")),
        ("mine", ("1", "?", "–", "–")),
    )


def test_what_the_paper_has_stands_beside_its_own_model_whatever_that_is_called() -> None:
    of_paper, derived = builtin("btrfs").about, "btrfs on Linux 6.1, derived from 123 workloads"
    changed = model("ext4-o", APPEND, about=f"what if: ext4-o, but {builtin('ext4-o').about}")
    both = (model("btrfs (built-in)", APPEND, about=of_paper), model("btrfs (derived)", about=derived), changed)
    assert by_file_system([of_program("git-commit", "git", *both)]).rows[0][1] == ("1 (5)", "0", "1")
    alone = of_program("git-commit", "git", model("btrfs", about=derived))
    assert by_file_system([alone]).rows[0][1] == ("0",)


def test_answers_of_several_runs_stand_together_in_whichever_order() -> None:
    one, other, lost = model("xfs", APPEND), model("xfs", RENAME), model("xfs", verdict=Verdict.UNKNOWN)
    runs = [of_program("mine", "", each) for each in (one, other, lost)]
    assert by_file_system(runs).rows[0][1] == by_file_system(runs[::-1]).rows[0][1] == ("2",)
    assert by_file_system(runs[2:]).rows[0][1] == ("?",)


def test_each_file_system_has_its_paces_side_by_side_whichever_program_was_recorded_at_them() -> None:
    def of(program: str, *names: str) -> Result:
        return of_program(program, "", *(file_system(name, Verdict.HOLDS) for name in names))

    paces = by_file_system(
        [of("a", "xfs", "xfs-busy", "ext4"), of("b", "ext4-slow"), of("c", "xfs-slow", "xfs-slower")]
    )
    assert paces.columns == ("xfs", "xfs-slow", "xfs-slower", "xfs-busy", "ext4", "ext4-slow")
    assert paces.rows[1] == ("b", ("–",) * 5 + ("0",))
    assert by_file_system([of("a", "ext4-slow", "xfs")]).columns == ("ext4-slow", "xfs")


def test_what_became_of_predictions_is_counted_over_all_paces() -> None:
    def crossed(harm: Way, **said: Cross) -> Way:
        return replace(harm, crossed=said)

    real = file_system("ext4", Verdict.HOLDS)
    confirmed = crossed(APPEND, ext4=Cross.NOT_REACHABLE, slow=Cross.OPEN, busy=Cross.CONFIRMED)
    unreachable = crossed(RENAME, ext4=Cross.NOT_REACHABLE, slow=Cross.NOT_REACHABLE)
    left_open = crossed(CUT, ext4=Cross.NOT_REACHABLE, slow=Cross.OPEN)
    assert [one.cross for one in (confirmed, unreachable, left_open, APPEND)] == [
        Cross.CONFIRMED, Cross.NOT_REACHABLE, Cross.OPEN, None,
    ]  # fmt: skip
    missing = model("o", unreachable, missed=(Missed("ext4", "it", True),))
    runs = [
        of_program("one", "", real, model("o", confirmed, unreachable, left_open), model("none")),
        of_program("two", "", real, missing, model("lost", verdict=Verdict.UNKNOWN)),
        of_program("three", "", model("o", APPEND)),  # no real file system was asked
    ]
    assert by_cross_check(runs) == Sheet(
        "Predictions of models, and the real file system",
        ("programs", "predicted", "confirmed", "not reachable", "open", "missed by the model", "share confirmed"),
        (("o", ("2", "4", "1", "2", "1", "1", "25%")), ("none", ("1", "·", "·", "·", "·", "·", "·"))),
        each="model",
    )


def test_what_is_relied_on_in_the_same_words_is_told_once(tmp_path: Path) -> None:
    """Once: the unlink of each of two transactions, in two lines that were the same."""
    [first] = APPEND.relied_on
    other = replace(first, explanation=Explanation(Reliance.DURABLE, (7,)))
    text = io.StringIO()
    found = of_program("p", "", model("o", replace(APPEND, relied_on=(first, other)), RENAME))
    print_programs(Console(file=text, width=100), found, tmp_path)
    assert text.getvalue().count("so   ordering: other   for each of 2 such calls") == 1
    assert html_of(found, tmp_path).count("so (ordering: other), for each of 2 such calls") == 1
    assert text.getvalue().count("so   ordering") == 2 and text.getvalue().count("such calls") == 1


def test_the_tables_are_written_in_every_form_and_text_is_text() -> None:
    sheets = [by_type(FOUND), by_consequence(FOUND), by_file_system(FOUND)]
    text = io.StringIO()
    print_sheets(Console(file=text, width=80), sheets)
    assert "git-commit         2 (2)" in text.getvalue() and max(map(len, text.getvalue().splitlines())) <= 80
    page = parse(to_html(sheets))
    assert [len(page.all("section"))] == [3] and not page.all("script") and not page.all("img")
    assert "| git-commit | 2 (2) | 1 (5) | 0 | 0 (2) |" in to_markdown(sheets)
    tex = to_latex(sheets)
    assert tex.count("\\begin{tabular}") == tex.count("\\end{tabular}") == 3 and "git-commit & 2 (2) & 1 (5)" in tex
    lines = list(csv.DictReader(io.StringIO(to_csv(FOUND))))
    assert [line["place"] for line in lines if line["type"] == "ordering: other"] == ["p: append /a"] * 2
    assert {(line["program"], line["name"], line["safety"]) for line in lines} >= {
        ("mine", "btrfs", "unknown"), ("git-commit", "xfs", "safe"), ("git-commit", "btrfs", "vulnerable"),
    }  # fmt: skip
    assert [len(table["rows"]) for table in to_json(sheets)["tables"]] == [3, 2, 2]
