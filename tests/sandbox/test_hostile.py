"""Checkers that mean harm, in real sandboxes: nothing gets out, and one line says what they did. As root, and as a user
without any rights."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bob.agent.client import Agent
from bob.agent.loss import SandboxLost
from bob.observe.observation import Node
from bob.observe.tree_builder import TreeBuilder
from bob.program.answer import CheckerAnswer, CheckerRun
from bob.program.program import Program, ProgramFile
from bob.record.recorder import put_program
from bob.sandbox import bubblewrap
from bob.sandbox.agents import SandboxedAgent, SandboxStream, end_sandboxes, packed_agent, sandbox, why_none

from .small_root import make_small_root

USERS = (0, 65534) if os.geteuid() == 0 else (os.geteuid(),)
TREE = {
    "/d": Node("directory", mode=0o750),
    "/d/a": Node("file", inode=3, mode=0o640, content=b"hello" + bytes(4096), size=9000),
    "/b": Node("file", inode=3, mode=0o640, content=b"hello" + bytes(4096), size=9000),
    "/s": Node("symlink", target="d/a"),
}
LONG = 240.0  # seconds for what takes a machine that has other work a while
HEAD = "#!/usr/bin/python3\nimport ctypes, errno, os, signal, socket, sys, time\n"


@dataclass
class Place:
    """A root for the sandboxes of ``user``, and what they run as."""

    user: int
    root: Path

    def asked(self, *checkers: str, seconds: float = 60.0, times: int = 1) -> list[Any]:
        """What each checker answers, one after the other in one sandbox: ``[code, output]``, or how that was lost."""
        packed_agent()  # another user may not read its files

        def ask() -> list[Any]:
            found: list[Any] = []
            try:
                with sandbox(self.root) as agent:
                    for checker in checkers:
                        answers = check(agent, checker, seconds, times)
                        found += [[answer.code, answer.printed] for answer in answers]
            except SandboxLost as lost:
                found.append(lost.message)
            return found

        found: list[Any] = as_user(self.user, ask)
        return found


def check(agent: Agent, checker: str, seconds: float = 20.0, times: int = 1) -> list[CheckerAnswer]:
    text = checker if checker.startswith("#!") else HEAD + checker
    put_program(agent, Program("hostile", "", (ProgramFile("check", text.encode(), True),)))
    return TreeBuilder(agent, Node("directory", mode=0o755)).check([CheckerRun(TREE, b"told")] * times, seconds)


def as_user(user: int, do: Callable[[], Any]) -> Any:
    """What ``do`` returns in a process of ``user``; plain JSON."""
    if user == os.geteuid():
        return do()
    read_end, write_end = os.pipe()
    if not (child := os.fork()):
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            os.chdir("/")
            said = json.dumps(["ok", do()])
        except BaseException as error:
            said = json.dumps(["failed", f"{type(error).__name__}: {error}"])
        os.write(write_end, said.encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as told:
        how, result = json.load(told)
    os.waitpid(child, 0)
    assert how == "ok", result
    return result


@contextmanager
def place_of(user: int) -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="bob-root-", dir="/var/tmp") as folder:  # one that all may enter
        Path(folder).chmod(0o755)
        root = Path(folder) / "root"
        make_small_root(root, user or bubblewrap.owner())
        (root / root.parent.name).touch()  # no other sandbox has it
        yield Place(user, root)


@pytest.fixture(scope="module", params=USERS, ids=lambda user: "root" if user == 0 else "user")
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with place_of(request.param) as made:
        before = stamps(made.root)
        yield made
        assert stamps(made.root) == before, "a checker has changed the root that all sandboxes share"


def stamps(root: Path) -> dict[str, tuple[int, int, int]]:
    found = {str(path): path.lstat() for path in (root, *root.rglob("*"))}
    return {path: (one.st_mode, one.st_size, one.st_mtime_ns) for path, one in found.items()}


def test_bubblewrap_is_here() -> None:
    """These tests are never skipped: bob's own script installs it."""
    assert bubblewrap.is_installed(), "apt-get install bubblewrap"
    assert bubblewrap.why_not() is None


