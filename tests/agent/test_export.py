"""A witness's workload for others: its log, replayed onto its base, makes the device as it was recorded; its case for
xfstests shows what dm-flakey has lost."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from bob.catalogue.finer_rows import durability_rows
from bob.claim.mounting import Mountable
from bob.claim.property.of_property import OfProperty
from bob.claim.property.rules import Question
from bob.crash.state import CrashState
from bob.run.export import ATTEMPTS, exported, record_again
from bob.trace.log_writer import write_log
from bob.witness import document as witness
from bob.witness.xfstests import to_case
from bob.workload.operations import At
from mediums import image_of, lay
from strict_replay import replay

from .conftest import Inhabited
from .workloads import FSYNC, Taken, take, workload

pytestmark = pytest.mark.vm


def kept(taken: Taken, state: CrashState, file: Path) -> witness.Witness:
    """A witness of ``state``; what is wrong with the state does not matter here."""
    showing = witness.ShownState(taken.case, state, Mountable(), "made for a test")
    document = witness.write(
        showing,
        environment={"kernel": "any"},
    )
    file.write_text(json.dumps(document))
    return witness.read(file)


def test_the_exported_log_makes_the_recorded_device(recording: Inhabited, tmp_path: Path) -> None:
    taken = take(recording.agent, workload("write /d/a 4096 4096; create /d/new; append /b 8192", FSYNC))
    number, point = max(enumerate(taken.plan.points), key=lambda pair: len(pair[1].pending))
    state = CrashState(number, point.pending[: len(point.pending) // 2])
    found = kept(taken, state, tmp_path / "witness.json")
    for _ in range(ATTEMPTS):
        again = record_again(recording.agent, found)
        done = exported(found, again)
        log = io.BytesIO()
        write_log(log, (step.entry for step in done.steps))
        with (tmp_path / "base.img").open("wb") as file:
            found.base.write(file)
        base = (tmp_path / "base.img").read_bytes()
        device, recorded = bytearray(base), bytearray(image_of(found.base))
        lay(again.recording.final, recorded)
        marks = replay(log.getvalue(), device)
        assert device == recorded
        assert device != base
        calls = [f"op-{number}-{edge}" for number in (1, 2, 3) for edge in ("begin", "end")]
        assert [mark for mark in marks if mark != "crash"] == [
            "start", *calls, "finish-1-begin", "finish-1-end", "end"
        ]  # fmt: skip
        if done.crash is not None:
            break
    assert done.crash is not None
    assert "crash" in marks
    assert done.crash.prefix is not None  # the first half of what was pending
    assert len(done.crash.lost) == len(point.pending) - len(state.kept)


HELPERS = """
seq=900 seqres=/tmp/case/res tmp=/tmp/case/t FSTYP=ext4 SCRATCH_MNT=/tmp/case/mnt
XFS_IO_PROG=xfs_io SETFATTR_PROG=/tmp/case/setfattr FLAKEY_DROP_WRITES=1
mkdir -p $SCRATCH_MNT
printf '#!/usr/bin/env python3\\nimport os, sys\\n' > $SETFATTR_PROG
echo 'os.setxattr(sys.argv[5], sys.argv[2], sys.argv[4].encode())' >> $SETFATTR_PROG
chmod +x $SETFATTR_PROG
modprobe dm-flakey
truncate -s 64M /tmp/case/img
DEV=$(losetup -f --show /tmp/case/img)
table="0 $(blockdev --getsz $DEV) flakey $DEV 0"
_begin_fstest() { echo "QA output created by $seq"; trap _cleanup 0; }
_require_scratch() { :; }
_require_attrs() { :; }
_require_symlinks() { :; }
_require_dm_target() { :; }
_notrun() { echo "$1"; exit; }
_scratch_mkfs() { mkfs.ext4 -qF $DEV; }
_scratch_mount() { mount $DEV $SCRATCH_MNT; }
_scratch_unmount() { umount $SCRATCH_MNT; }
_mount_flakey() { mount /dev/mapper/flakey $SCRATCH_MNT; }
_init_flakey() { dmsetup create flakey --table "$table 180 0"; dmsetup mknodes; }
_cleanup_flakey() { umount $SCRATCH_MNT; dmsetup remove flakey; losetup -d $DEV; rm -rf /tmp/case; }
_load_flakey_table() {
    dmsetup suspend --nolockfs flakey
    dmsetup load flakey --table "$table $([ "$1" = 1 ] && echo "0 180 1 drop_writes" || echo "180 0")"
    dmsetup resume flakey
}
_flakey_drop_and_remount() { _load_flakey_table 1; umount $SCRATCH_MNT; _load_flakey_table 0; _mount_flakey; }
"""
"""What stands in the place of xfstests' helpers; dm-flakey is real, and so is xfs_io."""


@pytest.mark.parametrize(
    ("operations", "row", "is_silent"),
    [
        ("append /b 4096; fsync /b", "fsync-file.size", True),
        ("write /d/a 0 4096; fsync /b", "fsync-file.data", False),
        ("create /d/n; fsync /d/n", "fsync-file.entry", True),
    ],
)
def test_a_case_for_xfstests_shows_what_was_not_sent(
    recording: Inhabited, observing: Inhabited, tmp_path: Path, operations: str, row: str, is_silent: bool
) -> None:
    """The second claim is wrong: nobody promises the data of another file, and the kernel writes it later."""
    taken = take(recording.agent, replace(workload(operations), at=At.END))
    [prop] = [one for one in durability_rows() if one.name == row]
    found = kept(taken, taken.last, tmp_path / "witness.json")
    case = to_case(replace(found, claim=OfProperty(row, Question((1,), returned=2), prop)), "900")
    assert "dmflakey" in case.script
    lines = case.script.replace(". ./common/preamble", HELPERS).splitlines()
    script = "\n".join(line for line in lines if not line.startswith(". ./common"))
    observing.run("mkdir -p /tmp/case")
    observing.guest.shell.push(script.encode(), "/tmp/case.sh")
    told = observing.run("PATH=$PATH:/usr/sbin:/sbin bash /tmp/case.sh 2>&1")
    assert (told == case.golden) is is_silent, told
    if not is_silent:
        assert "/d/a: 16384 bytes" in told and told.endswith("Silence is golden\n")
