"""Makes and keeps base images: a file system with its initial tree, on disks of stale pattern."""

from __future__ import annotations

import errno
import os
from typing import Any

from bob.agent.inside import medium
from bob.agent.inside.assembly import Assembly, loop_disks
from bob.agent.inside.devices import BASE_EPOCH, opened, run, with_device
from bob.agent.inside.documents import subject_from
from bob.agent.inside.frames import Reply
from bob.agent.inside.images import pack
from bob.agent.inside.late_disk import clear_late_disks
from bob.agent.inside.let_go import mounts, unmount_after_scripts
from bob.agent.inside.mounts import ROOT, effective_options, mount_or_refuse, unmount
from bob.agent.inside.operations import Operations, perform_all
from bob.agent.inside.programs import run_setup
from bob.agent.inside.recorder import CLOCK_FILE, narrator, set_clock

FILLED_IN = 65536  # a device is filled in multiples of so many bytes: whole blocks of every file system


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
    """Make disks of these lengths (bytes) full of ``cell``, assemble and format them, and make the initial tree
    durable.

    Unless ``setup_seconds`` is 0, the program's setup runs too, for so long at most. The file ``fill``, where named,
    takes all the room that is left. ``narrates`` is as in :class:`bob.agent.inside.documents.Manner`.

    The reply has mkfs's output, the effective mount options and the bytes that ``fill`` took. The blob is the image, as
    differences from disks full of ``cell``.
    """
    made = subject_from(subject)
    clear_late_disks()  # or mkfs.btrfs may find the file system there that was recorded last, with the same UUID
    device = medium.medium_of(sum(disks), cell.encode())
    with loop_disks(device.work_path, disks) as parts, Assembly(made.layers, parts) as whole:
        set_clock(BASE_EPOCH)
        narrate = narrator(narrates)
        narrate("mkfs")
        printed = run(*with_device(made.mkfs, whole.path))
        narrate("mount")
        mount_or_refuse(whole.path, made.driver, made.options)
        effective = effective_options()
        if not setup_seconds:  # a program would see it
            with opened(ROOT + CLOCK_FILE, os.O_CREAT | os.O_WRONLY):
                pass
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
    medium.bases[base] = medium.PackedBase(tuple(disks), cell.encode(), packed)
    return {"mkfs": printed, "effective_options": effective, "filled": filled}, packed


def take_all(performer: Operations, path: str) -> int:
    """Give the new file ``path`` all free room, in multiples of :data:`FILLED_IN`; return its bytes. It tries:
    statvfs(2) counts room that a file cannot have, or leaves out some that root can have."""
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
    """Take a base image that another guest made."""
    medium.bases[base] = medium.PackedBase(tuple(disks), cell.encode(), blob)
    return {}, b""


def has_base(base: str, blob: bytes) -> Reply:
    """Say whether the base image is in this guest."""
    return {"has": base in medium.bases}, b""


def drop_base(base: str, blob: bytes) -> Reply:
    medium.forget(base)
    return {}, b""
