"""Base images made by the tools of the host, and traces of writes onto them."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bob.blocks.naming import BlockKind, names
from bob.trace.base import Base
from bob.trace.model import DeviceWrite, Moment, Trace

TREE = {"d/a": b"a" * 9000, "d/b": b"b" * 20, "e/long": b"c" * 300_000}


def base_of(runs: Mapping[int, bytes], length: int) -> Base:
    """A base image of ``length`` bytes with ``runs`` (by byte, whole sectors) in it."""
    packed = b"".join(struct.pack(">QI", at // 512, len(data) // 512) + data for at, data in sorted(runs.items()))
    return Base("b", length, zlib.compress(packed, 1), "", "")


def trace_of(base: Base, writes: Sequence[tuple[int, bytes]]) -> Trace:
    """A trace of ``writes`` (byte, data), one after the other."""
    made = [
        DeviceWrite(index, at // 512, data, Moment(index, 0.0), Moment(index, 0.0))
        for index, (at, data) in enumerate(writes)
    ]
    return Trace(tuple(made), (), (), Moment(0, 0.0), Moment(len(made), 0.0), (base.length // 512,))


def named(
    fs: str, base: Base, writes: Sequence[tuple[int, bytes]], paths: Mapping[int, str] | None = None
) -> list[str]:
    """The texts of the names of ``writes``, each with its kind before it."""
    return [f"{name.kind}: {name.text}" for name in names(fs, base, trace_of(base, writes), paths or {})]


def kinds(fs: str, base: Base, writes: Sequence[tuple[int, bytes]]) -> list[BlockKind]:
    return [name.kind for name in names(fs, base, trace_of(base, writes), {})]


def read(base: Base, at: int, length: int) -> bytes:
    """What the image has at byte ``at``."""
    return b"".join(base.sector(sector) for sector in range(at // 512, (at + length) // 512))


@lru_cache(maxsize=8)
def made(fs: str) -> Base:
    """A small file system as its mkfs makes it, with ``TREE`` in it where that can do so; skips without the tool."""
    lengths = {"ext2": 8 << 20, "ext3": 8 << 20, "ext4": 8 << 20, "xfs": 300 << 20, "btrfs": 128 << 20}
    length = lengths.get(fs, 40 << 20)
    with TemporaryDirectory() as folder:
        tree, image = Path(folder) / "tree", Path(folder) / "image"
        for name, content in TREE.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes(content)
        with image.open("wb") as file:
            file.truncate(length)
        commands: dict[str, list[str | Path]] = {
            "ext2": ["mke2fs", "-q", "-t", "ext2", "-b", "1024", "-d", tree, image],
            "ext3": ["mke2fs", "-q", "-t", "ext3", "-b", "1024", "-J", "size=1", "-d", tree, image],
            "ext4": ["mke2fs", "-q", "-t", "ext4", "-b", "1024", "-J", "size=1", "-O", "64bit", "-d", tree, image],
            "xfs": ["mkfs.xfs", "-q", "-m", "crc=1", image],
            "btrfs": ["mkfs.btrfs", "-q", "-m", "dup", "--rootdir", tree, image],
            "reiserfs": ["mkfs.reiserfs", "-q", "-f", "-f", image],
        }
        paths = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
        tool = shutil.which(str(commands[fs][0]), path=paths)
        if tool is None:
            pytest.skip(f"no {commands[fs][0]} on this host")
        done = subprocess.run([tool, *commands[fs][1:]], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            pytest.skip(f"{commands[fs][0]} does not make this: {done.stderr.strip()[:200]}")
        return base_of(_written(image), image.stat().st_size // 4096 * 4096)


def _written(image: Path) -> dict[int, bytes]:
    """What of a sparse file is no hole."""
    found: dict[int, bytes] = {}
    with image.open("rb") as file:
        position = 0
        while True:
            try:
                start = os.lseek(file.fileno(), position, os.SEEK_DATA)
            except OSError:
                return found
            position = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            found[start] = os.pread(file.fileno(), position - start, start)
