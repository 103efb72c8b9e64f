"""Serves a disk that takes its time, by the protocol of network block devices (nbd), to the kernel it runs on.

A write is carried out when it comes, and told to be done as late as can be: when the machine has nothing left to do
until some write is done, and then one write only. So a write is over before a flush is sent only where the file system
waited for it, or for one that is told later than it. Reads and flushes are answered as they come, and of a write that
is held a flush says nothing.

The protocol is that of include/uapi/linux/nbd.h; a request is 28 bytes, a reply 16.
"""

from __future__ import annotations

import mmap
import os
import select
import socket
import struct

REQUEST = struct.Struct(">IIQQI")
"""struct nbd_request: magic, type, handle, from, len"""
REPLY = struct.Struct(">IIQ")
"""struct nbd_reply: magic, error, handle"""
REQUEST_MAGIC, REPLY_MAGIC = 0x25609513, 0x67446698
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
TYPE_MASK = 0xFFFF
"""The command; the bits above it are flags (FUA), which a disk that carries everything out at once need not heed."""
SETTLED_SECONDS = 0.01
"""For so long no request may come before one more write is done. The kernel's threads act at once on what they
waited for; the time is for those that sleep a jiffy or two in between. It is small against the timers of writeback."""


class LateServer:
    """Answers the requests on ``peer`` with ``length`` bytes of the file ``disk`` from byte ``start`` on, until
    ``control`` is closed at its other end; of the writes that are held the ``youngest`` is done first, or else the
    oldest."""

    def __init__(
        self, peer: socket.socket, control: int, disk: str, start: int, length: int, *, youngest: bool
    ) -> None:
        self._peer = peer
        self._control = control
        fd = os.open(disk, os.O_RDWR)
        self._disk = memoryview(mmap.mmap(fd, 0))[start : start + length]
        os.close(fd)
        self._next = -1 if youngest else 0
        self._held: list[int] = []  # handles of writes, in the order in which they came
        self._header = memoryview(bytearray(REQUEST.size))

    def serve(self) -> None:
        """Serve until the other end of ``control`` is closed, or the kernel hangs up."""
        poll = select.poll()
        poll.register(self._peer, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        held, settled = self._held, round(SETTLED_SECONDS * 1000)
        while True:
            ready = poll.poll(settled if held else None)
            if not ready:
                self._done(held.pop(self._next))
            elif any(fd == self._control for fd, _event in ready) or not self._answer():
                return

    def _answer(self) -> bool:
        """Take one request; False if there are no more."""
        if not self._receive(self._header):
            return False
        magic, flags, handle, start, length = REQUEST.unpack(self._header)
        command = flags & TYPE_MASK
        if magic != REQUEST_MAGIC or command == DISCONNECT:
            return False
        if command == WRITE:
            self._held.append(handle)
            return self._receive(self._disk[start : start + length])
        self._done(handle)
        if command == READ:
            self._peer.sendall(self._disk[start : start + length])
        return True

    def _done(self, handle: int) -> None:
        self._peer.sendall(REPLY.pack(REPLY_MAGIC, 0, handle))

    def _receive(self, into: memoryview) -> bool:
        """Fill ``into`` from the kernel; False if it hung up."""
        return self._peer.recv_into(into, len(into), socket.MSG_WAITALL) == len(into)
