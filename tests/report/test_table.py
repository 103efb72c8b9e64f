"""The table of a run, as it looks: tables.txt has what a user sees, in 80 and in 120 columns.

After a change that is meant, write them anew: ``BOB_REWRITE=1 python -m pytest tests/report``."""

from __future__ import annotations

import io
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from rich.console import Console
from rich.text import Text

from bob.answer.answer import Way
from bob.answer.result import Cause, Finding, Result, SubjectResult
from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.observe.observations import TroubleKind
from bob.report.lines import broken
from bob.report.nearby import nearby, witness_command
from bob.report.saved import load_table
from bob.report.table import foot, print_result
from wording import line_with, text_with

from .samples import MOSTLY_UNKNOWN, cell, mostly_unknown, named, result, sixteen, trouble, unmountable

HERE = Path(__file__).parent
RUN = Path("bob-runs/20261121T230021-1f2e3d")


def printed(shown: Result, width: int = 80, run: Path = RUN) -> str:
    """The table without colours."""
    file = io.StringIO()
    print_result(Console(file=file, width=width, highlight=False, markup=False, emoji=False), shown, run)
    return file.getvalue()


def with_cells(*verdicts: Verdict) -> Result:
    """A run with these verdicts and nothing else."""
    names = ("append-any", "overwrite-any", "directory-op")
    cells = tuple(cell(name, verdict, States(2, 4, 8)) for name, verdict in zip(names, verdicts, strict=False))
    column = SubjectResult("ext4", "ext4", "", "", "", cells)
    return replace(result(), subjects=(column,))


def test_as_it_looks() -> None:
    picture = HERE / "tables.txt"
    text = "".join(f"==== {width} columns\n{printed(result(), width)}" for width in (80, 120))
    if os.environ.get("BOB_REWRITE"):
        picture.write_text(text)
    assert text == picture.read_text()


def test_few_explored_torn_states_are_noted() -> None:
    """With one configuration, and with several."""
    column = mostly_unknown()
    assert f" {MOSTLY_UNKNOWN}\n" in printed(replace(result(), subjects=(column,)), 240)
    several = printed(replace(result(), subjects=(column, replace(column, name="other"))), 240)
    assert f" {column.name}, other: {MOSTLY_UNKNOWN}\n" in several


def test_where_all_was_mounted_nothing_is_said_of_predictions() -> None:
    column = result().subjects[0]
    cells = tuple(replace(cell, states=States(8, 8, 8, None, 8)) for cell in column.answers)
    assert "predicted" not in printed(replace(result(), subjects=(replace(column, answers=cells),)), 120)
    older = with_cells(Verdict.HOLDS)
    assert "predicted" not in printed(older, 120)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_nothing_is_wider_than_the_terminal_but_commands(width: int) -> None:
    wide = [line for line in printed(result(), width).splitlines() if len(line) > width]
    assert all(line.startswith(("    bob replay ", "run ")) for line in wide)


@pytest.mark.parametrize("width", [50, 60, 67, 70, 80, 120])
def test_a_narrow_table_cuts_no_number(width: int) -> None:
    known = load_table(HERE.parents[1] / "reports/reference/osdi14-linux-6.1").result
    [column] = (one for one in known.subjects if one.name == "ext4-ordered")
    text = printed(replace(known, subjects=(column,)), width)
    table = text.partition("× single-sector-append ")[0].partition("\n× ")[0]
    assert "…" not in table
    for answer in column.answers:
        states = f"{answer.states.legal_writes:,}"
        assert len(states) < 4 or states in table, (answer.name, states)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_ends_with_blanks(width: int) -> None:
    lines = printed(result("ext4-ordered", "btrfs"), width).splitlines()
    assert [line for line in lines if line != line.rstrip()] == []


def test_every_violation_names_its_witness() -> None:
    text = printed(result(), 40)
    for name in ("single-block-overwrite", "append-any", "unmountable"):
        assert f"\n    bob replay {RUN}/witnesses/{name}.json\n" in text


def test_without_findings_there_is_nothing_but_the_table() -> None:
    text = printed(with_cells(Verdict.HOLDS, Verdict.HOLDS))
    assert "×" not in text
    assert "bob replay" not in text


