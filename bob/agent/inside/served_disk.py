"""A network block device for a layer. A process of the agent serves it from another block device, through the page
cache, as nbd-server does. The kernel and this process speak over a pair of sockets, so no packet is lost."""

from __future__ import annotations

import fcntl
import os
import socket
import threading
from contextlib import suppress
from typing import NoReturn

from bob.agent.inside.devices import SECTOR, comes_true, forget_file_systems, opened, read_text, sectors_of, write_text
from bob.agent.inside.frames import Denial
from bob.agent.inside.late_disk import (
    DISCONNECT,
    FLUSH,
    HAS_FLAGS,
    MOST_DISKS,
    NBD_DISCONNECT,
    NBD_SET_BLKSIZE,
    NBD_SET_FLAGS,
    NBD_SET_SIZE_BLOCKS,
    NBD_SET_SOCK,
    READ,
    READY_SECONDS,
    REPLY,
    REPLY_MAGIC,
    REQUEST,
    REQUEST_MAGIC,
    SEND_FLUSH,
    SEND_FUA,
    TYPE_MASK,
    WRITE,
    drive,
    has_device,
    keep_open_only,
)

FUA = 1 << 16  # NBD_CMD_FLAG_FUA, above the command
FAILED = 5  # EIO in a reply


class ServedDisk:
    """The network block device of layer number ``number``, served from the block device at ``below``."""

    def __init__(self, number: int, below: str) -> None:
        name = f"nbd{MOST_DISKS + number}"
        self.path = f"/dev/{name}"
        if not has_device(name):
            raise Denial("the guest's kernel lacks network block devices (module nbd)")
        sectors = sectors_of(below)
        control, self._control = os.pipe()
        self._server = os.fork()
        if not self._server:
            _serve(self.path, below, sectors, control)
        os.close(control)
        block = f"/sys/block/{name}"
        if not comes_true(
            lambda: os.path.exists(f"{block}/pid") and read_text(f"{block}/size") == f"{sectors}\n", READY_SECONDS
        ):
            self.close()
            raise Denial(f"the kernel did not make {name} a device of {sectors} sectors")
        write_text(f"{block}/queue/scheduler", "none")
        forget_file_systems()

    def close(self) -> None:
        """End the server. Before that, it writes the dirty data in the page cache, as a server does that is stopped."""
        os.close(self._control)
        with suppress(ChildProcessError):
            os.waitpid(self._server, 0)


def answer(peer: socket.socket, disk: int) -> bool:
    """Carry out the next request on the socket ``peer``, on the open file ``disk``. Return False if no request follows,
    or if the request ends the connection."""
    header = peer.recv(REQUEST.size, socket.MSG_WAITALL)
    if len(header) < REQUEST.size:
        return False
    magic, flags, handle, start, length = REQUEST.unpack(header)
    command = flags & TYPE_MASK
    if magic != REQUEST_MAGIC or command == DISCONNECT:
        return False
    error, data = 0, b""
    written = peer.recv(length, socket.MSG_WAITALL) if command == WRITE else b""
    try:
        if command == READ:
            data = os.pread(disk, length, start)
        elif command == WRITE:
            os.pwrite(disk, written, start)
        if command == FLUSH or flags & FUA:
            os.fdatasync(disk)
    except OSError:
        error, data = FAILED, b""
    peer.sendall(REPLY.pack(REPLY_MAGIC, error, handle) + data)
    return True


def _serve(path: str, below: str, sectors: int, control: int) -> NoReturn:
    """Serve the disk in this process until the agent closes its end of ``control``, or dies."""
    try:
        keep_open_only(control)
        device = os.open(path, os.O_RDWR)
        ours, kernels = socket.socketpair()
        fcntl.ioctl(device, NBD_SET_SOCK, kernels.fileno())
        fcntl.ioctl(device, NBD_SET_BLKSIZE, SECTOR)
        fcntl.ioctl(device, NBD_SET_SIZE_BLOCKS, sectors)
        fcntl.ioctl(device, NBD_SET_FLAGS, HAS_FLAGS | SEND_FLUSH | SEND_FUA)
        driver = threading.Thread(target=drive, args=(device,), daemon=True)
        driver.start()
        threading.Thread(target=_end, args=(control, device), daemon=True).start()
        with opened(below) as disk:
            while answer(ours, disk):
                pass
        ours.close()
        driver.join()
    finally:
        os._exit(0)


def _end(control: int, device: int) -> None:
    """Wait until the agent closes ``control``. Then make the kernel end the connection."""
    os.read(control, 1)
    with suppress(OSError):
        fcntl.ioctl(device, NBD_DISCONNECT)
