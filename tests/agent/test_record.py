"""Recordings in a real guest: bases, operations, finishes, and that one is like the other; what file systems lack is
what their kernel refuses, or takes and does not do, and nothing else."""

from __future__ import annotations

import io
from contextlib import closing
from dataclasses import replace

import pytest

from bob.crash.state import CrashState
from bob.errors import RecordingError, UsageError
from bob.guest.spec import Clock
from bob.image.recipe import load_recipe
from bob.record.base import make_base
from bob.record.recorder import record
from bob.subject import configuration, file_systems
from bob.trace.log import LogReader
from bob.trace.model import SECTOR_BYTES
from bob.trace.recording import Completion, Recording
from bob.workload import operations as ops
from bob.workload.lacking import LACKABLE
from bob.workload.language import GRAMMAR, parse, write_one
from bob.workload.operations import Finish, How, Workload
from bob.workload.simulation import simulate
from mediums import image_of

from . import workloads
from .conftest import Guests, Inhabited
from .workloads import EXT4, FSYNC, SETUP, WRITES, expected, found, observe, take, workload

pytestmark = pytest.mark.vm

EVERY_OPERATION = """
create /d/new; write /d/a 100 5000; append /d/a 3000; append /d/a 10000 trunc; append /d/a 512 sync
write /d/a 4096 4096 direct; write /d/a 8192 100 sync; write /d/a 300 100 dsync; write /d/a 1000 9000 mmap
append /d/new 4096 direct; append /d/new 100 dsync
truncate /d/a 7000; truncate /d/a 9000; fallocate /d/new 0 20000; write /d/new 15000 100; sync_file_range /d/new 0 16K
msync /d/new
fallocate /d/a 12000 9000 keep; fallocate /d/a 100 5000 punch; fallocate /d/a 8000 5000 zero; append /d/a 300
fallocate /d/a 13100 9000 zero-keep; fallocate /d/a 13000 9000 punch
chmod /d/a 600; chown /d/a 1000:100; chmod /d 700; chown /d 0:7
link /b /d/b; rename /b /c; create /x; create /y; rename /x /y exchange; mkdir /z; rename /z /d exchange
rename /z /d exchange; rename /z /w noreplace; symlink ../c /d/s; unlink /s; mkdir /e; setxattr /e user.e 30; mkdir /f
mknod /d/p fifo; mknod /d/q block; mknod /u character; mknod /v socket
open /d/a as f; write f 0 100; append f 60 dsync; write f 200 40 sync; write f 300 10 mmap; fallocate f 0 4096 insert
append /last-but-one 16384; fallocate /last-but-one 4096 8192 collapse
chmod f 640; sync_file_range f 0 4096; msync f; fdatasync f; truncate f 9000
tmpfile /d as t; append t 5000; setxattr t user.t 10; link t /linked; write t 10 20; close t
copy_file_range f /copied 100 3000; open /f as g; utimes g 1000000000; utimes f 500000000; fsync g
open /linked as gone; unlink /linked; append gone 100
rename /d/new /w/new; rmdir /e; setxattr /c user.x 200; setxattr /c user.old 50; removexattr /c user.x
acknowledge said; writeback /d/a; writeback_metadata; commit
fsync /c; fsync /f; fdatasync /d/a; sync; syncfs; sleep 1.5; create /last
"""


def test_the_agent_says_who_it_is(recording: Inhabited) -> None:
    assert recording.agent.about["kernel"] == recording.run("uname -r").strip()
    assert recording.agent.about["python"].startswith("3.")


def test_a_recording_passes_its_check_and_says_what_was_where(recording: Inhabited) -> None:
    taken = take(recording.agent, WRITES)
    texts = [mark.text for mark in taken.trace.marks]
    assert texts == ["start", *(f"op {n} {edge}" for n in (1, 2, 3, 4) for edge in ("begin", "end")), "end"]
    assert taken.recording.effective_options == taken.base.effective_options == "rw,relatime,data=ordered"
    before, after = taken.recording.inodes_before, taken.recording.inodes_after
    assert before["/d/a"] == after["/d/new/a"]
    assert "/d/a" not in after
    assert "/d/new" not in before
    assert taken.trace.writes
    assert taken.trace.flushes


def test_every_operation_does_what_it_says(recording: Inhabited) -> None:
    everything = workload(EVERY_OPERATION)
    assert {write_one(done).split()[0] for done in everything.operations} == set(GRAMMAR) - {"reflink"}
    assert {done.how for done in everything.operations if isinstance(done, ops.Write)} == set(How)
    assert {one.replacing for one in everything.operations if isinstance(one, ops.Rename)} == set(ops.Replacing)
    assert {one.mode for one in everything.operations if isinstance(one, ops.Fallocate)} == set(ops.Allocation)
    assert {one.special for one in everything.operations if isinstance(one, ops.Mknod)} == set(ops.Special)
    taken = take(recording.agent, everything)
    last, first = observe(recording.agent, taken, [taken.last, taken.first])
    assert found(last) == expected(everything, len(everything.operations))
    assert found(first) == expected(everything, 0)


