"""The agent in a sandbox on the host (bob/sandbox). It builds trees, and runs a program's checker on them.

Bubblewrap has made namespaces for the sandbox, with the read-only root of a guest. The agent is the first process in
them. It may mount file systems there, but scripts may not."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from contextlib import suppress

from bob.agent.inside import built_trees, processes
from bob.agent.inside.devices import WORK
from bob.agent.inside.foreign_machine import LOAD
from bob.agent.inside.frames import Handler, Reply, serve
from bob.agent.inside.main import hello
from bob.agent.inside.mounts import MS_PRIVATE, MS_REC, ROOT, libc, mount_at
from bob.agent.inside.programs import put_program
from bob.agent.inside.world import LOWER, lay_over

START = f"{LOAD}from bob.agent.inside.sandboxed import stay;stay()\n"
"""The program for ``python3 -c`` in the sandbox."""
CLONE_NEWNS = 0x00020000
# Sizes of file systems in memory, in the form of tmpfs(5): for a tree, for the agent's files, and for files that a
# script writes elsewhere. (A guest has 2 GiB of memory for all of these.)
TREE, OWN, ELSEWHERE = "2g", "256m", "512m"


def stay() -> None:
    """Serve requests until the host closes the stream."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # other output must not get between the frames
    signal.signal(signal.SIGINT, lambda *_: None)  # without a handler, the first process gets no signals
    processes.stay_on_host()
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


def _put(blob: bytes, world: bool = False) -> Reply:
    """Replace the program's files. In a sandbox, its scripts always run in a world over the root."""
    return put_program(blob, world=True)


HANDLERS: dict[str, Handler] = {
    "hello": hello,
    "put_program": _put,
    "check_built": built_trees.check_built,
    "forget_chunks": built_trees.forget_chunks,
}
