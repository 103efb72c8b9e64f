"""SSH into a guest: commands, files, and raw byte streams. Also to machines that bob did not boot."""

from __future__ import annotations

import io
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import paramiko

from bob.errors import GuestError

_RETRY_SECONDS = 0.05

# Nothing is ever held back: both ends share a host, and a full window would make stdout wait for stderr.
_WINDOW = 2**31 - 1
_PACKET = 2**17

_log = logging.getLogger("bob.guest.ssh")
_log.addHandler(logging.NullHandler())  # paramiko logs tracebacks of what it also raises


class ConnectionLost(GuestError):
    """The connection broke, or nothing came for too long."""


#: What to raise for a connection that broke (True) or does not answer (False), given what happened in words.
OnLoss = Callable[[bool, str], GuestError]


@dataclass(frozen=True, slots=True)
class Address:
    """Where to log in: ``key`` is a private key file; ``host_key`` ("ssh-ed25519 AAAA...") is checked if given."""

    host: str
    port: int
    user: str
    key: Path
    host_key: str | None = None


@dataclass(frozen=True, slots=True)
class Completed:
    """What a command left. ``code`` is its exit code, -1 if a signal ended it."""

    stdout: bytes
    stderr: bytes
    code: int


def _lost_connection(_disconnected: bool, message: str) -> GuestError:
    return ConnectionLost(message, hint="is the machine still running?")


