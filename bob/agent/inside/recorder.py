"""Make base images, and record operations, programs and recoveries on the disks of recorded_disks.py. A *base image* is
the content of the disks before a recording. Layers, such as RAID, may lie between the disks and the file system."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from typing import Any

from bob.agent.inside import medium
from bob.agent.inside.assembly import Assembly, loop_disks
from bob.agent.inside.devices import BASE_EPOCH, EPOCH, opened, write_text
from bob.agent.inside.documents import Manner, OperationsDocument, ScriptsDocument, subject_from
from bob.agent.inside.frames import Reply
from bob.agent.inside.images import pack
from bob.agent.inside.late_disk import clear_late_disks
from bob.agent.inside.let_go import mounts, unmount_after_scripts
from bob.agent.inside.look import what_else
from bob.agent.inside.mounts import ROOT, unmount
from bob.agent.inside.nodes import MESSAGES
from bob.agent.inside.operations import CLOCK_FILE, Operations, perform_all
from bob.agent.inside.pacing import Neighbour
from bob.agent.inside.programs import run_setup, run_workload
from bob.agent.inside.recorded_disks import RecordedDisks
from bob.agent.inside.volumes import Volumes

ALIGNMENT_SECONDS = 20
FILLED_IN = 65536  # bytes: a multiple of the block size of every file system
TELLING = "id == 1 || id == 20 || id == 40 || id == 275"
"""A filter for the system calls that can write to a pipe: write, writev, sendfile, splice
(arch/x86/entry/syscalls/syscall_64.tbl)."""


def set_clock(seconds: int = EPOCH) -> None:
    time.clock_settime(time.CLOCK_REALTIME, seconds)


CONSOLE = "/dev/console"
PRINTK, ERRORS_TOO = "/proc/sys/kernel/printk", "4"  # a hanging task is an error (kernel/hung_task.c)


def say(step: str) -> None:
    """Print the next step on the console. If the kernel then hangs, the host reads this step there
    (bob/agent/loss.py)."""
    with suppress(OSError), open(CONSOLE, "wb", buffering=0) as console:
        write_text(PRINTK, ERRORS_TOO)
        console.write(f"bob: at {step}\n".encode())


def narrator(narrates: bool) -> Callable[[str], None]:
    """Return :func:`say` if ``narrates`` is true, and otherwise a function that does nothing. (The agent does not
    always print its steps, because that takes time, which would change the recording.)"""
    return say if narrates else lambda _step: None


class Take:
    """One recording, on disks with a copy of the base image ``base`` and with the layers of the ``subject`` (a file
    system and its disks). If ``after`` is false, the recording is of the work before the crash. If ``after`` is true,
    it is of the recovery after the crash, when disks that did not survive the crash are missing. The kernel traces the
    disks while a ``with`` block runs. The kernel also traces the events in ``more``, a dictionary from the names of
    kernel events to filters."""

    def __init__(
        self,
        base: str,
        subject: list[Any],
        manner: list[Any],
        more: dict[str, str] | None = None,
        *,
        after: bool = False,
    ) -> None:
        self.subject, self._manner = subject_from(subject), Manner(*manner)
        self.narrate = narrator(self._manner.narrates)
        self.medium, disks = medium.medium_with(base), medium.bases[base].disks
        log_bytes, completion = self._manner.log_bytes, self._manner.completion
        lost = self.subject.lost if after else self.subject.missing
        self.recorded = RecordedDisks(
            self.medium.work_path, disks, log_bytes, completion, self.subject.layers, lost, crashed=after
        )
        self.volumes = Volumes(self.subject, self.recorded.assembly)
        self.timeline = self.recorded.timeline(self._manner.timeline_kib, more)
        self.effective = ""

    def __enter__(self) -> Take:
        self.timeline.__enter__()
        self.timeline.mark(f"kernel {os.uname().release}")
        if self._manner.virtual:  # the time when a request comes is not deterministic: start at a fixed time
            time.sleep(ALIGNMENT_SECONDS - time.monotonic() % ALIGNMENT_SECONDS)
        set_clock()
        return self

    def __exit__(self, *failure: Any) -> None:
        self.timeline.__exit__(*failure)

    def mark(self, text: str) -> None:
        self.narrate(text)
        self.timeline.mark(text)

    def assemble(self) -> None:
        self.recorded.assemble()

    def mount(self) -> None:
        self.volumes.mount_or_refuse()
        self.effective = self.volumes.effective_options()

    def settle(self) -> None:
        self.recorded.wait_until_quiet(self.subject.quiet, self.subject.enough, self._manner.deadline)

    def end_naturally(self) -> None:
        """Wait until the disks are quiet. Some file systems (jfs) do not write a commit record until a sync waits for
        it. If this is such a file system, sync and wait again."""
        self.settle()
        if self.subject.keeps_commits:
            os.sync()
            self.settle()

    def reply(self, before: dict[str, list[int]], after: dict[str, list[int]]) -> Reply:
        """Remove the disks, which must not be mounted, and return the recording. ``before`` and ``after`` are the
        results of stat, by path, before and after the operations."""
        logs, written = self.recorded.remove()
        self.timeline.stop()
        text = self.timeline.text().encode()
        runs = self.medium.changed(written)
        pieces = [*logs, text, *(self.medium.work.get(*run) for run in runs)]
        self.medium.put_back(runs)
        header = {
            "effective_options": self.effective,
            "devices": self.recorded.devices,
            "before": before,
            "after": after,
            "lengths": [*map(len, logs), len(text)],
            "changed": runs,
        }
        return header, b"".join(pieces)


def status_of(paths: list[str]) -> dict[str, list[int]]:
    """Return the inode number and the fields of ``InodeStatus`` for each of ``paths`` that exists. This calls lstat(2),
    because a directory listing would change an atime."""
    found = {}
    for path in paths:
        with suppress(OSError):
            status = os.lstat(ROOT + path)
            found[path] = [status.st_ino, *what_else(status), status.st_nlink]
    return found


def record(base: str, subject: list[Any], work: list[Any], manner: list[Any], blob: bytes) -> Reply:
    """Record the workload ``work`` on a copy of the base image ``base``. A workload consists of operations and a finish
    (the operations that end it). ``blob`` has the data of the operations. ``manner`` says how to record. The fields of
    these lists are those of the types in documents.py.

    The reply's header has the effective mount options, each disk's major and minor number, and stat's results before
    and after the operations. The reply's blob has each disk's log and then the timeline; ``lengths`` has their lengths.
    The header's field ``changed`` lists the runs of sectors that changed, counted over all disks end to end. The new
    contents of these runs are at the end of the blob."""
    asked = OperationsDocument(*work)
    with Take(base, subject, manner) as recording:
        mark = recording.mark
        recording.assemble()
        recording.narrate("mount")
        recording.mount()
        before = status_of(asked.paths)
        os.sync()
        recording.settle()
        if asked.phase:
            with suppress(FileNotFoundError):
                os.utime(ROOT + CLOCK_FILE)
            time.sleep(asked.phase)
        mark("start")
        with closing(Operations(ROOT)) as performer:
            perform_all(performer, asked.operations, blob, mark)
            after = status_of(asked.paths)
            recording.narrate("finish")
            perform_all(performer, asked.finish, b"", mark)
            if asked.natural:
                recording.end_naturally()
            mark("end")  # before the handles are closed, as a close may free a file
        recording.narrate("unmount")
        unmount()
        return recording.reply(before, after)


def record_program(base: str, subject: list[Any], work: list[Any], manner: list[Any], blob: bytes) -> Reply:
    """Record the program's workload on a copy of the base image ``base``. Afterwards, wait until the disks are quiet.
    The reply is like that of :func:`record`. The timeline also has the returns of system calls that can write to a
    pipe: the program's output may report that data is durable. If the program is a cluster, the timeline also has the
    packets between its nodes. The reply's blob ends with the workload's standard output, of the length ``told``, and
    strace's output, of the length ``calls``. ``pipe`` is the inode of the pipe that was the workload's standard
    output."""
    del blob
    asked = ScriptsDocument(*work)
    events = {"raw_syscalls/sys_exit": TELLING, **(MESSAGES if subject_from(subject).nodes else {})}
    with Take(base, subject, manner, events) as recording, ExitStack() as beside:
        recording.assemble()
        recording.mount()
        before = mounts()
        other = beside.enter_context(closing(Neighbour(ROOT, recording.subject.driver))) if asked.neighbour else None
        os.sync()
        recording.settle()
        recording.mark("start")
        told, calls, pipe = run_workload(asked.seconds, asked.stores, asked.delay, other, asked.stacks)
        recording.mark("ended")
        recording.end_naturally()
        recording.mark("end")
        beside.close()
        unmount_after_scripts(before)
        header, pieces = recording.reply({}, {})
        return {**header, "told": len(told), "calls": len(calls), "pipe": pipe}, pieces + told + calls


def record_recovery(base: str, subject: list[Any], manner: list[Any], blob: bytes) -> Reply:
    """Record the recovery that a boot does after a crash. A mark in the timeline precedes the recovery, and another
    mark follows it. The reply is like that of :func:`record`."""
    del blob
    with Take(base, subject, manner, after=True) as recording:
        recording.mark("start")
        recording.assemble()
        recording.volumes.check()
        recording.mount()
        recording.mark("end")
        unmount()
        return recording.reply({}, {})


def make_base(
    base: str,
    disks: list[int],
    cell: str,
    subject: list[Any],
    setup: list[list[Any]],
    blob: bytes,
    setup_seconds: float = 0.0,
    fill: str = "",
    narrates: bool = False,
) -> Reply:
    """Make a base image. First make one disk for each length (bytes) in ``disks``, and fill the disks with the bytes
    ``cell``, repeated. Then assemble and format them, carry out the operations ``setup``, and make the resulting tree
    durable. If ``setup_seconds`` is not 0, run the program's setup script, too, for at most that time. If ``fill`` is
    not empty, make a file with this path, which takes all free room.

    The reply has the output of mkfs, the effective mount options, and the number of bytes that the file ``fill`` took.
    Its blob is the image, as differences from disks full of ``cell``.
    """
    made = subject_from(subject)
    clear_late_disks()  # otherwise mkfs.btrfs may find the last recorded file system there, with the same UUID
    device = medium.medium_of(sum(disks), cell.encode())
    with loop_disks(device.work_path, disks) as parts, Assembly(made.layers, parts, makes=True) as whole:
        set_clock(BASE_EPOCH)
        narrate = narrator(narrates)
        narrate("mkfs")
        volumes = Volumes(made, whole)
        printed = volumes.make()
        narrate("mount")
        volumes.mount_or_refuse()
        effective = volumes.effective_options()
        if not setup_seconds:  # a program would see this file
            try:
                with opened(ROOT + CLOCK_FILE, os.O_CREAT | os.O_WRONLY):
                    pass
            except OSError as error:
                # msdos takes no name that begins with a dot. It lacks transactions, which the file is for.
                if error.errno != errno.EINVAL:
                    raise
        with closing(Operations(ROOT)) as performer:
            perform_all(performer, setup, blob, narrate)
            filled = take_all(performer, fill) if fill else 0
        before = mounts()
        if setup_seconds:
            run_setup(setup_seconds)
        narrate("sync")
        os.sync()
        narrate("unmount")
        if setup_seconds:
            unmount_after_scripts(before)
        else:
            unmount()
    set_clock()
    runs = device.adopt(base)
    packed = pack(device.pristine, runs)
    medium.bases[base] = medium.PackedBase(tuple(disks), cell.encode(), packed)
    return {"mkfs": printed, "effective_options": effective, "filled": filled}, packed


def take_all(performer: Operations, path: str) -> int:
    """Make the new file ``path`` take all free room, in multiples of :data:`FILLED_IN` bytes, and return its size. To
    find the size, this function tries to allocate, because statvfs(2) may count room that a file cannot have, or leave
    out room that root can have."""
    performer.do_create(path)
    room = os.statvfs(ROOT)
    taken, step = 0, 1 << (room.f_blocks * room.f_frsize).bit_length()
    while step >= FILLED_IN:
        try:
            performer.do_fallocate(path, taken, step, "keep")
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            step //= 2
        else:
            taken += step
    return taken


def put_base(base: str, disks: list[int], cell: str, blob: bytes) -> Reply:
    medium.bases[base] = medium.PackedBase(tuple(disks), cell.encode(), blob)
    return {}, b""


def has_base(base: str, blob: bytes) -> Reply:
    return {"has": base in medium.bases}, b""


def drop_base(base: str, blob: bytes) -> Reply:
    medium.forget(base)
    return {}, b""
