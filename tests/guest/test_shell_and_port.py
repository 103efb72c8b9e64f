"""SSH into a guest, and its port: what is sent arrives whole, what an earlier agent left does not count, and a loss is
seen."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import paramiko
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.agent.client import Agent
from bob.agent.loss import GuestLost, LossCause
from bob.errors import GuestError
from bob.guest.hypervisor import Hypervisor
from bob.guest.machine import Guest
from bob.guest.port import PortStream
from bob.guest.shell import CommandStream, Shell, ShellAddress
from bob.guest.spec import GuestSpec
from bob.record.encode import encode_subject
from bob.run.agents import agent_stream
from bob.subject import configuration
from wording import text_with

from .connections import ConnectionLost, connection_lost

WORD = b"abab-word"


@dataclass
class Program:
    """What was started by SSH."""

    ended: bool = False
    closed: bool = False

    def check(self) -> None:
        if self.ended:
            raise ConnectionLost("the program ended: out of luck")

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def program() -> Program:
    return Program()


@pytest.fixture
def ends(program: Program) -> Iterator[tuple[PortStream, socket.socket]]:
    """The host's end, and what the guest's end comes to."""
    ours, theirs = socket.socketpair()
    with theirs, closing(PortStream(ours, cast(CommandStream, program), connection_lost)) as stream:
        yield stream, theirs
    assert program.closed


def send(parts: list[bytes]) -> PortStream:
    """A stream of which the other end has sent these parts, and closed."""
    ours, theirs = socket.socketpair()
    with theirs:
        for part in parts:
            theirs.sendall(part)
    return PortStream(ours, cast(CommandStream, Program()), connection_lost)


@given(parts=st.lists(st.binary(max_size=50), max_size=8), lengths=st.lists(st.integers(0, 40)))
def test_what_is_sent_arrives_whole_and_in_order(parts: list[bytes], lengths: list[int]) -> None:
    sent = b"".join(parts)
    with closing(send(parts)) as stream:
        for length in lengths:
            if length <= len(sent):
                assert stream.read_exactly(length, 5) == sent[:length]
                sent = sent[length:]
            else:
                with pytest.raises(ConnectionLost) as refused:
                    stream.read_exactly(length, 5)
                assert str(refused.value) == snapshot("the connection to its port ended")
                return


@given(st.lists(st.sampled_from([b"a", b"ab", b"abab-", b"abab-wor", b"-word", b"\0" * 300]), max_size=20))
def test_what_an_earlier_program_said_is_passed_over(before: list[bytes]) -> None:
    ours, theirs = socket.socketpair()
    with theirs, closing(PortStream(ours, cast(CommandStream, Program()), connection_lost)) as stream:
        for part in [*before, WORD]:
            theirs.sendall(part)
        stream.skip_to(WORD, 5)
        theirs.sendall(b"after")
        assert stream.read_exactly(5, 5) == b"after"


def test_much_is_sent_while_nobody_reads_yet(ends: tuple[PortStream, socket.socket]) -> None:
    stream, theirs = ends
    much = os.urandom(4 * 1024 * 1024)
    writer = threading.Thread(target=lambda: stream.write(much))
    writer.start()
    time.sleep(0.4)  # by then the socket has taken what it can hold
    received = bytearray()
    while len(received) < len(much):
        received += theirs.recv(2**16)
    writer.join()
    assert received == much


def test_who_says_nothing_and_who_takes_nothing_is_lost(ends: tuple[PortStream, socket.socket]) -> None:
    stream, theirs = ends
    theirs.sendall(b"12")
    with pytest.raises(ConnectionLost) as refused:
        stream.read_exactly(3, 1)
    assert text_with(str(refused.value), 1) == snapshot("the program at its port sent too little within 1 s")
    with pytest.raises(ConnectionLost) as refused:
        stream.write(bytes(4 * 1024 * 1024), 1)
    assert text_with(str(refused.value), 1) == snapshot("the program at its port read nothing for 1 s")


def test_the_end_of_the_program_is_noticed(ends: tuple[PortStream, socket.socket], program: Program) -> None:
    """A port stays open when nobody has it open in the guest."""
    stream, _theirs = ends
    program.ended = True
    with pytest.raises(ConnectionLost) as refused:
        stream.read_exactly(1, 600)
    assert str(refused.value) == snapshot("the program ended: out of luck")
    with pytest.raises(ConnectionLost) as refused:
        stream.write(bytes(4 * 1024 * 1024))
    assert str(refused.value) == snapshot("the program ended: out of luck")


def test_the_end_of_the_connection_is_noticed(ends: tuple[PortStream, socket.socket]) -> None:
    stream, theirs = ends
    theirs.close()
    with pytest.raises(ConnectionLost) as refused:
        stream.read_exactly(1, 600)
    assert str(refused.value) == snapshot("the connection to its port ended")
    with pytest.raises(ConnectionLost) as refused:
        stream.write(b"x")
    assert str(refused.value) == snapshot("the connection to its port ended")


@pytest.mark.vm
def test_agents_of_a_guest_one_after_the_other(guest: Guest) -> None:
    """The first is left while it answers, the second ends by itself, the third has a guest without the driver."""
    first = agent_stream(guest)
    assert isinstance(first, PortStream)
    agent = Agent(first)
    with pytest.raises(GuestLost) as lost:  # the answer comes when nobody waits for it any more
        agent.ask("make_base", timeout=0.3, **MAKE_BASE)
    assert lost.value.loss.cause is LossCause.HUNG
    first.close()

    second = agent_stream(guest)
    assert isinstance(second, PortStream)
    agent = Agent(second)
    assert agent.ask("has_base", timeout=60, base="b")[0] == {"has": False}
    assert guest.shell.run("pkill -KILL python3", 60).code == 0
    with pytest.raises(GuestLost, match=r"bob-agent.* ended") as lost:
        agent.ask("hello", timeout=60)
    assert lost.value.loss.cause is LossCause.DISCONNECTED
    second.close()

    assert guest.shell.run("rmmod virtio_console", 60).code == 0
    third = agent_stream(guest)
    assert isinstance(third, CommandStream)
    assert Agent(third).ask("has_base", timeout=60, base="b")[0] == {"has": False}


MAKE_BASE = {
    "base": "b",
    "disks": [16 * 1024 * 1024],
    "cell": "<stale--medium!>",
    "subject": encode_subject(configuration("ext4"))._replace(mkfs=["sh", "-c", "sleep 2; mkfs.ext4 -q -F DEVICE"]),
    "setup": [],
}


@pytest.mark.vm
def test_a_guest_that_is_lost(guest: Guest) -> None:
    agent = Agent(agent_stream(guest))
    os.kill(guest.qemu_pid, signal.SIGSTOP)
    with pytest.raises(GuestLost) as lost:
        agent.ask("hello", timeout=1)
    assert lost.value.loss.cause is LossCause.HUNG
    os.kill(guest.qemu_pid, signal.SIGKILL)
    with pytest.raises(GuestLost) as lost:
        agent.ask("hello", timeout=60)
    assert lost.value.loss.cause is LossCause.VANISHED


# SSH


@pytest.fixture(scope="module")
def shared(hypervisor: Hypervisor, spec: GuestSpec) -> Iterator[Guest]:
    """One guest for all tests of its shell."""
    with hypervisor.guest(spec) as guest:
        yield guest


@pytest.mark.vm
def test_run_returns_both_streams_and_the_code(shared: Guest) -> None:
    done = shared.shell.run("echo out; echo err >&2; exit 7", 60)
    assert (done.stdout, done.stderr, done.code) == (b"out\n", b"err\n", 7)


@pytest.mark.vm
def test_run_survives_a_flood_on_standard_error(shared: Guest) -> None:
    done = shared.shell.run("head -c 3000000 /dev/zero >&2; echo done", 120)
    assert (done.stdout, len(done.stderr), done.code) == (b"done\n", 3_000_000, 0)


@pytest.mark.vm
def test_a_command_that_a_signal_ended(shared: Guest) -> None:
    assert shared.shell.run("kill -9 $$", 60).code == -1


@pytest.mark.vm
def test_push(shared: Guest) -> None:
    data = bytes(range(256)) * 1000
    shared.shell.push(data, "/tmp/one")
    assert shared.shell.run("cat /tmp/one", 60).stdout == data


@pytest.mark.vm
def test_push_that_is_refused(shared: Guest) -> None:
    with pytest.raises(GuestError, match="No such file") as refused:
        shared.shell.push(b"x", "/no/such/folder/file")
    assert not isinstance(refused.value, GuestLost)
    assert shared.shell.run(":", 60).code == 0


@pytest.mark.vm
def test_stream(shared: Guest) -> None:
    data = bytes(range(256)) * 2000
    with closing(shared.shell.open_channel("cat")) as stream:
        for part in (b"hello", data):
            stream.write(part)
            assert stream.read_exactly(len(part), 60) == part


@pytest.mark.vm
def test_a_stream_that_ends_says_why(shared: Guest) -> None:
    with (
        closing(shared.shell.open_channel("echo gone fishing >&2; exit 1")) as stream,
        pytest.raises(GuestLost, match="gone fishing") as lost,
    ):
        stream.read_exactly(1, 60)
    assert lost.value.loss.cause is LossCause.DISCONNECTED


@pytest.mark.vm
def test_many_shells(shared: Guest) -> None:
    with closing(shared.connect()) as one, closing(shared.connect()) as two:
        assert one.run("echo 1", 60).stdout == b"1\n"
        assert two.run("echo 2", 60).stdout == b"2\n"


@pytest.mark.vm
def test_any_machine_will_do(shared: Guest) -> None:
    """A plain Shell knows nothing of guests."""
    with closing(Shell(shared.address, on_loss=connection_lost)) as shell:
        assert shell.run("echo hello", 60).stdout == b"hello\n"
        with pytest.raises(ConnectionLost):
            shell.run("sleep 600", 1)


@pytest.mark.vm
def test_the_wrong_machine_is_refused(shared: Guest) -> None:
    with pytest.raises(GuestError, match="another host key"):
        Shell(replace(shared.address, host_key="ssh-ed25519 AAAA"), on_loss=connection_lost)


@pytest.mark.vm
def test_the_wrong_key_is_refused(shared: Guest, tmp_path: Path) -> None:
    key = tmp_path / "key"
    paramiko.RSAKey.generate(2048).write_private_key_file(str(key))
    with pytest.raises(GuestError, match="refuses the key"):
        Shell(replace(shared.address, key=key), on_loss=connection_lost)


def test_nobody_there() -> None:
    with pytest.raises(ConnectionLost) as refused:
        Shell(ShellAddress("127.0.0.1", 1, "root", Path("/dev/null")), deadline=1, on_loss=connection_lost)
    assert text_with(str(refused.value), 1) == snapshot("no SSH connection within 1 s ([Errno 111] Connection refused)")
