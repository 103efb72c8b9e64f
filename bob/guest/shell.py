"""SSH to a guest, or to a machine that bob did not boot: commands, files and byte streams."""

import io
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import paramiko

from bob.errors import GuestError

_RETRY_SECONDS = 0.05
_DIAL_SECONDS = 5.0  # then bob dials again, as a machine never answers a request that came while it was gone

# The window is large: both ends share a host, and with a full window stdout would wait for stderr.
_WINDOW = 2**31 - 1
_PACKET = 2**17

# The first choices; paramiko's other choices follow. With an emulated guest (2 busy cores) curve25519 connects in 0.7
# s, group 14 in 1.5 s. AES-GCM takes 3.7 MB/s up and 6.7 MB/s down by SFTP, AES-CTR with HMAC-SHA1 1.8 and 3.5.
_KEY_EXCHANGE = "curve25519-sha256@libssh.org"
_CIPHER = "aes128-gcm@openssh.com"

LOG = "bob.guest.ssh"
_log = logging.getLogger(LOG)
_log.addHandler(logging.NullHandler())  # paramiko raises its errors, and also logs their tracebacks


@dataclass(frozen=True, slots=True)
class ShellAddress:
    """The address of an SSH server. ``key`` is the file of the user's private key. ``host_key`` ("ssh-ed25519 AAAA...")
    is checked if given. ``dial`` connects to (host, port) within a number of seconds, or raises OSError."""

    host: str
    port: int
    user: str
    key: Path
    host_key: str | None = None
    dial: Callable[[tuple[str, int], float], socket.socket] = socket.create_connection


LogIn = Callable[[float], paramiko.Transport]
"""A function that tries once to log in, until a monotonic time. It raises OSError, EOFError or SSHException if another
attempt may succeed."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The output of a command, and its exit code, which is -1 if a signal ended the command."""

    stdout: bytes
    stderr: bytes
    code: int


#: Makes an error from words. The first argument is True if the connection broke, False if the machine does not answer.
OnLoss = Callable[[bool, str], GuestError]


@dataclass(eq=False)
class CommandStream:
    """The input and output of a command that runs on the machine. ``on_loss`` is the caller's function that returns the
    exception to raise if the command or the connection is lost."""

    _channel: paramiko.Channel
    _command: str
    _on_loss: OnLoss

    def read_exactly(self, length: int, timeout: float) -> bytes:
        """Return the next ``length`` bytes of the command's output. Raises the error that ``on_loss`` returns if the
        stream ends first, or after ``timeout`` seconds."""
        end = time.monotonic() + timeout
        data = bytearray()
        while len(data) < length:
            try:
                part = self._receive(self._channel.recv, length - len(data), end)
            except TimeoutError as error:
                raise self._on_loss(False, f"{self._command!r} sent too little within {timeout:.0f} s") from error
            if not part:
                raise self._on_loss(True, f"{self._command!r} ended{self._last_words()}")
            data += part
        return bytes(data)

    def write(self, data: bytes, timeout: float = 600.0) -> None:
        """Send ``data`` to the command. Raises the error that ``on_loss`` returns if the stream is closed, or if the
        command reads nothing for ``timeout`` seconds."""
        self._channel.settimeout(timeout)
        try:
            for start in range(0, len(data), _PACKET):  # sendall would copy the remaining data for every packet
                self._channel.sendall(data[start : start + _PACKET])
        except TimeoutError as error:
            raise self._on_loss(False, f"{self._command!r} read nothing for {timeout:.0f} s") from error
        except (OSError, EOFError) as error:  # EOFError: the connection broke, and paramiko's own thread did not notice
            raise self._on_loss(True, f"{self._command!r} ended{self._last_words()}") from error

    def read_all(self, end: float) -> tuple[bytes, bytes]:
        """Wait for the end of standard output and standard error, and return both outputs. Raises TimeoutError if one
        of them has not ended by the monotonic time ``end``."""
        both = []
        for receive in (self._channel.recv, self._channel.recv_stderr):
            parts = []
            while part := self._receive(receive, _PACKET, end):
                parts.append(part)
            both.append(b"".join(parts))
        return both[0], both[1]

    def code(self, end: float) -> int:
        """Wait for the end of the command, at most until the monotonic time ``end``. Return the command's exit code.
        Return -1 if a signal ended the command, or if the command still runs."""
        self._channel.status_event.wait(max(0.0, end - time.monotonic()))
        code, transport = self._channel.exit_status, self._channel.get_transport()
        if code == -1 and (transport is None or not transport.is_active()):
            raise self._on_loss(True, f"the connection broke while {self._command!r} ran")
        return code

    def end_input(self) -> None:
        with suppress(OSError, EOFError):
            self._channel.shutdown_write()

    def check(self) -> None:
        if self._channel.closed or self._channel.exit_status_ready():
            raise self._on_loss(True, f"{self._command!r} ended{self._last_words()}")

    def close(self) -> None:
        with suppress(OSError, EOFError):
            self._channel.close()

    def _receive(self, receive: Callable[[int], bytes], most: int, end: float) -> bytes:
        self._channel.settimeout(max(0.001, end - time.monotonic()))
        return receive(most)

    def _last_words(self) -> str:
        words = b""
        while self._channel.recv_stderr_ready():
            words += self._channel.recv_stderr(_PACKET)
        lines = words.decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""


