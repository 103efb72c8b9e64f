"""The guest's end of the port between bob and its agent (bob/guest/port.py): a virtio-serial device."""

from __future__ import annotations

import glob
import io
import os
import select
from typing import Any, BinaryIO

from bob.agent.inside.devices import comes_true, read_text

PORT_NAME = "bob.agent"
USES_PORT, NO_PORT = b"+", b"-"  # the agent's first word on standard output, with a port and without
HOST_SECONDS = 10.0  # wait so long for the host at the other end: the guest may learn late that it is there
PART = 64 * 1024


class Port(io.RawIOBase):
    """The port as a raw stream. The stream ends when the agent's standard input closes, because the device does not
    show when the host process ends. (Another host process may then connect, which the device does not report. While no
    host process is connected, a write to the device waits for ever.)"""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(0, select.POLLIN)

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return os.readv(self._fd, [buffer]) if self._is_ready(select.POLLIN) else 0

    def write(self, data: Any) -> int:
        if not self._is_ready(select.POLLOUT):
            raise BrokenPipeError("the other end of the port is closed")
        return os.write(self._fd, data)

    def has_host(self) -> bool:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return not any(events & select.POLLHUP for _fd, events in poll.poll(0))

    def _is_ready(self, event: int) -> bool:
        self._poll.register(self._fd, event)
        events = dict(self._poll.poll())
        return 0 not in events and bool(events[self._fd] & event)


def open_port() -> tuple[BinaryIO, BinaryIO] | None:
    """Return the port as a pair of streams, one to read from and one to write to. Return None if the guest lacks a
    port, or if no host process is connected to the port."""
    for folder in glob.glob("/sys/class/virtio-ports/*"):
        if read_text(f"{folder}/name").strip() != PORT_NAME:
            continue
        try:
            port = Port(os.open(f"/dev/{os.path.basename(folder)}", os.O_RDWR))
        except OSError:
            return None
        if not comes_true(port.has_host, HOST_SECONDS, 0.01):
            return None
        return io.BufferedReader(port, PART), io.BufferedWriter(port, PART)
    return None
