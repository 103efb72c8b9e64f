"""Why a guest was lost, judged from its console and its QEMU; saved states as files."""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from bob.agent.loss import Cause, GuestLost
from bob.errors import GuestError
from bob.guest import loss
from bob.guest.console import Console
from bob.guest.domain_xml import Identity
from bob.guest.loss import diagnose
from bob.guest.saved import BadState, SavedState
from bob.guest.shell import Shell
from bob.guest.stream import ConnectionLost, Stream, connection_lost


@dataclass(frozen=True)
class Paper:
    """A guest of paper."""

    console: Console
    running: bool


@pytest.mark.parametrize(
    ("printed", "running", "disconnected", "cause"),
    [
        ("Kernel panic - not syncing: Attempted to kill init!", False, True, Cause.PANICKED),
        ("Oops: 0000 [#1] PREEMPT SMP", True, False, Cause.PANICKED),
        ("kernel BUG at fs/ext4/inode.c:1234!", False, True, Cause.PANICKED),
        ("BUG: kernel NULL pointer dereference, address: 0", True, False, Cause.PANICKED),
        ("EXT4-fs error (device loop0): bad bitmap", False, True, Cause.VANISHED),
        ("", False, False, Cause.VANISHED),
        ("", True, False, Cause.HUNG),
        ("", True, True, Cause.DISCONNECTED),
    ],
)
def test_causes(
    printed: str, running: bool, disconnected: bool, cause: Cause, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss, "_LAST_BREATH", 0.0)
    (tmp_path / "console").write_text(f"[    1.0] hello\n[    2.0] {printed}\n")
    found = diagnose(Paper(Console(tmp_path / "console"), running), disconnected=disconnected)
    assert found.cause is cause
    assert found.console_tail.startswith("[    1.0] hello")
    assert (printed or "2.0") in str(GuestLost(found, "no answer").hint)


def test_a_panic_is_told_by_what_the_kernel_said_not_by_where_its_call_trace_ends(tmp_path: Path) -> None:
    trace = "".join(f"[   3.{number:03}]  some_function+0x{number:x}\n" for number in range(100))
    panic = "[    3.0] Kernel panic - not syncing: sysrq triggered crash"
    (tmp_path / "console").write_text(f"[    1.0] hello\n[    2.0] sysrq: Trigger a crash\n{panic}\n{trace}")
    found = diagnose(Paper(Console(tmp_path / "console"), True))
    assert found.console_tail.startswith(f"[    2.0] sysrq: Trigger a crash\n{panic}\n")
    assert len(found.console_tail.splitlines()) == 60
    assert GuestLost(found, "no answer").hint == f"its console says: {panic}"


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
    with Stream(BrokenChannel(), "agent", connection_lost) as stream, pytest.raises(ConnectionLost):  # type: ignore[arg-type]
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
