"""The port of a guest: what is sent arrives whole, what an earlier agent left does not count, and a loss is seen."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.agent.client import Agent
from bob.agent.loss import Cause, GuestLost
from bob.guest.machine import Guest
from bob.guest.port import PortStream
from bob.guest.stream import ConnectionLost, Stream, connection_lost
from bob.run.agents import agent_stream

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
    with theirs, closing(PortStream(ours, cast(Stream, program), connection_lost)) as stream:
        yield stream, theirs
    assert program.closed


def send(parts: list[bytes]) -> PortStream:
    """A stream of which the other end has sent these parts, and closed."""
    ours, theirs = socket.socketpair()
    with theirs:
        for part in parts:
            theirs.sendall(part)
    return PortStream(ours, cast(Stream, Program()), connection_lost)


@given(parts=st.lists(st.binary(max_size=50), max_size=8), lengths=st.lists(st.integers(0, 40)))
def test_what_is_sent_arrives_whole_and_in_order(parts: list[bytes], lengths: list[int]) -> None:
    sent = b"".join(parts)
    with closing(send(parts)) as stream:
        for length in lengths:
            if length <= len(sent):
                assert stream.read_exactly(length, 5) == sent[:length]
                sent = sent[length:]
            else:
                with pytest.raises(ConnectionLost, match="ended"):
                    stream.read_exactly(length, 5)
                return


@given(st.lists(st.sampled_from([b"a", b"ab", b"abab-", b"abab-wor", b"-word", b"\0" * 300]), max_size=20))
def test_what_an_earlier_program_said_is_passed_over(before: list[bytes]) -> None:
    ours, theirs = socket.socketpair()
    with theirs, closing(PortStream(ours, cast(Stream, Program()), connection_lost)) as stream:
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
    with pytest.raises(ConnectionLost, match="sent too little for 1 s"):
        stream.read_exactly(3, 1)
    with pytest.raises(ConnectionLost, match="took nothing for 1 s"):
        stream.write(bytes(4 * 1024 * 1024), 1)


def test_the_end_of_the_program_is_noticed(ends: tuple[PortStream, socket.socket], program: Program) -> None:
    """A port stays open when nobody has it open in the guest."""
    stream, _theirs = ends
    program.ended = True
    with pytest.raises(ConnectionLost, match="out of luck"):
        stream.read_exactly(1, 600)
    with pytest.raises(ConnectionLost, match="out of luck"):
        stream.write(bytes(4 * 1024 * 1024))


def test_the_end_of_the_connection_is_noticed(ends: tuple[PortStream, socket.socket]) -> None:
    stream, theirs = ends
    theirs.close()
    with pytest.raises(ConnectionLost, match="ended"):
        stream.read_exactly(1, 600)
    with pytest.raises(ConnectionLost, match="ended"):
        stream.write(b"x")


@pytest.mark.vm
def test_agents_of_a_guest_one_after_the_other(guest: Guest) -> None:
    """The first is left while it answers, the second ends by itself, the third has a guest without the driver."""
    first = agent_stream(guest)
    assert isinstance(first, PortStream)
    agent = Agent(first)
    with pytest.raises(GuestLost) as lost:  # the answer comes when nobody waits for it any more
        agent.ask("make_base", timeout=0.3, **MAKE_BASE)
    assert lost.value.cause is Cause.HUNG
    first.close()

    second = agent_stream(guest)
    assert isinstance(second, PortStream)
    agent = Agent(second)
    assert agent.ask("has_base", timeout=60, base="b")[0] == {"has": False}
    assert guest.shell.run("pkill -KILL python3", 60).code == 0
    with pytest.raises(GuestLost, match=r"bob-agent.* ended") as lost:
        agent.ask("hello", timeout=60)
    assert lost.value.cause is Cause.DISCONNECTED
    second.close()

    assert guest.shell.run("rmmod virtio_console", 60).code == 0
    third = agent_stream(guest)
    assert isinstance(third, Stream)
    assert Agent(third).ask("has_base", timeout=60, base="b")[0] == {"has": False}


MAKE_BASE = {
    "base": "b",
    "length": 16 * 1024 * 1024,
    "cell": "<stale--medium!>",
    "mkfs": ["sh", "-c", "sleep 2; mkfs.ext4 -q -F DEVICE"],
    "fs": "ext4",
    "options": "",
    "setup": [],
}


@pytest.mark.vm
def test_a_guest_that_is_lost(guest: Guest) -> None:
    agent = Agent(agent_stream(guest))
    os.kill(guest.qemu_pid, signal.SIGSTOP)
    with pytest.raises(GuestLost) as lost:
        agent.ask("hello", timeout=1)
    assert lost.value.cause is Cause.HUNG
    os.kill(guest.qemu_pid, signal.SIGKILL)
    with pytest.raises(GuestLost) as lost:
        agent.ask("hello", timeout=60)
    assert lost.value.cause is Cause.VANISHED
