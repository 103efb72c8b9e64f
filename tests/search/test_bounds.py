"""Bounds: every name in every place, and mistakes told in a line."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from bob.claim.property.rules import questions
from bob.errors import UsageError
from bob.schema import decode, encode
from bob.search.ace import VERBS, Ace, Core, performed
from bob.search.bounds import Bounds, BoundsDeclaration, load, shipped_bounds
from bob.search.space import Part
from bob.search.spaces import Search, search, search_in
from bob.workload import operations as ops
from bob.workload.language import write_one
from bob.workload.operations import At, Operation
from bob.workload.simulation import simulate
from wording import text_with

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


def read(name: str, document: Any) -> Bounds:
    return decode(BoundsDeclaration, document).bounds(name)


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
    assert search_in(encode(replace(asked, filler=7))).filler == 7, "a resumed search asks of the same trees"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"leave": "much"}, "is not a number of bytes"),
        ({"leave": "64K", "setup": ["create /full"]}, "/full exists"),
        ({"calls": ["create FILE"]}, "take sync calls, not 'create'"),
        ({"calls": []}, "'calls' must not be empty"),
        ({"operations": []}, "no operation is possible"),
        ({"operations": ["rename FILE FILE"], "files": ["/d/a"]}, "no operation is possible"),
        ({"between": ["unlink FILE"]}, "take sync calls, not 'unlink'"),
        ({"promises": ["fsync-file.sise"]}, "unknown promise 'fsync-file.sise'"),
        ({"operations": ["creat FILE"]}, "unknown operation 'creat'"),
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
    [
        ("smal", snapshot("unknown bounds 'smal'")),
        ("./none.toml", snapshot("cannot read none.toml: No such file or directory")),
        ("a/b", snapshot("cannot read a/b: No such file or directory")),
    ],
)
def test_bounds_that_are_not_there(name: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        load(name)
    assert str(refused.value) == said


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('about = "nothing else"')
    with pytest.raises(UsageError) as refused:
        load(str(path))
    assert text_with(str(refused.value), "files") == snapshot("mine.toml: 'files' is missing")


# The bounds of ACE: as many workloads as ACE makes, and what they need is made before them

OF_ACE = {
    ("ace", 1): 328,
    ("ace", 2): 241_720,
    ("ace-metadata", 3): 540_450,
}
"""Counted by running ``ace.py`` with the lists of ``common.py``; its repository has the 328 files of one operation. (As
it stands, ``main`` adds ``AC`` and ``AC/bar`` to the second lists for all bounds, though they are for nested ones.)"""
BY_VERB = {
    "creat": 8, "mkdir": 4, "falloc": 120, "write": 24, "dwrite": 16, "mmapwrite": 16, "link": 36, "unlink": 16,
    "remove": 16, "rename": 40, "fsetxattr": 8, "removexattr": 8, "truncate": 16,
}  # fmt: skip


def ace(name: str = "ace") -> Ace:
    found = search(name).space()
    assert isinstance(found, Ace)
    return found


@pytest.mark.parametrize(("name", "length"), OF_ACE)
def test_there_are_as_many_as_ace_makes(name: str, length: int) -> None:
    assert ace(name).count(length) == OF_ACE[name, length]


@pytest.mark.parametrize("verb", BY_VERB)
def test_there_are_as_many_of_each_operation(verb: str) -> None:
    assert set(BY_VERB) == set(VERBS)
    assert Ace("one", (verb,), ()).count(1) == BY_VERB[verb]


def test_of_one_operation_each_is_tried() -> None:
    """328, without 16 removes, which are unlinks, and without 12 mapped writes, which have one end each: as the paper
    says, 300."""
    found = [workload.name for workload in ace().every(1)]
    assert len(found) == len(set(found)) == 300


def test_every_workload_ends_with_a_call_that_promises_something() -> None:
    every = ace()
    for workload in [*every.every(1), *islice(every.drawn(2, 1), 300), *islice(every.drawn(3, 1), 100)]:
        history = simulate(workload)[0]
        assert (
            workload.at is At.END and workload.setup == () and isinstance(workload.operations[-1], ops.SYNC_OPERATIONS)
        )
        assert any(questions(one, history) for one in every.asked)


@pytest.mark.parametrize(
    ("cores", "points", "text"),
    [
        ([Core("creat", ("/A/foo",))], ["/A"], "mkdir /A; create /A/foo; fsync /A"),
        ([Core("creat", ("/foo",))], ["/bar"], "create /foo; create /bar; fsync /bar"),
        (
            [Core("falloc", ("/foo",), "zero", "extend")],
            [""],
            "create /foo; write /foo 0 32768; fallocate /foo 30768 5000 zero; sync",
        ),
        (
            [Core("falloc", ("/foo",), "keep", "append"), Core("falloc", ("/foo",), "punch", "append")],
            [None, "/foo"],
            "create /foo; write /foo 0 32768; fallocate /foo 32768 32768 keep; fallocate /foo 32768 32768 punch; "
            "fsync /foo",
        ),
        ([Core("dwrite", ("/foo",), place="append")], ["/foo"], "create /foo; write /foo 0 32768 direct; fsync /foo"),
        (
            [Core("mmapwrite", ("/foo",), place="append")],
            [""],
            "create /foo; write /foo 0 32768; fallocate /foo 32768 32768; write /foo 32768 32768 mmap; msync /foo",
        ),
        (
            [Core("link", ("/foo", "/A/bar")), Core("truncate", ("/foo",), place="middle")],
            [None, "/A/bar"],
            "mkdir /A; create /foo; link /foo /A/bar; write /foo 0 32768; truncate /foo 2500; fsync /A/bar",
        ),
        (
            [Core("link", ("/foo", "/bar")), Core("link", ("/A/foo", "/bar"))],
            ["/foo", "/"],
            "create /foo; link /foo /bar; fsync /foo; mkdir /A; create /A/foo; unlink /bar; link /A/foo /bar; fsync /",
        ),
        (
            [Core("creat", ("/A/foo",)), Core("mkdir", ("/A",))],
            ["", "/A"],
            "mkdir /A; create /A/foo; sync; unlink /A/foo; rmdir /A; mkdir /A; fsync /A",
        ),
        (
            [Core("rename", ("/A", "/B")), Core("unlink", ("/A/foo",))],
            ["/A", "/A"],
            "mkdir /A; rename /A /B; mkdir /A; fsync /A; create /A/foo; unlink /A/foo; fsync /A",
        ),
        (
            [Core("removexattr", ("/foo",)), Core("rename", ("/foo", "/bar"))],
            [None, "/foo"],
            "create /foo; setxattr /foo user.xattr1 4; removexattr /foo user.xattr1; rename /foo /bar; create /foo; "
            "fsync /foo",
        ),
    ],
)
def test_what_an_operation_needs_is_made_before_it(cores: list[Core], points: list[str | None], text: str) -> None:
    assert "; ".join(map(write_one, performed(cores, points))) == text


def test_what_is_drawn_is_drawn_again_and_each_is_new() -> None:
    first, again, other = ([one.name for one in islice(ace().drawn(2, seed), 50)] for seed in (1, 1, 2))
    assert first == again != other
    assert Counter(first).most_common(1)[0][1] == 1
    few = ace("ace-metadata")
    assert {one.name for one in few.drawn(1, 1)} == {one.name for one in few.every(1)}, (
        "it ends where there are no more"
    )
    every = {one.name for one in ace().every(1)}
    assert {one.name for one in islice(ace().drawn(1, 1), 250)} <= every


def test_which_workloads_a_search_tries_is_said() -> None:
    drawn = search(None, ("append-any",), 2, Part(2, 3, 40, 7))
    assert text_with(drawn.words, "shapes", 2, "append-any", 40, 7, 3) == snapshot(
        "workloads within the bounds shapes, of 2 operations, that ask for append-any, 40 drawn by seed 7, part 2 of 3"
    )
    assert text_with(search("ace").words, "ace", 1) == snapshot("workloads within the bounds ace, of 1 operation")
    assert text_with(search(None, (), 2).words, "small", 2) == snapshot(
        "workloads within the bounds small, of up to 2 operations"
    )
    assert text_with(search(None, (), 2, seconds=60).words, 2, 1, 60) == snapshot(
        "workloads within the bounds small, of 2 operations, drawn by seed 1 for 60 s"
    )
    assert text_with(Search("mine.py", "", is_python=True).words, "mine.py") == snapshot("workloads of mine.py")
