"""Several disks, and what is made of them: the device that a file system is on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bob.errors import MalformedError

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

    def to_json(self) -> dict[str, Any]:
        """As documents have it."""
        return {
            "name": self.name,
            "disks": list(self.disks),
            "assemble": [list(command) for command in self.assemble],
            "release": [list(command) for command in self.release],
            "device": self.device,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Stack:
        """The stack in a document. Raises KeyError or MalformedError for what is none."""
        assemble, release = (
            tuple(tuple(map(str, command)) for command in document[name]) for name in ("assemble", "release")
        )
        disks = tuple(document["disks"])
        if not disks or not all(type(length) is int and length > 0 for length in disks):
            raise MalformedError(f"a stack has disks of {document['disks']!r} bytes")
        return cls(str(document["name"]), disks, assemble, release, str(document["device"]))

    @property
    def for_agent(self) -> dict[str, Any]:
        """What the agent is told of it, beside the disks."""
        document = self.to_json()
        return {name: document[name] for name in ("assemble", "release", "device")}
