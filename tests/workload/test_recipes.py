"""Data comes out of its recipe as it was, and what is damaged is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.witness.recipes import from_recipe, to_recipe
from bob.workload.pattern import FIRST_SETUP_NUMBER, UNSHADED, contents, stale

SECTOR = st.one_of(
    st.binary(min_size=512, max_size=512),
    st.just(bytes(512)),
    st.just(stale(512)),
    st.tuples(
        st.one_of(st.integers(1, 400), st.integers(FIRST_SETUP_NUMBER, FIRST_SETUP_NUMBER + 127)),
        st.integers(0, 20).map(lambda sector: sector * 512),
    ).map(lambda found: contents(*found, 512)),
    st.integers(0, 600).map(lambda offset: contents(3, offset, 512)),
    st.integers(UNSHADED, 5).map(lambda shade: contents(3, 512, 512, shade)),
)


@given(st.lists(SECTOR, max_size=12))
def test_round_trip(sectors: list[bytes]) -> None:
    data = b"".join(sectors)
    assert from_recipe(json.loads(json.dumps(to_recipe(data)))) == data


def test_a_long_write_is_a_line() -> None:
    data = contents(7, 4096, 2 * 1024 * 1024)
    recipe = to_recipe(data + bytes(512))
    assert recipe["patterns"] == [[0, 4096, 7, 4096, 0]]
    assert len(json.dumps(recipe)) < 200


def test_patterns_without_a_shade_are_of_before_there_were_any() -> None:
    recipe = {**to_recipe(b""), "sectors": 4, "patterns": [[1, 2, 3, 512]], "rest": to_recipe(bytes(1024))["rest"]}
    assert from_recipe(recipe) == bytes(512) + contents(3, 512, 1024, UNSHADED) + bytes(512)
    assert to_recipe(from_recipe(recipe))["patterns"] == [[1, 2, 3, 512, UNSHADED]]


@pytest.mark.parametrize("sectors", [0, 1, 3])
def test_too_few_or_too_many_sectors(sectors: int) -> None:
    recipe = {**to_recipe(b"?" * 1024), "sectors": sectors}
    with pytest.raises(ValueError, match="sectors"):
        from_recipe(recipe)
