"""Documents on few lines say what they said, and counts in them are exact."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob import counts, documents

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=20), inner),
    max_leaves=40,
)


@given(PLAIN)
def test_it_reads_back(document: Any) -> None:
    written = documents.text(document)
    assert json.loads(written) == document
    assert written.endswith("\n")


@given(PLAIN)
def test_a_line_ends_where_the_next_part_is_too_long_for_it(document: Any) -> None:
    for line in documents.text(document).splitlines():
        [*_, last] = line.removesuffix(",").strip().split(": ", 1)
        assert len(last) <= documents.LONGEST_LINE or last.startswith('"')


def test_small_parts_are_lines_and_large_ones_are_blocks() -> None:
    rows = [{"name": f"workload {number}", "states": {"explored": number}} for number in range(20)]
    assert documents.text({"schema": "x/1", "rows": rows}).splitlines()[:4] == [
        "{",
        ' "schema": "x/1",',
        ' "rows": [',
        '  {"name":"workload 0","states":{"explored":0}},',
    ]
    assert documents.text({"schema": "x/1"}) == '{"schema":"x/1"}\n'


# Counts in documents are exact, and what is none is refused


FEW = st.lists(st.tuples(st.sampled_from([1, -1]), st.integers(0, 40_000)), min_size=1, max_size=6)


def total(powers: list[tuple[int, int]]) -> int:
    return sum(sign * 2**exponent for sign, exponent in powers)


@given(st.integers() | st.integers(-(2**400), 2**400) | FEW.map(total))
def test_counts_read_back_the_same(count: int) -> None:
    text = counts.written(count)
    assert counts.read(text) == counts.read(str(text)) == count
    assert isinstance(text, str) or abs(text) <= 2**53


@given(FEW)
def test_a_sum_of_few_powers_is_short(powers: list[tuple[int, int]]) -> None:
    count = total(powers)
    if len(str(abs(count))) > counts.MOST_DIGITS:
        assert len(str(counts.written(count))) <= min(len(str(count)), len(powers) * len("+2^40000"))


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (2**53, 2**53),
        (2**53 + 1, "9007199254740993"),
        (2**12321 - 2**12310 + 2**77, "2^12321-2^12310+2^77"),
        (1 - 2**200, "-2^200+2^0"),
        (10**40 - 1, "9" * 40),
    ],
)
def test_as_documents_have_them(count: int, text: int | str) -> None:
    assert counts.written(count) == text


def test_digits_of_older_documents_are_read() -> None:
    assert counts.read(str(3**20_000)) == 3**20_000


@pytest.mark.parametrize(
    "text", ["2^", "2^7+", "3^7", "2^7*2^8", "2^7 + 2^6", "2^-7", "many", "", "2^99999999", None, []]
)
def test_what_is_none_is_refused(text: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        counts.read(text)  # type: ignore[arg-type]