def test_unmountable_states_are_not_a_row() -> None:
    shown = with_cells(Verdict.HOLDS)
    (column,) = shown.subjects
    shown = replace(shown, subjects=(replace(column, beside=(unmountable(1, None, "bad superblock"),)),))
    lines = printed(shown).splitlines()
    assert lines[lines.index("    bad superblock") - 1] == snapshot("! 1 crash state could not be mounted")


def test_what_is_wrong_with_states_that_mount_is_below_the_table() -> None:
    shown = with_cells(Verdict.HOLDS)
    [column] = shown.subjects
    troubles = (
        trouble(
            TroubleKind.KERNEL_MESSAGE, Way("EXT4-fs error (device loop): bad", 3, "witnesses/kernel-message.json")
        ),
        trouble(TroubleKind.CHECKER, Way("e2fsck ends with 4", 1)),
    )
    shown = replace(shown, subjects=(replace(column, beside=troubles, examined=2, examinable=40),))
    text = printed(shown)
    assert line_with(text, 3, "mounted") == snapshot("! 3 crash states mounted, but the kernel warned")
    assert line_with(text, "EXT4-fs") == snapshot("EXT4-fs error (device loop): bad")
    assert witness_command(RUN, "witnesses/kernel-message.json") in text
    assert line_with(text, 1, "afterwards") == snapshot(
        "! 1 crash state mounted, but the file system's checker found errors afterwards"
    )
    assert line_with(text, 2, 40) == snapshot("trees of 2 of 40 outcomes")
    assert line_with(
        printed(replace(shown, subjects=(replace(shown.subjects[0], name="a"), replace(column, name="b")))),
        3,
        "states",
    ) == snapshot("! a: 3 crash states mounted, but the kernel warned")


def test_several_troubles_of_one_kind_are_one_line_for_several_configurations() -> None:
    shown = with_cells(Verdict.HOLDS)
    [column] = shown.subjects
    removals = trouble(TroubleKind.REMOVAL, *(Way(f"{states}", states) for states in (1, 9, 4)))
    several = replace(column, name="a", beside=(removals, trouble(TroubleKind.CHECKER, Way("fsck ends with 4", 2))))
    text = printed(replace(shown, subjects=(several, replace(column, name="b"))), width=120)
    assert line_with(text, 3, 1, 9) == snapshot(
        "! a: 3 findings of 1 to 9 crash states each: mounted, but not everything in it could be removed"
    )
    assert line_with(text, 2, "afterwards") == snapshot(
        "! a: 2 crash states mounted, but the file system's checker found errors afterwards"
    )
    assert text.count("! a:") == 2


def test_a_property_that_is_not_in_table_1_comes_last_in_its_family() -> None:
    own = named(cell("append-any", Verdict.HOLDS, States(2, 4, 8)), "a-property-of-mine")
    shown = with_cells(Verdict.HOLDS, Verdict.HOLDS)
    (column,) = shown.subjects
    shown = replace(shown, subjects=(replace(column, answers=(own, *column.answers)),))
    rows = [line.split()[0] for line in printed(shown).splitlines() if line.startswith("  ")]
    assert rows[:3] == ["overwrite-any", "append-any", "a-property-of-mine"]


def test_a_run_that_was_never_finished() -> None:
    shown = with_cells(Verdict.UNKNOWN)
    text = printed(replace(shown, run=replace(shown.run, finished="")))
    assert line_with(text, 1, "stopped") == snapshot(
        "explored  budget 200 mounts per workload, seed 1; the run was stopped early"
    )


def test_commands_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = witness_command(Path("it's a run"), "witnesses/w.json").removeprefix("bob replay ")
    said = subprocess.run(["sh", "-c", f"printf %s {command}"], capture_output=True, text=True, check=True).stdout
    assert said == "it's a run/witnesses/w.json"


def test_paths_are_written_as_they_are_best_used_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert nearby(tmp_path / "runs" / "a") == Path("runs/a")
    assert nearby(Path("runs/../runs/a")) == Path("runs/a")
    assert nearby(Path("/elsewhere/a")) == Path("/elsewhere/a")


