"""Reference results: whole, replayable, and with pages that are what bob makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bob import witness
from bob.cli.main import run
from bob.config import load_set
from bob.report.saved import read_result
from bob.result import Verdict

ROOT = Path(__file__).resolve().parent.parent
REFERENCES = sorted(path.parent for path in (ROOT / "reports" / "reference").glob("*/result.json"))


@pytest.mark.parametrize("folder", REFERENCES, ids=lambda path: path.name)
def test_it_is_whole(folder: Path) -> None:
    result = read_result(folder)
    assert [column.name for column in result.configurations] == [
        made.name for made in load_set("osdi14").configurations
    ]
    for column in result.configurations:
        assert len(column.properties) == 13
        for cell in column.properties:
            assert cell.verdict in (Verdict.FAILS, Verdict.HOLDS)
            assert (cell.witness is not None) == (cell.verdict is Verdict.FAILS)


@pytest.mark.parametrize("folder", REFERENCES, ids=lambda path: path.name)
def test_every_violation_has_its_witness(folder: Path) -> None:
    for column in read_result(folder).configurations:
        for cell in column.properties:
            if cell.witness is not None:
                read = witness.read(folder / cell.witness)
                assert (read.property, read.configuration.name) == (cell.name, column.name)
                assert read.evidence == cell.evidence


@pytest.mark.parametrize("folder", REFERENCES, ids=lambda path: path.name)
@pytest.mark.parametrize(
    "command",
    [
        ("show", "{folder}", "--output", "{new}/table.html"),
        ("show", "{folder}", "--output", "{new}/table.tex"),
        ("compare", "osdi14", "{folder}", "--markdown", "{new}/README.md"),
    ],
    ids=lambda command: command[-1].rpartition("/")[2],
)
def test_its_pages_are_up_to_date(
    folder: Path, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a change that is meant: ``reports/make-pages FOLDER``."""
    monkeypatch.chdir(ROOT)
    assert run([word.format(folder=folder.relative_to(ROOT), new=tmp_path) for word in command]) in (0, 1)
    [made] = tmp_path.iterdir()
    assert made.read_text() == (folder / made.name).read_text()