def test_a_checker_sees_the_tree_and_what_was_told(place: Place) -> None:
    looks = """
def row(path):
    one = os.lstat(path)
    return path[len(sys.argv[1]):], oct(one.st_mode), one.st_nlink, one.st_size, one.st_uid, one.st_gid
names = [os.path.join(folder, name) for folder, *below in os.walk(sys.argv[1]) for name in sum(below, [])]
blocks = os.stat(sys.argv[1] + "/b").st_blocks
print(sorted(map(row, names)), os.readlink(sys.argv[1] + "/s"), blocks < 32, open(sys.argv[1] + "/b").read(6), open(sys.argv[2]).read())
print(os.getcwd(), os.getuid(), socket.gethostname(), sorted(os.environ), len(os.listdir("/proc/self/fd")))
sys.exit(7)
"""
    [[code, printed]] = place.asked(looks)
    assert code == 7
    first, second = printed.splitlines()
    rows = "[('/b', '0o100640', 2, 9000, 0, 0), ('/d', '0o40750', 2, 60, 0, 0), ('/d/a', '0o100640', 2, 9000, 0, 0)"
    assert first.startswith(rows)
    assert first.endswith("d/a True hello\x00 told")
    assert second.startswith("/ 0 bob ['HOME', 'LC_ALL', 'LOGNAME', 'OLDPWD', 'PATH', 'PWD', 'SHELL', 'USER']")


def test_a_fork_bomb_is_ended_and_leaves_nothing(place: Place) -> None:
    """The kernel's own bound is what keeps the host; the agent's is the one that is told."""
    stays = "while True:\n    try: os.fork()\n    except OSError: time.sleep(1)"
    assert place.asked(stays, seconds=LONG) == ["check started more than 500 processes and threads"]
    assert left_in(place) == 0
    for gives_up in ("while True: os.fork()", "#!/bin/sh\nf() { f | f & }; f; wait\n"):  # maybe before the agent looks
        assert len(place.asked(gives_up, seconds=LONG)) == 1
        assert left_in(place) == 0


def left_in(place: Place) -> int:
    """How many processes are left in sandboxes over the root of ``place``, some seconds after the last one."""
    end = time.monotonic() + 10
    while (found := sum(is_in(path, place.root) for path in Path("/proc").glob("[0-9]*"))) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def is_in(process: Path, root: Path) -> bool:
    with suppress(OSError):
        return (process / "root" / root.parent.name).exists()
    return False


def test_what_fills_the_disk_finds_it_full(place: Place) -> None:
    fills = """
total = 0
for place in ("/tmp/x", "/dev/shm/x", "/run/x", "/root/x", "/var/tmp/x", "/dev/x", "/sys/x"):
    try:
        with open(place, "wb") as file:
            while True:
                total += file.write(bytes(2**20))
    except OSError as error:
        print(place, errno.errorcode[error.errno])
tree = os.statvfs(sys.argv[1])
print(total <= 2 * 2**30, tree.f_blocks * tree.f_frsize == 2 * 2**30)
"""
    [[code, printed], after] = place.asked(fills, "print(sum(map(len, map(os.listdir, ('/tmp', '/dev/shm')))))")
    *places, sizes = printed.splitlines()
    assert code == 0 and sizes == "True True"
    assert {line.split()[1] for line in places} <= {"ENOSPC", "EROFS"} and len(places) == 7
    assert after == [0, "1\n"], "bob's own folder"


