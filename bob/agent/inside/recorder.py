"""Makes base images, and records workloads and recoveries on recorded disks (recorded_disks.py)."""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from typing import Any

from bob.agent.inside import medium
from bob.agent.inside.assembly import Assembly, Parts
from bob.agent.inside.devices import BASE_EPOCH, EPOCH, run, run_anyhow, write_text
from bob.agent.inside.frames import Reply
from bob.agent.inside.images import pack
from bob.agent.inside.late_disk import clear_late_disks
from bob.agent.inside.let_go import mounts, unmount_after_scripts
from bob.agent.inside.look import what_else
from bob.agent.inside.mounts import ROOT, effective_options, mount_or_refuse, unmount
from bob.agent.inside.operations import Operations, perform_all
from bob.agent.inside.programs import run_setup
from bob.agent.inside.recorded_disks import PROMPT, Recorded

CLOCK_FILE = "/.bob-clock"
LOG_BYTES = 512 * 1024 * 1024
TIMELINE_KIB = 8 * 1024
ALIGNMENT_SECONDS = 20
FILLED_IN = 65536
"""A device is filled by a multiple of so many bytes: whole blocks of every file system."""


def set_clock(seconds: int = EPOCH) -> None:
    """Set the wall clock, to the epoch of recordings unless another one is given."""
    time.clock_settime(time.CLOCK_REALTIME, seconds)


def make_base(
    base: str,
    length: int,
    cell: str,
    mkfs: list[str],
    fs: str,
    options: str,
    setup: list[list[Any]],
    blob: bytes,
    disks: list[int] | None = None,
    stack: dict[str, Any] | None = None,
    setup_seconds: float = 0.0,
    fill: str = "",
    narrates: bool = False,
) -> Reply:
    """A device of ``length`` bytes full of ``cell``, mkfs, the initial tree made durable, unmounted. Where there are
    ``disks``, several lengths (bytes), it is all of them, and the file system is on what ``stack`` makes of them. Where
    ``setup_seconds`` is not 0, the setup of the program that was put here is run, for so long at most. The file
    ``fill``, where one is named, takes all the room that is left. ``narrates`` as in :func:`record`.

    Replies with what mkfs printed, the effective mount options, how many bytes that file has taken and, as blob, the
    image as its differences from a device full of ``cell``.
    """
    clear_late_disks()  # or mkfs.btrfs may find the file system there that was recorded last, with the same UUID
    device = medium.medium_of(length, cell.encode())
    with Parts(device.work_path, disks or [length]) as parts, Assembly(stack, parts.paths) as whole:
        set_clock(BASE_EPOCH)
        narrate = say if narrates else _say_nothing
        narrate("mkfs")
        printed = run(*[whole.path if word == "DEVICE" else word for word in mkfs])
        narrate("mount")
        mount_or_refuse(whole.path, fs, options)
        effective = effective_options()
        if not setup_seconds:  # a program would see it
            os.close(os.open(ROOT + CLOCK_FILE, os.O_CREAT | os.O_WRONLY, 0o600))
        with Operations(ROOT) as performer:
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
    medium.bases[base] = medium.Base(length, cell.encode(), packed)
    return {"mkfs": printed, "effective_options": effective, "filled": filled}, packed


CONSOLE = "/dev/console"
PRINTK, ERRORS_TOO = "/proc/sys/kernel/printk", "4"
"""That a task hangs (kernel/hung_task.c) is an error to the kernel, and no more than that."""


def say(step: str) -> None:
    """Print on the console what is done next, where the host finds it when the kernel does not come back from it
    (bob/agent/loss.py)."""
    with suppress(OSError), open(CONSOLE, "wb", buffering=0) as console:
        write_text(PRINTK, ERRORS_TOO)
        console.write(f"bob: at {step}\n".encode())


def _say_nothing(step: str) -> None:
    """In place of :func:`say`: to print a line takes time, and would move what is recorded."""


def take_all(performer: Operations, path: str) -> int:
    """Give the new file ``path`` all the room there is, a multiple of :data:`FILLED_IN`; how many bytes that are.

    It is tried: what statvfs(2) tells counts room that a file cannot have, or leaves out some that root can.
    """
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


def put_base(base: str, length: int, cell: str, blob: bytes) -> Reply:
    """Take a base image that was made in another guest."""
    medium.bases[base] = medium.Base(length, cell.encode(), blob)
    return {}, b""


def has_base(base: str, blob: bytes) -> Reply:
    """Whether the base image is in this guest."""
    return {"has": base in medium.bases}, b""


def drop_base(base: str, blob: bytes) -> Reply:
    """Forget a base image."""
    medium.forget(base)
    return {}, b""


