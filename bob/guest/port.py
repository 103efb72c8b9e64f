"""A guest's port, a virtio-serial device. It carries bytes to and from a program in the guest. It is faster than SSH,
which costs 0.2 s of emulation for each MiB. The port may still hold bytes of an earlier connection. So a program first
sends a *word*, a random text that is new for each connection, and bob skips everything before that word."""

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
_LOOK_SECONDS = 0.25  # bob looks so often whether the program still runs: the port does not report it
_ENDED = "the connection to its port ended"


class PortStream:
    """A stream of bytes to and from ``program`` through the guest's port. If the stream fails, its methods raise the
    error that the caller's function ``on_loss`` returns. The first argument of this function is True if the connection
    broke, and False if the program was too slow. The second is the error message."""

    def __init__(self, connection: socket.socket, program: CommandStream, on_loss: OnLoss) -> None:
        self._connection = connection
        self._program = program
        self._on_loss = on_loss
        connection.settimeout(_LOOK_SECONDS)

    def read_exactly(self, length: int, timeout: float) -> bytes:
        """Return the next ``length`` bytes from the program. Raises the error that ``on_loss`` returns if the program
        or the guest ends, or after ``timeout`` seconds."""
        data, end = BytesIO(), time.monotonic() + timeout
        while (left := length - data.tell()) > 0:
            data.write(self._received(left, timeout, end))
        return data.getvalue()  # does not copy the bytes, which may be many MB

    def write(self, data: bytes, timeout: float = 600.0) -> None:
        """Send ``data``. Raises the error that ``on_loss`` returns if the program or the guest ends, or if the program
        reads nothing for ``timeout`` seconds."""
        view, end = memoryview(data), time.monotonic() + timeout
        while view:
            try:
                view = view[self._connection.send(view[:_PART]) :]
                end = time.monotonic() + timeout
            except TimeoutError:
                self._check(end, f"read nothing for {timeout:.0f} s")
            except OSError as error:
                raise self._on_loss(True, _ENDED) from error

    def skip_to(self, word: bytes, timeout: float) -> None:
        """Read and drop everything up to ``word`` (inclusive). After that word, the program sends nothing until it gets
        a request. Raises the errors of :meth:`read_exactly`."""
        last, end = b"", time.monotonic() + timeout
        while last != word:
            last = (last + self._received(_PART, timeout, end))[-len(word) :]

    def close(self) -> None:
        with suppress(OSError):
            self._connection.close()
        self._program.close()

    def _received(self, most: int, timeout: float, end: float) -> bytes:
        while True:
            try:
                if part := self._connection.recv(min(most, _PART)):
                    return part
            except TimeoutError:
                self._check(end, f"sent too little within {timeout:.0f} s")
                continue
            except OSError as error:
                raise self._on_loss(True, _ENDED) from error
            raise self._on_loss(True, _ENDED)

    def _check(self, end: float, what: str) -> None:
        self._program.check()
        if time.monotonic() > end:
            raise self._on_loss(False, f"the program at its port {what}")


def open_stream(path: Path, shell: Shell, command: str, on_loss: OnLoss) -> CommandStream | PortStream:
    """Start ``command`` in the guest, and return a stream of bytes to and from it. If possible, the stream goes through
    the port whose socket is at ``path``. Otherwise it goes through the command's standard input and output. To offer
    the port, bob adds an argument to the command: the word that the command must send first. If the command accepts, it
    writes ``USES_PORT`` to its standard output. Raises the error that ``on_loss`` returns if the guest or the command
    ends before it answers, or does not answer for 60 seconds."""
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
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return connection
