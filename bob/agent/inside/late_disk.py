"""A block device that completes writes late. A process of the agent serves it through the kernel's nbd driver
(include/uapi/linux/nbd.h).

bob does not use dm-delay for this, because dm-delay completes writes in the order of their arrival. If a file system
forgets to wait for a write and then waits for a later write, both would be complete, and the mistake would stay
hidden."""

from __future__ import annotations

import fcntl
import mmap
import os
import select
import socket
import struct
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import ClassVar, NoReturn

from bob.agent.inside import devices
from bob.agent.inside.devices import SECTOR, comes_true, opened, read_text, run_anyhow, write_text
from bob.agent.inside.frames import Denial

MOST_DISKS = 8
MOST_SERVED = 16  # further devices, for layers (served_disk.py)
# The commands of include/uapi/linux/nbd.h
NBD_SET_SOCK, NBD_SET_BLKSIZE, NBD_DO_IT, NBD_CLEAR_SOCK = 0xAB00, 0xAB01, 0xAB03, 0xAB04
NBD_SET_SIZE_BLOCKS, NBD_DISCONNECT, NBD_SET_FLAGS = 0xAB07, 0xAB08, 0xAB0A
HAS_FLAGS, SEND_FLUSH, SEND_FUA = 1, 4, 8
READY_SECONDS = 20.0  # the driver may take so long to make the device, by the guest's clock
STANDARD_FDS = 3

REQUEST = struct.Struct(">IIQQI")  # struct nbd_request: magic, type, handle, from, len
REPLY = struct.Struct(">IIQ")  # struct nbd_reply: magic, error, handle
REQUEST_MAGIC, REPLY_MAGIC = 0x25609513, 0x67446698
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
TYPE_MASK = 0xFFFF  # higher bits are flags (FUA); this disk carries out each write at once, and can ignore them
SETTLED_SECONDS = 0.01  # so long without a request, the disk completes a write: over two jiffies, far below writeback


class LateDisk:
    """The disk with number ``number``. Its content is the ``length`` bytes of the file ``work`` from byte ``start`` on.
    If several writes wait, the disk completes the write that came last if ``youngest`` is true, and otherwise the write
    that came first."""

    attached: ClassVar[list[LateDisk]] = []  # all disks that exist: the next recording may use them again

    def __init__(self, number: int, work: str, start: int, length: int, youngest: bool) -> None:
        self.name, self.path = f"nbd{number}", f"/dev/nbd{number}"
        self._made_of = number, work, start, length, youngest
        if not has_device(self.name):
            raise Denial("the guest's kernel lacks network block devices (module nbd): record with prompt completion")
        control, self._control = os.pipe()
        self._server = os.fork()
        if not self._server:
            _serve(self.path, work, start, length, control, youngest=youngest)
        os.close(control)
        self.attached.append(self)
        block, sectors = f"/sys/block/{self.name}", length // SECTOR
        if not comes_true(
            lambda: os.path.exists(f"{block}/pid") and read_text(f"{block}/size") == f"{sectors}\n", READY_SECONDS
        ):
            raise Denial(f"the kernel did not make {self.name} a device of {sectors} sectors")
        queue = f"{block}/queue"
        write_text(f"{queue}/scheduler", "none")
        write_text(f"{queue}/nomerges", "2")  # merged writes would complete at the same moment
        write_text(f"{queue}/max_sectors_kb", read_text(f"{queue}/max_hw_sectors_kb"))
        write_text(f"{queue}/rotational", "0")  # as a loop device: ext4 and btrfs write differently to a rotating disk
        devices.forget_file_systems()

    def serves(self, *made_of: object) -> bool:
        return self._made_of == made_of and os.waitpid(self._server, os.WNOHANG) == (0, 0)

    def close(self) -> None:
        """Remove the device. Writes that it has not completed are lost, so the caller must wait for all writes
        first."""
        self.attached.remove(self)
        os.close(self._control)
        with suppress(ChildProcessError):  # the process has ended by itself
            os.waitpid(self._server, 0)


