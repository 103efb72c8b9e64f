"""End the guests that bob has started, after bob has ended. This module also runs as a script, so it imports only the
standard library.

A QEMU that libvirt started survives when bob is killed (facts.md, "Guests"). So a separate process runs this script. It
reads lines (JSON arrays) from its standard input, a pipe from bob. When bob closes the pipe or ends, the process does
what the lines demand::

    ["root", DIR]          a root, the folder of a private libvirt: kill its QEMUs, remove it
    ["domain", URI, UUID]  a domain on another libvirt connection: destroy it
    ["gone", UUID]         that domain is gone: do not destroy it

If bob ends normally, it first closes the pipe, and waits for this process. While bob waits, its libvirt may still write
into the root, or start a QEMU. So before this process ends, it starts a child process, which removes the roots a second
time when bob has ended. The script's argument is bob's process id."""

import json
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_DEADLINE = 10.0  # seconds that killed processes may take to end
_LATECOMERS = 5.0  # seconds until a child of libvirt has become a QEMU, or has noticed that bob is gone


def arguments(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
    except OSError:
        return []


def handle_of_parent(pid: int) -> int | None:
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return None
    if os.getppid() == pid:
        return handle
    os.close(handle)
    return None


def has_ended(handle: int, seconds: float | None = None) -> bool:
    """Return whether the process of the pidfd ``handle`` ends within ``seconds`` (None: wait for ever)."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(None if seconds is None else seconds * 1000))


def qemus(mark: str) -> list[int]:
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]  # noqa: PTH208 (a thousand Path objects)
    return [pid for pid in pids if _is_qemu(pid, mark)]


def kill(pid: int, mark: str) -> None:
    """Kill the process ``pid`` if it is a QEMU with ``mark`` among its arguments, and return when it is dead. Raises
    PermissionError. This function waits on a pidfd, because the init of some containers takes seconds to collect dead
    processes."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            if _is_qemu(pid, mark):  # check again: now that the pidfd is open, the pid cannot pass to another process
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                has_ended(handle, _DEADLINE)
        finally:
            os.close(handle)


def kill_all(root: Path) -> None:
    deadline = time.monotonic() + _DEADLINE
    while (pids := qemus(f"{root}/")) and time.monotonic() < deadline:
        for pid in pids:
            with suppress(PermissionError):
                kill(pid, f"{root}/")


def remove_root(root: Path) -> None:
    kill_all(root)
    shutil.rmtree(root, ignore_errors=True)


def destroy_domain(uri: str, uuid: str) -> None:
    try:
        for pid in qemus(uuid):
            kill(pid, uuid)
    except PermissionError:  # the QEMU belongs to qemu:///system
        import libvirt  # type: ignore[import-untyped, unused-ignore]

        libvirt.registerErrorHandler(lambda *_: None, None)
        with suppress(libvirt.libvirtError):
            libvirt.open(uri).lookupByUUIDString(uuid).destroy()


def undo(lines: Iterable[str], owner: int | None) -> None:
    """Read ``lines``, which bob writes, up to the end of bob's pipe, and then do what they demand. ``owner`` is a pidfd
    of bob (None: bob has ended already)."""
    roots: set[str] = set()
    domains: dict[str, str] = {}
    for line in lines:
        match json.loads(line):
            case ["root", root]:
                roots.add(root)
            case ["domain", uri, uuid]:
                domains[uuid] = uri
            case ["gone", uuid]:
                domains.pop(uuid, None)
    for uuid, uri in domains.items():
        destroy_domain(uri, uuid)
    for root in roots:
        remove_root(Path(root))
    if roots and os.fork() == 0:
        _remove_again([Path(root) for root in roots], owner)


def _remove_again(roots: list[Path], owner: int | None) -> None:
    if owner is not None:
        has_ended(owner)
    deadline = time.monotonic() + _LATECOMERS
    while time.monotonic() < deadline:
        for root in roots:
            remove_root(root)
        time.sleep(0.2)


def _is_qemu(pid: int, mark: str) -> bool:
    program, *rest = arguments(pid) or [b""]
    name = program.rpartition(b"/")[2]
    return (name.startswith(b"qemu") or name == b"kvm") and any(mark.encode() in argument for argument in rest)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # this process ends when bob ends
    undo(sys.stdin, handle_of_parent(int(sys.argv[1])))