def test_it_cannot_write_outside_or_leave_its_root(place: Place) -> None:
    """Neither in the root that all sandboxes share, nor by a mount, a namespace, another process or a device."""
    leaves = """
libc = ctypes.CDLL(None, use_errno=True)
done = []
def tried(name, call):
    try:
        result = call()
    except (OSError, ValueError):
        return
    if result != -1:
        done.append(name)
def write(path):
    with open(path, "w") as file:
        file.write("x")
MS_BIND, MS_REMOUNT = 4096, 32
tried("mount", lambda: libc.mount(b"none", b"/root", b"tmpfs", 0, None))
tried("proc", lambda: libc.mount(b"none", b"/root", b"proc", 0, None))
tried("umount", lambda: libc.umount2(b"/proc", 2))
for flag in (0x20000, 0x10000000, 0x10020000, 0x40000000, 0x20000000):
    tried("unshare %x" % flag, lambda: libc.unshare(flag))
for number in range(1, 10):
    tried("setns", lambda: libc.setns(os.open("/proc/%d/ns/mnt" % number, os.O_RDONLY), 0))
tried("ptrace", lambda: libc.ptrace(16, 1, 0, 0))
tried("memory", lambda: open("/proc/1/mem", "r+b"))
for number in range(9):
    tried("file", lambda: open("/proc/1/fd/%d" % number, "r+b"))
tried("device", lambda: os.mknod("/root/d", 0o60600, os.makedev(8, 0)))
tried("pattern", lambda: write("/proc/sys/kernel/core_pattern"))
tried("namespaces", lambda: write("/proc/sys/user/max_user_namespaces"))
tried("sysrq", lambda: write("/proc/sysrq-trigger"))
tried("module", lambda: libc.syscall(175, 0, 0, b""))
tried("limit", lambda: __import__("resource").setrlimit(__import__("resource").RLIMIT_NPROC, (9999, 9999)))
tried("user", lambda: os.setuid(12))
write("/usr/bin/of-mine")
write("/etc/secret")
os.mkdir("/root/jail")
root = os.open("/", os.O_RDONLY)
os.chroot("/root/jail")
os.fchdir(root)
for _ in range(50):
    os.chdir("..")
os.chroot(".")
for path in ("/usr/bin/y", "/etc/secret", "/run/bob-world/lower/etc/secret", "/dev/y", "/proc/sys/kernel/hostname"):
    tried(path, lambda: write(path))
    tried("remount " + path, lambda: libc.mount(None, b"/", None, MS_REMOUNT | MS_BIND, None))
print(done, sorted(os.listdir("/")))
"""
    [[code, printed]] = place.asked(leaves)
    assert (code, printed.partition("]")[0]) == (0, "["), printed
    assert "home" not in printed
    assert (place.root / "etc/secret").read_text() == "of the root"


def test_it_sees_nothing_of_the_host(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "of the host")
    with tempfile.NamedTemporaryFile(dir="/var/tmp") as file:
        Path(file.name).chmod(0o644)
        looks = f"""
print(os.path.exists({file.name!r}), "SECRET" in os.environ, sorted(map(int, filter(str.isdigit, os.listdir("/proc")))))
"""
        [[code, printed]] = place.asked(looks)
    seen, environment, *pids = printed.replace("[", "").replace("]", "").replace(",", "").split()
    assert (code, seen, environment) == (0, "False", "False")
    assert max(map(int, pids)) < 100 and len(pids) <= 6


