"""A running guest: its console, its connections, and how it ends."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bob.agent.loss import HANG, PANIC, STEP, GuestLost, Loss, LossCause
from bob.errors import GuestError
from bob.guest import reap
from bob.guest.domain_xml import Identity
from bob.guest.driver import LibvirtError, monitor
from bob.guest.network import Network
from bob.guest.port import PortStream, open_stream
from bob.guest.shell import CommandStream, Shell, ShellAddress
from bob.guest.spec import Accelerator, GuestSpec

CONNECT_SECONDS = 120.0  # SSH to a guest on a busy host takes a second, or longer beside ten other restores
_POLL_SECONDS = 0.02
_TAIL_LINES = 30
_PANIC_LINES = 60

_LAST_BREATH = 2.0  # seconds that QEMU may take to end after its connections broke: it closes its sockets first


@dataclass(frozen=True, slots=True)
class Console:
    """The console output of a guest, from its start or restore on."""

    path: Path

    def text(self) -> str:
        try:
            return self.path.read_text(errors="replace")
        except OSError:
            return ""

    def tail(self, lines: int = 20) -> str:
        return "\n".join(self.text().rstrip().splitlines()[-lines:])

    def wait_for(self, text: str, seconds: float, alive: Callable[[], bool]) -> bool:
        """Wait until the console output contains ``text``, and return True. If the guest dies first (``alive`` returns
        False), or ``seconds`` pass first, stop waiting and return False."""
        deadline = time.monotonic() + seconds
        while text not in self.text():
            if time.monotonic() > deadline or not alive():
                return text in self.text()
            time.sleep(_POLL_SECONDS)
        return True


@dataclass(eq=False)
class Guest:
    """A running guest of a :class:`bob.guest.hypervisor.Hypervisor`. ``port`` is the path of a socket on the host, or
    None. The socket leads to a virtio-serial device in the guest, which is faster than SSH (port.py)."""

    spec: GuestSpec
    accelerator: Accelerator
    network: Network
    identity: Identity
    console: Console
    _domain: Any
    port: Path | None = None
    _shell: Shell | None = None

    def __post_init__(self) -> None:
        self.qemu_pid = _qemu_of(self.identity)
        self._pidfd = os.pidfd_open(self.qemu_pid)
        self._watch = threading.Thread(target=self._hang_up_when_gone, name="guest's end", daemon=True)
        self._watch.start()

    @cached_property  # asked at the first connection, and not of a QEMU that may hang later
    def address(self) -> ShellAddress:
        """The address of the guest's SSH server. Raises GuestLost if QEMU does not answer."""
        try:
            host, port = self.network.address(lambda command: monitor(self._domain, command))
        except LibvirtError as error:
            raise self.lost(True, f"QEMU's monitor does not answer ({error})") from error
        image = self.spec.image
        return ShellAddress(host, port, "root", image.ssh_key, image.host_key, self.network.dial)

    @property
    def shell(self) -> Shell:
        if self._shell is None:
            self._shell = self.connect()
        return self._shell

    def connect(self, deadline: float = CONNECT_SECONDS) -> Shell:
        """Return another SSH connection, made within ``deadline`` seconds. If the connection is lost later, the
        methods of the returned Shell raise GuestLost."""
        return Shell(self.address, deadline=deadline, on_loss=self.lost, alive=lambda: self.running)

    def start(self, command: str) -> CommandStream | PortStream:
        """Start ``command`` in the guest, and return a stream of bytes to and from it. The stream goes through the
        guest's virtio-serial port if the guest has one and the command can use it, and otherwise through SSH, which is
        slower."""
        if self.port is None:
            return self.shell.open_channel(command)
        return open_stream(self.port, self.shell, command, self.lost)

    @property
    def running(self) -> bool:
        return self._pidfd >= 0 and not reap.has_ended(self._pidfd, 0)

    def lost(self, disconnected: bool, message: str) -> GuestLost:
        """Return the error to raise when the guest does not answer. ``disconnected`` says whether the connection to the
        guest broke. If it did not break, a deadline passed."""
        return GuestLost(diagnose(self.console, lambda: self.running, disconnected=disconnected), message)

    @contextmanager
    def awake(self) -> Iterator[None]:
        """Let the guest run while the block lasts, and then pause its QEMU (SIGSTOP). The clock of a guest in
        virtual time does not wait for the next timer, but jumps to it. So without the pause, such a guest would keep a
        processor busy while it waits for bob."""
        self._signal(signal.SIGCONT)
        try:
            yield
        finally:
            self._signal(signal.SIGSTOP)

    def save(self, path: Path) -> None:
        """Write the guest's whole state to the file ``path``, and end the guest. If that fails, the guest goes on, and
        libvirt's error is raised."""
        if self._shell is not None:
            self._shell.close()  # connections do not survive
            self._shell = None
        self._domain.save(str(path))

    def kill(self) -> None:
        """End the guest at once, and return when its QEMU is dead."""
        try:
            # libvirt's destroy would wait until init has collected the dead QEMU, two seconds in some containers.
            reap.kill(self.qemu_pid, str(self.identity.uuid))
        except PermissionError:  # the QEMU belongs to qemu:///system
            with suppress(LibvirtError):
                self._domain.destroy()

    def close(self) -> None:
        if self._shell is not None:
            self._shell.close()
        self.kill()
        if self._pidfd >= 0:
            self._watch.join()
            os.close(self._pidfd)
            self._pidfd = -1

    def _signal(self, number: signal.Signals) -> None:
        with suppress(OSError):  # QEMU is gone, or belongs to qemu:///system, and goes on
            signal.pidfd_send_signal(self._pidfd, number)

    def _hang_up_when_gone(self) -> None:
        reap.has_ended(self._pidfd)
        self.network.hang_up()


def _qemu_of(identity: Identity) -> int:
    pids = reap.qemus(str(identity.uuid))
    if not pids:
        raise GuestError(
            "the guest's QEMU is not on this machine, or it ended at once",
            hint="bob shares files with QEMU: run bob on the machine that --connect names",
        )
    return pids[0]


def diagnose(console: Console, is_running: Callable[[], bool], *, disconnected: bool = False) -> Loss:
    """Return why a guest does not answer. If its connection broke (``disconnected``), its QEMU may be about to end, so
    first wait up to two seconds for the end of QEMU."""
    deadline = time.monotonic() + (_LAST_BREATH if disconnected else 0)
    while (running := is_running()) and time.monotonic() < deadline:
        time.sleep(0.01)
    text = console.text()
    steps = STEP.findall(text)
    step = steps[-1].strip() if steps else ""
    if panic := PANIC.search(text):
        return Loss(LossCause.PANICKED, _from(text, panic.start()), step)
    if running and not disconnected and (hang := HANG.search(text)):
        return Loss(LossCause.HUNG, _from(text, hang.start()), step)
    cause = LossCause.DISCONNECTED if disconnected else LossCause.HUNG
    return Loss(cause if running else LossCause.VANISHED, console.tail(_TAIL_LINES), step)


def _from(text: str, place: int) -> str:
    first = text[:place].count("\n")
    return "\n".join(text.splitlines()[max(0, first - 1) :][:_PANIC_LINES])
