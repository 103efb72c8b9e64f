"""Machines that bob did not boot: what is an address, what is refused, who gets which agent, what is left there."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import paramiko
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.agent.inside import foreign_machine, ram_disk
from bob.agent.loss import GuestLost
from bob.errors import GuestError, UsageError
from bob.guest import given_machine as given_machines
from bob.guest import shell
from bob.guest.given_machine import GivenMachine, MachineAddress, is_machine, machine_image, place
from bob.guest.hypervisor import Hypervisor
from bob.guest.spec import GuestSpec
from bob.record.base import make_base
from bob.record.recorder import record
from bob.subject import configuration
from bob.trace.recording import Completion
from bob.workload.language import parse
from bob.workload.operations import Finish, Workload
from wording import text_with

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True)


@given(NAMES, st.none() | NAMES, st.none() | st.integers(1, 65535))
def test_an_address_is_read_and_said_as_it_was(host: str, user: str | None, port: int | None) -> None:
    address = "ssh://" + (f"{user}@" if user else "") + host + (f":{port}" if port else "")
    assert place(address) == MachineAddress(host, user, port)
    assert place(address).name == address and is_machine(address)
    words = place(address).command.split()
    assert words[0] == "ssh" and words[-1] == (f"{user}@{host}" if user else host)
    assert words[1:-1] == (["-p", str(port)] if port else [])


@pytest.mark.parametrize(
    "address",
    [
        "testbox",
        "ssh://",
        "ssh://:22",
        "ssh://me@",
        "ssh://me:secret@testbox",
        "ssh://testbox/path",
        "ssh://testbox:port",
        "ssh://testbox:99999",
        "ssh://testbox?x",
        "ssh://-oProxyCommand=x",
        "ssh://-x@testbox",
        "qemu:///system",
    ],
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(UsageError) as refused:
        place(address)
    assert text_with(str(refused.value), address).replace(address, "ADDRESS") == snapshot(
        "invalid machine address 'ADDRESS'"
    )


FIT: dict[str, Any] = {
    "kernel": "6.12.0",
    "build": "#1 SMP",
    "processor": "x86_64",
    "processors": 1,
    "memory_mib": 2000,
    "identity": "abc",
    "traces": True,
    "busy": [],
    "modules": ["loop", "dm_mod", "dm_log_writes", "ext4"],
    "programs": ["mkfs.ext4", "e2fsck.static", "e2fsck", "mkfs.xfs", "xfs_repair"],
    "packages": {"e2fsprogs": "1.47.2-1", "btrfs-progs": "6.2"},
}


def looked_at(monkeypatch: pytest.MonkeyPatch, **other: Any) -> Any:
    """The image of a machine that says this of itself."""

    class Agent:
        def ask(self, do: str, **_more: Any) -> tuple[dict[str, Any], bytes]:
            assert do == "machine"
            return {**FIT, **other}, b""

    @contextmanager
    def agent(_machine: GivenMachine) -> Iterator[Agent]:
        yield Agent()

    monkeypatch.setattr(GivenMachine, "agent", agent)
    return machine_image("ssh://root@testbox", lambda _: None)


def test_a_machine_is_named_by_its_address_and_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from bob.image import check_kernel, check_subject

    image = looked_at(monkeypatch)
    assert (image.name, image.kernel_release) == ("ssh://root@testbox", "6.12.0")
    assert image.tools == {"e2fsprogs": "1.47.2-1", "xfsprogs": "(unknown version)"}, "where mkfs is there"
    check_kernel(image)
    check_subject(image, ("ext4",), ("e2fsprogs",))
    with pytest.raises(UsageError) as refused:
        check_subject(image, ("xfs",), ("xfsprogs",))
    assert text_with(str(refused.value), "CONFIG_XFS_FS") == snapshot(
        "the kernel 6.12.0 of ssh://root@testbox lacks the module xfs (CONFIG_XFS_FS)"
    )
    with pytest.raises(UsageError) as refused:
        check_subject(looked_at(monkeypatch, modules=["btrfs"]), ("btrfs",), ("btrfs-progs",))
    assert text_with(str(refused.value), "btrfs-progs") == snapshot(
        "the image ssh://root@testbox lacks the package btrfs-progs"
    )
    with pytest.raises(UsageError) as refused:
        check_kernel(looked_at(monkeypatch, modules=["loop", "dm_mod"]))
    assert text_with(str(refused.value), "dm_log_writes", "CONFIG_DM_LOG_WRITES") == snapshot(
        "the kernel 6.12.0 of ssh://root@testbox lacks the module dm_log_writes (CONFIG_DM_LOG_WRITES)"
    )
    assert looked_at(monkeypatch, identity="another").key != image.key
    assert looked_at(monkeypatch, build="#2 SMP").key != image.key


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"processor": "aarch64"}, snapshot("ssh://root@testbox is aarch64, and bob supports only x86_64")),
        (
            {"processors": 4},
            snapshot("ssh://root@testbox has 4 processors; bob can record the exact order of requests on one only"),
        ),
        ({"traces": False}, snapshot("ssh://root@testbox lacks block tracepoints at /sys/kernel/tracing")),
        ({"memory_mib": 100}, snapshot("ssh://root@testbox has 100 MiB of free memory, and bob needs 512")),
        ({"busy": ["nbd0"]}, snapshot("bob needs nbd0 on ssh://root@testbox, where it is in use")),
    ],
)
def test_what_a_machine_lacks_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, other: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        looked_at(monkeypatch, **other)
    assert str(refused.value) == said
    assert "\n" not in str(refused.value) and refused.value.hint


class FakeStream:
    """An agent that says who it is, and notes how it was ended."""

    def __init__(self, ended: list[str], name: str, on_loss: Any) -> None:
        self.ended, self.name, self.on_loss = ended, name, on_loss
        self.lost = False
        self._reply = b""

    def write(self, data: bytes, timeout: float = 0) -> None:
        from bob.agent.inside.frames import encode

        if self.lost:
            raise self.on_loss(True, "the connection broke")
        self._reply += encode({"ok": True, "python": "3.11", "kernel": self.name}) if b"hello" in data else b""

    def read_exactly(self, length: int, timeout: float) -> bytes:
        part, self._reply = self._reply[:length], self._reply[length:]
        return part

    def end_input(self) -> None:
        self.ended.append(f"{self.name}: input")

    def code(self, end: float) -> int:
        assert end > time.monotonic()
        self.ended.append(f"{self.name}: left")
        return 0

    def close(self) -> None:
        self.ended.append(f"{self.name}: closed")


class FakeShell:
    """A connection to a machine, where bob is root."""

    made: ClassVar[list[FakeShell]] = []
    ended: ClassVar[list[str]] = []
    words = b"0\n/usr/bin/python3\n"

    def __init__(self, _log_in: Any, *, deadline: float, on_loss: Any) -> None:
        self.on_loss, self.deadline = on_loss, deadline
        self.commands: list[str] = []
        FakeShell.made.append(self)

    def run(self, command: str, timeout: float) -> Any:
        return type("Done", (), {"stdout": self.words})

    def open_channel(self, command: str, called: str) -> FakeStream:
        self.commands.append(command)
        self.stream = FakeStream(FakeShell.ended, f"agent {len(FakeShell.made)}", self.on_loss)
        return self.stream

    def close(self) -> None:
        FakeShell.ended.append("logged out")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[GivenMachine]:
    monkeypatch.setattr(given_machines, "Shell", FakeShell)
    monkeypatch.setattr(FakeShell, "made", [])
    monkeypatch.setattr(FakeShell, "ended", [])
    with GivenMachine.open(MachineAddress("testbox", "root", None)) as opened:
        yield opened


def test_all_get_the_one_agent_which_leaves_when_the_last_has_done(machine: GivenMachine) -> None:
    with machine.agent() as first:
        with machine.agent() as second:
            assert first is second and first.real_time
        assert FakeShell.ended == []
    assert FakeShell.ended == ["agent 1: input", "agent 1: left", "agent 1: closed"]
    assert len(FakeShell.made) == 1, "the connection stays"


def test_a_lost_connection_is_a_lost_guest_and_the_next_agent_another(machine: GivenMachine) -> None:
    with ExitStack() as still_there:
        before = still_there.enter_context(machine.agent())
        FakeShell.made[0].stream.lost = True
        with pytest.raises(GuestLost) as refused:
            before.ask("hello", timeout=1)
        assert str(refused.value) == snapshot("the guest disconnected: the connection broke")
        with machine.agent() as after:
            assert after is not before and after.about["kernel"] == "agent 2"
            with pytest.raises(GuestLost):  # to have lost the first again is no loss of the second
                before.ask("hello", timeout=1)
            assert after.ask("hello", timeout=1)[0]["kernel"] == "agent 2"
            with machine.agent() as another:
                assert another is after
        assert FakeShell.ended.count("logged out") == 1
    assert [shell.deadline for shell in FakeShell.made] == [20.0, 180.0], "it may be booting"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (b"0\n", snapshot("ssh://root@testbox lacks python3")),
        (
            b"1000\n/usr/bin/python3\n",
            snapshot("ssh://root@testbox: bob must be root there, and sudo asks for a password"),
        ),
    ],
)
def test_where_no_agent_can_be_started(
    machine: GivenMachine, monkeypatch: pytest.MonkeyPatch, words: bytes, said: str
) -> None:
    monkeypatch.setattr(FakeShell, "words", words)
    with pytest.raises(UsageError) as refused, machine.agent():
        pass
    assert str(refused.value) == said


def test_a_user_with_sudo_is_root(machine: GivenMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeShell, "words", b"1000\n/usr/bin/python3\nsudo\n")
    with machine.agent():
        assert FakeShell.made[0].commands[0].startswith("exec sudo -n python3 -S -c ")


def test_the_agent_comes_by_standard_input(tmp_path: Path) -> None:
    """And what stands behind it there is its requests, to the byte."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for package in ("bob", "bob/agent", "bob/agent/inside"):
            archive.writestr(f"{package}/__init__.py", "")
        archive.writestr(
            "bob/agent/inside/foreign_machine.py",
            "import json, os, sys\n"
            "def visit(): print(json.dumps([sys.stdin.buffer.read().decode(), os.listdir('.'), sys.argv]))\n",
        )
    sent = packed.getvalue()
    done = subprocess.run(
        [sys.executable, "-S", "-c", foreign_machine.BOOT, str(len(sent))],
        input=sent + b"requests",
        capture_output=True,
        cwd=tmp_path,
        check=True,
    )
    assert json.loads(done.stdout) == ["requests", [], ["-c"]]