@pytest.mark.parametrize(
    "finish",
    [
        FSYNC,
        Finish("directory", parse("fsync /d")),
        Finish("sync", parse("sync")),
        Finish("2.5", natural=True, phase=2.5),
    ],
)
def test_however_it_finishes_the_check_is_passed(recording: Inhabited, finish: Finish) -> None:
    taken = take(recording.agent, workload("append /b 4096; create /d/c", finish))
    assert taken.trace.start.time < taken.trace.end.time
    [observation] = observe(recording.agent, taken, [taken.first])
    assert found(observation) == expected(taken.workload, 0)


@pytest.mark.parametrize(
    ("fs", "change", "moment", "flushes"),
    [
        ("ext4", "write /d/a 0 4096", "writeback /d/a", False),
        ("ext4", "create /d/c", "writeback_metadata", None),
        ("ext2", "create /d/c", "writeback_metadata", False),
        ("ext4", "create /d/c", "commit", True),
        ("xfs", "create /d/c", "commit", True),
        ("btrfs", "create /d/c", "commit", True),
    ],
)
def test_a_moment_of_the_kernel_writes_what_it_says(
    recording: Inhabited, fs: str, change: str, moment: str, flushes: bool | None
) -> None:
    """None: it writes nothing, as ext4 holds back what no transaction has committed."""
    taken = take(recording.agent, workload(f"{change}; {moment}"), configuration(fs))
    begin, end = (
        next(mark.at.time for mark in taken.trace.marks if mark.text == f"op 2 {edge}") for edge in ("begin", "end")
    )
    written = [write for write in taken.trace.writes if begin < write.submitted.time < end]
    assert all(write.completed.time < end for write in written)
    flushed = [flush for flush in taken.trace.flushes if begin < flush.completed.time < end]
    assert (bool(written), bool(flushed)) == (flushes is not None, bool(flushes))
    if flushes:  # at the end of it, what it committed is durable
        point = next(number for number, one in enumerate(taken.plan.points) if one.time >= end)
        [durable] = observe(recording.agent, taken, [CrashState(point)])
        assert found(durable) == expected(taken.workload, 1)


def test_what_was_not_flushed_does_not_overtake_what_is_still_being_logged(recording: Inhabited) -> None:
    """btrfs writes a copy of its superblock after the last flush, when the 8 MiB are far from being logged."""
    finish = Finish("directory", parse("fsync /d/c"))
    taken = take(recording.agent, workload("append /b 8388608; mkdir /d/c", finish), configuration("btrfs"))
    writes, flushed = taken.trace.writes, max(flush.completed.time for flush in taken.trace.flushes)
    [copy] = [write for write in writes if write.submitted.time > flushed and not write.fua]
    assert copy.log_entry == max(write.log_entry for write in writes)


WRITE_BELOW = """
until grep -q bob-recorded /sys/block/dm-*/dm/name 2>/dev/null; do sleep 0.5; done
sleep 1
loop=$(grep -l /tmp/bob/work /sys/block/loop*/loop/backing_file | cut -d/ -f4)
dd if=/dev/urandom of=/dev/$loop bs=512 count=1 seek={sector} oflag=direct
"""
"""Writes to a recorded disk, but not through the device that logs."""


def test_a_write_that_is_not_in_the_log_is_found_though_only_what_was_written_is_compared(
    recording: Inhabited,
) -> None:
    taken = take(recording.agent, WRITES)
    last_sector = taken.base.length // SECTOR_BYTES - 1
    for _ in range(3):  # of which at most one is compared with all of its base
        recording.run(f"nohup sh -c '{WRITE_BELOW.format(sector=last_sector)}' >/dev/null 2>&1 &")
        with pytest.raises(RecordingError, match=f"1 sectors differ, the first is {last_sector}"):
            take(recording.agent, WRITES, base=taken.base)
    again = take(recording.agent, WRITES, base=taken.base)
    assert entries(again.recording) == entries(taken.recording)


def test_nothing_to_do_is_recorded_too(recording: Inhabited) -> None:
    taken = take(recording.agent, workload("acknowledge nothing"))
    [observation] = observe(recording.agent, taken, [taken.last])
    assert found(observation) == expected(taken.workload, 0)


def test_a_guest_keeps_several_bases_and_devices_apart(recording: Inhabited) -> None:
    one = take(recording.agent, WRITES)
    other_setup = parse("write /other 0 4096")
    other = make_base(recording.agent, EXT4, other_setup)
    larger = workloads.configuration("ext4", mount_options="data=ordered", device=64 * 1024 * 1024)
    large = take(recording.agent, WRITES, larger)
    assert image_of(other) != image_of(one.base)
    assert large.base.length == 2 * one.base.length
    for again in (take(recording.agent, WRITES, base=one.base), take(recording.agent, WRITES, larger, large.base)):
        last, first = observe(recording.agent, again, [again.last, again.first])
        assert found(last) == expected(WRITES, 4)
        assert found(first) == expected(WRITES, 0)


