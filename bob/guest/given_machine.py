"""A machine that bob did not boot, reached by SSH or through libvirt. It may be any Linux where bob can be root. Its
clock must show real time, unlike the clock of bob's own guests, which may run in virtual time."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import paramiko

from bob.agent.client import Agent, agent_file
from bob.agent.loss import GuestLost, Loss, LossCause
from bob.agent.shared import BOOT
from bob.errors import GuestError, UsageError
from bob.guest.domain import Domain
from bob.guest.shell import LOG, CommandStream, Shell
from bob.image import Image
from bob.subject import FileSystem, file_systems, layers

SCHEME = "ssh"
DOMAIN = "libvirt"
NO_ACCELERATOR = "ssh"  # in a result, this stands in place of an accelerator: bob does not know how the machine runs
MACHINE = "ssh://[USER@]HOST[:PORT]"
OF_LIBVIRT = "libvirt:[USER@]DOMAIN"
NEEDED = ("loop", "dm_mod", "dm_log_writes")  # kernel modules that recording needs
LATE = "nbd"
MEMORY_MIB = 512  # so much memory must be free, because the disks are in memory
_CONNECT_SECONDS = 20.0
_COME_BACK_SECONDS = 180.0  # a lost machine may take so long to boot
_LEAVE_SECONDS = 120.0  # an agent may take so long to remove everything, because it cannot always interrupt its work
_ASK_SECONDS = 60.0
_ALIVE_SECONDS, _SILENT_SECONDS = 15, 60  # between keepalives; without an answer by TCP, the end
_ATTEMPT_SECONDS = 20.0  # for one address of a domain, as it may get another address or need a reset
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*")
_DOMAIN = re.compile(rf"{DOMAIN}:(?://)?(?:({_USER.pattern})@)?([^/\s@]+(?: [^/\s@]+)*)")


@dataclass(frozen=True, slots=True)
class MachineAddress:
    """A machine's address as the user gave it. Without ``port`` (None), the configuration of SSH determines the port.
    If ``is_domain``, ``host`` is the name of a libvirt domain."""

    host: str
    user: str | None
    port: int | None
    is_domain: bool = False

    @property
    def name(self) -> str:
        user = f"{self.user}@" if self.user else ""
        if self.is_domain:
            return f"{DOMAIN}:{user}{self.host}"
        return f"{SCHEME}://{user}{self.host}" + (f":{self.port}" if self.port else "")

    @property
    def command(self) -> str:
        port = f"-p {self.port} " if self.port else ""
        return f"ssh {port}{self.user + '@' if self.user else ''}{self.host}"


class GivenImage(Image, frozen=True, kw_only=True):
    """A description of a machine that bob did not boot. Code that needs the image of a guest (its kernel and disk) uses
    this description instead. ``there`` has the names of the kernel modules that bob can use and that the machine has.
    bob refuses a machine that lacks one of the modules ``needed``. ``instead`` has two hints: what to do if the machine
    lacks a module, and if it lacks a package."""

    there: frozenset[str] = frozenset()

    @property
    def modules(self) -> frozenset[str]:
        return self.there

    needed: ClassVar[tuple[str, ...]] = NEEDED
    instead: ClassVar[tuple[str, str]] = (
        "boot the machine with a kernel that has the option as m or y", "install it there, with all its programs",
    )  # fmt: skip


def is_machine(name: str) -> bool:
    return name.startswith((f"{SCHEME}://", f"{DOMAIN}:"))


def place(address: str) -> MachineAddress:
    """Return the text ``address`` as a MachineAddress. The text is an ssh:// URL, or ``libvirt:`` and the name of a
    domain. Raises UsageError if the text is malformed."""
    if named := _DOMAIN.fullmatch(address):
        return MachineAddress(named[2], named[1], None, is_domain=True)
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise _no_address(address) from None
    user_is_odd = parts.username is not None and not _USER.fullmatch(parts.username)
    odd = parts.password is not None or parts.path.strip("/") or parts.query or parts.fragment
    if parts.scheme != SCHEME or not parts.hostname or odd or user_is_odd or parts.hostname.startswith("-"):
        raise _no_address(address)
    return MachineAddress(parts.hostname, parts.username, port)


def machine_image(address: str, progress: Callable[[str], None], connect: str | None = None) -> GivenImage:
    """Return a description of the machine at ``address``, for code that needs an image. bob's agent (bob's program on
    the machine) lists the machine's kernel, modules and programs. ``connect`` is the libvirt URI of a domain (None:
    virsh's default). Raises UsageError if bob cannot use the machine, GuestError if bob cannot reach it."""
    where = place(address)
    progress(f"looking at the machine {where.name}")
    known = list(file_systems().values())
    with GivenMachine.open(where, connect) as machine, machine.agent() as agent:
        about, _ = agent.ask(
            "machine",
            timeout=_ASK_SECONDS,
            modules=sorted({*NEEDED, LATE, *(fs.module for fs in known), *_modules_of_layers()}),
            programs=sorted({program for fs in known for program in _programs(fs)}),
            packages=sorted({fs.package for fs in known}),
        )
    _check(where, about)
    text = "\0".join((about["identity"], about["kernel"], about["build"]))
    return GivenImage(
        name=where.name,
        key=hashlib.sha256(text.encode()).hexdigest()[:16],
        folder=Path("/nonexistent"),
        kernel_release=about["kernel"],
        cmdline="",
        host_key="",
        built="",
        tools=_tools(known, about["programs"], about["packages"]),
        sizes={},
        there=frozenset(about["modules"]),
    )


