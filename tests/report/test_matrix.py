"""Properties against configurations, as data and as a picture; and the numbers in the cells."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from bob.catalogue.probe_files import probe_names
from bob.crash.coverage import States
from bob.report.counts import compact, explored, plural, share, size, torn_states, whole_states
from bob.report.matrix import matrix
from bob.report.overview import print_overview
from bob.report.rows import FAMILIES
from bob.result import Result

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
    assert lines[-1] == "× fails   · holds in what was explored (no proof)   ? unknown   – skipped"


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


HUGE = 2**12321


@pytest.mark.parametrize(
    ("states", "whole", "torn", "phrase"),
    [
        (
            States(812, 4096, 2**88, None, 0, 700),
            *("700 of 4,096", "< 0.1 %", "700 of 4,096 whole states, < 0.1 % of the torn ones"),
        ),
        (
            States(64, 16, 64, "sectors", 0, 16),
            *("all 16", "all", "all 16 whole states, all of the torn ones"),
        ),
        (
            States(16, 16, 16, "sectors", 0, 16),
            *("all 16", "", "all 16 states"),
        ),
        (
            States(212, 212, 2**61, "writes", 0, 212),
            *("all 212", "none", "all 212 whole states, none of the torn ones"),
        ),
        (
            States(2**58 + 212, 212, 2**61, "writes", 0, 212),
            *("all 212", "12 %", "all 212 whole states, 12 % of the torn ones"),
        ),
        (
            States(HUGE - 2**40, 2**40, HUGE, None, 0, 2**39),
            *("50 % of 2^40", "> 99 %", "50 % of 2^40 whole states, > 99 % of the torn ones"),
        ),
        (
            States(HUGE // 1000, HUGE // 10**6, HUGE, None, 0, 2**30),
            *("2^30 of 2^12301", "0.1 %", "2^30 of 2^12301 whole states, 0.1 % of the torn ones"),
        ),
        (
            States(4090, 4096, 2**88, None, 0, 4090, 6, 6),
            *("all 4,090 that mount; 6 do not", "none"),
            "all 4,090 whole states that mount, none of the torn ones; 6 do not mount",
        ),
        (
            States(4090, 4097, 2**88, None, 0, 4090, 6, 6),
            *("4,090 of 4,097; 6 do not mount", "none"),
            "4,090 of 4,097 whole states, none of the torn ones; 6 do not mount",
        ),
        (
            States(4096, 4096, 2**88, "writes", 0, 4096, 9, 0),
            *("all 4,096", "none", "all 4,096 whole states, none of the torn ones; 9 do not mount"),
        ),
        (
            States(0, 16, 64, None, 0, 0),
            *("0 of 16", "none", "0 of 16 whole states, none of the torn ones"),
        ),
        (States(), "", "", ""),
        # Results that are older than the count.
        (States(812, 4096, 2**88), "some of 4,096", "", "some of 4,096 whole states"),
        (
            States(2**60 + 212, 212, 2**61 + 212, "writes"),
            *("all 212", "50 %", "all 212 whole states, 50 % of the torn ones"),
        ),
    ],
)
def test_how_much_was_explored(states: States, whole: str, torn: str, phrase: str) -> None:
    assert (whole_states(states), torn_states(states), explored(states)) == (whole, torn, phrase)


@given(st.integers(0, 3000), st.integers(1, 3000))
def test_a_share_says_all_and_none_only_where_it_is(part: int, every: int) -> None:
    part = min(part, every)
    told = share(part, every)
    assert (told == "all") == (part == every)
    assert (told == "none") == (part == 0)
    if told[0].isdigit():
        number = float(told.removesuffix(" %"))
        assert number <= 100 * part / every < number + (0.1 if number < 1 else 1) + 1e-9
    assert share(part << 9000, every << 9000) == told


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (2**25, "32 MiB"), (2**31, "2 GiB")]
)
def test_size(count: int, text: str) -> None:
    assert size(count) == text


def test_plural() -> None:
    assert [plural(count, "state") for count in (0, 1, 1200)] == ["0 states", "1 state", "1,200 states"]
