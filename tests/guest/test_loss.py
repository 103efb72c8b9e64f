"""Why a guest was lost, judged from its console and its QEMU; saved states as files."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from inline_snapshot import snapshot

from bob.agent.loss import GuestLost, Loss, LossCause
from bob.errors import GuestError
from bob.guest import machine, reap, root
from bob.guest.domain_xml import Identity
from bob.guest.machine import Console, diagnose
from bob.guest.root import Reaper
from bob.guest.saved_guest import BadState, SavedState
from bob.guest.shell import CommandStream, Shell
from bob.schema import decode, encode
from wording import text_with

from .connections import ConnectionLost, connection_lost


@pytest.mark.parametrize(
    ("printed", "running", "disconnected", "cause"),
    [
        ("Kernel panic - not syncing: Attempted to kill init!", False, True, LossCause.PANICKED),
        ("Oops: 0000 [#1] PREEMPT SMP", True, False, LossCause.PANICKED),
        ("kernel BUG at fs/ext4/inode.c:1234!", False, True, LossCause.PANICKED),
        ("BUG: kernel NULL pointer dereference, address: 0", True, False, LossCause.PANICKED),
        ("EXT4-fs error (device loop0): bad bitmap", False, True, LossCause.VANISHED),
        ("", False, False, LossCause.VANISHED),
        ("", True, False, LossCause.HUNG),
        ("", True, True, LossCause.DISCONNECTED),
    ],
)
def test_causes(
    printed: str, running: bool, disconnected: bool, cause: LossCause, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_LAST_BREATH", 0.0)
    (tmp_path / "console").write_text(f"[    1.0] hello\n[    2.0] {printed}\n")
    found = diagnose(Console(tmp_path / "console"), lambda: running, disconnected=disconnected)
    assert found.cause is cause
    assert found.console.startswith("[    1.0] hello")
    assert (printed or "2.0") in str(GuestLost(found, "no answer").hint)


def test_a_panic_is_told_by_what_the_kernel_said_not_by_where_its_call_trace_ends(tmp_path: Path) -> None:
    panic = "[    3.0] Kernel panic - not syncing: sysrq triggered crash"
    (tmp_path / "console").write_text(f"[    1.0] hello\n[    2.0] sysrq: Trigger a crash\n{panic}\n{TRACE}")
    found = diagnose(Console(tmp_path / "console"), lambda: True)
    assert found.console.startswith(f"[    2.0] sysrq: Trigger a crash\n{panic}\n")
    assert len(found.console.splitlines()) == 60
    assert text_with(GuestLost(found, "no answer").hint, panic[10:]) == snapshot(
        "its console says: Kernel panic - not syncing: sysrq triggered crash"
    )


TRACE = "".join(f"[   3.{number:03}]  some_function+0x{number:x}\n" for number in range(100))


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("kernel BUG at fs/ext4/inline.c:235!", LossCause.PANICKED),
        ("watchdog: BUG: soft lockup - CPU#0 stuck for 26s!", LossCause.PANICKED),
        ("INFO: task python3:117 blocked for more than 362 seconds.", LossCause.HUNG),
        ("INFO: task python3:117 blocked for more than 120 seconds.", None),
        ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", LossCause.HUNG),
        ("EXT4-fs error (device loop0): bad bitmap", None),
    ],
)
def test_the_kernel_says_at_which_step_it_fell(words: str, cause: LossCause | None, tmp_path: Path) -> None:
    (tmp_path / "console").write_text(f"bob: at mount\r\nbob: at op 2 begin\r\n[    3.0] {words}\n{TRACE}")
    found = diagnose(Console(tmp_path / "console"), lambda: True)
    assert found.step == "op 2 begin"
    assert found.is_by_kernel is (cause is not None)
    if cause is not None:
        assert found.cause is cause
        assert found.lines[:2] == (words, " some_function+0x0")
    assert decode(Loss, json.loads(json.dumps(encode(found)))) == found


def test_one_that_was_ended_fell_at_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_LAST_BREATH", 0.0)
    (tmp_path / "console").write_text("[    3.0] INFO: task python3:117 blocked for more than 362 seconds.\n")
    assert not diagnose(Console(tmp_path / "console"), lambda: False).is_by_kernel
    assert not diagnose(Console(tmp_path / "console"), lambda: True, disconnected=True).is_by_kernel


@pytest.mark.parametrize(
    ("words", "is_panic"),
    [
        ("Kernel panic - not syncing: System is deadlocked on memory", True),
        ("Kernel panic - not syncing: Out of memory: system-wide panic_on_oom is enabled", True),
        ("Kernel panic - not syncing: sysrq triggered crash", True),
        ("Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000007", True),
        ("traps: python3[117] general protection fault ip:55d0 sp:7ffd error:0 in python3.11[55d0+1000]", False),
        ("Out of memory: Killed process 117 (python3) total-vm:9kB", False),
    ],
)
def test_a_kernel_that_was_made_to_panic_did_not_fall_by_itself(words: str, is_panic: bool, tmp_path: Path) -> None:
    """A program that takes all memory, and keeps it in /tmp, was a finding about the kernel."""
    (tmp_path / "console").write_text(f"bob: at op 2 begin\n[    3.0] {words}\n{TRACE}")
    found = diagnose(Console(tmp_path / "console"), lambda: True)
    assert (found.cause is LossCause.PANICKED, found.is_by_kernel) == (is_panic, False)
    oops = "general protection fault, probably for non-canonical address 0xdead000000000100: 0000 [#1] PREEMPT SMP"
    (tmp_path / "console").write_text(f"[    3.0] {oops}\n[    4.0] {words}\n{TRACE}")
    assert diagnose(Console(tmp_path / "console"), lambda: True).is_by_kernel


def test_no_console_is_an_empty_one(tmp_path: Path) -> None:
    console = Console(tmp_path / "none")
    assert console.tail() == ""
    assert not console.wait_for("ready", 0.1, lambda: True)


def test_waiting_ends_with_the_guest(tmp_path: Path) -> None:
    (tmp_path / "console").write_text("bob: ready 6.1\n")
    assert Console(tmp_path / "console").wait_for("bob: ready", 0, lambda: False)
    assert not Console(tmp_path / "console").wait_for("never", 600, lambda: False)


@pytest.mark.parametrize(
    ("error", "active", "raised"),
    [
        (EOFError(), True, ConnectionLost),  # the guest was killed, and paramiko's own thread has not noticed yet
        (EOFError(), False, ConnectionLost),
        (OSError("No such file"), True, GuestError),
        (OSError("Socket is closed"), False, ConnectionLost),
        (TimeoutError(), True, ConnectionLost),
    ],
)
def test_a_connection_that_broke_is_told_from_a_refusal(
    error: Exception, active: bool, raised: type[GuestError]
) -> None:
    shell = Shell.__new__(Shell)
    shell._transport = SimpleNamespace(is_active=lambda: active)  # type: ignore[assignment]
    shell._on_loss = connection_lost
    with pytest.raises(GuestError) as caught, shell._losing("trying"):
        raise error
    assert type(caught.value) is raised


class BrokenChannel:
    """A paramiko channel of a connection that broke a moment ago: whatever is sent is an EOFError."""

    def settimeout(self, _seconds: float) -> None: ...

    def sendall(self, _data: bytes) -> None:
        raise EOFError

    def close(self) -> None:
        raise EOFError

    def recv_stderr_ready(self) -> bool:
        return False


def test_a_stream_whose_connection_broke_is_lost_and_can_be_closed() -> None:
    broken: Any = BrokenChannel()
    with closing(CommandStream(broken, "agent", connection_lost)) as stream, pytest.raises(ConnectionLost):
        stream.write(b"request")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "bob" / "saved"


def test_everything_in_the_definition_counts() -> None:
    states = [SavedState.of("a", "b"), SavedState.of("ab"), SavedState.of("b", "a"), SavedState.of("a", "b", "")]
    assert len({state.path for state in states}) == 4
    assert len({state.identity for state in states}) == 4
    assert SavedState.of("a", "b") == states[0]


def test_a_copy_has_another_identity_and_the_same_rest(tmp_path: Path) -> None:
    state = SavedState.of("guest")
    memory = os.urandom(100_000)
    header = f"LibvirtQemudSave<name>{state.identity.name}</name><uuid>{state.identity.uuid}</uuid>".encode()
    state.path.write_bytes(header + memory)
    someone = Identity(uuid.uuid4())
    copy = tmp_path / "copy"
    state.copy_for(someone, copy)
    data = copy.read_bytes()
    assert data.startswith(f"LibvirtQemudSave<name>{someone.name}</name><uuid>{someone.uuid}</uuid>".encode())
    assert data.endswith(memory)
    assert len(data) == len(header) + len(memory)


def test_what_is_no_state_is_refused(tmp_path: Path) -> None:
    state = SavedState.of("guest")
    state.path.write_bytes(b"\0" * 100_000)
    with pytest.raises(BadState):
        state.copy_for(Identity(uuid.uuid4()), tmp_path / "copy")


def test_commit_is_all_or_nothing() -> None:
    state = SavedState.of("guest")
    state.part.write_bytes(b"half")
    assert not state.exists()
    state.commit()
    assert state.exists()
    assert not state.part.exists()


def test_what_nobody_uses_goes() -> None:
    old, new = SavedState.of("old"), SavedState.of("new")
    old.path.touch()
    long_ago = time.time() - 40 * 24 * 3600
    os.utime(old.path, (long_ago, long_ago))
    new.part.touch()
    new.commit()
    assert not old.exists()
    assert new.exists()


def test_one_saves_the_other_waits() -> None:
    state = SavedState.of("guest")
    with state.locked(0) as mine, state.locked(0.1) as too:
        assert (mine, too) == (True, False)


# The reaper, with stand-ins for QEMU: processes that have its name and hold a folder's name in their arguments


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
        from bob.guest.root import Reaper
        Reaper.shared().remove_root(Path({str(folder)!r}))
        print("there", flush=True)
        {"time.sleep(600)" if end.startswith("SIG") else end}
    """
    bob = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert bob.stdout is not None
    bob.stdout.readline()
    if end.startswith("SIG"):
        bob.send_signal(signal.Signals[end])
    bob.communicate(timeout=30)
    assert ended(qemu)
    deadline = time.monotonic() + 10
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not folder.exists()


