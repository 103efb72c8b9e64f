"""Reference results: whole, replayable, and with documents that are what bob makes of them."""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from pathlib import Path

import pytest

from bob.catalogue.probe_files import probe_names
from bob.catalogue.sets import RowSet, probes_of
from bob.claim.verdict import Verdict
from bob.cli.main import run
from bob.report.saved import load, load_every
from bob.report.vulnerability_tables import by_cross_check
from bob.subject import load_set
from bob.trace.model import SECTOR_BYTES
from bob.witness import bundle
from bob.witness import document as witness
from bob.workload.language import write_one
from bob.workload.operations import Write
from bob.workload.pattern import CELL_BYTES, UNSHADED, place
from bob.workload.simulation import simulate
from claims import question_of
from readme_sample import SAMPLES, SHOWN, answer, sample, written

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 128 * 1024
REFERENCES = sorted(path.parent for path in (ROOT / "reports" / "reference").glob("*/result.json*"))


@pytest.mark.parametrize("folder", REFERENCES, ids=lambda path: path.name)
def test_it_is_whole(folder: Path) -> None:
    result, name = load(folder).result, set_of(folder)
    assert [column.name for column in result.subjects] == [made.name for made in load_set(name).configurations]
    finer = [row.property.name for row in probes_of(rows)] if (rows := finer_rows(folder)) else []
    for column in result.subjects:
        names = tuple(cell.name for cell in column.answers)
        if finer:
            assert [row for row in finer if row in names] == list(names) and len(names) > 60
        else:
            assert names == probe_names()[:14]  # a row that is newer than a reference is none of its
        for cell in column.answers:
            assert (cell.witness is not None) == (cell.verdict is Verdict.FAILS)
            assert cell.verdict in (Verdict.FAILS, Verdict.HOLDS) or (name != "osdi14" and cell.reason)


MODELS_OF_APPS = ROOT / "reports" / "reference" / "models-of-apps-linux-6.1"


def test_predictions_of_derived_models_are_confirmed_at_least_half_and_miss_nothing() -> None:
    """A file system's own model allows all that it leaves, and most of what the model predicts is there."""
    runs = [one.result for one in load_every(MODELS_OF_APPS / "results.json.xz")]
    asked = Counter((model.name, run.file_systems[0].name) for run in runs if run.file_systems for model in run.models)
    assert {"ext4-ordered", "xfs", "btrfs (derived)"} <= {model for model, _fs in asked}
    for answers in runs:
        first = answers.file_systems[0].name if answers.file_systems else None
        assert first in (None, "ext4", "xfs", "btrfs"), "undisturbed first"
        assert not answers.is_contradicted
    shares = dict(by_cross_check(runs).rows)
    for name in ("ext4-ordered", "xfs", "btrfs (derived)"):
        assert shares[name][5] == "·" and int(shares[name][6].rstrip("%")) >= 50, name
    readme = (MODELS_OF_APPS / "README.md").read_text()
    for row in by_cross_check(runs).rows:
        assert f"| {row[0]} | {' | '.join(row[1])} |" in readme


def set_of(folder: Path) -> str:
    """The name of the set that was probed."""
    name = folder.name.partition("-linux-")[0]
    return {"durability": "plain", "pairs": "defaults"}.get(name, name)


def finer_rows(folder: Path) -> RowSet | None:
    """The rows that were asked in place of those of Table 1."""
    return next((rows for rows in RowSet if folder.name.startswith(f"{rows}-")), None)


@pytest.mark.parametrize("folder", REFERENCES, ids=lambda path: path.name)
def test_every_violation_has_its_witness(folder: Path) -> None:
    for column in load(folder).result.subjects:
        for cell in column.answers:
            if cell.witness is not None:
                read = witness.read(folder / cell.witness)
                assert (read.claim.name, read.configuration.name) == (cell.name, column.name)
                assert read.evidence == cell.evidence
                assert len(json.dumps(bundle.load(folder / cell.witness))) <= MOST_BYTES
                is_named = "unknown" not in {one.kind for one in read.timeline.writes}
                assert is_named or set_of(folder) in ("modern", "plain")
                question, told = question_of(read.claim), read.sentence
                named = {at for at in question.operations if f"«{write_one(read.workload.operations[at - 1])}»" in told}
                assert not question.required or named.intersection(question.required)
                assert question.later is None or question.later in named


