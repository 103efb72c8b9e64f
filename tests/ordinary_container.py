"""Run a command as an ordinary container runs it: ``python tests/ordinary_container.py [--user UID] COMMAND...``.

The command has the capabilities that Docker gives (or with ``--user`` none), gets no more of them, and a seccomp filter
refuses all that makes namespaces or mounts, as Docker's own filter does for who lacks CAP_SYS_ADMIN."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator

# https://github.com/moby/profiles: the capabilities of a container without --cap-add, and without --privileged
DOCKER = (
    "chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap", "net_bind_service", "net_raw",
    "sys_chroot", "mknod", "audit_write", "setfcap",
)  # fmt: skip

_EPERM, _ENOSYS = 1, 38
_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET
# System calls of x86-64: mount, umount2, pivot_root, unshare, setns, and those that mount since Linux 5.2.
_REFUSED = (165, 166, 155, 272, 308, 428, 429, 430, 431, 432, 433, 442)
_CLONE, _CLONE3 = 56, 435
_LOAD, _IF_EQUAL, _IF_ANY, _END = 0x20, 0x15, 0x45, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2


def _program() -> Iterator[bytes]:
    def one(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("HBBI", code, yes, no, value)

    yield one(_LOAD, 0)  # the number of the system call
    for number in _REFUSED:
        yield one(_IF_EQUAL, number, no=1)
        yield one(_END, _ERROR | _EPERM)
    yield one(_IF_EQUAL, _CLONE3, no=1)  # its flags are in memory, which a filter cannot read
    yield one(_END, _ERROR | _ENOSYS)
    yield one(_IF_EQUAL, _CLONE, no=3)
    yield one(_LOAD, 16)  # the low half of its first argument
    yield one(_IF_ANY, _NAMESPACES, no=1)
    yield one(_END, _ERROR | _EPERM)
    yield one(_END, _ALLOW)


def confine() -> None:
    """Let this process, and all that it starts, make no namespace and no mount."""
    code = b"".join(_program())
    buffer = ctypes.create_string_buffer(code)
    filters = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer)))
    libc = ctypes.CDLL(None, use_errno=True)
    for words in ((_NO_NEW_PRIVILEGES, 1, 0, 0, 0), (_SECCOMP, _FILTER, filters)):
        if libc.prctl(*words):
            raise OSError(ctypes.get_errno(), "prctl")


def words(user: int | None, command: list[str]) -> list[str]:
    """Return ``command`` with a container's capabilities in front of it."""
    if user is not None:
        rights = [f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
    else:
        rights = ["--inh-caps=-all", f"--bounding-set=-all,{','.join('+' + name for name in DOCKER)}"]
    return ["setpriv", *rights, "--", *command]


if __name__ == "__main__":
    given = sys.argv[1:]
    wanted = int(given[1]) if given[0] == "--user" else None
    confine()
    command = words(wanted, given[2:] if wanted is not None else given)
    os.execvp(command[0], command)