def entries(recording: Recording) -> list[tuple[int, int, int]]:
    """Sector, length and flags of each entry."""
    with closing(LogReader(io.BytesIO(recording.disks[0].log))) as log:
        return [(entry.sector, entry.nr_sectors, int(entry.flags)) for entry in log]


@pytest.mark.parametrize("completion", Completion)
def test_a_recording_repeats_itself_in_another_guest(guests: Guests, completion: Completion) -> None:
    logs, bases = [], []
    for _ in range(2):
        guests.end(Clock.VIRTUAL)
        agent = guests.get(Clock.VIRTUAL).agent
        taken = take(agent, WRITES, completion=completion)
        again = take(agent, WRITES, base=taken.base, completion=completion)
        bases.append(taken.base)
        logs += [entries(taken.recording), entries(again.recording)]
    assert logs[1] == logs[2] == logs[3] == logs[0]
    assert [base.mkfs for base in bases] == [bases[0].mkfs] * 2


def test_a_base_comes_out_the_same_again(recording: Inhabited) -> None:
    first, second = (make_base(recording.agent, EXT4, SETUP) for _ in range(2))
    one, two = image_of(first), image_of(second)
    differing = [at // 4096 for at in range(0, len(one), 4096) if one[at : at + 4096] != two[at : at + 4096]]
    # Inode generations are random numbers, and with them the checksums of what has them.
    assert len(differing) < 12, differing


def test_jfs_writes_an_append_that_nothing_synced_only_when_something_syncs(recording: Inhabited) -> None:
    """A commit that nothing waits for stays in memory for minutes: that is jfs, and no wait that is too short."""
    made, asked = configuration("jfs"), workload("append /b 4096")
    base = make_base(recording.agent, made, SETUP)
    unsynced = replace(made, fs=replace(made.fs, quiet=300.0, keeps_commits=False))
    alone, synced = (take(recording.agent, asked, one, base) for one in (unsynced, made))
    [lost] = observe(recording.agent, alone, [alone.last])
    assert lost.tree is not None
    assert lost.tree["/b"].size == expected_size(asked, 0)
    assert alone.trace.end.seconds - alone.trace.start.seconds > 300
    [there] = observe(recording.agent, synced, [synced.last])
    assert found(there) == expected(asked, 1)


def expected_size(asked: Workload, step: int) -> int:
    return len(simulate(asked)[0].steps[step].inodes[simulate(asked)[0].steps[step].names["/b"]].content)


LACKED = {
    "link": ["link /a /b"],
    "symlink": ["symlink a /b"],
    "setxattr": ["setxattr /a user.x 10"],
    "chmod": ["chmod /a 600", "chown /a 1000:100"],
    "mknod": [f"mknod /b {special}" for special in ops.Special],
    "tmpfile": ["tmpfile / as f"],
    "reflink": ["reflink /a /c"],
    "noreplace": ["rename /a /b noreplace"],
    "exchange": ["rename /a /c exchange"],
    "keep": ["fallocate /a 4096 8192 keep"],
    "punch": ["fallocate /a 0 4096 punch"],
    "zero": ["fallocate /a 0 4096 zero", "fallocate /a 0 4096 zero-keep"],
    "collapse": ["fallocate /a 0 4096 collapse", "fallocate /a 0 4096 insert"],
}
TWO_FILES = tuple(parse("write /a 0 8192; create /c"))


RECIPE = load_recipe("debian-bookworm")
MADE_HERE = [name for name, fs in file_systems().items() if fs.package in (*RECIPE.packages, "util-linux")]


@pytest.mark.parametrize("name", MADE_HERE)
def test_what_it_lacks_is_what_the_kernel_refuses(recording: Inhabited, name: str) -> None:
    assert set(LACKED) == set(LACKABLE)
    made = configuration(name)
    base = make_base(recording.agent, made, TWO_FILES)
    refused: dict[str, set[bool]] = {}
    for word, texts in LACKED.items():
        for text in texts:
            operations = tuple(parse(text))
            assert LACKABLE[word](operations[0])
            workload = Workload("one", TWO_FILES, operations, Finish("sync", tuple(parse("sync"))))
            try:
                taken = record(recording.agent, made, base, workload, completion=Completion.PROMPT)
            except UsageError as error:
                is_refused = True
                assert str(error).endswith(dict(made.fs.refusals).get(word, "")), f"{text}: {error}"
            else:
                after = taken.status_after.get("/a")
                # vfat takes a mode and an owner, and keeps neither.
                is_refused = word == "chmod" and after is not None and (after.mode, after.uid) == (0o755, 0)
            refused.setdefault(word, set()).add(is_refused)
    assert {word for word, said in refused.items() if said == {True}} == set(made.fs.lacks)
    assert all(len(said) == 1 for said in refused.values()), refused
