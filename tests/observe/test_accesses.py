"""Reading the guest's trace: what was read and written, and what was only read ahead."""

from __future__ import annotations

import pytest

from bob.observe.accesses import Access, Accesses, accesses

from .traces import events

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


def test_what_is_written_counts_where_it_was_read_ahead_and_not_used() -> None:
    trace = RECOVERY + b"block_bio_queue: 7,0 WS 112 + 8 [python3]\n"
    assert 112 not in [bio.sector for bio in read(RECOVERY).bios]
    assert [bio.sector for bio in read(trace).bios if not bio.reads] == [0, 112]