class Shell:
    """One SSH connection. A context manager; usable from several threads.

    Losing it raises what ``on_loss`` returns: for bob's own guests GuestLost, otherwise ConnectionLost.
    """

    def __init__(self, address: Address, *, deadline: float = 60.0, on_loss: OnLoss = _lost_connection) -> None:
        """Log in, trying again until ``deadline`` seconds have passed; then, or if the key is refused, raises."""
        self._on_loss = on_loss
        self._sftp: paramiko.SFTPClient | None = None
        end = time.monotonic() + deadline
        while True:
            try:
                self._transport = _log_in(address, end)
                return
            except paramiko.AuthenticationException as error:
                raise GuestError(
                    f"{address.user}@{address.host} refuses the key {address.key}", hint=str(error)
                ) from error
            except (OSError, EOFError, paramiko.SSHException) as error:
                if time.monotonic() > end:
                    raise on_loss(False, f"no SSH within {deadline:.0f} s ({error})") from error
                time.sleep(_RETRY_SECONDS)

    def run(self, command: str, timeout: float) -> Completed:
        """Run ``command`` in the machine's shell and wait for it, ``timeout`` seconds at most."""
        end = time.monotonic() + timeout
        with self.open_channel(command, timeout=timeout) as stream:
            try:
                stdout, stderr = stream.read_all(end)
            except TimeoutError as error:
                raise self._on_loss(False, f"{command!r} did not end within {timeout:.0f} s") from error
            return Completed(stdout, stderr, stream.code(end))

    def push(self, source: bytes | Path, remote: str, timeout: float = 600.0) -> None:
        """Copy bytes or a local file to the file ``remote``, each step within ``timeout`` seconds.

        Raises GuestError if the machine refuses.
        """
        try:
            if self._sftp is None:
                self._sftp = paramiko.SFTPClient.from_transport(self._transport, _WINDOW, _PACKET)
            assert self._sftp is not None
            self._sftp.get_channel().settimeout(timeout)  # type: ignore[union-attr]
            with io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as file:
                self._sftp.putfo(file, remote)
        except TimeoutError as error:
            raise self._on_loss(False, f"copying to {remote} came to a halt for {timeout:.0f} s") from error
        except (OSError, EOFError, paramiko.SSHException) as error:
            if self._transport.is_active():
                raise GuestError(f"cannot write {remote} in the guest: {error}") from error
            raise self._on_loss(True, f"the connection broke while {remote} was copied") from error

    def open_channel(self, command: str, timeout: float = 60.0) -> Stream:
        """Start ``command`` and talk to it by its standard input and output."""
        try:
            channel = self._transport.open_session(_WINDOW, _PACKET, timeout=timeout)
            channel.settimeout(timeout)
            channel.exec_command(command)
        except (OSError, EOFError, paramiko.SSHException) as error:
            disconnected = not self._transport.is_active()
            raise self._on_loss(disconnected, f"cannot start {command!r} ({error})") from error
        return Stream(channel, command, self._on_loss)

    def close(self) -> None:
        """Log out."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Stream:
    """Standard input and output of a command on the machine, as raw bytes. A context manager."""

    def __init__(self, channel: paramiko.Channel, command: str, on_loss: OnLoss) -> None:
        self._channel = channel
        self._command = command
        self._on_loss = on_loss

    def read_exactly(self, length: int, timeout: float) -> bytes:
        """The next ``length`` bytes. Losing them raises: the stream ended, or ``timeout`` seconds passed."""
        end = time.monotonic() + timeout
        data = bytearray()
        while len(data) < length:
            try:
                part = self._receive(self._channel.recv, length - len(data), end)
            except TimeoutError as error:
                raise self._on_loss(False, f"{self._command!r} sent nothing for {timeout:.0f} s") from error
            if not part:
                raise self._on_loss(True, f"{self._command!r} ended{self._last_words()}")
            data += part
        return bytes(data)

    def write(self, data: bytes, timeout: float = 600.0) -> None:
        """Send all of ``data``, each part within ``timeout`` seconds."""
        self._channel.settimeout(timeout)
        try:
            self._channel.sendall(data)
        except TimeoutError as error:
            raise self._on_loss(False, f"{self._command!r} took nothing for {timeout:.0f} s") from error
        except OSError as error:
            raise self._on_loss(True, f"{self._command!r} ended{self._last_words()}") from error

    def read_all(self, end: float) -> tuple[bytes, bytes]:
        """Standard output and error, whole. Raises TimeoutError at the monotonic time ``end``."""
        both = []
        for receive in (self._channel.recv, self._channel.recv_stderr):
            parts = []
            while part := self._receive(receive, _PACKET, end):
                parts.append(part)
            both.append(b"".join(parts))
        return both[0], both[1]

    def code(self, end: float) -> int:
        """The exit code, -1 if a signal ended the command; waits for it until the monotonic time ``end``."""
        self._channel.status_event.wait(max(0.0, end - time.monotonic()))
        code = self._channel.exit_status
        if code == -1 and not self._is_connected():
            raise self._on_loss(True, f"the connection broke while {self._command!r} ran")
        return code

    def close(self) -> None:
        """Close both directions, which ends most commands."""
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _receive(self, receive: Callable[[int], bytes], most: int, end: float) -> bytes:
        self._channel.settimeout(max(0.001, end - time.monotonic()))
        return receive(most)

    def _is_connected(self) -> bool:
        transport = self._channel.get_transport()
        return transport is not None and transport.is_active()

    def _last_words(self) -> str:
        if not self._is_connected() or not self._channel.recv_stderr_ready():
            return ""
        words = self._channel.recv_stderr(_PACKET).decode(errors="replace").strip()
        return f": {words.splitlines()[-1]}" if words else ""


def _log_in(address: Address, end: float) -> paramiko.Transport:
    """One attempt, until the monotonic time ``end``. Raises OSError, EOFError or SSHException."""

    def left() -> float:
        return max(0.1, end - time.monotonic())

    connection = socket.create_connection((address.host, address.port), timeout=left())
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    transport = paramiko.Transport(connection, default_window_size=_WINDOW, default_max_packet_size=_PACKET)
    try:
        transport.set_log_channel(_log.name)
        transport.daemon = True
        transport.banner_timeout = transport.handshake_timeout = transport.auth_timeout = left()
        transport.start_client(timeout=left())
        _check_host_key(address, transport.get_remote_server_key())
        transport.auth_publickey(address.user, _private_key(address.key))
    except BaseException:
        transport.close()
        raise
    return transport


def _private_key(path: Path) -> paramiko.PKey:
    try:
        key: paramiko.PKey = paramiko.PKey.from_path(path)
        return key
    except (OSError, ValueError, paramiko.SSHException) as error:
        raise GuestError(f"cannot use the key {path}: {error}") from error


def _check_host_key(address: Address, found: paramiko.PKey) -> None:
    if address.host_key is not None and address.host_key.split()[:2] != [found.get_name(), found.get_base64()]:
        raise GuestError(f"{address.host}:{address.port} is not the machine it should be: another host key")