class Shell:
    """An SSH connection, usable from several threads. If the connection breaks or the machine does not answer, the
    methods raise the error that the caller's function ``on_loss`` returns. The connection sends no keepalives. With
    virtual time, the clock of an idle guest jumps to its next timer. So hours could pass in the guest between two
    keepalives."""

    def __init__(
        self,
        address: ShellAddress | LogIn,
        *,
        deadline: float = 60.0,
        on_loss: OnLoss,
        alive: Callable[[], bool] = lambda: True,
    ) -> None:
        """Log in within ``deadline`` seconds, as long as the machine is ``alive``. Raises GuestError if the machine
        refuses the key."""
        self._on_loss = on_loss
        self._sftp: paramiko.SFTPClient | None = None
        self._sftp_lock = threading.Lock()
        end = time.monotonic() + deadline
        while True:
            try:
                self._transport = _log_in(address, end) if isinstance(address, ShellAddress) else address(end)
                return
            except (OSError, EOFError, paramiko.SSHException) as error:
                if time.monotonic() > end or not alive():
                    raise on_loss(not alive(), f"no SSH connection within {deadline:.0f} s ({error})") from error
                time.sleep(_RETRY_SECONDS)

    def run(self, command: str, timeout: float) -> CommandResult:
        """Run ``command`` in the machine's shell, and wait for it. Raises the error that ``on_loss`` returns, after
        ``timeout`` seconds."""
        end = time.monotonic() + timeout
        with closing(self.open_channel(command, timeout)) as stream:
            try:
                stdout, stderr = stream.read_all(end)
            except TimeoutError as error:
                raise self._on_loss(False, f"{command!r} did not end within {timeout:.0f} s") from error
            return CommandResult(stdout, stderr, stream.code(end))

    def push(self, data: bytes, remote: str, timeout: float = 600.0) -> None:
        """Write ``data`` to the file ``remote`` on the machine. Raises the error that ``on_loss`` returns if the
        machine takes no data for ``timeout`` seconds, and GuestError if it refuses the file."""
        with self._sftp_lock, self._losing(f"copying to {remote}"):
            if self._sftp is None:
                with self._within(timeout):
                    self._sftp = paramiko.SFTPClient.from_transport(self._transport, _WINDOW, _PACKET)
            assert self._sftp is not None
            self._sftp.sock.settimeout(timeout)
            self._sftp.putfo(io.BytesIO(data), remote)

    def open_channel(self, command: str, timeout: float = 60.0, called: str = "") -> CommandStream:
        """Start ``command`` within ``timeout`` seconds, and return a stream to its standard input and from its output.
        If ``called`` is not empty, error messages use this name for the command."""
        with self._losing(f"starting {command!r}"), self._within(timeout):
            channel = self._transport.open_session(_WINDOW, _PACKET, timeout=timeout)
            channel.exec_command(command)
        return CommandStream(channel, called or command, self._on_loss)

    def close(self) -> None:
        self._transport.close()

    @contextmanager
    def _losing(self, what: str) -> Iterator[None]:
        """Raise the error that ``on_loss`` returns if the connection breaks in the ``with`` block, or if a call in the
        block times out. Raise GuestError for other failures. ``what`` describes the work of the block for error
        messages, such as "copying to FILE"."""
        try:
            yield
        except TimeoutError as error:
            raise self._on_loss(False, f"{what} took too long") from error
        except (OSError, EOFError, paramiko.SSHException) as error:
            # A write to a broken connection raises EOFError, even before paramiko's own thread has noticed the break.
            if isinstance(error, EOFError) or not self._transport.is_active():
                raise self._on_loss(True, f"{what}, the connection broke") from error
            raise GuestError(f"{what} failed: {error}") from error

    @contextmanager
    def _within(self, seconds: float) -> Iterator[None]:
        """End the calls to paramiko in the ``with`` block after ``seconds``, because they could wait for ever. Raises
        TimeoutError in that case."""
        end = time.monotonic() + seconds
        timer = threading.Timer(seconds, self._transport.close)
        timer.daemon = True
        timer.start()
        try:
            yield
        except (EOFError, paramiko.SSHException) as error:
            if time.monotonic() >= end:
                raise TimeoutError from error
            raise
        finally:
            timer.cancel()


def _log_in(address: ShellAddress, end: float) -> paramiko.Transport:
    left = max(0.1, end - time.monotonic())
    connection = address.dial((address.host, address.port), min(left, _DIAL_SECONDS))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    transport = paramiko.Transport(connection, default_window_size=_WINDOW, default_max_packet_size=_PACKET)
    try:
        transport.set_log_channel(LOG)
        transport.daemon = True
        options = transport.get_security_options()
        options.kex = _first(_KEY_EXCHANGE, options.kex)
        options.ciphers = _first(_CIPHER, options.ciphers)
        transport.banner_timeout = transport.handshake_timeout = transport.auth_timeout = left
        transport.start_client(timeout=left)
        _check_host_key(address, transport.get_remote_server_key())
        transport.auth_publickey(address.user, _private_key(address.key))
    except paramiko.AuthenticationException as error:
        refused = transport.is_active() and time.monotonic() < end
        transport.close()
        if refused:  # if not, the connection broke: paramiko calls that a failed authentication, too
            raise GuestError(f"{address.user}@{address.host} refuses the key {address.key}") from error
        raise
    except BaseException:
        transport.close()
        raise
    return transport


def _first(choice: str, known: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(known, key=lambda name: name != choice))


def _private_key(path: Path) -> paramiko.PKey:
    try:
        key: paramiko.PKey = paramiko.PKey.from_path(path)
        return key
    except (OSError, ValueError, paramiko.SSHException) as error:
        raise GuestError(f"cannot use the key {path}: {error}") from error


def _check_host_key(address: ShellAddress, found: paramiko.PKey) -> None:
    if address.host_key is not None and address.host_key.split()[:2] != [found.get_name(), found.get_base64()]:
        raise GuestError(f"{address.host}:{address.port} has another host key than it should")
