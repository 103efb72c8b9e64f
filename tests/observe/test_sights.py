"""What was seen is recalled as it was told, and read from the form in which it is kept, that of older runs too."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from bob.observe.accesses import Access
from bob.observe.observation import Findings, Node
from bob.observe.sights import Gathering

numbers = st.integers(0, 2**40)
accesses = st.lists(st.builds(Access, st.booleans(), numbers, numbers, numbers), max_size=5).map(tuple)
contents = st.lists(st.binary(min_size=1, max_size=3), unique=True, min_size=1, max_size=5)


def outcome(content: list[int], xattrs: dict[str, int] | None = None, error: str | None = None) -> str:
    entry = {"kind": "file", "content": content, "size": 1, **({"xattrs": xattrs} if xattrs else {})}
    return json.dumps({"error": error, "repaired": False, "tree": {"/x": entry}})


def told(chunks: list[bytes], found: list[str]) -> Gathering:
    gathering = Gathering(Findings())
    gathering.tell(found, [len(chunk) for chunk in chunks], b"".join(chunks))
    return gathering


@given(contents, contents, accesses, st.data())
def test_a_sight_is_recalled_as_it_was(
    ours: list[bytes], theirs: list[bytes], seen: tuple[Access, ...], data: st.DataObject
) -> None:
    number = st.integers(0, len(ours) - 1)
    found = outcome(data.draw(st.lists(number, max_size=4)), data.draw(st.dictionaries(st.text(), number, max_size=2)))
    one = told(ours, [found])
    sight = one.sight(one.told(0), seen)
    assert sight is not None
    other = told(theirs, [outcome([0])])
    recalled = other.recalled(sight)
    assert other.findings.observation(recalled) == one.findings.observation(one.told(0))
    assert sight.accesses == seen
    assert other.recalled(sight) == recalled


@given(contents)
def test_what_is_recalled_and_then_told_has_one_number(chunks: list[bytes]) -> None:
    one = told(chunks, [outcome([0])])
    sight = one.sight(0, ())
    assert sight is not None
    other = Gathering(Findings())
    recalled = other.recalled(sight)
    other.tell([outcome([0]), outcome([1])], [4, *map(len, chunks)], b"----" + b"".join(chunks))
    assert other.told(0) != recalled
    assert other.told(1) == recalled
    assert len(set(other.findings.found)) == len(other.findings.found)
    assert len(set(other.findings.chunks)) == len(other.findings.chunks)


def test_what_did_not_mount_is_not_recalled() -> None:
    refused = told([b"x"], [outcome([0], error="Structure needs cleaning")])
    assert refused.sight(0, ()) is None


def test_an_outcome_has_one_number_in_whatever_order_it_is_told() -> None:
    first = {"error": None, "repaired": False, "tree": {"/a": {"kind": "file", "size": 1}, "/b": {"kind": "directory"}}}
    other = {"tree": {"/b": {"kind": "directory"}, "/a": {"size": 1, "kind": "file"}}, "repaired": False, "error": None}
    gathering = told([], [json.dumps(first), json.dumps(other)])
    assert gathering.told(0) == gathering.told(1)


# What was found is read from the form in which it is kept, that of older runs too


OLD = {"kind": "directory", "inode": 12, "links": 1, "size": 0, "content": []}
"""An entry as older runs and witnesses have it."""


def node(entry: dict[str, object]) -> Node:
    tree = Findings([json.dumps({"error": None, "repaired": False, "tree": {"/d": entry}})]).observation(0).tree
    assert tree is not None
    return tree["/d"]


def test_what_an_older_run_did_not_observe_is_none() -> None:
    assert node(OLD) == Node("directory", 12)
    assert (node(OLD).mode, node(OLD).uid, node(OLD).gid, node(OLD).mtime) == (None, None, None, None)


def test_what_stat_says_is_kept() -> None:
    more = {"links": 3, "mode": 0o1750, "uid": 7, "gid": 8, "mtime": 0}
    assert node(OLD | more) == Node("directory", 12, 3, mode=0o1750, uid=7, gid=8, mtime=0)
