"""Runs in a guest: a "file system" that sends a flush without having waited for one of two writes.

It has no format: two writes of 4 KiB on the raw recorded device, by asynchronous I/O, then a flush after it has waited
for one of them only. Prints the log, the timeline and the device's numbers as one line of JSON.
"""

from __future__ import annotations

import base64
import ctypes
import json
import mmap
import os
import sys
from pathlib import Path

sys.path.insert(0, "/tmp/bob-agent.pyz")

from bob.agent.inside.documents import LOG_BYTES, TIMELINE_KIB
from bob.agent.inside.late_disk import clear_late_disks
from bob.agent.inside.recorded_disks import RecordedDisks

IO_SETUP, IO_GETEVENTS, IO_SUBMIT = 206, 208, 209
PWRITE = 1
BYTES = 4096
LENGTH = 1 << 20
DISK = "/tmp/bob/impatient"


class Request(ctypes.Structure):
    """struct iocb (include/uapi/linux/aio_abi.h)"""

    _fields_ = (
        ("data", ctypes.c_uint64), ("key", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("opcode", ctypes.c_uint16),
        ("priority", ctypes.c_int16), ("fd", ctypes.c_uint32), ("buffer", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64), ("offset", ctypes.c_int64), ("reserved", ctypes.c_uint64),
        ("request_flags", ctypes.c_uint32), ("eventfd", ctypes.c_uint32),
    )  # fmt: skip


libc = ctypes.CDLL(None, use_errno=True)


def call(number: int, *arguments: object) -> int:
    done = libc.syscall(ctypes.c_long(number), *arguments)
    if done < 0:
        raise OSError(ctypes.get_errno(), f"system call {number}")
    return done


class Write:
    """A write under way, in a queue of its own, so that it can be waited for alone."""

    def __init__(self, fd: int, number: int) -> None:
        self.context = ctypes.c_ulong(0)
        call(IO_SETUP, 4, ctypes.byref(self.context))
        self.memory = mmap.mmap(-1, BYTES)
        self.memory[:] = bytes([number]) * BYTES
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.request = Request(opcode=PWRITE, fd=fd, buffer=address, bytes=BYTES, offset=number * 8 * BYTES)
        call(IO_SUBMIT, self.context, ctypes.c_long(1), ctypes.byref(ctypes.pointer(self.request)))

    def wait(self) -> None:
        event = (ctypes.c_uint64 * 4)()
        assert call(IO_GETEVENTS, self.context, ctypes.c_long(1), ctypes.c_long(1), event, None) == 1


def main(completion: str, waited: list[int]) -> None:
    Path(DISK).write_bytes(bytes(LENGTH))
    device = RecordedDisks(DISK, [LENGTH], LOG_BYTES, completion, ())
    try:
        with device.timeline(TIMELINE_KIB) as timeline:
            timeline.mark("start")
            fd = os.open(device.assembly.path, os.O_RDWR | os.O_DIRECT)
            writes = {number: Write(fd, number) for number in (1, 2)}
            for number in waited:
                writes[number].wait()
            os.fsync(fd)
            timeline.mark("end")
            for number in writes.keys() - set(waited):
                writes[number].wait()
            os.close(fd)
            [log], _written = device.remove()
            timeline.stop()
            text = timeline.text()
    finally:
        clear_late_disks()
    disk = Path(DISK).read_bytes()
    holds = [number for number in (1, 2) if disk[number * 8 * BYTES] == number]
    Path(DISK).unlink()
    [numbers] = device.devices
    print(json.dumps({"log": base64.b64encode(log).decode(), "text": text, "device": numbers, "holds": holds}))


main(sys.argv[1], [int(number) for number in sys.argv[2:]])
