"""A run read again: bob.load, its table, and the long tables; and docs/reports.md, which shows them."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import bob
from bob.cli.show import ENDINGS
from bob.errors import MalformedError, StoreError
from bob.report.columns import Column, columns_of, grouped
from bob.report.frames import CELL_FIELDS, WORKLOAD_FIELDS
from bob.report.matrix import matrix
from bob.result import ConfigurationResult, Result, Verdict, to_json
from test_docs import between, code, text, words

from .samples import SIXTEEN, result, sixteen


def saved(folder: Path, run: Result) -> Path:
    """A run directory, as far as its result."""
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(to_json(run)))
    return folder


def test_matrix_of_a_saved_run(tmp_path: Path) -> None:
    run = saved(tmp_path / "run", sixteen())

    loaded = bob.load(str(run))

    assert loaded.result == sixteen()
    assert loaded.folder == run
    assert loaded.matrix().shape == (13, 16)
    pd.testing.assert_frame_equal(loaded.matrix(), matrix([sixteen()]))
    assert bob.load(run / "result.json") == loaded


def test_a_shell_and_a_notebook_show_little_of_a_large_run(tmp_path: Path) -> None:
    loaded = bob.load(saved(tmp_path / "run", sixteen()))
    fails = (loaded.matrix() == "×").to_numpy().sum()
    assert repr(loaded) == f"<16 configurations in {tmp_path / 'run'}: {fails} fails, 138 holds, 1 unknown, 13 skipped>"
    assert loaded._repr_html_().count("<td>×</td>") == fails
    empty = replace(loaded, result=replace(loaded.result, configurations=()))
    assert repr(empty) == f"<0 configurations in {tmp_path / 'run'}: no cells>"


def test_cells(tmp_path: Path) -> None:
    cells = bob.load(saved(tmp_path / "run", sixteen())).cells()

    assert tuple(cells.columns) == CELL_FIELDS
    assert list(dict.fromkeys(cells["configuration"])) == list(SIXTEEN)
    assert len(cells) == 13 * 16
    [found] = cells.query("configuration == 'btrfs' and property == 'append-any'").to_dict("records")
    assert found["verdict"] == "fails"
    assert (found["workloads"], found["failing_workloads"], found["violations"]) == (12, 4, 28)
    assert found["legal_sectors"] == 2**88
    assert found["witness"] == "witnesses/append-any.json"
    assert found["exhaustive"] == found["reason"] == ""
    wide = cells.pivot(index=["family", "property"], columns="configuration", values="verdict")
    assert (wide == "fails").to_numpy().sum() == (matrix([sixteen()]) == "×").to_numpy().sum()


def test_workloads_say_which_failed(tmp_path: Path) -> None:
    workloads = bob.load(saved(tmp_path / "run", sixteen())).workloads()

    assert tuple(workloads.columns) == WORKLOAD_FIELDS
    asked = workloads.query("configuration == 'btrfs' and property == 'append-any'")
    assert len(asked) == 12
    failed = asked[asked["verdict"] == Verdict.FAILS.value]
    assert failed["finish"].unique().tolist() == ["natural"]
    assert failed["workload"].tolist() == [f"workload {place}" for place in range(4)]


def test_a_run_without_configurations(tmp_path: Path) -> None:
    loaded = bob.load(saved(tmp_path / "run", replace(result(), configurations=())))

    assert (loaded.matrix().shape, len(loaded.cells()), len(loaded.workloads())) == ((0, 0), 0, 0)
    assert loaded.matrix().index.names == ["family", "property"]


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"has no result\.json"):
        bob.load(tmp_path)
    with pytest.raises(StoreError, match="there is no"):
        bob.load(tmp_path / "gone")
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(MalformedError, match="is no result"):
        bob.load(tmp_path)


def test_importing_bob_loads_nothing() -> None:
    script = "import bob, sys; print(*(name for name in sys.modules if name.startswith(('bob.', 'pandas', 'jinja2'))))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def column(label: str, fs: str) -> Column:
    """A column of this name."""
    return Column(label, result(), ConfigurationResult(label, fs, "", "", "", ()), Path())


@pytest.mark.parametrize(
    ("label", "fs", "variant"),
    [
        ("ext4-ordered", "ext4", "ordered"),
        ("xfs", "xfs", "default"),
        ("xfs, 6.12.1", "xfs", "default, 6.12.1"),
        ("xfs-wsync, 6.12.1", "xfs", "wsync, 6.12.1"),
        ("ext4 -O ^has_journal", "ext4", "-O ^has_journal"),
        ("ext4 noatime", "ext4", "noatime"),
        ("ext4dev", "ext4", "ext4dev"),
        ("a-name-of-mine", "ext4", "a-name-of-mine"),
        ("", "ext4", "ext4"),
    ],
)
def test_variants(label: str, fs: str, variant: str) -> None:
    assert column(label, fs).variant == variant


def test_groups_are_neighbours_of_one_file_system() -> None:
    found = [(fs, [column.label for column in group]) for fs, group in grouped(columns_of([(sixteen(), Path())]))]
    assert [(fs, len(names)) for fs, names in found] == [
        *(("ext2", 2), ("ext3", 3), ("ext4", 4), ("btrfs", 1), ("xfs", 2), ("reiserfs", 4))
    ]
    apart = [column("ext4-a", "ext4"), column("xfs", "xfs"), column("ext4-b", "ext4")]
    assert [fs for fs, _group in grouped(apart)] == ["ext4", "xfs", "ext4"]


# docs/reports.md against the code: its example, the formats, and the columns of the tables


PAGE = "docs/reports.md"


def test_the_example_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "bob-runs" / "first"
    run.mkdir(parents=True)
    (run / "result.json").write_text(json.dumps(to_json(sixteen())))
    monkeypatch.chdir(tmp_path)
    example = between(text(PAGE), "example")
    [program], [expected] = code(example, "python"), code(example, "text")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, PAGE, "exec"), {})
    assert printed.getvalue() == expected


def test_the_formats_are_those_of_the_command() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\.\w+)` \|", text(PAGE), flags=re.M)
    assert rows == [(name, endings[0]) for name, endings in ENDINGS.items()]


def test_every_column_is_described() -> None:
    assert {*CELL_FIELDS, *WORKLOAD_FIELDS} <= words(text(PAGE))
