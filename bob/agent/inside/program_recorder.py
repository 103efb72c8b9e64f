"""Records the workload of a program under test: as a workload of operations, with what it told and its system calls."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any

from bob.agent.inside.frames import Reply
from bob.agent.inside.let_go import mounts, unmount_after_scripts
from bob.agent.inside.mounts import ROOT, effective_options, mount_or_refuse
from bob.agent.inside.neighbour import Neighbour
from bob.agent.inside.programs import run_workload
from bob.agent.inside.recorded_disks import PROMPT
from bob.agent.inside.recorder import LOG_BYTES, TIMELINE_KIB, Take

TELLING = "id == 1 || id == 20 || id == 40 || id == 275"
"""The system calls by which a program can tell something through a pipe: write, writev, sendfile and splice
(arch/x86/entry/syscalls/syscall_64.tbl)."""


def record_program(
    base: str,
    fs: str,
    options: str,
    quiet: float,
    enough: float,
    deadline: float,
    virtual: bool,
    seconds: float,
    blob: bytes,
    completion: str = PROMPT,
    stores: bool = False,
    delay: float = 0.0,
    neighbour: bool = False,
    stacks: bool = False,
    sync_when_quiet: bool = False,
    log_bytes: int = LOG_BYTES,
    timeline_kib: int = TIMELINE_KIB,
    disks: list[int] | None = None,
    stack: dict[str, Any] | None = None,
) -> Reply:
    """Record the workload of the program that was put here, for ``seconds`` at most, on a copy of ``base``; all else is
    as for :func:`record` with a natural finish.

    The timeline also says when each call by which it may have told something had returned. ``told`` and ``calls`` in
    the reply are the lengths of the last pieces of the blob: what the workload wrote to its standard output, and what
    strace wrote, with what was stored through mappings if ``stores`` asks for it. ``pipe`` is the inode of the pipe
    that the standard output was. ``stacks`` and ``delay`` are as for :func:`run_workload`; where there is a delay, the
    workload may have a ``neighbour``.
    """
    more = {"raw_syscalls/sys_exit": TELLING}
    with (
        Take(base, disks, stack, log_bytes, timeline_kib, virtual, completion, more) as recording,
        ExitStack() as beside,
    ):
        device, mark = recording.recorded, recording.timeline.mark
        mount_or_refuse(recording.path, fs, options)
        recording.effective = effective_options()
        before = mounts()
        other = beside.enter_context(Neighbour(ROOT, fs)) if neighbour else None
        os.sync()
        device.wait_until_quiet(quiet, enough, deadline)
        mark("start")
        told, calls, pipe = run_workload(seconds, stores, delay, other, stacks)
        mark("ended")
        device.wait_until_quiet(quiet, enough, deadline)
        if sync_when_quiet:
            os.sync()
            device.wait_until_quiet(quiet, enough, deadline)
        mark("end")
        beside.close()
        unmount_after_scripts(before)
        header, pieces = recording.reply({}, {})
        return {**header, "told": len(told), "calls": len(calls), "pipe": pipe}, pieces + told + calls