def test_it_does_not_reach_the_network(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        name = f"bob-{os.getpid()}"
        abstract.bind(f"\0{name}")
        abstract.listen()
        reaches = f"""
def tried(family, address):
    with socket.socket(family) as one:
        one.settimeout(2)
        try:
            one.connect(address)
        except OSError as error:
            print(errno.errorcode[error.errno])
tried(socket.AF_INET, ("127.0.0.1", {server.getsockname()[1]}))
tried(socket.AF_INET, ("192.0.2.1", 80))
tried(socket.AF_UNIX, "\\0{name}")
print([name for _number, name in socket.if_nameindex()])
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname())
"""
        assert place.asked(reaches) == [[0, "ECONNREFUSED\nENETUNREACH\nECONNREFUSED\n['lo']\n"]]


def test_it_does_not_reach_past_the_namespaces(place: Place) -> None:
    """The hypervisor of this machine, the keys of bob's session, sockets by io_uring and by calls of 32 bits."""
    reaches = """
libc = ctypes.CDLL(None, use_errno=True)
for number, *words in ((41, 40, 1, 0), (41, 38, 5, 0), (250, 1, 0), (248, 0, 0, 0, 0, -3), (249, 0, 0, 0, 0), (425, 1, 0), (0x40000000 + 39,)):
    libc.syscall(number, *map(ctypes.c_long, words))
    print(errno.errorcode[ctypes.get_errno()])
socket.socket(socket.AF_INET6).close()
socket.socketpair()
"""
    assert place.asked(reaches) == [[0, "EAFNOSUPPORT\nEAFNOSUPPORT\nEPERM\nEPERM\nEPERM\nENOSYS\nENOSYS\n"]]


def test_it_has_nothing_of_the_shell_of_the_user(place: Place) -> None:
    looks = """
import resource
ignored = next(line for line in open("/proc/self/status") if line.startswith("SigIgn")).split()[1]
print(oct(os.umask(0)), int(ignored, 16) & 1, *(resource.getrlimit(one)[0] for one in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE)))
"""
    packed_agent()

    def ask() -> Any:
        limits = {one: resource.getrlimit(one) for one in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE)}
        mask, ignored = os.umask(0o077), signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            for one, (_soft, most) in limits.items():
                resource.setrlimit(one, (2**9 if one == resource.RLIMIT_NOFILE else 2**30, most))
            with sandbox(place.root) as agent:
                return check(agent, looks)[0].printed.split()
        finally:
            os.umask(mask)
            signal.signal(signal.SIGHUP, ignored)
            for one, both in limits.items():
                resource.setrlimit(one, both)

    assert as_user(place.user, ask) == ["0o22", "0", "1024", "-1"]


def test_a_tree_with_an_attribute_is_not_built_without_it(place: Place) -> None:
    packed_agent()

    def ask() -> Any:
        tree = {"/a": Node("file", inode=2, mode=0o644, xattrs={"trusted.bob": b"x"})}
        try:
            with sandbox(place.root) as agent:
                put_program(agent, Program("mine", "", (ProgramFile("check", HEAD.encode(), True),)))
                return TreeBuilder(agent, Node("directory")).check([CheckerRun(tree, b"")], 9.0)[0].printed
        except SandboxLost as lost:
            return lost.message

    said = "/a has the extended attribute trusted.bob, which a sandbox shows otherwise than a guest"
    assert as_user(place.user, ask) == said


def test_an_interrupt_ends_a_sandbox_at_once(place: Place) -> None:
    """The second Ctrl-C, and an error in a call of bob, end all guests and sandboxes."""
    packed_agent()

    def ask() -> Any:
        interrupt = threading.Timer(2.0, end_sandboxes)
        interrupt.start()
        began = time.monotonic()
        try:
            with sandbox(place.root) as agent:
                check(agent, "time.sleep(60)", 60.0)
        except SandboxLost:
            return time.monotonic() - began
        return "not ended"

    assert as_user(place.user, ask) < 50


def test_what_never_ends_is_ended_with_all_that_it_started(place: Place) -> None:
    endless = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if not os.fork():
    os.setsid()
    os.fork()
while True: time.sleep(1)
"""
    counts = """
ignore = [line.split()[1] for one in os.listdir("/proc") if one.isdigit() for line in open(f"/proc/{one}/status")
          if line.startswith("SigIgn")]
