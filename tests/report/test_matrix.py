"""Properties against configurations, as data and as a picture; and the numbers in the cells."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from bob.probe_files import probe_names
from bob.report.counts import compact, explored, plural, size
from bob.report.matrix import matrix
from bob.report.overview import print_overview
from bob.report.rows import FAMILIES
from bob.result import Result, States

from .samples import SIXTEEN, result


def overview(*results: Result, width: int = 80) -> list[str]:
    """The lines of the overview."""
    file = io.StringIO()
    print_overview(Console(file=file, width=width, highlight=False), results)
    return file.getvalue().splitlines()


def test_the_rows_are_those_of_the_probes() -> None:
    assert tuple(name for names in FAMILIES.values() for name in names) == probe_names()[:13]


def test_matrix() -> None:
    marks = matrix([result("ext4-ordered", "btrfs"), result("xfs")])

    assert list(marks.columns) == ["ext4-ordered", "btrfs", "xfs"]
    assert list(marks.index) == [(family, name) for family, names in FAMILIES.items() for name in names]
    assert marks.loc[("ordering", "append-any")].tolist() == ["×", "×", "×"]
    assert marks["xfs"].value_counts().to_dict() == {"holds": 9, "×": 2, "?": 1, "–": 1}


def test_what_was_not_probed_is_empty() -> None:
    (column,) = result().configurations
    few = replace(column, name="few", properties=column.properties[:1])
    marks = matrix([result(), replace(result(), configurations=(few,))])

    assert marks["few"].tolist() == [""] * 12 + ["holds"]


def test_columns_of_one_name_are_told_apart() -> None:
    old = result()
    new = replace(old, environment=replace(old.environment, kernel="6.12.1"))
    again = replace(old, run=replace(old.run, id="again"))

    assert list(matrix([old, new]).columns) == ["ext4-ordered, 6.1.0-31-amd64", "ext4-ordered, 6.12.1"]
    assert list(matrix([old, again]).columns) == ["ext4-ordered, 20261121T230021-1f2e3d", "ext4-ordered, again"]
    assert matrix([old, old]).shape == (13, 2)


def test_few_configurations_have_their_names() -> None:
    lines = overview(result("ext4-ordered", "btrfs"))

    assert lines[0].split() == ["ext4-ordered", "btrfs"]
    assert lines[2].split() == ["single-sector-overwrite", "·", "·"]
    assert lines[4].split() == ["single-block-overwrite", "×", "×"]
    assert lines[-1] == "× fails   · holds as far as explored   ? unknown   – skipped"


def test_sixteen_configurations_fit_eighty_columns() -> None:
    lines = overview(result(*SIXTEEN))

    assert max(map(len, lines)) <= 80
    assert lines[0].split() == list("abcdefghijklmnop")
    assert "a  ext2              i  ext4-datajournal" in lines
    assert "h  ext4-nodelalloc   p  reiserfs-datajournal" in lines


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (4096, "4,096"), (999_999, "999,999"), (2**20, "2^20"), (3 * 2**5000, "2^5002")]
)
def test_compact(count: int, text: str) -> None:
    assert compact(count) == text


@pytest.mark.parametrize(
    ("states", "text"),
    [
        (States(812, 4096, 4096), "812/4,096"),
        (States(812, 4096, 2**88), "812/2^88"),
        (States(64, 16, 64, "sectors"), "all 64"),
        (States(2400, 212, 2**61, "writes"), "2,400/2^61 (all whole)"),
        (States(2**61 - 1, 212, 2**61, "writes"), "2^60/2^61 (all whole)"),
        (States(5 * 2**58, 212, 2**60 + 1), "2^60/2^61"),
        (States(0, 16, 64), "0/64"),
        (States(), ""),
    ],
)
def test_explored(states: States, text: str) -> None:
    assert explored(states) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (2**25, "32 MiB"), (2**31, "2 GiB")]
)
def test_size(count: int, text: str) -> None:
    assert size(count) == text


def test_plural() -> None:
    assert [plural(count, "state") for count in (0, 1, 1200)] == ["0 states", "1 state", "1,200 states"]
