"""docs/reports.md against the code: its example, the formats, and the columns of the tables."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

from bob.cli.show import ENDINGS
from bob.report.frames import CELL_FIELDS, WORKLOAD_FIELDS
from bob.result import to_json
from test_docs import between, code, text, words

from .samples import sixteen

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
