"""Translate subjects (file systems under test, with their options) and operations of workloads into the form that bob's
agent in a guest understands."""

from collections.abc import Sequence
from typing import Any

from bob.agent.shared import LayerDocument, OperationsDocument, SubjectDocument
from bob.subject import Layer, Subject
from bob.subject.file_system import UUID
from bob.workload import operations as ops
from bob.workload.history import PerformedOperation
from bob.workload.language import form_of
from bob.workload.operations import How, Workload
from bob.workload.simulation import simulate


def encode_subject(subject: Subject) -> SubjectDocument:
    fs, every = subject.fs, [node.fs for node in subject.nodes] or [subject.fs]
    return SubjectDocument(
        driver=fs.driver,
        options=subject.mount_options,
        mkfs=list(subject.mkfs),
        check=list(fs.check),
        repair=list(next((one.repair for one in every if one.repair), ())),
        checker=list(fs.checker),
        clean=list(fs.clean),
        expected_messages=list(dict.fromkeys(words for one in every for words in one.expected_messages)),
        lasting_inodes=all(one.lasting_inodes for one in every),
        quiet=max(one.quiet for one in every),
        enough=max(one.enough for one in every),
        keeps_commits=any(one.keeps_commits for one in every),
        layers=[_layer(one) for one in subject.layers],
        missing=list(subject.missing),
        lost=[*subject.missing, *subject.lost],
        nodes=[_node(number, node) for number, node in enumerate(subject.nodes)],
    )


def _node(number: int, node: Subject) -> SubjectDocument:
    """Return the subject of a cluster's member. Its file system has a UUID of its own, since mkfs or the kernel refuses
    two file systems with one UUID."""
    return encode_subject(node)._replace(
        mkfs=[word.replace(UUID, f"{UUID[:-3]}{0xB0B + number:x}") for word in node.mkfs]
    )


def _layer(layer: Layer) -> LayerDocument:
    return LayerDocument(
        name=layer.name,
        below=list(layer.below),
        sectors=layer.sectors,
        start=_lists(layer.start),
        make=_lists(layer.make),
        stop=_lists(layer.stop),
        device=layer.device,
        modules=list(layer.modules),
        mkfs=list(layer.mkfs),
        mount=layer.mount,
        check=list(layer.check),
        examine=_lists(layer.examine),
    )


def _lists(commands: Sequence[Sequence[str]]) -> list[list[str]]:
    return [list(command) for command in commands]


def encode_workload(workload: Workload) -> tuple[OperationsDocument, bytes]:
    """Return ``workload`` in the agent's form, and the data of all its operations, joined."""
    history, _setup, performed = simulate(workload)
    operations, blob = encode(performed)
    finish, _ = encode([PerformedOperation(operation, 0) for operation in workload.finish.operations])
    paths = sorted({name for thing in history.things for name in thing.names})
    return OperationsDocument(operations, finish, workload.finish.natural, workload.finish.phase, paths), blob


def encode(performed: Sequence[PerformedOperation]) -> tuple[list[list[Any]], bytes]:
    """Return each operation in the agent's form, and the data of all operations, joined. The form of an operation is a
    list: its number, its verb, its arguments, and the offset and the length of its data in the joined data."""
    encoded: list[list[Any]] = []
    pieces: list[bytes] = []
    position = 0
    for done in performed:
        verb, arguments = _system_call(done)
        encoded.append([done.number, verb, arguments, position, len(done.data)])
        pieces.append(done.data)
        position += len(done.data)
    return encoded, b"".join(pieces)


def _system_call(done: PerformedOperation) -> tuple[str, list[Any]]:
    match done.operation:
        case ops.Write(path, offset, _length, how):
            return "write", [path, done.offset, how.value, offset is None and how is not How.MMAP]
        case ops.Setxattr(path, name):
            return "setxattr", [path, name]  # the data says how long the attribute is
    form = form_of(done.operation)
    return form.verb, form.values(done.operation)
