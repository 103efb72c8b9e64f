"""What comes from a guest. The kernel's trace buffer: what is put into its pages is found there, whatever lies between.
What was seen is recalled as it was told, and read from the form in which it is kept, that of older runs too."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.agent.inside.ring_buffer import PAGE_BYTES, layout, used
from bob.observe.accesses import Access, Accesses, accesses
from bob.observe.events import AccessEvent, Bio, Decoder, JournalRead, Lookup, ReadAhead, VolumeRead
from bob.observe.mount_cache import OutcomeCollector
from bob.observe.observation import Node, OutcomeTable

from .traces import DISK, FORMATS, LAYOUTS, data, entry, events, page, pages

NUMBERS = st.integers(0, 2**64 - 1)
EVENTS = st.one_of(
    st.builds(Bio, st.booleans(), NUMBERS, st.integers(1, 2**32 - 1), st.just(0)),
    st.builds(Lookup, NUMBERS),
    st.builds(ReadAhead, st.lists(NUMBERS, max_size=8).map(tuple), st.sampled_from([1, 2, 8])),
    st.builds(JournalRead, st.booleans()),
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
    written: list[tuple[list[tuple[list[bytes], AccessEvent, bool]], bool]],
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
def test_a_page_travels_without_the_room_that_is_left_in_it(found: list[AccessEvent]) -> None:
    whole = page([entry(data(event)) for event in found])
    assert len(used(whole)) == 16 + sum(4 + -(-len(data(event)) // 4) * 4 for event in found)
    assert Decoder(LAYOUTS).events(whole[: len(used(whole))]) == found


ALIKE = st.one_of(
    st.lists(st.builds(Bio, st.booleans(), NUMBERS, st.integers(1, 2**32 - 1), st.just(0)), min_size=1, max_size=30),
    st.lists(st.builds(Lookup, NUMBERS), min_size=1, max_size=30),
)


@given(ALIKE, st.lists(st.tuples(st.integers(0, 30), st.one_of(BETWEEN, st.just(END))), max_size=1))
def test_events_of_one_kind_are_found_whatever_one_thing_is_between(
    found: list[AccessEvent], other: list[tuple[int, bytes]]
) -> None:
    """They are found in strides, which must end where something else lies between them."""
    entries = [entry(data(event)) for event in found]
    for place, part in other:
        entries.insert(place, part)
        if part == END:
            found = found[:place]
    assert Decoder(LAYOUTS).events(used(page(entries))) == found


SPAN = NUMBERS, st.integers(1, 2**32 - 1), st.integers(0, 2**22)
ON_LAYERS = st.one_of(EVENTS, st.builds(VolumeRead, *SPAN), st.builds(Bio, st.booleans(), *SPAN))


@given(st.lists(ON_LAYERS, max_size=20))
def test_on_layers_a_bio_to_another_device_is_to_what_they_make(found: list[AccessEvent]) -> None:
    whole = used(page([entry(data(event)) for event in found]))
    assert Decoder(LAYOUTS, DISK).events(whole) == found


def test_a_layout_is_what_the_kernel_says_of_an_event() -> None:
    assert {name: layout(text) for name, text in FORMATS.items()} == LAYOUTS
    with pytest.raises(ValueError) as refused:
        layout("")
    assert str(refused.value) == snapshot("a format of an event without its number")


def test_readahead_that_somebody_waits_for_is_none() -> None:
    waited = bytearray(data(ReadAhead((1, 2), 8)))
    waited[20] = 1
    trace = used(page([entry(bytes(waited)), entry(data(Lookup(3)))]))
    assert Decoder(LAYOUTS).events(trace) == [Lookup(3)]


def test_an_event_that_nobody_asked_for_is_not_passed_over() -> None:
    with pytest.raises(KeyError):
        Decoder({"lookup": LAYOUTS["lookup"]}).events(pages([JournalRead(True)]))


numbers = st.integers(0, 2**40)
several = st.lists(st.builds(Access, st.booleans(), numbers, numbers, numbers), max_size=5).map(tuple)
contents = st.lists(st.binary(min_size=1, max_size=3), unique=True, min_size=1, max_size=5)


def outcome(content: list[int], xattrs: dict[str, int] | None = None, error: str | None = None) -> str:
    entry = {"kind": "file", "content": content, "size": 1, **({"xattrs": xattrs} if xattrs else {})}
    return json.dumps({"error": error, "repaired": False, "tree": {"/x": entry}})


def told(chunks: list[bytes], found: list[str]) -> OutcomeCollector:
    gathering = OutcomeCollector(OutcomeTable())
    gathering.tell(found, [len(chunk) for chunk in chunks], b"".join(chunks))
    return gathering


@given(contents, contents, several, st.data())
def test_a_sight_is_recalled_as_it_was(
    ours: list[bytes], theirs: list[bytes], seen: tuple[Access, ...], data: st.DataObject
) -> None:
    number = st.integers(0, len(ours) - 1)
    found = outcome(data.draw(st.lists(number, max_size=4)), data.draw(st.dictionaries(st.text(), number, max_size=2)))
    one = told(ours, [found])
    sight = one.sight(one.number_of(0), seen)
    assert sight is not None
    other = told(theirs, [outcome([0])])
    recalled = other.recalled(sight)
    assert other.findings.observation(recalled) == one.findings.observation(one.number_of(0))
    assert sight.accesses == seen
    assert other.recalled(sight) == recalled


@given(contents)
def test_what_is_recalled_and_then_told_has_one_number(chunks: list[bytes]) -> None:
    one = told(chunks, [outcome([0])])
    sight = one.sight(0, ())
    assert sight is not None
    other = OutcomeCollector(OutcomeTable())
    recalled = other.recalled(sight)
    other.tell([outcome([0]), outcome([1])], [4, *map(len, chunks)], b"----" + b"".join(chunks))
    assert other.number_of(0) != recalled
    assert other.number_of(1) == recalled
    assert len(set(other.findings.found)) == len(other.findings.found)
    assert len(set(other.findings.chunks)) == len(other.findings.chunks)


def test_what_did_not_mount_is_not_recalled() -> None:
    refused = told([b"x"], [outcome([0], error="Structure needs cleaning")])
    assert refused.sight(0, ()) is None


def test_an_outcome_has_one_number_in_whatever_order_it_is_told() -> None:
    first = {"error": None, "repaired": False, "tree": {"/a": {"kind": "file", "size": 1}, "/b": {"kind": "directory"}}}
    other = {"tree": {"/b": {"kind": "directory"}, "/a": {"size": 1, "kind": "file"}}, "repaired": False, "error": None}
    gathering = told([], [json.dumps(first), json.dumps(other)])
    assert gathering.number_of(0) == gathering.number_of(1)


# What was found is read from the form in which it is kept, that of older runs too


OLD = {"kind": "directory", "inode": 12, "links": 1, "size": 0, "content": []}
"""An entry as older runs and witnesses have it."""


def node(entry: dict[str, object]) -> Node:
    tree = OutcomeTable([json.dumps({"error": None, "repaired": False, "tree": {"/d": entry}})]).observation(0).tree
    assert tree is not None
    return tree["/d"]


def test_what_an_older_run_did_not_observe_is_none() -> None:
    assert node(OLD) == Node("directory", 12)
    assert (node(OLD).mode, node(OLD).uid, node(OLD).gid, node(OLD).mtime) == (None, None, None, None)


def test_what_stat_says_is_kept() -> None:
    more = {"links": 3, "mode": 0o1750, "uid": 7, "gid": 8, "mtime": 0}
    assert node(OLD | more) == Node("directory", 12, 3, mode=0o1750, uid=7, gid=8, mtime=0)


# Reading the guest's trace: what was read and written, and what was only read ahead

RECOVERY = b"""\
block_bio_queue: 7,0 RM 2 + 2 [python3]
lookup: (__find_get_block+0x0/0x330) b=12
lookup: (__find_get_block+0x0/0x330) b=12
lookup: (__find_get_block+0x0/0x330) b=12
block_bio_queue: 7,0 R 96 + 8 [python3]
lookup: (__find_get_block+0x0/0x330) b=12
lookup: (__find_get_block+0x0/0x330) b=13
lookup: (__find_get_block+0x0/0x330) b=13
lookup: (__find_get_block+0x0/0x330) b=13
lookup: (__find_get_block+0x0/0x330) b=14
ahead: (__bh_read_batch+0x0/0xd0) n=2 wait=0 size=4096 b0=13 b1=14 b2=15 b3=(fault) b4=0 b5=0 b6=0 b7=0
block_bio_queue: 7,0 R 104 + 8 [python3]
block_bio_queue: 7,0 R 112 + 8 [python3]
block_bio_queue: 7,0 WS 0 + 8 [python3]
"""
"""As a guest with Linux 6.1 writes it, shortened: block 12 is wanted, 13 and 14 are read ahead."""
USED_LATER = RECOVERY + b"lookup: (__find_get_block+0x0/0x330) b=14\n"


def read(trace: bytes) -> Accesses:
    return accesses(events(trace))


def sectors(found: Accesses) -> list[int]:
    return [bio.sector for bio in found.bios]


def test_bios_in_order() -> None:
    found = read(
        b"block_bio_queue: 7,0 RM 2 + 2 [python3]\nblock_bio_queue: 7,0 WFS 88 + 16 [kworker/0:1]\n"
        b"CPU:0 [LOST 3 EVENTS]\nblock_bio_queue: 7,0 RA 12416 + 32 [a b]\nblock_bio_queue: 7,0 N 1 + 4 [x]\n"
    )
    assert found == Accesses(
        (Access(True, 2, 2, 0), Access(False, 88, 16, 1), Access(True, 12416, 32, 2), Access(False, 1, 4, 3)), 34, {}
    )
    assert read(b"") == Accesses()


def test_blocks_that_were_read_ahead_and_never_used_are_left_out_but_counted() -> None:
    found = read(RECOVERY)
    assert sectors(found) == [2, 96, 0]
    assert found.sectors_read == 26
    assert found.ahead == {13: range(104, 112), 14: range(112, 120)}


def test_a_block_that_was_used_later_is_there_with_its_moment() -> None:
    found = read(USED_LATER)
    assert sectors(found) == [2, 96, 112, 0]
    by_sector = {bio.sector: bio.used for bio in found.bios}
    assert by_sector == {2: 0, 96: 4, 112: 14, 0: 13}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"ahead: (__bh_read_batch+0x0/0xd0) n=2 wait=0", b"ahead: (__bh_read_batch+0x0/0xd0) n=2 wait=1"),
        (b"lookup: (__find_get_block+0x0/0x330) b=14\n", b""),  # lookups of it are not traced
        (b"lookup: (__find_get_block+0x0/0x330) b=14\n", b"lookup: (__find_get_block+0x0/0x330) b=14\n" * 2),
        (b"b=13\nlookup: (__find_get_block+0x0/0x330) b=14", b"b=14\nlookup: (__find_get_block+0x0/0x330) b=14"),
        (b"RM 2 + 2", b"RM 112 + 8"),  # somebody else reads it, too
    ],
)
def test_what_may_have_been_used_counts(before: bytes, after: bytes) -> None:
    assert before in RECOVERY
    assert 112 in sectors(read(RECOVERY.replace(before, after, 1)))


def test_three_lookups_are_of_one_caller_only_if_they_follow_each_other() -> None:
    # Wanted twice, once by somebody else, before it was read ahead.
    lines = RECOVERY.splitlines(keepends=True)
    lines[1:1] = [b"lookup: (__find_get_block+0x0/0x330) b=13\n"]
    del lines[9]
    assert b"".join(lines).count(b"b=13\n") == 3
    assert 104 in sectors(read(b"".join(lines)))


def test_a_bio_of_which_a_part_may_have_been_used_counts() -> None:
    trace = RECOVERY.replace(b"R 112 + 8", b"R 112 + 16")
    assert 112 in sectors(read(trace))


def test_what_was_read_ahead_twice_counts() -> None:
    assert {104, 112} <= set(sectors(read(RECOVERY * 2)))


JREAD = b"".join(
    [
        b"jread: (jread+0x0/0x2f0 [jbd2])\n",
        *RECOVERY.splitlines(keepends=True)[1:-1],
        b"jread_end: (do_one_pass+0x9f/0x1000 [jbd2] <- jread)\n",
    ]
)
"""As a guest with Linux 6.1 writes it, shortened: jbd2 wants block 12, and reads 13 and 14 ahead."""
AGAIN = JREAD.replace(b"b=12", b"b=11").replace(b"96 + 8", b"88 + 8").splitlines(keepends=True)
AGAIN = b"".join([*AGAIN[:6], b"lookup: (__find_get_block+0x0/0x330) b=13\n", AGAIN[-1]])
"""Another pass over the journal wants block 11, and finds 13 there as it reads ahead."""


def test_what_jbd2_reads_ahead_in_several_passes_is_still_unused() -> None:
    assert sectors(read(JREAD)) == [96]
    assert sectors(read(JREAD + AGAIN)) == [96, 88]
    assert read(JREAD + AGAIN).sectors_read == 32


@pytest.mark.parametrize(
    "later",
    [
        b"lookup: (__find_get_block+0x0/0x330) b=14\n",  # by anybody else
        b"jread: (jread+0x0/0x2f0 [jbd2])\nlookup: (__find_get_block+0x0/0x330) b=14\n",  # it is wanted, and is there
        # It is wanted, and before it somebody has to read the map of the journal.
        b"jread: (jread+0x0/0x2f0 [jbd2])\nlookup: (__find_get_block+0x0/0x330) b=900\n"
        b"block_bio_queue: 7,0 R 7200 + 8 [python3]\nlookup: (__find_get_block+0x0/0x330) b=14\n",
    ],
)
def test_what_jbd2_uses_after_it_was_read_ahead_counts(later: bytes) -> None:
    assert 112 in sectors(read(JREAD + later))
    assert 112 in sectors(read(later + JREAD))


def test_a_block_of_which_no_lookup_is_traced_counts_though_jbd2_read_it_ahead() -> None:
    assert 112 in sectors(read(JREAD.replace(b"lookup: (__find_get_block+0x0/0x330) b=14\n", b"")))


# On layers: blocks are numbers of the device that these make, and are somewhere else on the disks


def on_layers(text: bytes, place: Callable[[int], int]) -> list[AccessEvent]:
    """The same events where each read goes to a device on layers, and from there in pieces of 8 sectors to the disks."""
    found: list[AccessEvent] = []
    for event in events(text):
        if not isinstance(event, Bio):
            found.append(event)
            continue
        if event.reads:
            found.append(VolumeRead(event.sector, event.sectors))
        edges = [event.sector, *range(event.sector // 8 * 8 + 8, event.sector + event.sectors, 8)]
        for start, stop in zip(edges, [*edges[1:], event.sector + event.sectors], strict=True):
            found.append(Bio(event.reads, place(start), stop - start))
    return found


TEXTS = (RECOVERY, USED_LATER, JREAD, JREAD + AGAIN, RECOVERY * 2, USED_LATER + JREAD)


@given(st.sampled_from(TEXTS), st.permutations(range(200)))
def test_on_layers_the_same_is_used_and_the_same_is_not(text: bytes, chunks: list[int]) -> None:
    def place(sector: int) -> int:
        return chunks[sector // 8] * 8 + sector % 8

    bare, layered = read(text), accesses(on_layers(text, place))
    assert [(bio.reads, bio.sector) for bio in layered.bios] == [(bio.reads, place(bio.sector)) for bio in bare.bios]
    assert [bio.sector for bio in sorted(layered.bios, key=lambda bio: bio.used)] == [
        place(bio.sector) for bio in sorted(bare.bios, key=lambda bio: bio.used)
    ]
    assert layered.sectors_read == bare.sectors_read
    assert {block: list(sectors) for block, sectors in layered.ahead.items()} == {
        block: [place(sector) for sector in sectors] for block, sectors in bare.ahead.items()
    }
    assert layered.wanted == bare.wanted


def test_what_reads_more_than_it_was_asked_for_uses_all_of_it() -> None:
    """A layer that reads beside the data, such as its own tags: which bio has which block is not known."""
    found = on_layers(RECOVERY, lambda sector: sector)
    assert 112 not in [bio.sector for bio in accesses(found).bios]
    place = found.index(VolumeRead(112, 8))
    found.insert(place + 1, Bio(True, 4000, 1))
    assert {112, 4000} <= {bio.sector for bio in accesses(found).bios}


RA = VolumeRead(96, 8, 1)  # block 12, which recovery needs
UNUSED = (*[Lookup(14)] * 3, ReadAhead((14,), 8), VolumeRead(112, 8, 1))


@pytest.mark.parametrize(
    "trace",
    [
        # RAID 5 without a disk: its task (2) sends the bios of both reads later.
        [Lookup(12), RA, *UNUSED, Bio(True, 896, 8, 2), Bio(True, 912, 8, 2)],
        [Lookup(12), RA, *UNUSED, Bio(True, 896, 8, 2), VolumeRead(200, 8, 1), Bio(True, 912, 8, 2)],
        # A layer reads its own map (4000) to know where the block is.
        [*UNUSED, Bio(True, 4000, 8, 2), Bio(True, 912, 8, 2), Lookup(12), RA, Bio(True, 896, 8, 1)],
    ],
)
def test_what_another_task_reads_later_is_not_taken_for_the_last_read(trace: list[AccessEvent]) -> None:
    """Block 14 was read ahead and not used; what is read for block 12, or for the layer itself, counts."""
    assert {bio.sector for bio in accesses(trace).bios} >= {896, *([4000] if Bio(True, 4000, 8, 2) in trace else [])}


def test_a_read_that_needs_no_disk_leaves_the_bios_of_later_reads_known() -> None:
    """A thin device has blocks that are nowhere: they are zeros."""
    alone = [VolumeRead(640, 8, 1), *UNUSED, Bio(True, 912, 8, 1), RA, Bio(True, 896, 8, 1)]
    assert [bio.sector for bio in accesses(alone).bios] == [896]


def test_what_was_read_before_the_layers_worked_is_no_part_of_them() -> None:
    found = accesses([Bio(True, 8, 8), *on_layers(RECOVERY, lambda sector: sector + 800)])
    assert [bio.sector for bio in found.bios] == [8, 802, 896, 800]


def test_what_is_written_counts_where_it_was_read_ahead_and_not_used() -> None:
    trace = RECOVERY + b"block_bio_queue: 7,0 WS 112 + 8 [python3]\n"
    assert 112 not in [bio.sector for bio in read(RECOVERY).bios]
    assert [bio.sector for bio in read(trace).bios if not bio.reads] == [0, 112]
