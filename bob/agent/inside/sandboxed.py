"""The agent in a sandbox on the host (bob/sandbox). It builds trees of files, and runs a program's checker on them.

Bubblewrap has made namespaces for the sandbox. The root directory there is a read-only copy of a guest's root. The
agent is the first process in the namespaces. It may mount file systems there, but the program's scripts (such as its
checker) may not."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import signal
import struct
import sys
from contextlib import suppress
from typing import Any

from bob.agent.inside import built_trees, host_checks, processes, recorder
from bob.agent.inside.devices import WORK
from bob.agent.inside.foreign_machine import LOAD
from bob.agent.inside.frames import Handler, Reply, serve
from bob.agent.inside.main import hello
from bob.agent.inside.mounts import MS_PRIVATE, MS_REC, ROOT, libc, mount_at
from bob.agent.inside.programs import choose_start, own_machine, put_program
from bob.agent.inside.world import LOWER, lay_over

START = f"{LOAD}from bob.agent.inside.sandboxed import stay;stay()\n"
"""The program for ``python3 -c`` in the sandbox."""
CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
# Sizes of file systems in memory, in the form of tmpfs(5): for a tree, for the agent's files, and for files that a
# script writes elsewhere. (A guest has 2 GiB of memory for all of these.)
TREE, OWN, ELSEWHERE = "2g", "256m", "512m"


ALLOW, REFUSE = 0x7FFF0000, 0x00050000  # the results of a filter (seccomp(2)); REFUSE has an error number in it
KEYS = 248, 249, 250  # add_key, request_key, keyctl: no namespace has the keys of bob's session
IO_URING_SETUP, SOCKET = 425, 41
FAMILIES = 1, 2, 10, 16  # AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK: others may reach past the network namespace

has_own_network = False  # whether the agent has left the network that bubblewrap made


def stay() -> None:
    """Serve requests until the host closes the stream."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # other output must not get between the frames
    signal.signal(signal.SIGINT, lambda *_: None)  # without a handler, the first process gets no signals
    _forget_the_shell()
    processes.stay_on_host()
    own_machine()
    _filter_calls()
    if libc.unshare(ctypes.c_int(CLONE_NEWNS)):  # those of bubblewrap are locked from here on
        raise OSError(ctypes.get_errno(), "unshare")
    mount_at("", "/", "", MS_REC | MS_PRIVATE)
    os.makedirs(WORK)
    mount_at("bob", WORK, "tmpfs", 0, f"mode=711,size={OWN}")
    os.mkdir(ROOT)
    lay_over(LOWER, ELSEWHERE, ",userxattr")
    built_trees.most = TREE
    gc.freeze()
    with suppress(BrokenPipeError):
        serve(sys.stdin.buffer, replies, HANDLERS)


def _forget_the_shell() -> None:
    """Undo settings that this process has inherited from the shell of bob's user: the umask, ignored signals and
    limits. Then these settings are as in a guest."""
    import resource  # guests do without it

    os.umask(0o022)
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    for limit, usual in ((resource.RLIMIT_NOFILE, 1024), (resource.RLIMIT_FSIZE, resource.RLIM_INFINITY)):
        _soft, most = resource.getrlimit(limit)
        resource.setrlimit(limit, (usual if most == resource.RLIM_INFINITY or 0 < usual < most else most, most))


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def _filter_calls() -> None:
    """Make the kernel refuse system calls whose effect goes beyond all namespaces. It refuses them to this process, and
    to all processes that this process starts."""
    if os.uname().machine != "x86_64":
        raise OSError(errno.ENOSYS, "the filter of system calls is for x86-64")
    steps = _steps()
    packed = b"".join(struct.pack("=HBBI", *step) for step in steps)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(_Filter(len(steps), packed)), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def _steps() -> list[tuple[int, int, int, int]]:
    """Return the filter's program in classic BPF. Each instruction is (code, jump if true, jump if false, constant)."""
    load, equal, at_least, end = 0x20, 0x15, 0x35, 0x06
    denied = [*((number, errno.EPERM) for number in KEYS), (IO_URING_SETUP, errno.ENOSYS)]
    steps = [(load, 0, 0, 4), (equal, 1, 0, 0xC000003E), (end, 0, 0, REFUSE | errno.ENOSYS)]  # only calls of x86-64
    steps += [(load, 0, 0, 0), (at_least, 0, 1, 0x40000000), (end, 0, 0, REFUSE | errno.ENOSYS)]  # and none of x32
    for number, error in denied:
        steps += [(equal, 0, 1, number), (end, 0, 0, REFUSE | error)]
    steps += [(equal, 1, 0, SOCKET), (end, 0, 0, ALLOW), (load, 0, 0, 16)]
    for family in FAMILIES:
        steps += [(equal, 0, 1, family), (end, 0, 0, ALLOW)]
    return [*steps, (end, 0, 0, REFUSE | errno.EAFNOSUPPORT)]


def _put(blob: bytes, world: bool = False, cluster: list[Any] | None = None) -> Reply:
    """Replace the program's files. In a sandbox, the program's scripts always run in a *world* (a root file system of
    their own), which lies over the sandbox's root."""
    if cluster is not None:
        _own_network()
    return put_program(blob, world=True, cluster=cluster)


def _own_network() -> None:
    """Leave the network that bubblewrap made. It belongs to an outer user namespace, where the agent has no rights, so
    the agent could not connect a cluster's nodes to it. The new network has no way out, either."""
    global has_own_network
    if not has_own_network and libc.unshare(ctypes.c_int(CLONE_NEWNET)):
        raise OSError(ctypes.get_errno(), "unshare")
    has_own_network = True


HANDLERS: dict[str, Handler] = {
    "hello": hello,
    "put_program": _put,
    "choose_start": choose_start,
    "check_built": built_trees.check_built,
    "forget_chunks": built_trees.forget_chunks,
    "put_base": recorder.put_base,
    "has_base": recorder.has_base,
    "recover_prepare": host_checks.recover_prepare,
    "recover": host_checks.recover,
}
