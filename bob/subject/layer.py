"""What lies between the disks and the file system, as data: md, device-mapper, a cache, encryption."""

from __future__ import annotations

from dataclasses import dataclass

LayerCommand = tuple[str, ...]
"""A program of the guest's with its arguments. ``DISK0`` stands for the path of the first device below, and so on."""

NAME = "bob-stack"
"""What device-mapper makes has a name that begins so: then the agent can take it away after a failure."""


@dataclass(frozen=True, slots=True)
class Layer:
    """How the devices below become one: the disks, or what the layer below makes.

    The guest runs the commands ``assemble``; then there is the ``device`` (a path). It runs ``release`` to have the
    devices below alone again. Each crash state is assembled anew: what a layer had in memory is lost in a crash.
    ``name`` is what tables and files call it.
    """

    name: str
    assemble: tuple[LayerCommand, ...]
    release: tuple[LayerCommand, ...]
    device: str
