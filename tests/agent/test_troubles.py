"""What is wrong with states that mount, in a real guest: faults that are planted are found, and nothing else is."""

from __future__ import annotations

import pytest

from bob.observe.session import Complaint, Mounted, Session
from bob.subject import configuration
from bob.trace.model import SECTOR_BYTES
from bob.workload.language import parse
from bob.workload.operations import Finish, Workload

from .conftest import Inhabited
from .workloads import NATURAL, WRITES, Taken, session, take, taken_once

pytestmark = pytest.mark.vm

BLOCK = 4096
BITMAP, TABLE = 0, 8
"""Where in a group descriptor the numbers of the block bitmap and of the inode table are (struct ext4_group_desc)."""
SETUP = parse("mkdir /d; write /d/a 0 16K; write /b 0 10000; mkdir /e; write /e/gone 0 8K")
OPERATIONS = parse(
    "write /d/a 4096 4096; mkdir /d/new; append /b 4096; rename /d/a /d/new/a; unlink /e/gone; create /e/x"
)
SYNC = Finish("sync", parse("sync"))


@pytest.fixture
def taken(recording: Inhabited) -> Taken:
    return taken_once(recording.agent, WRITES)


def descriptor(image: bytes | bytearray, field: int) -> int:
    """A block number in the first group descriptor of an ext4 image."""
    return int.from_bytes(image[BLOCK + field : BLOCK + field + 4], "little")


def planted(guest: Inhabited, taken: Taken, place: int) -> tuple[Mounted, list[Complaint]]:
    """What is found when the byte at ``place`` of the base is another one."""
    sector, inside = divmod(place, SECTOR_BYTES)
    data = bytearray(taken.base.image()[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES])
    data[inside] ^= 0x10
    looking = Session(guest.agent, taken.configuration, taken.base, [], bytes(data))
    [mounted] = looking.mount([[(sector, 0, 1)]], bytes(data))
    [wrong] = looking.examine([[(sector, 0, 1)]], bytes(data))
    # And nothing of it is left in the image.
    [after] = looking.mount([[]], bytes(data))
    assert after.complaint is None
    assert looking.examine([[]], bytes(data)) == [[]]
    return mounted, wrong


def test_a_damaged_inode_of_which_the_kernel_warns_and_that_cannot_be_removed(
    taken: Taken, observing: Inhabited
) -> None:
    inode = taken.recording.inodes_before["/d/a"]
    table = descriptor(taken.base.image(), TABLE) * BLOCK
    mounted, wrong = planted(observing, taken, table + (inode - 1) * 256 + 16)
    assert mounted.complaint is not None
    assert mounted.complaint.kind == "kernel-message"
    assert "EXT4-fs error (device loop)" in mounted.complaint.words
    kinds = {complaint.kind: complaint.words for complaint in wrong}
    assert kinds["removal"].startswith("cannot be removed: /d/a: ")
    assert kinds["checker"].startswith("e2fsck.static ends with 4: ")


def test_a_damaged_bitmap_that_only_the_checker_sees(taken: Taken, observing: Inhabited) -> None:
    place = descriptor(taken.base.image(), BITMAP) * BLOCK + 2000
    mounted, wrong = planted(observing, taken, place)
    assert mounted.complaint is None
    assert "checker" in {complaint.kind for complaint in wrong}


@pytest.mark.parametrize("fs", ["ext4", "ext2", "xfs", "btrfs", "f2fs", "vfat", "reiserfs"])
def test_nothing_is_wrong_with_what_a_file_system_leaves(recording: Inhabited, observing: Inhabited, fs: str) -> None:
    made = configuration(fs)
    for finish in (NATURAL, SYNC):
        taken = take(recording.agent, Workload("w", SETUP, OPERATIONS, finish), made)
        composer = taken.plan.composer
        # fsck.vfat -a leaves directories of which the kernel says that they are corrupted: these are findings.
        states = [*taken.plan.controls, *([] if fs == "vfat" else taken.states(30))]
        deltas = [composer.delta(state) for state in states]
        looking = session(observing.agent, taken)
        found = looking.mount(deltas, composer.payload_since(0))
        assert {mounted.complaint for mounted in found} == {None}
        chosen = [number for number, one in enumerate(found) if looking.findings.observation(one.outcome).mounted][:4]
        wrong = looking.examine([deltas[number] for number in chosen], composer.payload_since(0))
        assert wrong == [[]] * len(chosen)
