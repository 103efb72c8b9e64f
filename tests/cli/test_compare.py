"""``bob compare``: its exit codes, its files, and what it refuses."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bob.result import Verdict, to_json

from .stand_in import Bob, result
from .test_results import put


def put_with(folder: str, **verdicts: Verdict) -> None:
    """A run in ``folder`` with these verdicts (``append_any=Verdict.HOLDS``), else as the stand-in has them."""
    put(Path(folder))
    made = result(unknown=False)
    (column,) = made.configurations
    cells = tuple(
        replace(cell, verdict=verdicts.get(cell.name.replace("-", "_"), cell.verdict)) for cell in column.properties
    )
    changed = replace(made, configurations=(replace(column, properties=cells),))
    (Path(folder) / "result.json").write_text(json.dumps(to_json(changed)))


HOLDS, FAILS, UNKNOWN, SKIPPED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNKNOWN, Verdict.SKIPPED


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ({}, {}, 0),
        ({}, {"overwrite_any": FAILS}, 1),
        ({}, {"append_any": HOLDS}, 1),
        ({}, {"append_any": UNKNOWN}, 3),
        ({"append_any": UNKNOWN}, {"append_any": UNKNOWN}, 3),
        ({}, {"append_any": SKIPPED}, 3),
        ({"append_any": SKIPPED}, {"append_any": SKIPPED}, 0),
        ({}, {"append_any": UNKNOWN, "overwrite_any": FAILS}, 1),
    ],
)
def test_exit_codes(bob: Bob, old: dict[str, Verdict], new: dict[str, Verdict], code: int) -> None:
    put_with("a", **old)
    put_with("b", **new)
    assert bob("compare", "a", "b").code == code
    assert bob("compare", "a/result.json", "b").code == code
    assert bob("compare", "b", "a", "--json", "-").code == code
    assert bob("compare", "b", "a", "--markdown", "-").code == code


def test_strict(bob: Bob) -> None:
    put(Path("a"))  # has a cell more
    put_with("b")
    assert bob("compare", "a", "b").code == 0
    assert bob("compare", "a", "b", "--strict").code == 1


def test_the_published_table(bob: Bob) -> None:
    put_with("run")
    ended = bob("compare", "osdi14", "run")
    assert ended.code == 1
    assert "  -× overwrite-any, ext4-ordered\n" in ended.out
    assert "not compared, only in A: ext2, ext2-sync" in ended.out
    assert "\n2 cells compared: 1 no longer fails, 1 the same; not compared: 11 only in A\n" in ended.out
    back = bob("compare", "run", "osdi14")
    assert back.code == 1
    assert "  +× overwrite-any, ext4-ordered\n" in back.out
    assert bob("compare", "osdi14", "osdi14").code == 0


def test_files(bob: Bob) -> None:
    put_with("run")
    ended = bob("compare", "osdi14", "run", "--json", "c.json", "--markdown", "c.md")
    assert ended.out.startswith("A  osdi14  ")
    document = json.loads(Path("c.json").read_text())
    assert (document["schema"], document["differs"]) == ("bob.comparison/1", True)
    assert Path("c.md").read_text().startswith("# Table 1, then and now\n")
    assert "`bob replay run/witnesses/append-any.json`" not in Path("c.md").read_text()  # it does not differ


def test_stdout_is_for_one_thing(bob: Bob) -> None:
    put_with("a")
    assert json.loads(bob("compare", "a", "a", "--json", "-").out)["differs"] is False
    assert bob("compare", "a", "a", "--markdown", "-").out.startswith("# a and a, compared\n")
    ended = bob("compare", "a", "a", "--json", "-", "--markdown", "-")
    assert (ended.code, ended.out) == (2, "")


def test_a_page_that_cannot_be_written(bob: Bob) -> None:
    put_with("a")
    Path("folder").mkdir()
    ended = bob("compare", "a", "a", "--markdown", "folder")
    assert ended.code == 2
    assert re.fullmatch(r"bob: --markdown: folder is a directory\nhint: .*\n", ended.err)


def test_nothing_in_common(bob: Bob) -> None:
    put(Path("a"), "ext4-ordered")
    put(Path("b"), "btrfs")
    ended = bob("compare", "a", "b")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "bob: a and b have no cell in common\nhint: A has ext4-ordered; B has btrfs\n"


def test_other_properties(bob: Bob) -> None:
    made = result()
    (column,) = made.configurations
    for name, cells in (("a", column.properties[:1]), ("b", column.properties[1:])):
        changed = replace(made, configurations=(replace(column, properties=cells),))
        Path(f"{name}.json").write_text(json.dumps(to_json(changed)))
    ended = bob("compare", "a.json", "b.json")
    assert ended.code == 2
    assert ended.err.endswith("hint: they probed other properties\n")


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (None, 9, "there is no b.json"),
        ("{", 8, "b.json is no result: "),
        ('{"schema": "bob.comparison/1"}', 8, "b.json: schema 'bob.comparison/1' is not 'bob.result/1'"),
    ],
)
def test_what_is_no_result(bob: Bob, content: str | None, code: int, message: str) -> None:
    if content is not None:
        Path("b.json").write_text(content)
    put_with("a")
    for arguments in (("a", "b.json"), ("b.json", "a"), ("osdi14", "b.json")):
        ended = bob("compare", *arguments)
        assert (ended.code, ended.out) == (code, "")
        assert ended.err.startswith(f"bob: {message}")


def test_a_run_without_a_result(bob: Bob) -> None:
    Path("stopped").mkdir()
    ended = bob("compare", "osdi14", "stopped")
    assert (ended.code, ended.out) == (9, "")
    assert "hint: was it stopped? bob judge stopped" in ended.err


def test_a_configuration_that_is_there_twice(bob: Bob) -> None:
    made = result()
    twice = replace(made, configurations=made.configurations * 2)
    Path("twice.json").write_text(json.dumps(to_json(twice)))
    ended = bob("compare", "twice.json", "osdi14")
    assert (ended.code, ended.out) == (8, "")
    assert ended.err.startswith("bob: twice.json: the result has 'ext4-ordered' twice\n")


def test_a_comparison_waits_for_no_pandas() -> None:
    """It serves in scripts that compare again and again."""
    import subprocess
    import sys

    script = "import sys, bob.cli.compare; sys.exit(bool({'pandas', 'libvirt', 'jinja2'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
