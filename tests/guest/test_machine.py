"""Real guests: started, restored, lost, ended."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import closing
from pathlib import Path

import pytest

from bob.agent.loss import GuestLost, LossCause
from bob.guest import reap
from bob.guest.hypervisor import Hypervisor
from bob.guest.machine import Guest
from bob.guest.spec import Clock, GuestSpec

pytestmark = pytest.mark.vm

CHILD = """
    import time
    from bob.guest.hypervisor import Hypervisor
    from bob.guest.root import Root
    from bob.guest.spec import Clock, GuestSpec
    from bob.image import ensure
    with Hypervisor.open() as hypervisor, hypervisor.guest(GuestSpec(ensure("debian-bookworm", print))) as guest:
        print(guest.qemu_pid, Root.shared().path, guest.shell.run("uname -r", 60).stdout.decode(), flush=True)
        time.sleep(600)
"""


def child() -> tuple[subprocess.Popen[str], int, Path, str]:
    """Another bob with a guest of the same state: the process, its guest's QEMU, its folder, the guest's kernel."""
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(CHILD)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pid, folder, release = process.stdout.readline().split()
    return process, int(pid), Path(folder), release


def test_a_hypervisor_can_be_opened_many_times(hypervisor: Hypervisor) -> None:
    """libvirt counts how often its driver was opened inside a process, and has room for a dozen."""
    for _ in range(30):
        with Hypervisor.open() as another:
            assert another.versions == hypervisor.versions


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped, as /proc says it; a signal takes a moment."""
    for _ in range(100):
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
            return True
        time.sleep(0.01)
    return False


def test_a_guest_that_nobody_waits_for_stands_still(guest: Guest) -> None:
    with guest.awake():
        assert not is_stopped(guest.qemu_pid)
    assert is_stopped(guest.qemu_pid)
    with guest.awake():
        assert guest.shell.run("echo still there", 60).stdout == b"still there\n"
    with pytest.raises(ZeroDivisionError), guest.awake():
        raise ZeroDivisionError
    assert is_stopped(guest.qemu_pid)
    assert guest.running
    guest.kill()
    assert not guest.running
    with guest.awake():  # there is nobody to wake
        pass


def test_nobody_asks_whether_the_host_is_still_there(guest: Guest) -> None:
    """In virtual time two hours pass within a second, and ten minutes before the host could answer."""
    connections = guest.shell.run("ss --tcp --numeric --options state established", 60).stdout.decode()
    assert ":22" in connections
    assert "keepalive" not in connections


def test_two_guests_of_one_state_side_by_side(hypervisor: Hypervisor, spec: GuestSpec, guest: Guest) -> None:
    with hypervisor.guest(spec) as other:
        assert guest.identity != other.identity
        guest.shell.run("echo mine > /tmp/whose", 60)
        assert other.shell.run("cat /tmp/whose", 60).code == 1
        assert other.shell.run("uname -r", 60).stdout.decode().strip() == spec.image.kernel_release
    assert guest.running
    assert not other.running


def test_restored_guests_have_their_own_console(guest: Guest) -> None:
    guest.shell.run("echo a word > /dev/console", 60)
    assert "a word" in guest.console.tail(3)
    assert "bob: ready" not in guest.console.text()


def test_a_guest_of_another_bob_and_the_end_of_it(guest: Guest) -> None:
    """SIGKILL is the one end that no context manager sees."""
    process, pid, folder, release = child()
    assert guest.shell.run("uname -r", 60).stdout.decode().strip() == release
    assert reap.qemus(f"{folder}/") == [pid]
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while (folder.exists() or reap.arguments(pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not reap.arguments(pid)
    assert not folder.exists()
    assert guest.running


def test_killed(guest: Guest) -> None:
    guest.shell.run(":", 60)
    guest.kill()
    with pytest.raises(GuestLost) as lost:
        guest.shell.run(":", 60)
    assert lost.value.loss.cause is LossCause.VANISHED
    with pytest.raises(GuestLost):
        guest.connect()


def test_killed_while_a_command_runs(guest: Guest) -> None:
    with closing(guest.shell.open_channel("echo x; sleep 600")) as stream:
        stream.read_exactly(2, 60)
        os.kill(guest.qemu_pid, signal.SIGKILL)
        with pytest.raises(GuestLost) as lost:
            stream.read_exactly(1, 60)
    assert lost.value.loss.cause is LossCause.VANISHED


def test_panicked(guest: Guest) -> None:
    started = time.monotonic()
    with pytest.raises(GuestLost) as lost:
        guest.shell.run("echo c > /proc/sysrq-trigger", 120)
    assert lost.value.loss.cause is LossCause.PANICKED
    assert "sysrq" in lost.value.loss.console
    assert time.monotonic() - started < 60  # noticed at once, and not by the deadline


def test_hung(guest: Guest) -> None:
    os.kill(guest.qemu_pid, signal.SIGSTOP)
    with pytest.raises(GuestLost) as lost:
        guest.shell.run(":", 2)
    assert lost.value.loss.cause is LossCause.HUNG


def test_an_endless_command_counts_as_hung(guest: Guest) -> None:
    with pytest.raises(GuestLost) as lost:
        guest.shell.run("sleep 600", 1)
    assert lost.value.loss.cause is LossCause.HUNG


def test_virtual_time_makes_waiting_free(hypervisor: Hypervisor, spec: GuestSpec) -> None:
    with hypervisor.guest(GuestSpec(spec.image, Clock.VIRTUAL)) as guest:
        started = time.monotonic()
        assert guest.shell.run("sleep 40", 120).code == 0
        assert time.monotonic() - started < 20


def test_a_damaged_state_is_replaced(
    hypervisor: Hypervisor, spec: GuestSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hypervisor.guest(spec):
        state = hypervisor._state(spec)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    damaged = hypervisor._state(spec)
    shutil.copyfile(state.path, damaged.path)
    os.truncate(damaged.path, 10_000_000)
    with hypervisor.guest(spec) as guest:
        assert guest.shell.run(":", 60).code == 0
    assert damaged.path.stat().st_size > 20_000_000
