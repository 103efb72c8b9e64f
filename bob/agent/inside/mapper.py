"""Device-mapper by its ioctls (include/uapi/linux/dm-ioctl.h).

Under emulation, starting dmsetup for it takes longer than all that the kernel does.
"""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress

from bob.agent.inside.frames import Denial

CONTROL = "/dev/mapper/control"
HEADER = struct.Struct("=3I2IIiIIIQ128s129s7s")
"""struct dm_ioctl: version, data_size, data_start, target_count, open_count, flags, event_nr, padding, dev, name, uuid
and seven bytes for nothing."""
TARGET = struct.Struct("=QQiI16s")
"""struct dm_target_spec, before the target's parameters: sector_start, length, status, next, target_type"""
VERSION = (4, 0, 0)
COMMAND = 0xC138FD00
"""_IOWR(DM_IOCTL, 0, struct dm_ioctl); the number of a command is added to it."""
DEV_CREATE, DEV_REMOVE, DEV_SUSPEND, TABLE_LOAD = 3, 4, 6, 9


def create(name: str, sectors: int, target: str, parameters: str) -> int:
    """Make the device ``name``: one target over all of its sectors. Its minor number: it is /dev/dm-MINOR."""
    try:
        minor = _command(DEV_CREATE, name)
        try:
            table = TARGET.pack(0, sectors, 0, 0, target.encode()) + parameters.encode() + b"\0"
            _command(TABLE_LOAD, name, table + bytes(-len(table) % 8), targets=1)
            _command(DEV_SUSPEND, name)  # without the flag to suspend it, this resumes it
        except OSError:
            with suppress(OSError):
                _command(DEV_REMOVE, name)
            raise
    except OSError as error:
        raise Denial(f"device-mapper cannot make a device with the target {target}: {error.strerror}") from error
    return minor


def remove(name: str) -> None:
    """Take the device ``name`` away; its target writes what it has to write."""
    try:
        _command(DEV_REMOVE, name)
    except OSError as error:
        raise Denial(f"device-mapper cannot take the device {name} away: {error.strerror}") from error


def _command(number: int, name: str, data: bytes = b"", *, targets: int = 0) -> int:
    """Send a command about the device ``name``; the device's minor number."""
    size = HEADER.size + len(data)
    header = HEADER.pack(*VERSION, size, HEADER.size, targets, 0, 0, 0, 0, 0, name.encode(), b"", b"")
    buffer = bytearray(header + data)
    control = os.open(CONTROL, os.O_RDWR)
    try:
        fcntl.ioctl(control, COMMAND + number, buffer)
    finally:
        os.close(control)
    number_of_device: int = HEADER.unpack_from(buffer)[10]
    return number_of_device & 0xFF | number_of_device >> 12 & 0xFFF00  # new_decode_dev, include/linux/kdev_t.h
