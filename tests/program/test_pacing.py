"""A pace is kept: strace waits at each call that changes something, and what was written down is there whole."""

from __future__ import annotations

import errno
import os
import signal
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from bob.agent.inside import programs
from bob.agent.inside.frames import Denial
from bob.agent.inside.pacing import Neighbour, PacedPipe
from bob.agent.inside.programs import ScriptExit

CALLS = 'open("f", O_RDONLY) = 3<R>', 'write(3<R>, "\\x61", 1) = 1', "fsync(3<R>) = 0", 'unlink("\\x66") = 0'
TRACER = 4321


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Below which there are changes; what is done to strace, and by the neighbour, stands in the file ``done``."""

    def told(words: str) -> None:
        with (tmp_path / "done").open("a") as file:
            file.write(f"{words} ")

    def signalled(pid: int, number: int) -> None:
        told({signal.SIGSTOP: "stop", signal.SIGCONT: "go", signal.SIGKILL: "kill"}[signal.Signals(number)])
        assert pid == TRACER or number == signal.SIGKILL

    monkeypatch.setattr("bob.agent.inside.pacing._tracer_of", lambda _pid: TRACER)
    monkeypatch.setattr("os.kill", signalled)
    monkeypatch.setattr(time, "sleep", lambda seconds: told(f"wait {seconds:g}"))
    monkeypatch.setattr("os.fsync", lambda fd: told(f"sync {os.fstat(fd).st_nlink} {os.fstat(fd).st_size}"))
    for name in ("sched_setaffinity", "sched_setscheduler"):
        monkeypatch.setattr(f"os.{name}", lambda *_: None)
    monkeypatch.setattr("bob.agent.inside.strace_lines.RUNTIME", os.devnull)
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def lines(root: Path) -> bytes:
    there = "".join(f"\\x{byte:02x}" for byte in f"{root}/f".encode())
    frame = " > /usr/bin/p(main+0x1) [0x1]\n"
    return "".join(f"1 {number}.5 {call.replace('R', there)}\n{frame}" for number, call in enumerate(CALLS)).encode()


def paced(root: Path, neighbour: Neighbour | None, text: bytes) -> bytes:
    """What is copied of ``text``, which comes a byte at a time."""
    with PacedPipe(str(root.parent / "pipe"), str(root.parent / "calls"), str(root), 0.5, neighbour) as pacing:
        with suppress(BrokenPipeError), (root.parent / "pipe").open("wb", buffering=0) as pipe:
            for byte in text:
                pipe.write(bytes([byte]))
        pacing.finish()
    return (root.parent / "calls").read_bytes()


def done(root: Path) -> str:
    return (root.parent / "done").read_text().strip()


def test_strace_waits_at_each_call_that_changes_something(root: Path) -> None:
    assert paced(root, None, lines(root)) == lines(root)
    assert done(root) == " ".join(["stop wait 0.5 go"] * 3)


def test_a_neighbour_syncs_a_file_without_a_name_at_each_of_them(root: Path) -> None:
    with closing(Neighbour(str(root), "ext4")) as other:
        assert not list(root.iterdir())
        assert paced(root, other, lines(root)) == lines(root)
    waits = [f"stop sync 0 {8 * number} wait 0.5 go" for number in (2, 3, 4)]
    assert done(root) == " ".join(["sync 0 8", *waits])


def test_on_btrfs_a_neighbour_has_all_committed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sync of a file without a name commits nothing there, and bob called that a busy machine."""
    rounds = root.parent / "rounds"

    def asked(_fd: int, request: int, transaction: bytes) -> bytes:
        with rounds.open("a") as file:
            file.write(f"{request & 0xFF} of {transaction[0]}, ")
        return bytes([transaction[0] + 7]) + bytes(7)

    monkeypatch.setattr("fcntl.ioctl", asked)
    with closing(Neighbour(str(root), "btrfs")) as other:
        paced(root, other, lines(root))
    assert rounds.read_text() == "24 of 0, 22 of 7, " * 4


def test_a_neighbour_whose_commit_is_refused_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine was not busy then."""

    def refused(*_: object) -> bytes:
        raise OSError(errno.ENOTTY, "ioctl")

    monkeypatch.setattr("fcntl.ioctl", refused)
    with pytest.raises(OSError, match="ioctl"), closing(Neighbour(str(root), "btrfs")):
        pass


@pytest.mark.parametrize("stores", [False, True])
def test_beside_a_pace_stores_are_watched_and_it_is_kept_all_the_same(
    stores: bool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one of the two alone, a machine that was not busy would be called so."""

    def traced(_seconds: float, calls: str, _traced: str, _stacks: bool) -> tuple[ScriptExit, int]:
        Path(calls).write_bytes(lines(root))
        return ScriptExit(0, b"", b""), 1

    for name in ("PIPE", "BESIDE", "CALLS"):
        monkeypatch.setattr(programs, name, str(root.parent / name.lower()))
    monkeypatch.setattr(programs, "ROOT", str(root))
    monkeypatch.setattr(programs, "_run_traced", traced)
    with closing(Neighbour(str(root), "ext4")) as other:
        assert programs.run_workload(1, stores, 0.5, other)[1] == lines(root)
        assert os.pread(other._fd, 100, 0) == b"00000000000000010000000200000003"
    assert programs.run_workload(1, stores, 7.0)[1] == lines(root)
    assert done(root).count("wait 0.5") == done(root).count("wait 7") == 3


def test_a_neighbour_that_cannot_sync_is_told_and_strace_goes_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine was not busy then, and what was recorded would be called so."""
    with closing(Neighbour(str(root), "ext4")) as other:

        def full(_fd: int) -> None:
            raise OSError(errno.ENOSPC, "")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(Denial) as refused:
            paced(root, other, lines(root)[:-1])
        assert str(refused.value) == snapshot(
            "the process that syncs beside the workload failed: No space left on device"
        )
    assert done(root).endswith("stop go")


def test_a_process_that_nobody_traces_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for name in ("sched_setaffinity", "sched_setscheduler"):
        monkeypatch.setattr(f"os.{name}", lambda *_: None)
    monkeypatch.setattr("bob.agent.inside.strace_lines.RUNTIME", os.devnull)
    with pytest.raises(Denial) as refused:
        paced(root, None, lines(root).replace(b"1 ", f"{os.getpid()} ".encode()))
    assert str(refused.value) == snapshot("the process that makes the workload wait failed: No such process")


def test_a_neighbour_that_had_nothing_to_wait_for_is_told(root: Path) -> None:
    reads = b'1 0.1 open("\\x66") = 4\n'
    assert paced(root, None, reads) == reads
    with closing(Neighbour(str(root), "ext4")) as other, pytest.raises(Denial) as refused:
        paced(root, other, reads)
    assert str(refused.value) == snapshot("the process that syncs beside the workload saw no call to sync after")


def test_a_strace_that_has_ended_is_no_failure(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workload ends while one that it has started is held at a call: all are killed, and strace ends beside the
    wait. The run was refused then, "No such process", at each pace but the first."""

    def gone(pid: int, number: int) -> None:
        if (pid, number) == (TRACER, signal.SIGCONT):
            raise ProcessLookupError(errno.ESRCH, "No such process")

    monkeypatch.setattr("os.kill", gone)
    assert paced(root, None, lines(root)) == lines(root)
    assert done(root) == " ".join(["wait 0.5"] * 3)
