"""The host's description of a recording: subject, work and manner. Both ends share the types; frames have arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

LOG_BYTES = 512 * 1024 * 1024
TIMELINE_KIB = 8 * 1024


class LayerDocument(NamedTuple):
    """A layer: one device of ``sectors``, made of the devices ``below``, which are numbers: of the disks, then of the
    layers from the bottom up. The fields are those of :class:`bob.subject.layer.Layer`; commands are lists of words."""

    name: str
    below: list[int]
    sectors: int
    start: list[list[str]]
    make: list[list[str]]
    stop: list[list[str]]
    device: str
    modules: list[str]


class SubjectDocument(NamedTuple):
    """The file system that is crashed, except for its disks. Commands are lists of words, with ``DEVICE`` among them.
    The fields are those of :class:`bob.subject.file_system.FileSystem`; ``mkfs`` and mount ``options`` include the
    user's. ``layers`` go from the bottom up; if there are none, there is one disk. The disks ``missing``
    (numbers) failed before the operations; those ``lost`` are not there after the crash."""

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
    missing: list[int]
    lost: list[int]


class OperationsDocument(NamedTuple):
    """Operations and the ``finish``, as bob/record/encode.py makes them; the blob has their data. A ``natural`` finish
    waits for quiet disks; ``phase`` is in seconds. The agent calls stat on ``paths`` before and after."""

    operations: list[list[Any]]
    finish: list[list[Any]]
    natural: bool
    phase: float
    paths: list[str]


class ScriptsDocument(NamedTuple):
    """A program's workload, ``seconds`` at most; the rest is as in :func:`bob.agent.inside.programs.run_workload`."""

    seconds: float
    stores: bool = False
    delay: float = 0.0
    neighbour: bool = False
    stacks: bool = False


class Manner(NamedTuple):
    """How to record: when disks complete writes (a value of Completion), and how many seconds to wait for quiet disks.
    ``virtual``: the guest's clock is. ``narrates``: the agent prints each step on the console before it begins."""

    completion: str
    deadline: float
    virtual: bool
    narrates: bool = False
    log_bytes: int = LOG_BYTES
    timeline_kib: int = TIMELINE_KIB


def subject_from(fields: list[Any]) -> SubjectDocument:
    subject = SubjectDocument(*fields)
    return subject._replace(layers=[LayerDocument(*layer) for layer in subject.layers])
