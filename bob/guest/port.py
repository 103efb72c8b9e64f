"""A guest's port, a virtio-serial device: bytes to and from a program in it, past its network. Encryption is dear in
emulation (0.2 s of the processor for a MiB). Leftovers of an earlier connection may come out of it, so a program begins
with a word of its own, and nothing before that counts."""

from __future__ import annotations

import secrets
import socket
import time
from contextlib import suppress
from io import BytesIO
from pathlib import Path

from bob.agent.shared import USES_PORT
from bob.guest.shell import CommandStream, OnLoss, Shell

_PART = 2**18
_WORD_BYTES = 16
_START_SECONDS = 60.0
_LOOK_SECONDS = 0.25  # bob looks so often whether the program still runs: the port does not tell
_ENDED = "the connection to its port ended"


class PortStream:
    """The port of a guest, to a ``program`` in it that was started by SSH."""

    def __init__(self, connection: socket.socket, program: CommandStream, on_loss: OnLoss) -> None:
        self._connection = connection
        self._program = program
        self._on_loss = on_loss
        connection.settimeout(_LOOK_SECONDS)

    def read_exactly(self, length: int, timeout: float) -> bytes:
        """Return the next ``length`` bytes. It counts as lost if the program or the guest ends first, or after
        ``timeout`` seconds."""
        data, end = BytesIO(), time.monotonic() + timeout
        while (left := length - data.tell()) > 0:
            data.write(self._received(left, timeout, end))
        return data.getvalue()  # not a copy: it may be many MB

    def write(self, data: bytes, timeout: float = 600.0) -> None:
        """Send all of ``data``. It counts as lost if the program or the guest has ended, or takes nothing for
        ``timeout`` seconds."""
        view, end = memoryview(data), time.monotonic() + timeout
        while view:
            try:
                view = view[self._connection.send(view[:_PART]) :]
                end = time.monotonic() + timeout
            except TimeoutError:
                self._check(end, f"took nothing for {timeout:.0f} s")
            except OSError as error:
                raise self._on_loss(True, _ENDED) from error

    def skip_to(self, word: bytes, timeout: float) -> None:
        """Read up to ``word``, after which nothing comes without a request; raises as :meth:`read_exactly` does."""
        last, end = b"", time.monotonic() + timeout
        while last != word:
            last = (last + self._received(_PART, timeout, end))[-len(word) :]

    def close(self) -> None:
        """Close it, which ends a program that reads from it."""
        with suppress(OSError):
            self._connection.close()
        self._program.close()

    def _received(self, most: int, timeout: float, end: float) -> bytes:
        """Return the bytes that are there, or come first; up to ``most``."""
        while True:
            try:
                if part := self._connection.recv(min(most, _PART)):
                    return part
            except TimeoutError:
                self._check(end, f"sent too little for {timeout:.0f} s")
                continue
            except OSError as error:
                raise self._on_loss(True, _ENDED) from error
            raise self._on_loss(True, _ENDED)

    def _check(self, end: float, what: str) -> None:
        """See that the program has not ended, and that it is not ``end`` yet (monotonic)."""
        self._program.check()
        if time.monotonic() > end:
            raise self._on_loss(False, f"the program at its port {what}")


def open_stream(path: Path, shell: Shell, command: str, on_loss: OnLoss) -> CommandStream | PortStream:
    """Start ``command`` in the guest whose port is the socket ``path``, and talk to it: by the port if the guest has a
    driver for it, else by standard input and output. The command gets one argument more: the word to begin with. Before
    that it says by standard output whether it ``USES_PORT``. Raises what ``on_loss`` returns where the guest is lost,
    or does not answer."""
    connection = _connected(path)
    if connection is None:
        return shell.open_channel(command)
    word = secrets.token_hex(_WORD_BYTES)
    try:
        program = shell.open_channel(f"{command} {word}")
        if program.read_exactly(len(USES_PORT), _START_SECONDS) != USES_PORT:
            connection.close()
            return program
        stream = PortStream(connection, program, on_loss)
        stream.skip_to(word.encode(), _START_SECONDS)
    except BaseException:
        connection.close()
        raise
    return stream


def _connected(path: Path) -> socket.socket | None:
    """Return a connection to the socket ``path``; None if it refuses."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return connection
