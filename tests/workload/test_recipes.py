"""Data comes out of its recipe as it was, and what is damaged is refused.

Workloads for a file system without links.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.catalogue.probe_files import shipped_probes
from bob.witness.recipes import from_recipe, to_recipe
from bob.workload.lacking import LACKABLE, without
from bob.workload.language import parse, write_one
from bob.workload.operations import Finish, Fsync, Operation, Workload
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


NO_LINKS = ("link", "symlink", "setxattr")


def workload(setup: str, operations: str, *finish: Operation) -> Workload:
    return Workload("w", tuple(parse(setup)), tuple(parse(operations)), Finish("f", finish))


def test_what_it_lacks_is_left_out() -> None:
    asked = workload("create /a; link /a /other", "append /a 10; link /a /b; symlink a /c; unlink /a")
    kept = without(asked, NO_LINKS)
    assert kept is not None
    assert [write_one(one) for one in (*kept.setup, *kept.operations)] == ["create /a", "append /a 10", "unlink /a"]
    assert without(asked, ()) == asked


def test_what_rests_on_it_is_left_out_too() -> None:
    assert without(workload("create /a", "link /a /b"), NO_LINKS) is None
    assert without(workload("create /a", "append /a 5; link /a /b; append /b 3"), NO_LINKS) is None
    assert without(workload("create /a; link /a /b", "rename /b /c"), NO_LINKS) is None
    assert without(workload("create /a", "append /a 5; link /a /b", Fsync("/b")), NO_LINKS) is None
    assert without(workload("create /a; link /a /b", "append /a 5"), NO_LINKS) is not None
    assert without(workload("mkdir /d; create /a", "link /a /d/b; rename /d /e; unlink /e/b"), NO_LINKS) is None
    assert without(workload("mkdir /d; create /a", "link /a /d/b; rename /d /e; unlink /a"), NO_LINKS) is not None


def test_a_file_that_only_it_opens_is_not_written_to() -> None:
    made = workload("create /a", "append /a 5; tmpfile / as t; append t 5; link t /b")
    assert without(made, ("tmpfile",)) is None
    assert without(workload("create /a", "append /a 5; tmpfile / as t; close t"), ("tmpfile",)) is None
    kept = without(
        workload("write /a 0 5", "append /a 5; mknod /p fifo; reflink /a /b; unlink /a"), ("mknod", "reflink")
    )
    assert kept is not None
    assert [write_one(one) for one in kept.operations] == ["append /a 5", "unlink /a"]


def test_every_property_is_still_asked() -> None:
    for probe in shipped_probes(()):
        kept = [one for workload in probe.workloads if (one := without(workload, NO_LINKS)) is not None]
        assert kept, probe.property.name
        done = [one for workload in kept for one in (*workload.setup, *workload.operations)]
        assert not any(LACKABLE[name](one) for name in NO_LINKS for one in done)
