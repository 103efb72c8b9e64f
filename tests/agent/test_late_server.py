"""The process that serves a disk that takes its time: what it answers, and when, to the kernel's driver."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bob.agent.inside.late_server import (
    FLUSH,
    READ,
    REPLY,
    REPLY_MAGIC,
    REQUEST,
    REQUEST_MAGIC,
    SETTLED_SECONDS,
    WRITE,
    LateServer,
)

FUA = 1 << 16
LENGTH = 64 * 1024


class Kernel:
    """The driver's end."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def ask(self, command: int, handle: int, start: int = 0, length: int = 0, data: bytes = b"") -> None:
        self.end.sendall(REQUEST.pack(REQUEST_MAGIC, command, handle, start, length or len(data)) + data)

    def told(self, data: int = 0) -> tuple[int, bytes]:
        """The next handle that is told to be done, with ``data`` bytes that were read."""
        self.end.settimeout(20)
        magic, error, handle = REPLY.unpack(self._exactly(REPLY.size))
        assert (magic, error) == (REPLY_MAGIC, 0)
        return handle, self._exactly(data)

    def silent(self, seconds: float) -> bool:
        return not select.select([self.end], [], [], seconds)[0]

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.end.recv(count - len(data))
            assert more, "it hung up"
            data += more
        return data


@contextmanager
def served(disk: Path, *, youngest: bool) -> Iterator[Kernel]:
    disk.write_bytes(bytes(LENGTH))
    ours, kernels = socket.socketpair()
    control, other_end = os.pipe()
    serving = LateServer(ours, control, str(disk), 0, LENGTH, youngest=youngest)
    server = threading.Thread(target=serving.serve)
    server.start()
    try:
        yield Kernel(kernels)
    finally:
        os.close(other_end)
        server.join(20)
        assert not server.is_alive()
        os.close(control)
        ours.close()
        kernels.close()


@pytest.mark.parametrize(("youngest", "order"), [(True, [3, 2, 1]), (False, [1, 2, 3])])
def test_writes_are_told_one_at_a_time_in_the_order_asked_for(tmp_path: Path, youngest: bool, order: list[int]) -> None:
    with served(tmp_path / "disk", youngest=youngest) as kernel:
        for number in (1, 2, 3):
            kernel.ask(WRITE | (FUA if number == 2 else 0), number, number * 4096, data=bytes([number]) * 4096)
        assert [kernel.told()[0] for _ in range(3)] == order
        assert kernel.silent(5 * SETTLED_SECONDS)
    disk = (tmp_path / "disk").read_bytes()
    assert [disk[number * 4096 : (number + 1) * 4096] for number in range(4)] == [bytes([n]) * 4096 for n in range(4)]


def test_of_writes_of_one_place_the_last_lands_last_whichever_is_told_first(tmp_path: Path) -> None:
    with served(tmp_path / "disk", youngest=True) as kernel:
        kernel.ask(WRITE, 1, 0, data=b"a" * 512)
        kernel.ask(WRITE, 2, 0, data=b"b" * 512)
        assert {kernel.told()[0], kernel.told()[0]} == {1, 2}
    assert (tmp_path / "disk").read_bytes()[:512] == b"b" * 512


def test_reads_and_flushes_do_not_wait_for_what_is_held_and_reads_see_it(tmp_path: Path) -> None:
    with served(tmp_path / "disk", youngest=True) as kernel:
        pending = b"".join(
            [
                REQUEST.pack(REQUEST_MAGIC, WRITE, 1, 512, 512) + b"x" * 512,
                REQUEST.pack(REQUEST_MAGIC, FLUSH, 2, 0, 0),
                REQUEST.pack(REQUEST_MAGIC, READ, 3, 0, 1024),
            ]
        )
        kernel.end.sendall(pending)
        assert kernel.told()[0] == 2
        assert kernel.told(1024) == (3, bytes(512) + b"x" * 512)
        assert kernel.told()[0] == 1


def test_it_ends_when_the_kernel_hangs_up(tmp_path: Path) -> None:
    with served(tmp_path / "disk", youngest=True) as kernel:
        kernel.end.shutdown(socket.SHUT_RDWR)
