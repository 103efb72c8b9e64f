"""The same writes, logged by the guest's kernel and by QEMU: what is on the drive at each flush is the same, and bob
explores what QEMU logged as it does a recording of its own."""

from __future__ import annotations

import base64
import gzip
import io
from collections.abc import Iterable
from pathlib import Path

import pytest

from bob.agent.shared import WORLD_SERIAL
from bob.claim.verdict import Verdict
from bob.cli.main import run as run_bob
from bob.errors import Exit
from bob.guest import hypervisor as hypervisors
from bob.guest.hypervisor import Hypervisor
from bob.guest.spec import Clock, GuestSpec
from bob.image import ensure
from bob.progress import Silent
from bob.run.replay import replay
from bob.store.run_directory import RunDirectory
from bob.trace.log import LogReader
from bob.trace.log_format import EntryFlags

pytestmark = [pytest.mark.vm, pytest.mark.long, pytest.mark.usefixtures("warm_guests")]

DRIVE_BYTES = 16 << 20
# The guest's init leaves a second disk alone only if it has this serial number.
MKFS = f"""
    modprobe ext4
    for block in /sys/block/vd*; do [ "$(cat $block/serial)" != {WORLD_SERIAL} ] || drive=/dev/${{block##*/}}; done
    echo "$drive" > /tmp/drive
    mkfs.ext4 -q -J size=4 "$drive" && blockdev --flushbufs "$drive" && sync
"""
SESSION = f"""
    truncate -s 64M /tmp/inside.log
    log=$(losetup --find --show /tmp/inside.log)
    echo 0 {DRIVE_BYTES // 512} log-writes $(cat /tmp/drive) $log | dmsetup create --noudevsync inside
    mkdir -p /tmp/tree
    mount -t ext4 /dev/dm-0 /tmp/tree
    cd /tmp/tree
    head -c 8192 /dev/zero | tr '\\0' a > f; sync f
    head -c 5000 /dev/zero | tr '\\0' b > g
    mv g h; mkdir d; ln f d/k; sync d
    head -c 3000 /dev/zero | tr '\\0' c >> f
    sync
    rm h; sync .
    cd /; umount /tmp/tree; dmsetup remove --noudevsync inside; losetup --detach $log
"""


class Drive:
    """A drive of a guest, which QEMU's driver blklogwrites logs."""

    def __init__(self, folder: Path) -> None:
        self.image, self.log = folder / "drive.img", folder / "drive.log"
        self.image.write_bytes(b"")
        with self.image.open("r+b") as file:
            file.truncate(DRIVE_BYTES)
        self.log.touch()

    def added_to(self, xml: str) -> str:
        """The definition of a guest that has this drive, too."""
        arguments = []
        for blockdev in (
            f"driver=file,filename={self.image},node-name=disk",
            f"driver=file,filename={self.log},node-name=log",
            "driver=blklogwrites,file=disk,log=log,node-name=logged",
        ):
            arguments += ["-blockdev", blockdev]
        arguments += ["-device", f"virtio-blk-pci,drive=logged,addr=0x11,serial={WORLD_SERIAL}"]
        made = "".join(f"<qemu:arg value='{argument}'/>" for argument in arguments)
        return xml.replace("</qemu:commandline>", f"{made}</qemu:commandline>")


def between_flushes(log: LogReader, first: int = 0) -> list[dict[int, bytes]]:
    """What the writes between two flushes leave in which sectors, from entry ``first`` on. A write with FUA is a write
    and a flush."""
    found: list[dict[int, bytes]] = [{}]
    for entry in log:
        if entry.index < first:
            continue
        if entry.flags & EntryFlags.FLUSH:
            found.append({})
        if entry.flags & EntryFlags.DISCARD or not entry.data_bytes:
            continue
        data = entry.data()
        found[-1].update({entry.first + at // 512: data[at : at + 512] for at in range(0, len(data), 512)})
        if entry.flags & EntryFlags.FUA:
            found.append({})
    return [writes for writes in found if writes]


def contents(writes: Iterable[dict[int, bytes]], start: dict[int, bytes]) -> list[dict[int, bytes]]:
    """What is on the drive at each flush, after the sectors ``start``."""
    drive, found = dict(start), []
    for each in writes:
        drive.update(each)
        found.append({sector: data for sector, data in drive.items() if any(data)})
    return found


def synced(log: LogReader) -> int:
    """The number of the entry before which the contents of /f, 8 KiB of the letter a, are durable, and their inode."""
    entries = list(log)
    [written] = [one.index for one in entries if one.data_bytes == 8192 and not one.data().strip(b"a")]
    flushes = [one.index for one in entries if one.index > written and EntryFlags.FLUSH in one.flags]
    return flushes[1] + 1  # the first flush comes before the commit block, the second after it


def test_what_qemu_logs_is_what_the_kernel_logs_and_bob_explores_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A minute: one guest boots, with the drive, and another explores."""
    drive, define = Drive(tmp_path), hypervisors.domain_xml
    with monkeypatch.context() as patched:
        patched.setattr(hypervisors, "domain_xml", lambda *those: drive.added_to(define(*those)))
        spec = GuestSpec(ensure("debian-bookworm", print), Clock.REAL)
        with Hypervisor.open(progress=print) as hypervisor, hypervisor.guest(spec, restore=False) as guest:
            assert guest.shell.run(f"set -e\n{MKFS}", timeout=120).code == 0
            with drive.log.open("rb") as file:
                first = LogReader(file).super.nr_entries
            done = guest.shell.run(f"set -e\n{SESSION}\ngzip -c /tmp/inside.log | base64", timeout=120)
            assert done.code == 0, done.stderr
    inside = LogReader(io.BytesIO(gzip.decompress(base64.b64decode(done.stdout))))
    with drive.log.open("rb") as file:
        made = contents(between_flushes(LogReader(file)), {})
        outside = between_flushes(LogReader(file), first)
    start = made[-1 - len(outside)]
    assert len(outside) > 5
    assert contents(outside, start) == contents(between_flushes(inside), start)

    def bob(*words: object) -> int:
        return run_bob([str(word) for word in words])

    run, empty = tmp_path / "run", tmp_path / "empty.img"
    with empty.open("wb") as file:
        file.truncate(DRIVE_BYTES)
    expectations = "exists /f", "exists /h", "exists /h implies size /h = 5000"
    asked = [word for each in expectations for word in ("--expect", each)]
    where = ["--base", empty, "--final", drive.image, "--fs", "ext4", "--from", synced(LogReader(drive.log))]
    monkeypatch.chdir(tmp_path)
    assert (
        bob("trace", "import", drive.log, *where, *asked, "--budget", 40, "--jobs", 1, "--out", run) == Exit.DIFFERENT
    )
    result = RunDirectory(run).result()
    verdicts = [answer.verdict for answer in result.answers]
    assert verdicts == [Verdict.HOLDS, Verdict.FAILS, Verdict.FAILS]
    [one] = result.answers[0].recordings
    assert (one.finish, one.states.explored_writes) == ("imported", one.states.legal_writes)

    witness = run / str(result.answers[2].witness)
    [again] = replay([witness], image=None, connect=None, times=1, progress=Silent())
    assert (again.confirmed, again.evidence) == (1, "/h is empty")
    for verb in (["shrink", "--in-place"], ["export", "--dm-log", tmp_path / "again.log"]):
        assert bob("witness", *verb, witness) == Exit.USAGE
        assert "an imported log" in capfd.readouterr().err