print(sum(int(one, 16) >> 14 & 1 for one in ignore))
"""
    assert place.asked(endless, counts, seconds=3.0) == [[None, ""], [0, "0\n"]]
    assert place.asked("#!/bin/sh\nwhile :; do :; done\n", seconds=1.0) == [[None, ""]]
    waits = "if not ctypes.CDLL(None).vfork():\n    while True: time.sleep(1)"
    assert place.asked(waits, seconds=1.0) == [[None, ""]], "nor does it look as if it waited for a disk"


def test_a_gigabyte_of_output_is_not_kept(place: Place) -> None:
    prints = "for _ in range(1024): os.write(1, b'x' * (2**20 - 1) + b'\\n')\nprint('the end')\nsys.exit(11)"
    [[code, printed]] = place.asked(prints, seconds=LONG)
    assert code == 11 and len(printed) <= 2**16 and printed.endswith("\nthe end\n")


def test_it_cannot_take_the_memory_of_the_host(place: Place) -> None:
    takes = "held = [bytearray(b'x') * 2**20 for _ in range(64 * 1024)]"
    assert place.asked(takes, seconds=LONG) == ["check took more than 2 GiB of memory"]
    several = "for _ in range(4):\n    if not os.fork():\n        break\nheld = [bytearray(b'x') * 2**20 for _ in range(600)]\ntime.sleep(200)"
    assert place.asked(several, seconds=LONG) == ["check took more than 2 GiB of memory"]


def test_memory_that_forks_share_counts_once(place: Place) -> None:
    shares = "held = b'x' * (2**20 * 400)\nforks = [os.fork() for _ in range(3)]\ntime.sleep(0.5)\nif all(forks): print('well')"
    assert place.asked(shares, seconds=LONG) == [[0, "well\n"]]


def test_it_can_neither_end_nor_stop_the_agent_nor_answer_for_it(place: Place) -> None:
    ends = """
os.kill(-1, signal.SIGKILL)
for number in set(signal.Signals) - {signal.SIGKILL}:
    os.kill(1, number)
os.kill(1, signal.SIGKILL)
for number in range(9):
    try:
        with open(f"/proc/1/fd/{number}", "wb", buffering=0) as file:
            file.write(b"\\xff" * 64)
    except OSError:
        pass
print("done")
"""
    found = place.asked(ends, "print('next')")
    # A Python that forks for checkers is one of its victims, maybe before it has told that there is this one.
    gone = "the agent failed at check_built: RuntimeError: the Python that forks for the checker has ended"
    assert found in ([[0, "done\n"], [0, "next\n"]], [gone])


def test_an_answer_that_is_none_and_an_agent_that_is_gone_are_told_in_one_line() -> None:
    """As if something had taken the place of the agent."""
    for words, said in (
        (["sh", "-c", r"printf '\377\377\377\377\377\377\377\377'; cat"], "its agent answers with what is no answer"),
        (["sh", "-c", "echo no >&2; echo nothing here >&2"], "it ended: nothing here"),
        (["true"], "it ended without a word"),
    ):
        with tempfile.TemporaryFile() as errors:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
            stream = SandboxStream(subprocess.Popen(words, bufsize=0, **pipes), errors)
            with pytest.raises(SandboxLost) as lost:
                SandboxedAgent(stream)
            stream.close()
        assert lost.value.message == said


def test_where_no_process_can_be_started_there_is_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    def popen(*_: Any, **_more: Any) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    packed_agent()
    monkeypatch.setattr(subprocess, "Popen", popen)
    assert why_none(Path("/")) == "no process could be started: Resource temporarily unavailable"


def test_several_at_once_have_trees_of_their_own(place: Place) -> None:
    """Each in a sandbox over the same root, and from threads of one process."""
    packed_agent()

    def ask() -> list[list[Any]]:
        found: dict[int, list[Any]] = {}

        def one(number: int) -> None:
            writes = f"open(sys.argv[1] + '/mine', 'x').write('{number}'); open('/etc/mine', 'a').write('{number}')\n"
            writes += "time.sleep(0.2); print(open(sys.argv[1] + '/mine').read(), open('/etc/mine').read())"
            with sandbox(place.root) as agent:
                found[number] = [answer.printed.strip() for answer in check(agent, writes, times=3)]

        threads = [threading.Thread(target=one, args=[number]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [found.get(number, []) for number in range(4)]

    expected = [[f"{n} {str(n) * times}" for times in (1, 2, 3)] for n in range(4)]
    assert as_user(place.user, ask) == expected
