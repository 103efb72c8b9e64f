"""Bounds: every name in every place, and mistakes told in a line."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from bob.errors import UsageError
from bob.search.bounds import load, read, shipped_bounds
from bob.search.spaces import Search, search
from bob.workload.language import write_one
from bob.workload.operations import Operation

SMALL: dict[str, Any] = {
    "about": "two files",
    "setup": ["mkdir /d", "write /d/a 0 4096"],
    "files": ["/d/a", "/d/b"],
    "directories": ["/d"],
    "operations": ["create FILE", "link FILE FILE", "append /d/a 100"],
    "calls": ["fsync FILE", "fsync DIRECTORY", "sync"],
    "promises": ["fsync-file.size"],
}


@pytest.mark.parametrize("name", shipped_bounds())
def test_what_is_shipped_can_be_read(name: str) -> None:
    bounds = load(name)
    assert bounds.operations and bounds.calls and bounds.promises and bounds.name == name


def test_names_may_have_spaces() -> None:
    bounds = read("small", {**SMALL, "files": ["/d/a", "/d/b c"]})
    assert "link /d/a '/d/b c'" in [*map(write_one, chain.from_iterable(bounds.operations))]


def test_each_name_is_put_into_each_place_and_none_into_two() -> None:
    bounds = read("small", SMALL)
    assert [*map(write_one, chain.from_iterable(bounds.operations))] == [
        *("create /d/a", "create /d/b"),
        *("link /d/a /d/b", "link /d/b /d/a"),
        "append /d/a 100",
    ]
    assert [*map(write_one, bounds.calls)] == ["fsync /d/a", "fsync /d/b", "fsync /d", "sync"]
    assert bounds.between == ()
    assert [one.name for one in bounds.promises] == ["fsync-file.size"]


def test_an_entry_may_be_several_operations_and_files_may_stay_open() -> None:
    asked = ["unlink FILE; append f 100", "rename FILE /d/FILE"]
    bounds = read("open", {**SMALL, "begin": ["open /d/a as f"], "operations": asked})
    texts = ["; ".join(map(write_one, entry)) for entry in bounds.operations]
    assert texts == [
        *("unlink /d/a; append f 100", "unlink /d/b; append f 100"),
        *("rename /d/a /d/FILE", "rename /d/b /d/FILE"),
    ]
    assert [*map(write_one, bounds.begin)] == ["open /d/a as f"]


def test_a_device_that_is_to_be_full_gets_a_file_of_the_rest_when_its_room_is_known() -> None:
    asked = search("full")

    def setup(asked: Search) -> tuple[Operation, ...]:
        return next(asked.workloads(asked.space())).setup

    [*begin, created, filled] = setup(replace(asked, filler=5 * 65536))
    assert (asked.leave, search("small").leave) == (192 * 1024, 0)
    assert [write_one(created), write_one(filled)] == ["create /full", "fallocate /full 0 327680 keep"]
    assert setup(asked) == tuple(begin), "how many workloads there are can be said without a guest"
    assert Search.from_json(replace(asked, filler=7).to_json()).filler == 7, "a resumed search asks of the same trees"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"leave": "much"}, "is not a number of bytes"),
        ({"leave": "64K", "setup": ["create /full"]}, "/full exists"),
        ({"calls": ["create FILE"]}, "'create' makes nothing durable"),
        ({"calls": []}, "nothing is promised"),
        ({"operations": []}, "there is no operation"),
        ({"operations": ["rename FILE FILE"], "files": ["/d/a"]}, "there is no operation"),
        ({"between": ["unlink FILE"]}, "'unlink' makes nothing durable"),
        ({"promises": ["fsync-file.sise"]}, "unknown promise 'fsync-file.sise'"),
        ({"operations": ["creat FILE"]}, "no operation 'creat'"),
        ({"setup": ["unlink /d/a"]}, "/d/a does not exist"),
        ({"files": ["d/a"]}, "is not an absolute path"),
        ({"ops": []}, "unknown key 'ops'"),
        ({"begin": ["open /d/b as f"]}, "/d/b does not exist"),
        ({"about": ""}, "is not one line of text"),
    ],
)
def test_mistakes_name_the_file_and_what_is_wrong(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    lines = [f"{key} = {value!r}" for key, value in {**SMALL, **change}.items()]
    path = tmp_path / "mine.toml"
    path.write_text("\n".join(lines))
    with pytest.raises(UsageError, match=f"mine.toml: .*{said}"):
        load(str(path))


@pytest.mark.parametrize(
    ("name", "said"),
    [("smal", "there are no bounds 'smal'"), ("./none.toml", "none.toml: No such file"), ("a/b", "a/b: No such file")],
)
def test_bounds_that_are_not_there(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load(name)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('about = "nothing else"')
    with pytest.raises(UsageError, match="'files' is missing"):
        load(str(path))
