"""What is asked of a layer's device in a crash state that mounts."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from bob.agent.inside import layer_checks
from bob.agent.inside.layer_checks import BACKWARD, FORWARD, read_twice, write_and_read

SIZE = 3 * FORWARD + BACKWARD + 512


@pytest.mark.parametrize("changed", [None, 0, FORWARD, SIZE - 1])
def test_a_device_that_reads_differently_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: int | None
) -> None:
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(SIZE))
    monkeypatch.setattr(layer_checks, "sectors_of", lambda _path: SIZE // 512)
    monkeypatch.setattr(os, "O_DIRECT", 0)
    read, reads = os.preadv, []

    def preadv(fd: int, buffers: list[bytearray], at: int) -> int:
        done = read(fd, buffers, at)
        if len(buffers[0]) == BACKWARD and changed is not None and at <= changed < at + BACKWARD:
            buffers[0][changed - at] = 1
        reads.append(at)
        return done

    monkeypatch.setattr(os, "preadv", preadv)
    fault = read_twice(str(disk))
    assert (fault is None) == (changed is None)
    if changed is None:
        assert len(reads) == 4 + -(-SIZE // BACKWARD)
    else:
        assert fault is not None and f"from byte {changed // BACKWARD * BACKWARD}" in fault


@pytest.mark.parametrize("passes", [False, True])
def test_what_cannot_be_read_twice_is_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: bool
) -> None:
    """As on dm-integrity, where a block that a crash tore has a wrong checksum. An error that passes is a fault."""
    disk, bad = tmp_path / "disk", FORWARD + 3 * BACKWARD + 5
    disk.write_bytes(bytes(SIZE))
    monkeypatch.setattr(layer_checks, "sectors_of", lambda _path: SIZE // 512)
    monkeypatch.setattr(os, "O_DIRECT", 0)
    read, refused = os.preadv, []

    def preadv(fd: int, buffers: list[bytearray], at: int) -> int:
        if at <= bad < at + len(buffers[0]) and not (passes and len(refused) > 1):
            refused.append(at)
            raise OSError(errno.EILSEQ, os.strerror(errno.EILSEQ))
        return read(fd, buffers, at)

    monkeypatch.setattr(os, "preadv", preadv)
    fault = read_twice(str(disk))
    assert fault is None if not passes else fault is not None and f"from byte {FORWARD + 3 * BACKWARD}" in fault


def test_what_is_written_and_synced_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert write_and_read(str(tmp_path)) is None
    assert not list(tmp_path.iterdir())
    assert "cannot be written and synced: No such file" in (write_and_read(f"{tmp_path}/nowhere") or "")
    monkeypatch.setattr(os, "pread", lambda _fd, length, _at: bytes(length))
    assert write_and_read(str(tmp_path)) == "what is written and synced reads differently"