def _tools(known: Sequence[FileSystem], programs: Sequence[str], packages: dict[str, str]) -> dict[str, str]:
    fit = [fs for fs in known if _programs(fs) <= set(programs)]
    return {fs.package: packages.get(fs.package, "(unknown version)") for fs in fit}


def _modules_of_layers() -> set[str]:
    return {name for layer in layers().values() for name in layer.modules}


def _programs(fs: FileSystem) -> set[str]:
    return {command[0] for command in (fs.mkfs, fs.check, fs.repair, fs.checker) if command}


def _check(where: MachineAddress, about: dict[str, Any]) -> None:
    online, memory, busy = about["processors"], about["memory_mib"], about["busy"]
    if about["processor"] != "x86_64":
        raise UsageError(
            f"{where.name} is {about['processor']}, and bob supports only x86_64", hint="use another machine"
        )
    if online != 1:
        raise UsageError(
            f"{where.name} has {online} processors; bob can record the exact order of requests on one only",
            hint="boot it with maxcpus=1, or write 0 to /sys/devices/system/cpu/cpuN/online of all but the first",
        )
    if not about["traces"]:
        raise UsageError(
            f"{where.name} lacks block tracepoints at /sys/kernel/tracing",
            hint="mount -t tracefs tracefs /sys/kernel/tracing; its kernel needs CONFIG_BLK_DEV_IO_TRACE",
        )
    if memory < MEMORY_MIB:
        raise UsageError(
            f"{where.name} has {memory} MiB of free memory, and bob needs {MEMORY_MIB}", hint="free some memory"
        )
    if busy:
        raise UsageError(
            f"bob needs {busy[0]} on {where.name}, where it is in use", hint=f"nbd-client -d /dev/{busy[0]}"
        )


@dataclass(slots=True)
class _Lent:
    agent: Agent
    stream: CommandStream
    users: int = 0


class GivenMachine:
    """A machine that bob did not boot, and bob's SSH connection to it. All callers share one agent (bob's program on
    the machine). If the connection is lost, the next caller gets a new agent. ``where`` is the address of the
    machine."""

    def __init__(self, where: MachineAddress, connect: str | None = None) -> None:
        self.where = where
        self._domain = Domain(where.host, connect) if where.is_domain else None
        self._shell: Shell | None = None
        self._connection: object = None
        self._lent: _Lent | None = None
        self._lock = threading.RLock()
        self._was_lost = False

    @classmethod
    @contextmanager
    def open(cls, where: MachineAddress, connect: str | None = None) -> Iterator[GivenMachine]:
        """Yield the machine, and end the connection after the ``with`` block. bob logs in only when a caller first
        needs the agent. ``connect`` is the libvirt URI of a domain (None: virsh's default). ``where`` is the address of
        the machine."""
        machine = cls(where, connect)
        try:
            yield machine
        finally:
            machine._log_out()
            if machine._domain is not None:
                machine._domain.close()

    @contextmanager
    def agent(self) -> Iterator[Agent]:
        """Yield the agent on the machine. Raises UsageError if the machine lacks Python or bob cannot be root on it.
        Raises GuestError if bob cannot reach the machine, and GuestLost if the connection breaks later."""
        with self._lock:
            if self._lent is None:
                self._lent = self._started()
            lent = self._lent
            lent.users += 1
        try:
            yield lent.agent
        finally:
            with self._lock:
                lent.users -= 1
                if not lent.users:
                    _end(lent.stream)
                    if self._lent is lent:
                        self._lent = None

    def _started(self) -> _Lent:
        shell = self._logged_in()
        packed = agent_file()
        command = f"{self._as_root(shell)}python3 -S -c {shlex.quote(BOOT)} {len(packed)}"
        stream = shell.open_channel(command, called="bob's agent")
        try:
            stream.write(packed)
            return _Lent(Agent(stream, real_time=True), stream)
        except BaseException:
            _end(stream)
            raise

    def _as_root(self, shell: Shell) -> str:
        said = shell.run("id -u; command -v python3; sudo -n true 2>/dev/null && echo sudo", _ASK_SECONDS)
        user, *words = said.stdout.decode(errors="replace").split()
        if "python3" not in said.stdout.decode(errors="replace"):
            raise UsageError(f"{self.where.name} lacks python3", hint="install it there")
        if user == "0":
            return "exec "
        if "sudo" not in words:
            raise UsageError(
                f"{self.where.name}: bob must be root there, and sudo asks for a password",
                hint="use ssh://root@HOST, or NOPASSWD in sudoers",
            )
        return "exec sudo -n "

    def _logged_in(self) -> Shell:
        if self._shell is None:
            deadline = _COME_BACK_SECONDS if self._was_lost else _CONNECT_SECONDS
            self._connection = mine = object()
            self._shell = Shell(self._attempt, deadline=deadline, on_loss=partial(self._lost, mine))
        return self._shell

    def _attempt(self, end: float) -> paramiko.Transport:
        if self._domain is None:
            return _log_in(self.where, end)
        failure: Exception = OSError()
        for host, port in self._domain.addresses():
            its_end = min(end, time.monotonic() + _ATTEMPT_SECONDS)
            try:
                transport = _log_in(MachineAddress(host, self.where.user, port), its_end)
            except (OSError, EOFError, paramiko.SSHException) as error:
                failure = error
            else:
                self._domain.found_again()
                return transport
        raise failure

    def _log_out(self) -> None:
        if self._shell is not None:
            self._shell.close()
            self._shell = None

    def _lost(self, connection: object, disconnected: bool, message: str) -> GuestError:
        with self._lock:
            if not self._was_lost and self._shell is None:
                command = self.where.command if self._domain is None else self._domain.by_hand
                return GuestError(f"{self.where.name} cannot be reached: {message}", hint=f"try: {command}")
            if self._connection is connection:
                self._was_lost = True
                if self._domain is not None:
                    self._domain.lost(hangs=not disconnected)
                self._lent = None
                self._log_out()
        cause = LossCause.DISCONNECTED if disconnected else LossCause.HUNG
        return GuestLost(Loss(cause, f"bob cannot see the console of {self.where.name}"), message)


