"""The agent on a machine that bob did not boot. Before the agent ends, it removes its own files and devices, and
restores the settings that it changed. If a SIGKILL ends it first, the next agent on that machine cleans up. An agent
never writes to the disks of such a machine."""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from bob.agent.inside import main, medium, ram_disk
from bob.agent.inside.devices import WORK, clear_devices, read_text
from bob.agent.inside.frames import Handler, Reply, serve
from bob.agent.inside.late_disk import MOST_DISKS, MOST_SERVED, clear_late_disks
from bob.agent.inside.mounts import clear_mounts, libc
from bob.agent.inside.observer import end_scratch
from bob.agent.inside.tracing import TRACING, clear_instances, clear_probes

LOAD = (
    "import os,sys;n=int(sys.argv.pop());f=os.memfd_create('bob')\n"
    "while n:\n"
    " d=os.read(0,min(n,65536));n-=len(d);os.write(f,d)\n"
    " if not d:sys.exit()\n"
    "sys.path.insert(0,'/proc/self/fd/%d'%f)\n"
)
"""The first lines of a program for ``python3 -c``, which load the agent. The last argument is the agent's length
(bytes), and standard input begins with the agent."""
BOOT = f"{LOAD}from bob.agent.inside.foreign_machine import visit;visit()\n"
STAND_INS = {"e2fsck.static": "e2fsck"}  # faster programs, which only bob's guests have, and the usual ones
_BIN = f"{WORK}/bin"
LOCK_SECONDS = 20.0  # an earlier agent may take so long to leave
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SETS_CLOCK = ("make_base", "record", "record_program", "record_recovery")


class Gone(BaseException):
    """The reason for the agent to leave: the host has closed the connection, or a signal ends the agent."""


def visit() -> None:
    """Serve requests until the host closes the stream, and then clean up."""
    for number in _SIGNALS:
        signal.signal(number, _leave_now)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # The PATH of a login may lack the folders of programs that make and check file systems.
    os.environ["PATH"] = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin:{_BIN}"
    lock = _locked()
    try:
        with suppress(Gone, BrokenPipeError):
            try:
                ram_disk.forbid()  # memory that this machine has set aside is not bob's
                main.start_afresh(modestly=True)
                have_stand_ins()
                threading.Thread(target=_watch, daemon=True).start()
                handlers = {**main.HANDLERS, **{name: keeping_time(main.HANDLERS[name]) for name in SETS_CLOCK}}
                serve(sys.stdin.buffer, replies, {**handlers, "machine": machine})
            finally:
                _be_deaf()
    finally:
        leave()
        os.unlink(main.LOCK)
        os.close(lock)


def leave() -> None:
    with suppress(Exception):
        end_scratch()
    for clear in (medium.drop, clear_mounts, clear_devices, clear_late_disks, clear_instances, clear_probes):
        with suppress(Exception):
            clear()
    for _ in range(100):
        libc.umount2(WORK.encode(), 0)
        if not os.path.ismount(WORK):
            break
        time.sleep(0.05)
    with suppress(OSError):
        os.rmdir(WORK)


def have_stand_ins() -> None:
    """Make links in place of missing programs. If this machine lacks a program of ``STAND_INS``, the link has the name
    of that program, and leads to the program that most machines have instead."""
    os.mkdir(_BIN, 0o755)
    for name, other in STAND_INS.items():
        program = shutil.which(other)
        if program is not None and shutil.which(name) is None:
            os.symlink(program, f"{_BIN}/{name}")


def keeping_time(handler: Handler, wall: Callable[[], float] = time.time) -> Handler:
    """Return a function that calls ``handler`` and then sets the wall clock back to the true time, because ``handler``
    changes the clock."""

    def kept(**arguments: object) -> Reply:
        offset = wall() - time.monotonic()
        try:
            return handler(**arguments)
        finally:
            time.clock_settime(time.CLOCK_REALTIME, time.monotonic() + offset)

    return kept


def machine(modules: list[str], programs: list[str], packages: list[str], blob: bytes) -> Reply:
    """Return a description of this machine. Among other things, it says which ``modules``, ``programs`` and
    ``packages`` the machine has."""
    of_memory = {line.partition(":")[0]: line.split()[1] for line in read_text("/proc/meminfo").splitlines()}
    identity, devices = "/etc/machine-id", [f"nbd{number}" for number in range(MOST_DISKS + MOST_SERVED)]
    return {
        "kernel": os.uname().release,
        "build": os.uname().version,
        "processor": os.uname().machine,
        "processors": os.sysconf("SC_NPROCESSORS_ONLN"),
        "memory_mib": int(of_memory["MemAvailable"]) // 1024,
        "identity": read_text(identity).strip() if os.path.exists(identity) else "",
        "traces": os.path.isdir(f"{TRACING}/events/block"),
        "busy": [name for name in devices if os.path.exists(f"/sys/block/{name}/pid")],
        "modules": [name for name in modules if _has_module(name)],
        "programs": [name for name in programs if shutil.which(name)],
        "packages": {name: version for name in packages if (version := _version(name))},
    }, b""


def _has_module(name: str) -> bool:
    return os.path.isdir(f"/sys/module/{name}") or _said("modprobe", "--dry-run", "--quiet", name) is not None


def _version(package: str) -> str:
    for command in (("dpkg-query", "-W", "-f", "${Version}"), ("rpm", "-q", "--qf", "%{VERSION}-%{RELEASE}")):
        if said := _said(*command, package):
            return said
    return ""


def _said(*command: str) -> str | None:
    program = shutil.which(command[0])
    if program is None:
        return None
    done = subprocess.run([program, *command[1:]], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return None if done.returncode else done.stdout.decode(errors="replace").strip()


def _locked() -> int:
    with suppress(FileNotFoundError):
        found = os.lstat(WORK)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid:
            sys.exit(f"{WORK} exists already, and does not belong to root")
    end = time.monotonic() + LOCK_SECONDS
    while True:
        lock = os.open(main.LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.exists(main.LOCK) and os.stat(main.LOCK).st_ino == os.fstat(lock).st_ino:
                return lock  # the lock file still exists: an agent that leaves removes its lock file
        except BlockingIOError:
            if time.monotonic() > end:
                sys.exit("another bob is at work on this machine")
        os.close(lock)
        time.sleep(0.1)


def _watch() -> None:
    """End the agent, whatever it is doing, when the host closes standard input."""
    poll = select.poll()
    poll.register(0, select.POLLRDHUP)  # a poll reports a hang-up even if it is not asked to
    poll.poll()
    os.kill(os.getpid(), signal.SIGTERM)


def _leave_now(_number: int, _frame: FrameType | None) -> None:
    _be_deaf()  # no second signal may interrupt the removal
    raise Gone


def _be_deaf() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