def test_memory_that_is_set_aside_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ram_disk, "_region", lambda: (2**32, 2**30))
    monkeypatch.setattr(ram_disk, "_forbidden", False)
    assert ram_disk.address_of(2**20) == 2**32
    ram_disk.forbid()
    assert ram_disk.address_of(2**20) is None


def test_the_wall_clock_is_put_right_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    offset = 1000.0
    clock = {"offset": offset}
    monkeypatch.setattr(time, "clock_settime", lambda _which, at: clock.update(offset=at - time.monotonic()))

    def record(blob: bytes) -> Any:
        clock["offset"] = -5.0
        raise foreign_machine.Gone

    handler = foreign_machine.keeping_time(record, wall=lambda: time.monotonic() + clock["offset"])
    with pytest.raises(foreign_machine.Gone):
        handler(blob=b"")
    assert clock["offset"] == pytest.approx(offset, abs=0.1)


class Server(paramiko.ServerInterface):
    """Lets one key of one user in."""

    def __init__(self, key: paramiko.PKey) -> None:
        self.key = key

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        is_known = username == "me" and key == self.key
        return paramiko.common.AUTH_SUCCESSFUL if is_known else paramiko.common.AUTH_FAILED

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"


@dataclass
class Served:
    """An SSH server on loopback, and a home of somebody's with a key that it lets in."""

    home: Path
    port: int
    host_key: paramiko.PKey

    def known(self, key: paramiko.PKey | None = None) -> None:
        """Have the home know the server by ``key``, its own unless it is another."""
        key = key or self.host_key
        (self.home / ".ssh/known_hosts").write_text(f"[127.0.0.1]:{self.port} {key.get_name()} {key.get_base64()}\n")

    def log_in(self, user: str | None = "me") -> None:
        given_machines._log_in(MachineAddress("127.0.0.1", user, self.port), time.monotonic() + 20).close()


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    mine, host_key = paramiko.ECDSAKey.generate(), paramiko.ECDSAKey.generate()
    (tmp_path / ".ssh").mkdir()
    mine.write_private_key_file(str(tmp_path / ".ssh/id_ecdsa"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    transports = []

    def serve(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                transport = paramiko.Transport(listener.accept()[0])
                transport.add_server_key(host_key)
                transports.append(transport)
                with suppress(paramiko.SSHException, EOFError):
                    transport.start_server(server=Server(mine))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield Served(tmp_path, listener.getsockname()[1], host_key)
        listener.shutdown(socket.SHUT_RDWR)
    for transport in transports:
        transport.close()


def test_a_known_machine_lets_in_who_has_the_key(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.known()
    served.log_in()
    (served.home / ".ssh/config").write_text("Host 127.0.0.1\n  User me\n")
    served.log_in(user=None)
    monkeypatch.setenv("USER", "somebody")
    (served.home / ".ssh/config").unlink()
    with pytest.raises(GuestError) as refused:
        served.log_in(user=None)
    assert text_with(str(refused.value), "somebody").replace(str(served.port), "PORT") == snapshot(
        "ssh://127.0.0.1:PORT refuses somebody: Authentication failed."
    )


def test_a_machine_that_nobody_knows_is_refused(served: Served) -> None:
    with pytest.raises(GuestError, match=r"known_hosts .* ssh://me@127\.0\.0\.1") as refused:
        served.log_in()
    assert str(refused.value).replace(str(served.port), "PORT") == snapshot(
        "~/.ssh/known_hosts does not know ssh://me@127.0.0.1:PORT"
    )
    hint = text_with(refused.value.hint, f"ssh -p {served.port} me@127.0.0.1")
    assert hint.replace(str(served.port), "PORT") == snapshot("log in once by hand: ssh -p PORT me@127.0.0.1")
    served.known(paramiko.ECDSAKey.generate())
    with pytest.raises(GuestError) as another:
        served.log_in()
    assert text_with(str(another.value), "ssh://me@127.0.0.1", "known_hosts").replace(
        str(served.port), "PORT"
    ) == snapshot("ssh://me@127.0.0.1:PORT has another host key than in ~/.ssh/known_hosts")


def test_who_has_no_key_or_another_is_refused(served: Served) -> None:
    served.known()
    key = served.home / ".ssh/id_ecdsa"
    key.unlink()
    with pytest.raises(GuestError) as refused:
        served.log_in()
    assert text_with(str(refused.value), "ssh://me@127.0.0.1").replace(str(served.port), "PORT") == snapshot(
        "bob lacks a key to log in to ssh://me@127.0.0.1:PORT"
    )
    assert refused.value.hint == f"ssh-copy-id -p {served.port} me@127.0.0.1"
    paramiko.ECDSAKey.generate().write_private_key_file(str(key))
    with pytest.raises(GuestError) as another:
        served.log_in()
    assert text_with(str(another.value), "ssh://me@127.0.0.1").replace(str(served.port), "PORT") == snapshot(
        "ssh://me@127.0.0.1:PORT refuses me: Authentication failed."
    )


def test_a_machine_behind_another_is_refused(served: Served) -> None:
    (served.home / ".ssh/config").write_text("Host 127.0.0.1\n  ProxyJump other\n")
    with pytest.raises(GuestError) as refused:
        served.log_in()
    assert str(refused.value) == snapshot(
        "~/.ssh/config reaches 127.0.0.1 through another machine, and bob cannot do that"
    )


LOOK = (
    "cat /proc/mounts; losetup -a; dmsetup ls; ls -A /tmp; ls /sys/kernel/tracing/instances; "
    "cat /sys/kernel/tracing/kprobe_events /proc/sys/kernel/printk; ls /sys/block/nbd*/pid; pgrep -l python; date +%F"
)


@pytest.mark.vm
def test_nothing_is_left_on_a_machine_whose_connection_broke_amid_a_recording(
    hypervisor: Hypervisor, spec: GuestSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guest of bob's own serves as the machine."""
    made = configuration("ext4", mount_options="data=ordered")
    asked = Workload("test", parse("create /a"), parse("write /a 0 4096"), Finish("natural", natural=True))
    with hypervisor.guest(spec) as guest, ExitStack() as stack:

        def looks_like() -> str:
            done = guest.shell.run(LOOK, 60)
            return (done.stdout + done.stderr).decode()

        monkeypatch.setattr(given_machines, "_log_in", lambda _where, end: shell._log_in(guest.address, end))
        before = looks_like()
        image = machine_image("ssh://root@guest", print)
        assert image.kernel_release == spec.image.kernel_release
        assert image.tools["e2fsprogs"] == spec.image.tools["e2fsprogs"]
        assert looks_like() == before
        machine = stack.enter_context(GivenMachine.open(place(image.name)))
        agent = stack.enter_context(machine.agent())
        base = make_base(agent, made, asked.setup)
        with ThreadPoolExecutor(1) as other:
            recording = other.submit(record, agent, made, base, asked, completion=Completion.YOUNGEST_FIRST)
            wait_until(lambda: "bob-recorded-0" in looks_like())
            amid = looks_like()
            assert "/tmp/bob" in amid and "bob-record" in amid and "nbd0/pid" in amid and "2023-11-14" in amid
            assert machine._shell is not None
            machine._shell._transport.sock.close()
            with pytest.raises(GuestLost, match="disconnected"):
                recording.result(timeout=120)
        wait_until(lambda: looks_like() == before)


def wait_until(so: Callable[[], bool]) -> None:
    end = time.monotonic() + 90
    while not so():
        assert time.monotonic() < end
        time.sleep(0.2)
