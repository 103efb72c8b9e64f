"""The reaper, with stand-ins for QEMU: processes that have its name and hold a folder's name in their arguments."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bob.guest import reap, root
from bob.guest.reaper import Reaper


@pytest.fixture
def fake_qemu(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Start something that looks like a QEMU with this argument."""
    program = tmp_path / "qemu-system-fake"
    program.symlink_to("/bin/sh")
    started: list[subprocess.Popen[bytes]] = []

    def start(argument: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([program, "-c", "sleep 600; :", argument], start_new_session=True)
        started.append(process)
        return process

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its sleep outlives it
        process.wait()


def ended(process: subprocess.Popen[bytes], seconds: float = 10) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def test_remove_root_kills_its_qemus_and_nobody_else(
    tmp_path: Path, fake_qemu: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    folder = tmp_path / "root"
    folder.mkdir()
    ours, neighbour = fake_qemu(f"{folder}/lib/monitor.sock"), fake_qemu(f"{folder}2/lib/monitor.sock")
    editor = subprocess.Popen(["tail", "-f", "/dev/null", f"{folder}/console"], stderr=subprocess.DEVNULL)
    try:
        reap.remove_root(folder)
        assert ended(ours)
        assert not folder.exists()
        assert neighbour.poll() is None
        assert editor.poll() is None
    finally:
        editor.kill()
        editor.wait()


def test_a_folder_behind_a_link_stays(tmp_path: Path) -> None:
    shared, folder = tmp_path / "shared", tmp_path / "root"
    shared.mkdir()
    (shared / "precious").touch()
    folder.mkdir()
    (folder / "cache").symlink_to(shared)
    reap.remove_root(folder)
    assert (shared / "precious").exists()


def test_a_group_whose_number_went_to_a_stranger_is_left_alone() -> None:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        started = reap.start_time(process.pid)
        assert started is not None
        reap.kill_group(process.pid, started - 1)
        assert process.poll() is None
        reap.kill_group(process.pid, started)
        assert process.wait(10) == -signal.SIGKILL


@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM", "SIGINT", "sys.exit()", "raise ValueError", "os._exit(3)"])
def test_whatever_ends_bob_its_children_end(
    end: str, tmp_path: Path, fake_qemu: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    folder = tmp_path / "root"
    folder.mkdir()
    qemu = fake_qemu(f"{folder}/monitor.sock")
    code = f"""
        import os, subprocess, sys, time
        from pathlib import Path
        from bob.guest.reaper import Reaper
        Reaper.shared().remove_root(Path({str(folder)!r}))
        build = subprocess.Popen(["sleep", "600"], start_new_session=True)
        with Reaper.shared().watch_process_group(build.pid):
            print(build.pid, flush=True)
            {"time.sleep(600)" if end.startswith("SIG") else end}
    """
    bob = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert bob.stdout is not None
    build = int(bob.stdout.readline())
    if end.startswith("SIG"):
        bob.send_signal(signal.Signals[end])
    bob.communicate(timeout=30)
    assert ended(qemu)
    deadline = time.monotonic() + 10
    while (reap.arguments(build) or folder.exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not reap.arguments(build)
    assert not folder.exists()


def test_a_group_ends_with_its_block() -> None:
    reaper = Reaper()
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        with reaper.watch_process_group(process.pid):
            pass
        assert process.wait(10) == -signal.SIGKILL
    reaper.close()


def test_sweep_removes_dead_roots_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root, "_parent", lambda: tmp_path)
    dead, living, new = (tmp_path / f"bob-qemu-{name}" for name in ("dead", "living", "new"))
    for folder in (dead, living, new):
        folder.mkdir()
    (dead / "owner.lock").touch()
    with (living / "owner.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        root.sweep()
    assert not dead.exists()
    assert living.exists()
    assert new.exists()  # its owner has not got round to its lock yet
