"""Several disks, and what is made of them: the device that a file system is on."""

from __future__ import annotations

from dataclasses import dataclass

Command = tuple[str, ...]
"""A program of the guest's with its arguments. In each, ``DISK0`` stands for the path of the first disk, and so on."""

NAME = "bob-stack"
"""What device-mapper makes of the disks has a name that begins so: then the agent can take it away after a failure."""


@dataclass(frozen=True, slots=True)
class Stack:
    """How ``disks``, their lengths in bytes, become one device.

    The guest runs the commands ``assemble``; then there is the ``device`` (a path). It runs ``release`` to have the
    disks alone again. Each crash state is assembled anew: what the layers between disk and file system had in memory is
    lost in a crash. ``name`` is what tables and files call it.
    """

    name: str
    disks: tuple[int, ...]
    assemble: tuple[Command, ...]
    release: tuple[Command, ...]
    device: str

    def __post_init__(self) -> None:
        if not self.disks or min(self.disks) <= 0:
            raise ValueError(f"a stack has disks of {self.disks!r} bytes")