@pytest.mark.parametrize("end", ["sys.exit()", "os._exit(3)"])
def test_what_libvirt_makes_anew_while_bob_ends_goes_too(end: str, tmp_path: Path) -> None:
    """Its threads see that a QEMU is gone, and write into the folder once more, for as long as the process lives."""
    folder = tmp_path / "root"
    folder.mkdir()
    code = f"""
        import os, sys, threading, time
        from pathlib import Path
        from bob.guest.root import Reaper
        Reaper.shared().remove_root(Path({str(folder)!r}))
        def libvirt():
            while True:
                try:
                    os.makedirs({str(folder / "run" / "qemu")!r}, exist_ok=True)
                except OSError:
                    pass
        threading.Thread(target=libvirt, daemon=True).start()
        time.sleep(0.2)
        {end}
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], stderr=subprocess.DEVNULL, timeout=60, check=False)
    deadline = time.monotonic() + 10
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not folder.exists()


def test_the_reaper_knows_of_a_root_before_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal may come between the two."""
    told: list[bool] = []

    class Noted:
        def remove_root(self, path: Path) -> None:
            told.append(path.parent == tmp_path and not path.exists())

    monkeypatch.setattr(root, "_parent", lambda: tmp_path)
    monkeypatch.setattr(root, "cache_folder", lambda _name: tmp_path)
    monkeypatch.setattr(Reaper, "shared", Noted)
    made = root._make()
    assert told == [True] and made.path.exists() and made.path.stat().st_mode & 0o777 == 0o700
    made.lock.close()


def test_sweep_removes_dead_roots_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root, "_parent", lambda: tmp_path)
    dead, living, new, rest = (tmp_path / f"bob-qemu-{name}" for name in ("dead", "living", "new", "rest"))
    for folder in (dead, living, new, rest):
        folder.mkdir()
    (rest / "run" / "qemu").mkdir(parents=True)  # what a libvirt left that ended last
    os.utime(rest, (time.time() - 7200, time.time() - 7200))
    (dead / "owner.lock").touch()
    with (living / "owner.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        root.sweep()
    assert not dead.exists()
    assert living.exists()
    assert not rest.exists()
    assert new.exists()  # its owner has not got round to its lock yet