class Take:
    """Recorded disks over a copy of ``base``, and their timeline, with ``more`` events in it; ``with`` ends the
    tracing."""

    def __init__(
        self,
        base: str,
        disks: list[int] | None,
        stack: dict[str, Any] | None,
        log_bytes: int,
        timeline_kib: int,
        virtual: bool,
        completion: str,
        more: dict[str, str] | None = None,
        narrates: bool = False,
    ) -> None:
        self.narrate = say if narrates else _say_nothing
        self.medium = medium.medium_with(base)
        lengths = disks or [self.medium.length]
        self.recorded = Recorded(self.medium.work_path, lengths, log_bytes, completion, stack)
        self.timeline = self.recorded.timeline(timeline_kib, more)
        self.effective = ""
        self._virtual = virtual

    def __enter__(self) -> Take:
        self.timeline.__enter__()
        self.timeline.mark(f"kernel {os.uname().release}")
        if self._virtual:  # when the request came in is not deterministic: start at a time of our own
            time.sleep(ALIGNMENT_SECONDS - time.monotonic() % ALIGNMENT_SECONDS)
        set_clock()
        self.recorded.assemble()
        return self

    def __exit__(self, *failure: Any) -> None:
        self.timeline.__exit__(*failure)

    def mark(self, text: str) -> None:
        """Mark a moment in the timeline, and narrate it where that is wanted."""
        self.narrate(text)
        self.timeline.mark(text)

    @property
    def path(self) -> str:
        """The device that is mounted."""
        return self.recorded.assembly.path

    def reply(self, before: dict[str, list[int]], after: dict[str, list[int]]) -> Reply:
        """Take the disks away, with nothing mounted on them: what was recorded, with what stat said by path."""
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
    """Path -> inode number, and what :class:`bob.trace.recording.Status` has, for those that are there (lstat only:
    listing a directory would dirty its atime)."""
    found = {}
    for path in paths:
        with suppress(OSError):
            status = os.lstat(ROOT + path)
            found[path] = [status.st_ino, *what_else(status), status.st_nlink]
    return found


def record(
    base: str,
    fs: str,
    options: str,
    paths: list[str],
    operations: list[list[Any]],
    finish: list[list[Any]],
    natural: bool,
    phase: float,
    quiet: float,
    enough: float,
    deadline: float,
    virtual: bool,
    blob: bytes,
    completion: str = PROMPT,
    sync_when_quiet: bool = False,
    log_bytes: int = LOG_BYTES,
    timeline_kib: int = TIMELINE_KIB,
    disks: list[int] | None = None,
    stack: dict[str, Any] | None = None,
    narrates: bool = False,
) -> Reply:
    """Record ``operations``, whose data is ``blob``, and the finish on a copy of ``base``; times in seconds.

    The disks complete writes as ``completion`` says. ``sync_when_quiet``: a ``natural`` finish has a sync behind it.
    ``disks`` and ``stack`` are as for :func:`make_base`. One that ``narrates`` prints each step on the console first.

    Replies with the effective mount options, major and minor of each disk, what stat says of ``paths`` before and after
    the operations, and the lengths of the first pieces of the blob: the log of each disk, and the text of the timeline.
    The rest is what the disks then hold, laid end to end, where they are not as the base, in the sectors ``changed``.
    """
    with Take(base, disks, stack, log_bytes, timeline_kib, virtual, completion, narrates=narrates) as recording:
        device, mark = recording.recorded, recording.mark
        recording.narrate("mount")
        mount_or_refuse(recording.path, fs, options)
        recording.effective = effective_options()
        before = status_of(paths)
        os.sync()
        device.wait_until_quiet(quiet, enough, deadline)
        if phase:
            os.utime(ROOT + CLOCK_FILE)
            time.sleep(phase)
        mark("start")
        with Operations(ROOT) as performer:
            perform_all(performer, operations, blob, mark)
            after = status_of(paths)
            recording.narrate("finish")
            perform_all(performer, finish, b"", mark)
            if natural:
                device.wait_until_quiet(quiet, enough, deadline)
                if sync_when_quiet:
                    os.sync()
                    device.wait_until_quiet(quiet, enough, deadline)
            mark("end")  # with all open that the operations keep open: to close it may free a file
        recording.narrate("unmount")
        unmount()
        return recording.reply(before, after)


def record_recovery(
    base: str,
    fs: str,
    options: str,
    check: list[str],
    virtual: bool,
    blob: bytes,
    completion: str = PROMPT,
    log_bytes: int = LOG_BYTES,
    timeline_kib: int = TIMELINE_KIB,
    disks: list[int] | None = None,
    stack: dict[str, Any] | None = None,
) -> Reply:
    """Record what a boot does to a copy of ``base``, a disk after a crash: the ``check``, then the mount, which begins
    with the mark ``start`` and is done at ``end``.

    Replies as :func:`record` does, with no inode numbers.
    """
    with Take(base, disks, stack, log_bytes, timeline_kib, virtual, completion) as recording:
        recording.timeline.mark("start")
        if check:
            run_anyhow(check, recording.path)
        mount_or_refuse(recording.path, fs, options)
        recording.timeline.mark("end")
        recording.effective = effective_options()
        unmount()
        return recording.reply({}, {})
