"""The host's description of a recording. It has the subject (the file system that is crashed), the work (operations or
a program that runs on the file system) and the manner (how to record). Both the host and the agent use these types. In
a message between host and agent, a value of such a type is a JSON array of its fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

LOG_BYTES = 512 * 1024 * 1024
TIMELINE_KIB = 8 * 1024


class LayerDocument(NamedTuple):
    """A layer, such as RAID. It makes one device of ``sectors`` sectors from the devices ``below``. Devices have
    numbers: first come the disks, then the layers from the bottom up. The fields are those of
    :class:`bob.subject.layer.Layer`; each command is a list of words."""

    name: str
    below: list[int]
    sectors: int
    start: list[list[str]]
    make: list[list[str]]
    stop: list[list[str]]
    device: str
    modules: list[str]
    mkfs: list[str]
    mount: str
    check: list[str]
    examine: Sequence[list[str]] = ()


class SubjectDocument(NamedTuple):
    """The file system that is crashed. (The disks that it lies on are not described here.) Each command is a list of
    words, and the word ``DEVICE`` stands for the device. The fields are those of
    :class:`bob.subject.file_system.FileSystem`; ``mkfs`` and the mount ``options`` include what the user added.
    ``layers`` go from the bottom up; without layers there is one disk, except in a cluster. ``missing`` has the numbers
    of the disks that had failed before the operations. ``lost`` has the numbers of the disks that fail at the crash. If
    ``nodes`` is not empty, the subject is a cluster: each node has a file system, on the disk with the node's
    number."""

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
    nodes: list[Any]  # of SubjectDocument; mypy refuses a named tuple that contains itself


class OperationsDocument(NamedTuple):
    """A workload that is a list of operations. ``operations`` come first, and then the operations in ``finish``, which
    end the workload. The module bob/record/encode.py encodes each operation as a list. The blob of the request has the
    data that the operations write. If ``natural`` is true, the agent waits at the end until the disks are quiet (the
    kernel has written all changes by itself). ``phase`` is a wait (seconds) before the first operation. The agent calls
    stat on ``paths`` before and after the operations."""

    operations: list[list[Any]]
    finish: list[list[Any]]
    natural: bool
    phase: float
    paths: list[str]


class ScriptsDocument(NamedTuple):
    """A workload that is a script, which runs the program under test. The script may take ``seconds`` at most. The
    other fields are the arguments of :func:`bob.agent.inside.programs.run_workload`."""

    seconds: float
    stores: bool = False
    delay: float = 0.0
    neighbour: bool = False
    stacks: bool = False


class Manner(NamedTuple):
    """How to record. ``completion`` says whether disks complete writes at once or late (a value of Completion).
    ``deadline`` is how many seconds to wait at most until the disks are quiet. ``virtual`` says that the guest's clock
    is virtual. ``narrates`` says that the agent prints each step on the console before it begins the step."""

    completion: str
    deadline: float
    virtual: bool
    narrates: bool = False
    log_bytes: int = LOG_BYTES
    timeline_kib: int = TIMELINE_KIB


def subject_from(fields: list[Any]) -> SubjectDocument:
    subject = SubjectDocument(*fields)
    layers, nodes = [LayerDocument(*layer) for layer in subject.layers], [subject_from(node) for node in subject.nodes]
    return subject._replace(layers=layers, nodes=nodes)
