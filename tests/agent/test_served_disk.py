"""The server of a network block device carries out what the kernel asks, and reports errors."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from bob.agent.inside.late_disk import DISCONNECT, FLUSH, READ, REPLY, REPLY_MAGIC, REQUEST, REQUEST_MAGIC, WRITE
from bob.agent.inside.served_disk import FAILED, FUA, answer

SECTOR = 512
HANDLE = 77


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "disk"
    path.write_bytes(bytes(4 * SECTOR))
    fd = os.open(path, os.O_RDWR)
    yield fd
    os.close(fd)


def asked(disk: int, command: int, start: int = 0, length: int = 0, data: bytes = b"") -> tuple[bool, int, bytes]:
    """Whether the server goes on, the error that it reports, and the data that it sends."""
    client, server = socket.socketpair()
    with client, server:
        client.sendall(REQUEST.pack(REQUEST_MAGIC, command, HANDLE, start, length) + data)
        goes_on = answer(server, disk)
        server.close()
        reply = client.recv(1 << 16, socket.MSG_WAITALL)
    if not reply:
        return goes_on, 0, b""
    magic, error, handle = REPLY.unpack(reply[: REPLY.size])
    assert (magic, handle) == (REPLY_MAGIC, HANDLE)
    return goes_on, error, reply[REPLY.size :]


def test_what_is_written_is_read_and_only_a_flush_syncs(disk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    data = b"x" * SECTOR
    assert asked(disk, WRITE, SECTOR, SECTOR, data) == (True, 0, b"")
    assert asked(disk, READ, 0, 2 * SECTOR) == (True, 0, bytes(SECTOR) + data)
    assert not synced
    assert asked(disk, FLUSH) == (True, 0, b"")
    assert asked(disk, WRITE | FUA, 0, SECTOR, data) == (True, 0, b"")
    assert synced == [disk, disk]


def test_an_error_of_the_disk_is_reported(disk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(5, "Input/output error")

    for name in ("pread", "pwrite", "fdatasync"):
        monkeypatch.setattr(os, name, refuse)
    for command, data in ((READ, b""), (WRITE, bytes(SECTOR)), (FLUSH, b"")):
        assert asked(disk, command, 0, len(data), data) == (True, FAILED, b"")


def test_the_connection_ends(disk: int) -> None:
    assert asked(disk, DISCONNECT) == (False, 0, b"")
    client, server = socket.socketpair()
    client.close()
    with server:
        assert not answer(server, disk)
