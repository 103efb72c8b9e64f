"""Run programs natively on the host, and trace their reads and writes of one file (seccomp_unotify(2)).

The kernel stops a program only at calls that may read or write a file. It then asks this process whether the program
may go on. bob cannot trace some calls, such as an mmap(2) of the file. If a program makes one, bob does not use the
result of that run."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import platform
import resource
import select
import signal
import socket
import struct
from collections.abc import Sequence
from typing import NoReturn

from bob.agent.inside.devices import SECTOR
from bob.agent.inside.frames import Denial
from bob.agent.inside.mounts import libc

MACHINE = "x86_64"  # the only one whose numbers of calls are below
MOST_SECONDS = 60  # processor time of a program, at most
_READ, _WRITE, _PREAD, _PWRITE, _MMAP, _SENDFILE = 0, 1, 17, 18, 9, 40
_READS, _WRITES, _AT_AN_OFFSET = (_READ, _PREAD), (_WRITE, _PWRITE), (_PREAD, _PWRITE)
# For the file, refused: readv, writev, sendfile, ftruncate, splice, fallocate, preadv, pwritev, copy_file_range,
# preadv2, pwritev2
_NOT_OF_THE_FILE = (19, 20, _SENDFILE, 77, 275, 285, 295, 296, 326, 327, 328)
# clone, fork, vfork, io_setup, io_submit, io_uring_setup, clone3: refused
_REFUSED = (56, 57, 58, 206, 209, 425, 435)
_ASKED = (*_READS, _PWRITE, *_NOT_OF_THE_FILE, *_REFUSED)  # and write and mmap, by their arguments

_PR_SET_NO_NEW_PRIVS, _SECCOMP, _SET_MODE_FILTER, _NEW_LISTENER = 38, 317, 1, 8
_ALLOW, _ASK, _KILL = 0x7FFF0000, 0x7FC00000, 0x80000000  # SECCOMP_RET_ALLOW, _USER_NOTIF, _KILL_PROCESS
_ARCH = 0xC000003E  # AUDIT_ARCH_X86_64
_RECEIVE, _ANSWER = 0xC0502100, 0xC0182101  # SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_SEND
_QUESTION = struct.Struct("=QIIiIQ6Q")  # struct seccomp_notif: id, pid, flags, nr, arch, ip, args
_GO_ON = struct.Struct("=QqiI")  # struct seccomp_notif_resp: id, val, error, flags (SECCOMP_USER_NOTIF_FLAG_CONTINUE)
_MOST_WORDS = 65536

Touched = tuple[bool, int, int]  # whether it is a read; the first sector, and their number


def _filter() -> bytes:
    """Return the BPF program that decides which system calls stop a process. (The offsets in the BPF program are those
    of struct seccomp_data.)"""
    load, equal, above, end = 0x20, 0x15, 0x25, 0x06
    nr, arch, fd, fd_of_mmap = 0, 4, 16, 48
    count = len(_ASKED)
    lines = [
        (load, 0, 0, arch),
        (equal, 1, 0, _ARCH),
        (end, 0, 0, _KILL),
        (load, 0, 0, nr),
        (equal, count + 2, 0, _WRITE),
        (equal, count + 3, 0, _MMAP),
        *((equal, count - place + 4, 0, call) for place, call in enumerate(_ASKED)),
        (end, 0, 0, _ALLOW),
        (load, 0, 0, fd),  # a write to a standard descriptor goes on
        (above, 2, 3, 2),
        (load, 0, 0, fd_of_mmap),
        (equal, 1, 0, 0xFFFFFFFF),
        (end, 0, 0, _ASK),
        (end, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


class TracedProcess:
    """A runner of programs. It runs them one after the other on the file ``path`` of ``length`` bytes, and traces each.
    Raises Denial if this machine cannot trace programs."""

    def __init__(self, path: str, length: int) -> None:
        if platform.machine() != MACHINE:
            raise Denial(f"bob traces no program on {platform.machine()}")
        self._path, self._length = path, length
        self._question = bytearray(_QUESTION.size)
        self._spawner, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._spawner_pid = os.fork()
        if not self._spawner_pid:
            self._spawner.close()
            _spawn_for(theirs)
        theirs.close()
        _said, fds, _flags, _address = socket.recv_fds(self._spawner, 16, 1)
        if not fds:
            self._spawner.close()
            os.waitpid(self._spawner_pid, 0)
            raise Denial("the kernel does not tell bob about calls of a program (seccomp_unotify)")
        self._calls = fds[0]

    def close(self) -> None:
        self._spawner.close()
        os.close(self._calls)
        os.kill(self._spawner_pid, signal.SIGKILL)
        os.waitpid(self._spawner_pid, 0)

    def run(self, words: Sequence[str], environment: dict[str, str]) -> list[Touched]:
        """Run a program; return what it read and wrote of the file, in order. Raises Denial if it made a call that bob
        cannot trace, or if a signal ended it."""
        self._spawner.send(json.dumps([list(words), environment]).encode())
        touched: list[Touched] = []
        waiting = select.poll()
        waiting.register(self._calls, select.POLLIN)
        waiting.register(self._spawner, select.POLLIN)
        while True:
            if any(fd == self._calls for fd, _event in waiting.poll()):
                self._follow(touched)
            elif ended := self._spawner.recv(_MOST_WORDS):
                if ended.startswith(b"-"):
                    raise Denial(f"{words[0]} was ended by signal {ended[1:].decode()}")
                if not ended.isdigit():
                    raise Denial(f"{words[0]}: {ended.decode()}")
                return touched
            else:
                raise Denial(f"the process that starts {words[0]} is gone")

    def _follow(self, touched: list[Touched]) -> None:
        question = self._question
        question[:] = bytes(_QUESTION.size)
        fcntl.ioctl(self._calls, _RECEIVE, question)
        asked, pid, _flags, call, _arch, _ip, *arguments = _QUESTION.unpack(question)
        if pid != self._spawner_pid:
            self._note(pid, call, arguments, touched)
        fcntl.ioctl(self._calls, _ANSWER, _GO_ON.pack(asked, 0, 0, 1))

    def _note(self, pid: int, call: int, arguments: Sequence[int], touched: list[Touched]) -> None:
        if call in _REFUSED:
            raise Denial(f"it makes the call {call}, which bob does not follow")
        fd = arguments[4 if call == _MMAP else 0]
        if not self._is_ours(pid, fd) and not (call == _SENDFILE and self._is_ours(pid, arguments[1])):
            return
        if call not in _READS and call not in _WRITES:
            raise Denial(f"it uses the disk by the call {call}, which bob does not follow")
        start = arguments[3] if call in _AT_AN_OFFSET else _position(pid, fd)
        end = min(start + arguments[2], self._length)
        first, stop = start // SECTOR, -(-end // SECTOR)
        if first < stop:
            if call in _WRITES and (start % SECTOR or end % SECTOR):  # the rest of a sector stays as it was
                touched.append((True, first, stop - first))
            touched.append((call in _READS, first, stop - first))

    def _is_ours(self, pid: int, fd: int) -> bool:
        try:
            return os.readlink(f"/proc/{pid}/fd/{fd}") == self._path
        except FileNotFoundError:  # it has no such descriptor: the call fails
            return False
        except OSError as error:  # as of a program that this user may not read
            raise Denial(f"bob cannot see which file the program uses: {error.strerror}") from None


def _position(pid: int, fd: int) -> int:
    with open(f"/proc/{pid}/fdinfo/{fd}") as file:
        return int(file.readline().split()[1])  # "pos:" comes first (proc(5))


def _spawn_for(requests: socket.socket) -> NoReturn:
    """Start programs until ``requests`` closes. The kernel applies the filter to this process, too. Therefore, after
    the filter is set, this process reads and writes only by system calls that the filter never stops."""
    try:
        program = ctypes.create_string_buffer(_filter())
        about = struct.pack("=H6xQ", (len(program) - 1) // 8, ctypes.addressof(program))
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        libc.syscall.restype = ctypes.c_long
        nothing = os.open(os.devnull, os.O_RDWR)
        files = [(os.POSIX_SPAWN_DUP2, nothing, fd) for fd in range(3)]
        calls = libc.syscall(_SECCOMP, _SET_MODE_FILTER, _NEW_LISTENER, about)
        if calls < 0:
            requests.send(b"none")
            os._exit(1)
        socket.send_fds(requests, [b"calls"], [calls])
        os.close(calls)  # or else a program would wait for ever when the agent is gone
        while asked := requests.recv(_MOST_WORDS):
            words, environment = json.loads(asked)
            try:
                pid = os.posix_spawnp(words[0], words, environment, file_actions=files)
            except OSError as error:
                requests.send((error.strerror or "it cannot be started").encode())
                continue
            resource.prlimit(pid, resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            requests.send(str(code).encode())
    finally:
        os._exit(0)
