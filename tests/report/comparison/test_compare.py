"""Two tables, cell by cell: the laws of it, and each kind of difference."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as limits
from inline_snapshot import snapshot

from bob.answer.result import SubjectResult
from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.errors import MalformedError, UsageError
from bob.report.comparison.compare import Kind, compare, kind_of
from bob.report.comparison.exploration import differences
from bob.report.comparison.latex import to_latex
from bob.report.comparison.sides import Said, Side, SideAnswer, paired, run_side
from bob.report.comparison.words import counts, settings
from bob.report.escape import tex
from bob.report.published import Direction, Reason
from bob.report.rows import title
from wording import text_with

from .worlds import SAID, cell, run, run_of, side, sides, table, workload

MIRRORED = {
    Kind.NEWLY_FAILS: Kind.NO_LONGER_FAILS,
    Kind.NO_LONGER_FAILS: Kind.NEWLY_FAILS,
    Kind.ONLY_A: Kind.ONLY_B,
    Kind.ONLY_B: Kind.ONLY_A,
}

REASONS = (
    Reason("general", Direction.ANY, ("ext4-*",), ("*",), "g", background=True),
    Reason("special", Direction.FOUND, ("ext4-ordered",), ("append-*",), "s", measured=("6.1",)),
    Reason("later", Direction.FOUND, ("ext4-ordered",), ("*",), "l"),
    Reason("gone", Direction.NOT_FOUND, ("ext4-ordered",), ("overwrite-any",), "x"),
)


@limits(max_examples=60, deadline=None)
@given(sides())
def test_nothing_differs_from_itself(one: Side) -> None:
    itself = compare(one, one)
    assert {found.kind for found in itself.cells} <= {Kind.SAME}
    assert not itself.differs(strict=True)
    assert itself.is_undecided == any(found.unknown for found in itself.cells)
    assert list(itself.groups()) == []
    assert itself.only_a == itself.only_b == ()


@limits(max_examples=60, deadline=None)
@given(sides(), sides())
def test_the_other_way_round_is_the_mirror_image(one: Side, other: Side) -> None:
    there, back = compare(one, other, REASONS), compare(other, one, REASONS)
    mirrored = {(found.configuration, found.name): MIRRORED.get(found.kind, found.kind) for found in there.cells}
    assert {(found.configuration, found.name): found.kind for found in back.cells} == mirrored
    reasons = {(found.configuration, found.name): found.reason for found in there.cells}
    assert {(found.configuration, found.name): found.reason for found in back.cells} == reasons
    assert (there.only_a, there.only_b) == (back.only_b, back.only_a)
    assert there.differs() == back.differs()
    assert there.differs(strict=True) == back.differs(strict=True)
    assert there.is_undecided == back.is_undecided
    assert there.compared == back.compared


@limits(max_examples=60, deadline=None)
@given(sides(), sides())
def test_every_cell_of_a_shared_configuration_is_there_once(one: Side, other: Side) -> None:
    found = compare(one, other)
    cells = [(cell.configuration, cell.name) for cell in found.cells]
    expected = {(name, row) for name in found.configurations for row in [*one.columns[name], *other.columns[name]]}
    assert len(cells) == len(set(cells))
    assert set(cells) == expected
    grouped = [cell for group in found.groups() for cell in group.cells]
    assert len(grouped) == len(cells) - len(found.of(Kind.SAME, Kind.ONLY_A, Kind.ONLY_B))


@limits(max_examples=60, deadline=None)
@given(sides(), sides())
def test_a_violation_on_one_side_is_a_difference_only_where_the_other_looked(one: Side, other: Side) -> None:
    for found in compare(one, other).cells:
        if found.kind in (Kind.NEWLY_FAILS, Kind.NO_LONGER_FAILS):
            assert found.a is not None and found.b is not None
            fails, clean = (found.b, found.a) if found.kind is Kind.NEWLY_FAILS else (found.a, found.b)
            assert fails.said is Said.FAILS
            assert clean.said in (Said.HOLDS, Said.NOT_FOUND)


@pytest.mark.parametrize("old", Verdict)
@pytest.mark.parametrize("new", Verdict)
def test_the_kinds(old: Verdict, new: Verdict) -> None:
    known = {Verdict.FAILS, Verdict.HOLDS}
    expected = (
        Kind.SAME
        if old is new
        else Kind.UNDECIDED
        if not {old, new} <= known
        else Kind.NEWLY_FAILS
        if new is Verdict.FAILS
        else Kind.NO_LONGER_FAILS
    )
    found = compare(side(cell(verdict=old)), side(cell(verdict=new)))
    assert [one.kind for one in found.cells] == [expected]
    assert found.differs() == (expected in (Kind.NEWLY_FAILS, Kind.NO_LONGER_FAILS))
    assert found.is_undecided == (expected is Kind.UNDECIDED or old is new is Verdict.UNKNOWN)


@pytest.mark.parametrize(
    ("verdict", "blank", "kind"),
    [
        (Verdict.FAILS, True, Kind.NEWLY_FAILS),
        (Verdict.FAILS, False, Kind.SAME),
        (Verdict.HOLDS, True, Kind.SAME),
        (Verdict.HOLDS, False, Kind.NO_LONGER_FAILS),
        (Verdict.UNKNOWN, True, Kind.UNDECIDED),
        (Verdict.SKIPPED, False, Kind.UNDECIDED),
    ],
)
def test_the_published_table_is_blank_where_nothing_was_found(verdict: Verdict, blank: bool, kind: Kind) -> None:
    published = SideAnswer(Said.NOT_FOUND if blank else Said.FAILS, "ordering")
    assert kind_of(published, SideAnswer(SAID[verdict], "ordering", cell(verdict=verdict))) is kind


def test_cells_that_one_side_lacks_count_only_if_one_is_strict() -> None:
    whole, part = side(cell("append-any"), cell("overwrite-any")), side(cell("append-any"))
    found = compare(whole, part)
    assert [(one.name, one.kind) for one in found.cells] == [
        ("overwrite-any", Kind.ONLY_A),
        ("append-any", Kind.SAME),
    ]
    assert (found.compared, found.differs(), found.differs(strict=True)) == (1, False, True)


def test_an_unknown_cell_that_only_one_side_has_decides_nothing() -> None:
    unknown = cell("overwrite-any", Verdict.UNKNOWN)
    assert not compare(side(cell()), side(cell(), unknown)).is_undecided


def test_configurations_that_one_side_lacks_are_named_and_not_compared() -> None:
    found = compare(table(), side(cell(), configuration="btrfs"))
    assert found.configurations == ("btrfs",)
    assert found.only_a == ("ext2", "ext4-ordered", "my own")
    assert {one.configuration for one in found.cells} == {"btrfs"}
    assert compare(side(configuration="b"), side(configuration="c")).only_b == ("c",)


def test_a_violation_beside_an_unknown_cell_is_still_a_difference() -> None:
    old = side(cell("append-any"), cell("overwrite-any"))
    new = side(cell("append-any", Verdict.FAILS), cell("overwrite-any", Verdict.UNKNOWN))
    found = compare(old, new)
    assert found.differs() and found.is_undecided
    assert text_with(counts(found), 2, 1) == snapshot("2 cells compared: 1 newly fails, 1 undecided")


# Reasons


def test_reasons_are_those_of_the_direction_and_the_first_that_fits() -> None:
    cells = (cell("append-any", Verdict.FAILS), cell("directory-op-any", Verdict.FAILS), cell("overwrite-any"))
    published = table(overwrite_any="ext4-ordered", append_rename_any="ext4-ordered")
    run_of_today = side(*cells, cell("append-rename-any"))
    titles = {
        one.name: one.reason.title if one.reason else None
        for one in compare(published, run_of_today, REASONS).cells
        if one.kind not in (Kind.SAME, Kind.ONLY_A)
    }
    assert titles == {
        "append-any": "special",
        "directory-op-any": "later",
        "overwrite-any": "gone",
        "append-rename-any": "general",
    }


def test_the_same_reason_is_told_once_and_the_unexplained_last() -> None:
    published = table()
    cells = [cell(name, Verdict.FAILS) for name in ("overwrite-any", "append-any", "append-append-same-file")]
    reasons = (*REASONS[:2],)
    groups = list(compare(published, side(*cells), reasons).groups())
    assert [(group.reason and group.reason.title, len(group.cells)) for group in groups] == [
        ("special", 2),
        ("general", 1),
    ]
    groups = list(compare(published, side(*cells), REASONS[1:2]).groups())
    assert [group.reason for group in groups] == [REASONS[1], None]


def test_between_runs_nobody_knows_reasons() -> None:
    found = compare(side(cell()), side(cell(verdict=Verdict.FAILS)), REASONS)
    assert [(one.kind, one.reason) for one in found.cells] == [(Kind.NEWLY_FAILS, None)]


def test_what_a_reason_says() -> None:
    assert text_with(REASONS[1].sentences, "6.1") == snapshot("s (Measured on 6.1.)")
    assert REASONS[2].sentences == "l"
    assert REASONS[0].sentences == snapshot("g Which part of that code makes the difference is not yet explained.")


# Differently explored


def explored(count: int, exhaustive: str | None = None) -> States:
    return States(count, 4096, 2**88, exhaustive)


@pytest.mark.parametrize(("old", "new", "told"), [(100, 90, False), (100, 89, True), (90, 100, False), (0, 0, False)])
def test_a_few_states_more_or_less_are_noise(old: int, new: int, told: bool) -> None:
    one, other = side(cell(states=explored(old))), side(cell(states=explored(new)))
    found = compare(one, other)
    assert (found.cells[0].kind is Kind.EXPLORED) is told
    assert not found.differs()
    assert found.differs(strict=True) is told


def test_all_states_or_not() -> None:
    old, new = cell(states=explored(100)), cell(states=explored(100, "writes"))
    assert tuple(differences(old, new)) == (
        snapshot("A explored not all legal states, B every legal state of whole writes"),
    )


def test_other_workloads() -> None:
    old = cell(workloads=(workload("one"), workload("two")))
    new = cell(workloads=(workload("one"), workload("two", "sync"), *map(workload, "abcd")))
    assert tuple(differences(old, new)) == snapshot(
        (
            "1 workload run in A only: two [natural]",
            "5 workloads run in B only: two [sync]; a [natural]; b [natural]; and 2 more",
        )
    )


def test_another_workload_fails() -> None:
    old = cell(verdict=Verdict.FAILS, workloads=(workload("one", verdict=Verdict.FAILS), workload("two")))
    new = cell(verdict=Verdict.FAILS, workloads=(workload("one"), workload("two", verdict=Verdict.FAILS)))
    assert tuple(differences(old, new)) == (
        snapshot(
            "another verdict from 2 workloads: one [natural] (fails in A, holds in B); two [natural] (holds in A, fails in B)"
        ),
    )


# The sides


def test_what_is_there_twice_is_refused() -> None:
    with pytest.raises(MalformedError) as refused:
        side(cell(), cell())
    assert text_with(str(refused.value), "ext4-ordered", "append-any") == snapshot(
        "run: ext4-ordered has 'append-any' twice"
    )
    column = SubjectResult("ext4", "ext4", "", "", "", ())
    with pytest.raises(MalformedError) as refused:
        run_side("run", run_of(column, column), Path())
    assert text_with(str(refused.value), "ext4") == snapshot("run: the result has 'ext4' twice")


def test_what_was_set_otherwise() -> None:
    old, new = run(cell(), kernel="6.1.0"), run(cell(), kernel="6.12.3")
    sides = run_side("a", old, Path()), run_side("b", new, Path())
    assert settings(compare(*sides)) == (("kernel", "6.1.0", "6.12.3"),)
    assert settings(compare(table(), sides[1])) == ()
    column = SubjectResult("ext4-ordered", "ext4", "", "", "rw,noatime", (cell(),))
    other = run_side("b", run_of(column), Path())
    assert settings(compare(sides[0], other)) == (
        (snapshot("mount options of ext4-ordered"), "rw,relatime", "rw,noatime"),
    )
    skipped = SubjectResult("ext4-ordered", "ext4", "", "", "", (cell(),))
    assert settings(compare(sides[0], run_side("b", run_of(skipped), Path()))) == ()


def test_two_columns_of_other_names_are_held_against_each_other() -> None:
    columns = [
        SubjectResult(name, "ext4", "", "", options, (cell(verdict=verdict),))
        for name, options, verdict in (("one", "rw", Verdict.HOLDS), ("two", "rw,sync", Verdict.FAILS))
    ]
    both = run_side("run", run_of(*columns), Path())
    found = compare(*paired(both, both, [("one", "two"), ("two", "two"), ("one", "two")]))
    assert [(one.configuration, one.kind) for one in found.cells] == [
        ("one → two", Kind.NEWLY_FAILS),
        ("two", Kind.SAME),
    ]
    assert not found.only_a and not found.only_b
    assert settings(found) == ((snapshot("mount options of one → two"), "rw", "rw,sync"),)
    for wrong in (("on", "two"), ("one", "tow")):
        with pytest.raises(UsageError, match="run lacks"):
            paired(both, both, [wrong])


@limits(max_examples=60, deadline=None)
@given(sides(), sides())
def test_latex_has_both_sides_of_each_cell(one: Side, other: Side) -> None:
    """With a box where both sides have a verdict, and these differ."""
    marks = {Said.FAILS: r"$\times$", Said.UNKNOWN: "?", Said.SKIPPED: r"\textendash{}"}
    comparison = compare(one, other)
    text = to_latex(comparison)
    rows = {
        cells[0].strip(): [cell.strip() for cell in cells[1:]]
        for line in text.splitlines()
        if line.lstrip().startswith(r"\quad")
        for cells in [line.removesuffix(r" \\").partition(r"\quad ")[2].split("&")]
    }
    assert set(rows) == {str(tex(title(name))) for names in comparison.families.values() for name in names}
    for name in [name for names in comparison.families.values() for name in names]:
        expected = []
        for configuration in comparison.configurations:
            a, b = (side.columns[configuration].get(name) for side in (one, other))
            old, new = ("" if one is None else marks.get(one.said, r"$\cdot$") for one in (a, b))
            is_changed = a is not None and b is not None and a.said.known and b.said.known
            is_changed = is_changed and (a.said is Said.FAILS) != (b.said is Said.FAILS)
            expected += [old, rf"\fbox{{{new}}}" if is_changed else new]
        assert rows[str(tex(title(name)))] == expected
