"""Documents on few lines say what they said."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bob import documents

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
