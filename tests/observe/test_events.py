"""What comes from a guest. The kernel's trace buffer: what is put into its pages is found there, whatever lies between.
What was seen is recalled as it was told, and read from the form in which it is kept, that of older runs too."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.agent.inside.ring_buffer import PAGE_BYTES, layout, used
from bob.observe.accesses import Access
from bob.observe.events import Bio, Decoder, Event, Jread, Lookup, ReadAhead
from bob.observe.observation import Findings, Node
from bob.observe.sights import Gathering

from .traces import FORMATS, LAYOUTS, data, entry, page, pages

NUMBERS = st.integers(0, 2**64 - 1)
EVENTS = st.one_of(
    st.builds(Bio, st.booleans(), NUMBERS, st.integers(1, 2**32 - 1)),
    st.builds(Lookup, NUMBERS),
    st.builds(ReadAhead, st.lists(NUMBERS, max_size=8).map(tuple), st.sampled_from([1, 2, 8])),
    st.builds(Jread, st.booleans()),
)
PADDING, EXTEND, STAMP = 29, 30, 31
BETWEEN = st.one_of(
    st.integers(1, 2**27 - 1).map(lambda time: struct.pack("<II", time << 5 | EXTEND, 9)),
    st.integers(1, 2**27 - 1).map(lambda time: struct.pack("<II", time << 5 | STAMP, 9)),
    # An event that was thrown away: there is a time, and its length.
    st.integers(1, 9).map(lambda words: struct.pack("<II", 1 << 5 | PADDING, 4 * words) + b"\xff" * (4 * words - 4)),
)
"""What the buffer has besides events."""
END = struct.pack("<I", PADDING) + b"\xff" * 40
"""Nothing up to the end of the page."""
PAGES = st.tuples(st.lists(st.tuples(st.lists(BETWEEN, max_size=2), EVENTS, st.booleans()), max_size=20), st.booleans())


@given(st.lists(PAGES, max_size=4))
def test_what_is_in_the_pages_is_found_in_its_order(
    written: list[tuple[list[tuple[list[bytes], Event, bool]], bool]],
) -> None:
    travelling, wanted = b"", []
    for found, ends in written:
        entries = [part for between, event, long in found for part in (*between, entry(data(event), long=long))]
        whole = page([*entries, END] if ends else entries)
        assert len(whole) == PAGE_BYTES
        travelling += used(whole)
        wanted += [event for _between, event, _long in found]
    assert Decoder(LAYOUTS).events(travelling) == wanted


@given(st.lists(EVENTS, max_size=20))
def test_a_page_travels_without_the_room_that_is_left_in_it(found: list[Event]) -> None:
    whole = page([entry(data(event)) for event in found])
    assert len(used(whole)) == 16 + sum(4 + -(-len(data(event)) // 4) * 4 for event in found)
    assert Decoder(LAYOUTS).events(whole[: len(used(whole))]) == found


ALIKE = st.one_of(
    st.lists(st.builds(Bio, st.booleans(), NUMBERS, st.integers(1, 2**32 - 1)), min_size=1, max_size=30),
    st.lists(st.builds(Lookup, NUMBERS), min_size=1, max_size=30),
)


@given(ALIKE, st.lists(st.tuples(st.integers(0, 30), st.one_of(BETWEEN, st.just(END))), max_size=1))
def test_events_of_one_kind_are_found_whatever_one_thing_is_between(
    found: list[Event], other: list[tuple[int, bytes]]
) -> None:
    """They are found in strides, which must end where something else lies between them."""
    entries = [entry(data(event)) for event in found]
    for place, part in other:
        entries.insert(place, part)
        if part == END:
            found = found[:place]
    assert Decoder(LAYOUTS).events(used(page(entries))) == found


def test_a_layout_is_what_the_kernel_says_of_an_event() -> None:
    assert {name: layout(text) for name, text in FORMATS.items()} == LAYOUTS
    with pytest.raises(ValueError, match="without its number"):
        layout("")


def test_readahead_that_somebody_waits_for_is_none() -> None:
    waited = bytearray(data(ReadAhead((1, 2), 8)))
    waited[20] = 1
    trace = used(page([entry(bytes(waited)), entry(data(Lookup(3)))]))
    assert Decoder(LAYOUTS).events(trace) == [Lookup(3)]


def test_an_event_that_nobody_asked_for_is_not_passed_over() -> None:
    with pytest.raises(KeyError):
        Decoder({"lookup": LAYOUTS["lookup"]}).events(pages([Jread(True)]))


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