def has_device(name: str) -> bool:
    """Return whether the kernel has this network block device. Load its driver first, if necessary."""
    if not os.path.exists(f"/sys/block/{name}"):
        most = MOST_DISKS + MOST_SERVED
        run_anyhow(["modprobe", "--quiet", "nbd", f"nbds_max={most}", "max_part=0"], "")
    return os.path.exists(f"/sys/block/{name}")


def late_disks(work: str, spans: Sequence[tuple[int, int]], *, youngest: bool) -> list[LateDisk]:
    """Return one disk for each of ``spans``, which are pairs of start and length (bytes) in the file ``work``. If the
    last recording had the same spans, return its disks again, because making a disk takes a third of a recording's
    time. The page cache of a disk holds nothing from the last recording: device-mapper, which lies above, passes bios
    on without the cache."""
    wanted = [(number, work, start, length, youngest) for number, (start, length) in enumerate(spans)]
    there = list(LateDisk.attached)
    if len(there) == len(wanted) and all(disk.serves(*made_of) for disk, made_of in zip(there, wanted)):
        return there
    clear_late_disks()
    return [LateDisk(*made_of) for made_of in wanted]


def clear_late_disks() -> None:
    for disk in tuple(LateDisk.attached):
        disk.close()


class LateServer:
    """A server that handles the kernel's nbd requests on the socket ``peer``, until ``control`` closes. The content of
    its disk is ``length`` bytes of the file ``disk`` from byte ``start`` on. The server carries out a write at once,
    but reports the write as complete only when the machine is idle. If several writes wait, it then reports the write
    that came last if ``youngest`` is true, and otherwise the write that came first. The server answers a flush at
    once."""

    def __init__(
        self, peer: socket.socket, control: int, disk: str, start: int, length: int, *, youngest: bool
    ) -> None:
        self._peer = peer
        self._control = control
        with opened(disk) as fd:
            self._disk = memoryview(mmap.mmap(fd, 0))[start : start + length]
        self._next = -1 if youngest else 0
        self._held: list[int] = []  # nbd handles of the writes that are not complete yet, in order
        self._header = memoryview(bytearray(REQUEST.size))

    def serve(self) -> None:
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
        return self._peer.recv_into(into, len(into), socket.MSG_WAITALL) == len(into)


def _serve(path: str, work: str, start: int, length: int, control: int, *, youngest: bool) -> NoReturn:
    """Serve the disk in this process until the agent closes its end of ``control``, or dies."""
    try:
        keep_open_only(control)
        # Run only while no other process does: a process that is awake may still send requests.
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        device = os.open(path, os.O_RDWR)
        ours, kernels = socket.socketpair()
        fcntl.ioctl(device, NBD_SET_SOCK, kernels.fileno())
        fcntl.ioctl(device, NBD_SET_BLKSIZE, SECTOR)
        fcntl.ioctl(device, NBD_SET_SIZE_BLOCKS, length // SECTOR)
        fcntl.ioctl(device, NBD_SET_FLAGS, HAS_FLAGS | SEND_FLUSH | SEND_FUA)
        driver = threading.Thread(target=drive, args=(device,), daemon=True)
        driver.start()
        LateServer(ours, control, work, start, length, youngest=youngest).serve()
        with suppress(OSError):
            fcntl.ioctl(device, NBD_DISCONNECT)
        ours.close()
        driver.join()
    finally:
        os._exit(0)


def drive(device: int) -> None:
    for request in (NBD_DO_IT, NBD_CLEAR_SOCK):
        with suppress(OSError):
            fcntl.ioctl(device, request)


def keep_open_only(control: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in range(STANDARD_FDS):
        os.dup2(nothing, fd)
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd >= STANDARD_FDS and fd != control:
            with suppress(OSError):
                os.close(fd)
