"""The agent's entry point: requests on standard input, replies on standard output."""

from __future__ import annotations

import errno
import fcntl
import functools
import gc
import os
import sys
from contextlib import suppress
from typing import BinaryIO

from bob.agent.inside import built_trees, medium, observer, recorder
from bob.agent.inside.devices import WORK, clear_devices, write_text
from bob.agent.inside.frames import Handler, Reply, serve
from bob.agent.inside.late_disk import clear_late_disks
from bob.agent.inside.mounts import MNT_DETACH, ROOT, clear_mounts, libc
from bob.agent.inside.observer import end_scratch
from bob.agent.inside.port import NO_PORT, USES_PORT, open_port
from bob.agent.inside.processes import bound_scratch, spare_agent
from bob.agent.inside.programs import choose_start, own_machine, put_program, read_files
from bob.agent.inside.tracing import clear_instances

LOCK = "/tmp/bob-agent.lock"
CONSOLE_LEVEL = "3"  # critical and worse: a letter on an emulated serial port costs as much as a system call


def hello(blob: bytes) -> Reply:
    libraries = {"kernel": os.uname().release, "python": sys.version.split()[0], "libc": ""}
    with suppress(OSError, ValueError):  # another C library than glibc does not know the name
        libraries["libc"] = os.confstr("CS_GNU_LIBC_VERSION") or ""
    return libraries, b""


def start_afresh(*, modestly: bool = False) -> None:
    """Remove the mounts and devices that an earlier agent left, and make the working folder. If ``modestly`` is true,
    do not change settings of the machine's kernel, because the machine is not bob's."""
    if not modestly:
        own_machine()
        with suppress(OSError):
            write_text("/proc/sys/kernel/printk", CONSOLE_LEVEL)
        bound_scratch()
        with suppress(OSError):  # without this, kcompactd looks for work twice a second
            write_text("/proc/sys/vm/compaction_proactiveness", "0")
    spare_agent(modestly=modestly)
    clear_mounts()
    clear_devices()
    clear_late_disks()
    clear_instances()
    while libc.umount2(WORK.encode(), MNT_DETACH) == 0:
        pass
    os.makedirs(WORK, exist_ok=True)
    # Ask for huge pages: with them a device image takes dozens of page faults, not thousands. Mode 711, because a
    # program under test may run as another user, and must reach its files.
    for options in (b"mode=711,size=100%,huge=always", b"mode=711,size=100%"):
        if libc.mount(b"bob", WORK.encode(), b"tmpfs", 0, options) == 0:
            os.mkdir(ROOT)
            return
    raise OSError(errno.EIO, f"cannot mount a tmpfs at {WORK}")


has_remains = False  # whether something of a failed request may still be there


def clear_remains() -> None:
    global has_remains
    has_remains = True
    with suppress(Exception):
        end_scratch()
    medium.drop()
    clear_mounts()
    clear_devices()
    clear_late_disks()
    has_remains = False


def at_work(function: Handler, *, observes: bool = False) -> Handler:
    """Return a function that cleans up and then calls ``function``. First, the returned function removes what an
    earlier failure left. It also removes the scratch device, which holds crash states. If ``observes`` is true,
    however, it keeps this device for ``function``. If the call fails, the returned function also removes what the call
    left."""

    @functools.wraps(function)
    def handler(**arguments: object) -> Reply:
        if has_remains:  # a process that held them may have ended by now
            clear_remains()
        try:
            if not observes:
                end_scratch()
            return function(**arguments)
        except BaseException:
            with suppress(Exception):
                clear_remains()
            raise

    return handler


HANDLERS: dict[str, Handler] = {
    "hello": hello,
    "make_base": at_work(recorder.make_base),
    "put_base": at_work(recorder.put_base, observes=True),
    "has_base": recorder.has_base,
    "drop_base": recorder.drop_base,
    "record": at_work(recorder.record),
    "record_program": at_work(recorder.record_program),
    "record_recovery": at_work(recorder.record_recovery),
    "observe_prepare": at_work(observer.observe_prepare, observes=True),
    "observe": at_work(observer.observe, observes=True),
    "examine": at_work(observer.examine, observes=True),
    "check_program": at_work(observer.check_program, observes=True),
    "check_built": at_work(built_trees.check_built),
    "forget_chunks": built_trees.forget_chunks,
    "put_program": put_program,
    "choose_start": choose_start,
    "read_files": read_files,
    "state_image": at_work(observer.state_image, observes=True),
    "tamper": observer.tamper,
}


def main() -> None:
    """Serve requests until the host closes the stream. If there is a command-line argument and the guest has a
    virtio-serial port (port.py), the requests come over that port, and the agent first sends the argument back."""
    requests: BinaryIO = sys.stdin.buffer
    replies: BinaryIO = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # other output must not get between the frames
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)  # waits until an earlier agent has ended
    start_afresh()
    gc.freeze()
    gc.set_threshold(100_000)  # crash states leave no cycles behind
    if len(sys.argv) > 1:
        port = open_port()
        replies.write(USES_PORT if port else NO_PORT)
        replies.flush()
        if port:
            requests, replies = port
            replies.write(sys.argv[1].encode())
            replies.flush()
    with suppress(BrokenPipeError):
        serve(requests, replies, HANDLERS)
