"""What the host tells of a recording: what is crashed, what is done to it, and how that is recorded.

Both ends have these types, so neither names a field that the other lacks. They travel as arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

LOG_BYTES = 512 * 1024 * 1024
TIMELINE_KIB = 8 * 1024


class LayerDocument(NamedTuple):
    """What the devices below become: the commands that ``assemble`` and ``release`` them, lists of words, and the path
    of the ``device`` that there is in between. ``DISK0`` stands for the path of the first device, and so on."""

    assemble: list[list[str]]
    release: list[list[str]]
    device: str


class SubjectDocument(NamedTuple):
    """What is crashed, but for its disks, which its base image says: what is made of them, and the file system on that.

    Commands are lists of words, ``DEVICE`` among them. The fields mean what those of
    :class:`bob.subject.file_system.FileSystem` do; ``mkfs`` and ``options`` (of the mount) have the user's in them.
    The ``layers`` are from the bottom up. Without any there is one disk.
    """

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
    """Operations to be performed, and the ``finish``, as bob/record/encode.py makes them; the blob has their data. A
    ``natural`` finish waits until the disks are quiet; ``phase`` is in seconds. ``paths`` are those that stat is asked
    about, before and after."""

    operations: list[list[Any]]
    finish: list[list[Any]]
    natural: bool
    phase: float
    paths: list[str]


class ScriptsDocument(NamedTuple):
    """The workload of a program to be run, for ``seconds`` at most. ``stores``, ``stacks`` and ``delay`` are as for
    :func:`bob.agent.inside.programs.run_workload`; where there is a delay, it may have a ``neighbour``."""

    seconds: float
    stores: bool = False
    delay: float = 0.0
    neighbour: bool = False
    stacks: bool = False


class Manner(NamedTuple):
    """How something is recorded: when the disks complete writes (``completion``, a value of Completion), after how many
    seconds of waiting for quiet disks it is refused (``deadline``), whether the clock is ``virtual``, and whether each
    step is printed on the console before it is taken (``narrates``)."""

    completion: str
    deadline: float
    virtual: bool
    narrates: bool = False
    log_bytes: int = LOG_BYTES
    timeline_kib: int = TIMELINE_KIB


def subject_from(fields: list[Any]) -> SubjectDocument:
    """Return the subject that has travelled."""
    subject = SubjectDocument(*fields)
    return subject._replace(layers=[LayerDocument(*layer) for layer in subject.layers])
