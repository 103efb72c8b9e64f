"""Data comes out of its recipe as it was, and what is damaged is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.workload.pattern import FIRST_SETUP_NUMBER, contents, stale
from bob.workload.recipes import from_recipe, to_recipe

SECTOR = st.one_of(
    st.binary(min_size=512, max_size=512),
    st.just(bytes(512)),
    st.just(stale(512)),
    st.tuples(
        st.one_of(st.integers(1, 400), st.integers(FIRST_SETUP_NUMBER, FIRST_SETUP_NUMBER + 127)),
        st.integers(0, 20).map(lambda sector: sector * 512),
    ).map(lambda found: contents(*found, 512)),
    st.integers(0, 600).map(lambda offset: contents(3, offset, 512)),
)


@given(st.lists(SECTOR, max_size=12))
def test_round_trip(sectors: list[bytes]) -> None:
    data = b"".join(sectors)
    assert from_recipe(json.loads(json.dumps(to_recipe(data)))) == data


def test_a_long_write_is_a_line() -> None:
    data = contents(7, 4096, 2 * 1024 * 1024)
    recipe = to_recipe(data + bytes(512))
    assert recipe["patterns"] == [[0, 4096, 7, 4096]]
    assert len(json.dumps(recipe)) < 200


@pytest.mark.parametrize("sectors", [0, 1, 3])
def test_too_few_or_too_many_sectors(sectors: int) -> None:
    recipe = {**to_recipe(b"?" * 1024), "sectors": sectors}
    with pytest.raises(ValueError, match="sectors"):
        from_recipe(recipe)
