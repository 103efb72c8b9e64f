"""Records operations, programs and recoveries on recorded disks (recorded_disks.py)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

from bob.agent.inside import medium
from bob.agent.inside.devices import EPOCH, run_anyhow, write_text
from bob.agent.inside.documents import Manner, OperationsDocument, ScriptsDocument, subject_from
from bob.agent.inside.frames import Reply
from bob.agent.inside.let_go import mounts, unmount_after_scripts
from bob.agent.inside.look import what_else
from bob.agent.inside.mounts import ROOT, effective_options, mount_or_refuse, unmount
from bob.agent.inside.operations import Operations, perform_all
from bob.agent.inside.pacing import Neighbour
from bob.agent.inside.programs import run_workload
from bob.agent.inside.recorded_disks import RecordedDisks

CLOCK_FILE = "/.bob-clock"
ALIGNMENT_SECONDS = 20
TELLING = "id == 1 || id == 20 || id == 40 || id == 275"
"""System calls that can write to a pipe: write, writev, sendfile and splice (arch/x86/entry/syscalls/syscall_64.tbl).
"""


def set_clock(seconds: int = EPOCH) -> None:
    """Set the wall clock, by default to the epoch of recordings."""
    time.clock_settime(time.CLOCK_REALTIME, seconds)


CONSOLE = "/dev/console"
PRINTK, ERRORS_TOO = "/proc/sys/kernel/printk", "4"
"""To the kernel a hanging task (kernel/hung_task.c) is an error and no more."""


def say(step: str) -> None:
    """Print the next step on the console, where the host finds it if the kernel hangs in it (bob/agent/loss.py)."""
    with suppress(OSError), open(CONSOLE, "wb", buffering=0) as console:
        write_text(PRINTK, ERRORS_TOO)
        console.write(f"bob: at {step}\n".encode())


def narrator(narrates: bool) -> Callable[[str], None]:
    """Return :func:`say`, or a function that does nothing: to print a line takes time, and would move the recording."""
    return say if narrates else lambda _step: None


class Take:
    """Recorded disks over a copy of ``base``, with the ``subject`` on them, and their timeline with ``more`` events;
    ``with`` ends the tracing."""

    def __init__(self, base: str, subject: list[Any], manner: list[Any], more: dict[str, str] | None = None) -> None:
        self.subject, self._manner = subject_from(subject), Manner(*manner)
        self.narrate = narrator(self._manner.narrates)
        self.medium, disks = medium.medium_with(base), medium.bases[base].disks
        log_bytes, kib = self._manner.log_bytes, self._manner.timeline_kib
        self.recorded = RecordedDisks(
            self.medium.work_path, disks, log_bytes, self._manner.completion, self.subject.layers
        )
        self.timeline = self.recorded.timeline(kib, more)
        self.effective = ""

    def __enter__(self) -> Take:
        self.timeline.__enter__()
        self.timeline.mark(f"kernel {os.uname().release}")
        if self._manner.virtual:  # when the request came in is not deterministic: start at a time of our own
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

    def mount(self) -> None:
        mount_or_refuse(self.path, self.subject.driver, self.subject.options)

    def settle(self) -> None:
        """Wait until the disks are quiet."""
        self.recorded.wait_until_quiet(self.subject.quiet, self.subject.enough, self._manner.deadline)

    def end_naturally(self) -> None:
        """Wait until the disks are quiet, with a sync where the file system keeps its commits in memory."""
        self.settle()
        if self.subject.keeps_commits:
            os.sync()
            self.settle()

    def reply(self, before: dict[str, list[int]], after: dict[str, list[int]]) -> Reply:
        """Remove the disks, with nothing mounted on them; return the recording, with stat's answers by path."""
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
    """Map each existing path to its inode number and the fields of :class:`bob.trace.recording.InodeStatus` (lstat
    only: listing a directory would dirty its atime)."""
    found = {}
    for path in paths:
        with suppress(OSError):
            status = os.lstat(ROOT + path)
            found[path] = [status.st_ino, *what_else(status), status.st_nlink]
    return found


def record(base: str, subject: list[Any], work: list[Any], manner: list[Any], blob: bytes) -> Reply:
    """Record operations, whose data is ``blob``, and the finish on a copy of ``base``. The reply has the effective
    mount options, major and minor of each disk, stat's answers about the paths before and after the operations, and the
    lengths of the first pieces of the blob: each disk's log, and the text of the timeline. The rest is the content of
    the disks, laid end to end, in the sectors ``changed`` since the base."""
    asked = OperationsDocument(*work)
    with Take(base, subject, manner) as recording:
        mark = recording.mark
        recording.narrate("mount")
        recording.mount()
        recording.effective = effective_options()
        before = status_of(asked.paths)
        os.sync()
        recording.settle()
        if asked.phase:
            os.utime(ROOT + CLOCK_FILE)
            time.sleep(asked.phase)
        mark("start")
        with Operations(ROOT) as performer:
            perform_all(performer, asked.operations, blob, mark)
            after = status_of(asked.paths)
            recording.narrate("finish")
            perform_all(performer, asked.finish, b"", mark)
            if asked.natural:
                recording.end_naturally()
            mark("end")  # with all open that the operations keep open: to close it may free a file
        recording.narrate("unmount")
        unmount()
        return recording.reply(before, after)


def record_program(base: str, subject: list[Any], work: list[Any], manner: list[Any], blob: bytes) -> Reply:
    """Record the workload of the program that was put here on a copy of ``base``, as :func:`record` does with a natural
    finish. The timeline also has the return of each call that can write to a pipe. ``told`` and ``calls`` are the
    lengths of the last pieces of the blob: the workload's standard output, and strace's, with stores through mappings
    if that is asked for. ``pipe`` is the inode of the pipe that the standard output was."""
    del blob
    asked = ScriptsDocument(*work)
    with Take(base, subject, manner, {"raw_syscalls/sys_exit": TELLING}) as recording, ExitStack() as beside:
        recording.mount()
        recording.effective = effective_options()
        before = mounts()
        other = beside.enter_context(Neighbour(ROOT, recording.subject.driver)) if asked.neighbour else None
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
    """Record a boot on a copy of ``base``, disks after a crash: the check, then the mount, between marks ``start`` and
    ``end``. Replies as :func:`record` does, without inode numbers."""
    del blob
    with Take(base, subject, manner) as recording:
        recording.mark("start")
        if recording.subject.check:
            run_anyhow(recording.subject.check, recording.path)
        recording.mount()
        recording.mark("end")
        recording.effective = effective_options()
        unmount()
        return recording.reply({}, {})
