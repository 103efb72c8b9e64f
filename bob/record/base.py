"""Base images. A *base image* is the content of the disk at the start of a recording. It is an unmounted file system
with the initial files of a workload. bob has filled the unused sectors of the disk with a known pattern, the stale
pattern. If a file has this pattern after a crash, it shows old contents of unused sectors."""

import hashlib
import json
from typing import Any
from weakref import WeakKeyDictionary

from bob import schema
from bob.agent.client import Agent
from bob.program.program import Program
from bob.record.encode import encode, encode_subject
from bob.subject import Subject
from bob.trace.base import Base
from bob.workload.language import write_one
from bob.workload.operations import Operation, Workload
from bob.workload.pattern import PATTERN, STALE_CELL, UNSHADED_PATTERN
from bob.workload.simulation import simulate

BASE_TIMEOUT = 300.0  # host seconds

_CELL = STALE_CELL.decode()
_held: WeakKeyDictionary[Agent, set[str]] = (
    WeakKeyDictionary()
)  # names of the base images in each guest, since asking the guest takes 3 ms


def base_name(subject: Subject, setup: tuple[Operation, ...], pattern: int = PATTERN) -> str:
    """Return the name of a base image. ``subject`` is the file system under test, with its options and device. The
    operations ``setup`` make the initial files. ``pattern`` is the version of the byte pattern in these
    files (:mod:`bob.workload.pattern`), not of the stale pattern."""
    words = [*subject.mkfs, subject.fs.driver, subject.mount_options, str(subject.device_bytes)]
    words += [json.dumps([subject.disks, schema.encode(subject.layers)])] if subject.layers else []
    words += [base_name(node, ()) for node in subject.nodes]
    written = [] if pattern == UNSHADED_PATTERN else [f"pattern {pattern}"]
    text = "\n".join([*words, "", *map(write_one, setup), *written])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def make_base(
    agent: Agent, subject: Subject, setup: tuple[Operation, ...], pattern: int = PATTERN, *, narrates: bool = False
) -> Base:
    """Make a base image in the guest of ``agent`` (bob's program in a guest), and keep the image there. If ``narrates``
    is true, the guest prints each step on its console before it does the step, so that bob knows the step if the guest
    is lost. Raise UsageError with the message of mkfs or the kernel if one of them refuses."""
    _history, performed, _operations = simulate(Workload("base", setup, (), pattern=pattern))
    encoded, blob = encode(performed)
    return _made(agent, subject, base_name(subject, setup, pattern), encoded, blob, narrates=narrates)


def make_program_base(agent: Agent, subject: Subject, program: Program) -> Base:
    """Make a base image by the setup script of ``program``, whose files are in the guest already. Raise UsageError if
    the script, mkfs or the kernel fails."""
    name = hashlib.sha256(f"{base_name(subject, ())} {program.digest}".encode()).hexdigest()[:16]
    return _made(agent, subject, name, [], b"", setup_seconds=program.seconds)


def _made(agent: Agent, subject: Subject, name: str, setup: list[list[Any]], blob: bytes, **more: Any) -> Base:
    held = _held.setdefault(agent, set())
    held.discard(name)
    header, packed = _ask_for_base(agent, subject, name, setup, blob, **more)
    held.add(name)
    options, printed = header["effective_options"], header["mkfs"]
    return Base(name, subject.device_bytes, packed, options, printed, subject.disks)


def room(agent: Agent, subject: Subject, setup: tuple[Operation, ...], path: str) -> int:
    """Return how large a new file ``path`` can become (bytes) before the file system is full. The file system also has
    the initial files that ``setup`` makes. Raise UsageError with the message of mkfs or the kernel if one of them
    refuses."""
    name = f"{base_name(subject, setup)}-full"
    encoded, blob = encode(simulate(Workload("base", setup, ()))[1])
    header, _packed = _ask_for_base(agent, subject, name, encoded, blob, fill=path)
    agent.ask("drop_base", timeout=BASE_TIMEOUT, base=name)
    filled: int = header["filled"]
    return filled


def _ask_for_base(
    agent: Agent, subject: Subject, name: str, setup: list[list[Any]], blob: bytes, **more: Any
) -> tuple[dict[str, Any], bytes]:
    return agent.ask(
        "make_base",
        timeout=BASE_TIMEOUT + more.get("setup_seconds", 0.0),
        base=name,
        disks=subject.disks,
        cell=_CELL,
        subject=encode_subject(subject),
        setup=setup,
        blob=blob,
        **more,
    )


def put_base(agent: Agent, base: Base) -> None:
    """Send ``base`` to the agent's guest, unless the guest already has it."""
    held = _held.setdefault(agent, set())
    if base.name in held:
        return
    if not agent.ask("has_base", timeout=BASE_TIMEOUT, base=base.name)[0]["has"]:
        agent.ask("put_base", timeout=BASE_TIMEOUT, base=base.name, disks=base.disks, cell=_CELL, blob=base.packed)
    held.add(base.name)


def drop_base(agent: Agent, base: Base) -> None:
    """Remove the base image with the name of ``base`` from the agent's guest, if the guest has one."""
    _held.setdefault(agent, set()).discard(base.name)
    agent.ask("drop_base", timeout=BASE_TIMEOUT, base=base.name)
