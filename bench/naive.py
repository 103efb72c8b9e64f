"""Runs in a guest: ``naive.py FS OPTIONS LENGTH MOUNTS STATES MKFS...`` mounts one image in two ways, and prints rates.

As JSON: ``bare_per_s``, with nothing but mount(2), a listing of the tree and umount(2) on one loop device, MOUNTS
times; and ``naive_per_s``, the way of a shell script: for each of STATES crash states the image is copied, and losetup,
mount, find, umount and losetup run as processes.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path("/tmp/bench")
MOUNTED = ROOT / "mnt"


def run(*words: str | Path) -> str:
    """Run a program; what it prints."""
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def mount(device: str, fs: str, options: str) -> None:
    """mount(2)."""
    if libc.mount(device.encode(), bytes(MOUNTED), fs.encode(), 0, options.encode()):
        raise OSError(ctypes.get_errno(), "mount")


def names() -> list[str]:
    """Every name in the mounted file system."""
    return [name for _folder, folders, files in os.walk(MOUNTED) for name in (*folders, *files)]


libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Measure and print."""
    fs, options, length, mounts, states, *mkfs = sys.argv[1:]
    MOUNTED.mkdir(parents=True)
    image, copy = ROOT / "image", ROOT / "copy"
    with image.open("wb") as file:
        file.truncate(int(length))
    device = run("losetup", "--find", "--show", image)
    run(*[device if word == "DEVICE" else word for word in mkfs])
    mount(device, fs, options)
    for number in range(10):
        (MOUNTED / str(number)).write_bytes(bytes([number]) * 8192)
    libc.umount2(bytes(MOUNTED), 0)
    started = time.monotonic()
    for _ in range(int(mounts)):
        mount(device, fs, options)
        assert len(names()) >= 10
        libc.umount2(bytes(MOUNTED), 0)
    bare = int(mounts) / (time.monotonic() - started)
    run("losetup", "--detach", device)
    started = time.monotonic()
    for _ in range(int(states)):
        run("cp", image, copy)
        device = run("losetup", "--find", "--show", copy)
        run("mount", "-t", fs, *(["-o", options] if options else []), device, MOUNTED)
        run("find", MOUNTED, "-type", "f", "-exec", "cat", "{}", "+")
        run("umount", MOUNTED)
        run("losetup", "--detach", device)
    naive = int(states) / (time.monotonic() - started)
    image.unlink()
    copy.unlink()
    print(json.dumps({"bare_per_s": bare, "naive_per_s": naive}))


main()
