"""A command on another machine, as a stream of raw bytes."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Self

import paramiko

from bob.errors import GuestError

_PART = 2**17


class ConnectionLost(GuestError):
    """The connection broke, or nothing came for too long."""


#: What to raise for a connection that broke (True) or does not answer (False), given what happened in words.
OnLoss = Callable[[bool, str], GuestError]


def connection_lost(_disconnected: bool, message: str) -> GuestError:
    """The error for machines of which nothing more is known."""
    return ConnectionLost(message, hint="is the machine still running?")


class CommandStream:
    """Standard input and output of a command on the machine. A context manager."""

    def __init__(self, channel: paramiko.Channel, command: str, on_loss: OnLoss) -> None:
        self._channel = channel
        self._command = command
        self._on_loss = on_loss

    def read_exactly(self, length: int, timeout: float) -> bytes:
        """Return the next ``length`` bytes. It counts as lost if the stream ends first, or ``timeout`` seconds pass."""
        end = time.monotonic() + timeout
        data = bytearray()
        while len(data) < length:
            try:
                part = self._receive(self._channel.recv, length - len(data), end)
            except TimeoutError as error:
                raise self._on_loss(False, f"{self._command!r} sent too little for {timeout:.0f} s") from error
            if not part:
                raise self._on_loss(True, f"{self._command!r} ended{self._last_words()}")
            data += part
        return bytes(data)

    def write(self, data: bytes, timeout: float = 600.0) -> None:
        """Send all of ``data``. It counts as lost if the stream is closed, or takes nothing for ``timeout`` seconds."""
        self._channel.settimeout(timeout)
        try:
            for start in range(0, len(data), _PART):  # sendall copies what is left for every packet
                self._channel.sendall(data[start : start + _PART])
        except TimeoutError as error:
            raise self._on_loss(False, f"{self._command!r} took nothing for {timeout:.0f} s") from error
        except (OSError, EOFError) as error:  # EOFError: the connection broke, and paramiko's own thread did not notice
            raise self._on_loss(True, f"{self._command!r} ended{self._last_words()}") from error

    def read_all(self, end: float) -> tuple[bytes, bytes]:
        """Return standard output and standard error, whole. Raises TimeoutError at the monotonic time ``end``."""
        both = []
        for receive in (self._channel.recv, self._channel.recv_stderr):
            parts = []
            while part := self._receive(receive, _PART, end):
                parts.append(part)
            both.append(b"".join(parts))
        return both[0], both[1]

    def code(self, end: float) -> int:
        """Return the exit code, -1 if a signal ended the command; wait for it until the monotonic time ``end``."""
        self._channel.status_event.wait(max(0.0, end - time.monotonic()))
        code = self._channel.exit_status
        if code == -1 and not self._connected():
            raise self._on_loss(True, f"the connection broke while {self._command!r} ran")
        return code

    def end_input(self) -> None:
        """Close only the direction to the command."""
        with suppress(OSError, EOFError):
            self._channel.shutdown_write()

    def check(self) -> None:
        """Raise the loss of the command if it has ended."""
        if self._channel.closed or self._channel.exit_status_ready():
            raise self._on_loss(True, f"{self._command!r} ended{self._last_words()}")

    def close(self) -> None:
        """Close both directions, which ends most commands."""
        with suppress(OSError, EOFError):
            self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self, receive: Callable[[int], bytes], most: int, end: float) -> bytes:
        self._channel.settimeout(max(0.001, end - time.monotonic()))
        return receive(most)

    def _connected(self) -> bool:
        transport = self._channel.get_transport()
        return transport is not None and transport.is_active()

    def _last_words(self) -> str:
        """Return the last line on standard error, which says why a command ended."""
        words = b""
        while self._channel.recv_stderr_ready():
            words += self._channel.recv_stderr(_PART)
        lines = words.decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""