def _end(stream: CommandStream) -> None:
    with suppress(GuestError):
        stream.end_input()
        stream.code(time.monotonic() + _LEAVE_SECONDS)
    stream.close()


def _log_in(where: MachineAddress, end: float) -> paramiko.Transport:
    """Try once to log in, until the monotonic time ``end``. Like ssh(1), this uses ~/.ssh/config, the keys in ~/.ssh
    and the key agent, and logs in only to a machine with a known host key. Raises GuestError if the machine refuses the
    login, or its host key is not known. Raises OSError, EOFError or SSHException if another attempt may succeed."""
    config = paramiko.SSHConfig()
    with suppress(OSError):
        config = paramiko.SSHConfig.from_path(str(Path("~/.ssh/config").expanduser()))
    said = config.lookup(where.host)
    user = where.user or said.get("user") or os.environ.get("USER") or "root"
    host, port = said["hostname"], where.port or int(said.get("port", 22))
    for way in ("proxyjump", "proxycommand"):
        if said.get(way, "none") != "none":
            hint = f"ssh -N -L 2222:localhost:{port} {where.host}; then --guest ssh://{user}@localhost:2222"
            raise GuestError(
                f"~/.ssh/config reaches {where.host} through another machine, and bob cannot do that", hint=hint
            )
    left = max(0.1, end - time.monotonic())
    client = paramiko.SSHClient()
    client.set_log_channel(LOG)
    client.load_system_host_keys()
    with suppress(OSError):
        client.load_system_host_keys("/etc/ssh/ssh_known_hosts")
    try:
        key = next((path for path in said.get("identityfile", ()) if Path(path).exists()), None)
        client.connect(host, port, user, key_filename=key, timeout=left, banner_timeout=left, auth_timeout=left)
    except paramiko.BadHostKeyException as error:
        raise GuestError(f"{where.name} has another host key than in ~/.ssh/known_hosts", hint=str(error)) from error
    except (paramiko.AuthenticationException, paramiko.PasswordRequiredException) as error:
        raise GuestError(f"{where.name} refuses {user}: {error}", hint=f"try: ssh -p {port} {user}@{host}") from error
    except paramiko.SSHException as error:
        if "not found in known_hosts" in str(error):
            hint = f"log in once by hand: ssh -p {port} {user}@{host}"
            raise GuestError(f"~/.ssh/known_hosts does not know {where.name}", hint=hint) from error
        if "No authentication methods" in str(error):
            hint = f"ssh-copy-id -p {port} {user}@{host}"
            raise GuestError(f"bob lacks a key to log in to {where.name}", hint=hint) from error
        raise
    transport = client.get_transport()
    assert transport is not None
    transport.set_keepalive(_ALIVE_SECONDS)
    if isinstance(transport.sock, socket.socket):
        transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENT_SECONDS * 1000)
    transport.client = client  # type: ignore[attr-defined]  # which ends the connection when it is collected
    return transport


def _no_address(address: str) -> UsageError:
    return UsageError(f"invalid machine address {address!r}", hint=f"expected --guest {MACHINE}, or {OF_LIBVIRT}")