@pytest.mark.parametrize("folder", REFERENCES, ids=lambda path: path.name)
def test_the_data_of_witnesses_is_what_their_workloads_write(folder: Path) -> None:
    """Also of those from before there were shades: else each would be judged by bytes that were never written."""
    seen: set[bool] = set()
    for path in bundle.within(folder):
        read = witness.read(path)
        _history, setup, performed = simulate(read.workload)
        written = {one.number: one for one in (*setup, *performed) if one.data}
        for _sector, data in read.runs:
            for start in range(0, len(data), SECTOR_BYTES):
                cell = place(data[start : start + SECTOR_BYTES])
                if cell is not None and isinstance(written[cell.operation].operation, Write):
                    found = data[start : start + CELL_BYTES]
                    one = written[cell.operation]
                    assert found == one.data[cell.offset - one.offset :][:CELL_BYTES]
                    seen.add(cell.shade == UNSHADED)
    assert len(seen) == 1


@pytest.mark.parametrize("folder", REFERENCES, ids=lambda path: path.name)
def test_most_witnesses_are_small(folder: Path) -> None:
    """Those of pairs are as found: each of their workloads asks about many pairs, and to shrink one takes a minute."""
    cells = [cell for column in load(folder).result.subjects for cell in column.answers if cell.witness]
    documents = [bundle.load(folder / str(cell.witness)) for cell in cells]
    most = 15 if finer_rows(folder) is RowSet.PAIRS else 3
    assert statistics.median(len(document["workload"]["operations"]) for document in documents) <= most


@pytest.mark.parametrize("folder", REFERENCES, ids=lambda path: path.name)
@pytest.mark.parametrize(
    "command",
    [
        ("show", "{folder}", "--output", "{new}/table.tex"),
        ("compare", "osdi14", "{folder}", "--markdown", "{new}/README.md"),
        ("show", "{folder}", "--output", "{new}/README.md"),
    ],
    ids=["tex", "comparison", "page"],
)
def test_its_documents_are_up_to_date(
    folder: Path, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a change that is meant: ``reports/make-pages FOLDER``."""
    monkeypatch.chdir(ROOT)
    if (command[0] == "compare") != (set_of(folder) == "osdi14") and command[-1].endswith(".md"):
        pytest.skip("Table 1 is held against the published one, other sets are a table with comments")
    assert run([word.format(folder=folder.relative_to(ROOT), new=tmp_path) for word in command]) in (0, 1, 3)
    made = texts(tmp_path)
    assert made
    top = {name.parts[0] for name in made}
    comments = ROOT / "reports" / "comments" / f"{folder.name}.md"
    if "README.md" in top and comments.is_file():
        made[Path("README.md")] += comments.read_text()
    assert made == {name: text for name, text in texts(folder).items() if name.parts[0] in top}


@pytest.mark.parametrize("page", SAMPLES, ids=str)
def test_a_page_shows_what_a_reference_says(page: Path) -> None:
    """After a change that is meant: ``python tests/readme_sample.py``; ``reports/make-pages`` does it, too."""
    text = (ROOT / page).read_text()
    assert written(page, ROOT) == text
    _marker, made = SAMPLES[page]
    assert made(ROOT) in text


def test_the_samples_show_violations() -> None:
    assert all(f"× {row} " in sample(ROOT) for row in SHOWN)
    assert "lost acknowledged data" in answer(ROOT) and "must be durable by then" in answer(ROOT)


@pytest.mark.parametrize("folder", REFERENCES, ids=lambda path: path.name)
def test_its_pages_can_be_made(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not kept: the table, and a page for each witness."""
    monkeypatch.chdir(ROOT)
    assert run(["show", str(folder.relative_to(ROOT)), "--output", f"{tmp_path}/pages/"]) in (0, 3)
    made = {path.relative_to(tmp_path / "pages").with_suffix("") for path in tmp_path.rglob("*.html")}
    kept = [path.relative_to(folder) for path in bundle.within(folder)]
    assert made == {Path("index"), *(Path("witnesses", path.parts[0], path.stem.replace(".", "-")) for path in kept)}


def texts(folder: Path) -> dict[Path, str]:
    """The text of every file below ``folder`` that is text: bundles of witnesses are not. Which bob has made it is of
    no account: a document that says the same is up to date."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".xz")
    said = {path.relative_to(folder): path.read_text() for path in files}
    return {name: re.sub(r"Made by bob \d\S+", "Made by bob", text) for name, text in said.items()}