def test_what_has_one_cause_is_told_once_and_the_other_rows_as_ever() -> None:
    shown = with_cells(Verdict.FAILS, Verdict.FAILS, Verdict.FAILS)
    [column] = shown.subjects
    cause = Cause("durable", "inode table", "lost", "none")
    finding = Finding(
        *(cause, "inode table was lost: no flush was sent after it", ("append-any", "overwrite-any")),
        *(("append", "create"), 12, "append /f 4096; fsync /f", "natural", 2, "nothing of it is there"),
        "lot-001/witnesses/finding-1.json",
    )
    text = printed(replace(shown, subjects=(replace(column, findings=(finding,)),)), 120)
    block = text[text.index("× 1. ") :].split("\n\n")[0].splitlines()[:6]
    assert block[-1] == f"    {witness_command(RUN, 'lot-001/witnesses/finding-1.json')}"
    assert block[:-1] == snapshot(
        [
            "× 1. inode table was lost: no flush was sent after it   in 12 workloads",
            "    breaks append-any, overwrite-any",
            "    missing: append, create",
            "    the smallest: append /f 4096; fsync /f",
            "    nothing of it is there",
        ]
    )
    assert "\n× append-any" not in text and "\n× overwrite-any" not in text
    assert "\n× directory-op" in text


def test_of_several_configurations_only_what_is_not_in_a_cell(tmp_path: Path) -> None:
    shown = sixteen()
    (tmp_path / shown.subjects[0].name).mkdir()
    text = printed(shown, run=tmp_path, width=200)
    skipped = next(one for one in shown.subjects if one.answers[0].verdict is Verdict.SKIPPED)
    assert f"\n– {skipped.name}: {skipped.answers[0].reason}\n" in text, "once, not for each cell"
    unknown = [
        (column.name, cell) for column in shown.subjects for cell in column.answers if cell.verdict is Verdict.UNKNOWN
    ]
    assert unknown
    assert all(f"\n? {name}, {cell.name}: {cell.reason}\n" in text for name, cell in unknown)
    for column in shown.subjects:
        assert (f"\n! {column.name}: " in text) == (column.unmountable is not None)
    assert "bob replay" not in text
    assert line_with(text.replace(str(tmp_path), "TMP"), "column") == snapshot(
        "bob show TMP/ext2 shows a column with its evidence."
    )
    assert line_with(printed(shown, run=tmp_path, width=40).replace(str(tmp_path), "TMP"), "column") == snapshot(
        "bob show TMP/ext2 shows a column with its evidence."
    )
    assert "bob show" not in printed(shown, run=tmp_path / "elsewhere", width=200)


def test_the_table_of_a_search_says_which_workloads_it_tried() -> None:
    words = "workloads within the bounds ace, of 1 operation"
    made = replace(result(), run=replace(result().run, search=words))
    assert f"search    {words}" in printed(made, 120)
    assert "search" not in dict(foot(result()))


def test_a_machine_that_bob_did_not_boot_has_no_hypervisor_of_bobs() -> None:
    made = result()
    assert ", QEMU 7.2.0, libvirt 9.0.0" in dict(foot(made))["measured"]
    there = replace(made.environment, image="ssh://box (0123)", accelerator="ssh", clock="real", qemu="", libvirt="")
    told = dict(foot(replace(made, environment=there)))["measured"]
    assert (
        text_with(told, "ssh://box")
        == snapshot("kernel 6.1.0-31-amd64, SSH, real clock, image ssh://box (0123), e2fsprogs 1.47.0-2+b2")
        and "QEMU" not in told
        and not told.endswith(", ")
    )


# Lines are broken at blanks and behind commas, and nothing of them is lost


def test_mount_options_are_broken_behind_a_comma() -> None:
    text = Text.assemble(("f2fs", "bold"), "   mounted rw,lazytime,fsync_mode=posix,discard_unit=block")
    assert broken(text, 30).plain.splitlines() == [
        "f2fs   mounted rw,lazytime,",
        "fsync_mode=posix,",
        "discard_unit=block",
    ]
    assert broken(text, 80) == text


def test_a_word_that_is_too_long_is_left_alone() -> None:
    assert broken(Text("a,bbbbbbbbbb,c"), 5).plain == "a,\nbbbbbbbbbb,\nc"


@given(st.text("ab, ", max_size=60), st.integers(1, 30))
def test_nothing_is_lost_and_lines_fit_where_they_can(plain: str, width: int) -> None:
    lines = broken(Text(plain), width).plain.split("\n")
    assert "".join(lines) == plain
    for line in lines:
        assert len(line.rstrip()) <= width or not set(line.rstrip(", ")) & set(", ")
