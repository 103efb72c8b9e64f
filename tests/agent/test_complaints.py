"""What is wrong with a state that mounts: the kernel's words, a checker's, and a tree that cannot be removed. In a real
guest, faults that are planted are found, and nothing else is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from bob.agent.inside import complaints
from bob.agent.inside.complaints import Complaints, run_checker
from bob.observe.observations import Complaint
from bob.observe.session import MountedState, Session
from bob.subject import configuration
from bob.trace.model import SECTOR_BYTES
from bob.workload.language import parse
from bob.workload.operations import Finish, Workload
from mediums import image_of

from .conftest import Inhabited
from .workloads import NATURAL, WRITES, Taken, session, take, taken_once

DEVICE = re.compile(r"\b(?:loop|dm-)\d+")
ERROR = "EXT4-fs error (device dm-0): ext4_lookup:1827: inode #12: comm python3: deleted inode referenced: 15"
UNCHECKED = "EXT4-fs (dm-0): warning: mounting unchecked fs, running e2fsck is recommended"
CUT = "------------[ cut here ]------------"
WARN = "WARNING: CPU: 0 PID: 7 at fs/btrfs/block-rsv.c:437 btrfs_release_global_block_rsv+0xb1/0xc0"


def number(of: Complaints, *lines: str, read_only: bool = False, mounted: bool = True) -> int:
    return of.number(list(lines), read_only=read_only, mounted=mounted)


def test_what_the_kernel_says_has_a_number_and_its_words_travel_once() -> None:
    found = Complaints(["mounting unchecked fs"], DEVICE)
    assert [number(found), number(found, UNCHECKED), number(found, UNCHECKED, ERROR)] == [0, 0, 1]
    assert found.new == [("kernel-message", ERROR.replace("dm-0", "loop"))]
    assert number(found, "EXT4-fs mount: 224 callbacks suppressed") == 0
    found.new = []
    # Other numbers make no other complaint; other words do, and so does what came of it.
    assert number(found, ERROR.replace("#12", "#13").replace("dm-0", "loop7")) == 1
    assert number(found, "EXT4-fs error (device dm-0): bad block bitmap checksum") == 2
    assert number(found, ERROR, read_only=True) == 3
    assert number(found, read_only=True) == 4
    assert [kind for kind, _words in found.new] == ["kernel-message", "read-only", "read-only"]


def test_of_a_state_that_is_refused_only_a_warning_of_the_kernels_code_is_told() -> None:
    found = Complaints([], DEVICE)
    assert number(found, "EXT4-fs (dm-0): bad geometry", mounted=False) == 0
    assert number(found, CUT, WARN, mounted=False) == 1
    assert found.new == [("kernel-message", WARN)]


def test_what_is_warned_of_once_is_warned_of_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complaints, "CLEAR_WARN_ONCE", str(tmp_path / "once"))
    found = Complaints([], DEVICE)
    number(found, ERROR)
    assert not (tmp_path / "once").exists()
    number(found, CUT, WARN)
    assert (tmp_path / "once").read_text() == "1"


def test_a_checker_is_heard(tmp_path: Path) -> None:
    script = "echo; echo checking $0; echo bad >&2; exit 4"
    assert run_checker(["sh", "-c", script, "DEVICE"], "/dev/dm-0") == (4, snapshot("checking the device; bad"))
    assert run_checker(["true", "DEVICE"], "/dev/dm-0") == (0, "")
    assert run_checker(["sh", "-c", "kill -9 $$", "DEVICE"], "/dev/dm-0") == (-9, "")


def test_what_the_kernel_says_of_a_slow_guest_is_no_finding() -> None:
    """Seen in a probe: it stood below the table as if ext4 had said it."""
    found = Complaints([], DEVICE)
    slow = ["hrtimer: interrupt took 11853084 ns", "clocksource: timekeeping watchdog on CPU0: wd-tsc-wd excessive"]
    assert found.number(slow, read_only=False, mounted=True) == 0
    assert found.number([*slow, "EXT4-fs error (device loop): bad"], read_only=False, mounted=True) == 1
    assert found.new == [("kernel-message", snapshot("EXT4-fs error (device loop): bad"))]


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


def planted(guest: Inhabited, taken: Taken, place: int) -> tuple[MountedState, list[Complaint]]:
    """What is found when the byte at ``place`` of the base is another one."""
    sector, inside = divmod(place, SECTOR_BYTES)
    data = bytearray(image_of(taken.base)[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES])
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
    table = descriptor(image_of(taken.base), TABLE) * BLOCK
    mounted, wrong = planted(observing, taken, table + (inode - 1) * 256 + 16)
    assert mounted.complaint is not None
    assert mounted.complaint.kind == "kernel-message"
    assert "EXT4-fs error (device loop)" in mounted.complaint.words
    kinds = {complaint.kind: complaint.words for complaint in wrong}
    assert kinds["removal"].startswith("cannot be removed: /d/a: ")
    assert kinds["checker"].startswith("e2fsck.static ends with 4: ")


def test_a_damaged_bitmap_that_only_the_checker_sees(taken: Taken, observing: Inhabited) -> None:
    place = descriptor(image_of(taken.base), BITMAP) * BLOCK + 2000
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
