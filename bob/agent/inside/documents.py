"""The host's description of a recording: the subject, the work, and how to record it.

Both ends have these types, so neither names a field that the other lacks. They travel as arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

LOG_BYTES = 512 * 1024 * 1024
TIMELINE_KIB = 8 * 1024


class LayerDocument(NamedTuple):
    """A layer over the devices below: commands that ``assemble`` and ``release`` it (lists of words), and the path of
    the ``device`` that exists in between. ``DISK0`` stands for the path of the first device, and so on."""

    assemble: list[list[str]]
    release: list[list[str]]
    device: str


class SubjectDocument(NamedTuple):
    """The subject of crashes, except for its disks, which the base image has: the layers, and the file system on them.
    Commands are lists of words, with ``DEVICE`` among them. The fields are those of
    :class:`bob.subject.file_system.FileSystem`; ``mkfs`` and ``options`` (of the mount) include the user's. ``layers``
    are from the bottom up; without any there is one disk."""

    driver: str
    options: str
    mkfs: list[str]
    check: list[str]
    repair: list[str]
    checker: list[str]
    clean: list[int]
    expected_messages: list[str]
    lasting_inodes: bool
    quiet: float
    enough: float
    keeps_commits: bool
    layers: list[LayerDocument]


class OperationsDocument(NamedTuple):
    """Operations and the ``finish``, as bob/record/encode.py makes them; the blob has their data. A ``natural`` finish
    waits until the disks are quiet; ``phase`` is in seconds. stat is asked about ``paths`` before and after."""

    operations: list[list[Any]]
    finish: list[list[Any]]
    natural: bool
    phase: float
    paths: list[str]


class ScriptsDocument(NamedTuple):
    """The workload of a program, for ``seconds`` at most. ``stores``, ``stacks`` and ``delay`` are those of
    :func:`bob.agent.inside.programs.run_workload`; with a delay there may be a ``neighbour``."""

    seconds: float
    stores: bool = False
    delay: float = 0.0
    neighbour: bool = False
    stacks: bool = False


class Manner(NamedTuple):
    """How to record: when disks complete writes (``completion``, a value of Completion), and for how many seconds to
    wait for quiet disks (``deadline``). ``virtual`` is the clock; with ``narrates`` the console shows each step before
    it is taken."""

    completion: str
    deadline: float
    virtual: bool
    narrates: bool = False
    log_bytes: int = LOG_BYTES
    timeline_kib: int = TIMELINE_KIB


def subject_from(fields: list[Any]) -> SubjectDocument:
    """Return the subject from its array."""
    subject = SubjectDocument(*fields)
    return subject._replace(layers=[LayerDocument(*layer) for layer in subject.layers])
