"""A workload in a guest -> a recording, checked before anybody believes it."""

from __future__ import annotations

from dataclasses import dataclass

from bob.config import Configuration
from bob.guest.agent_client import Agent
from bob.record.base import Base
from bob.record.encode import encode
from bob.workload.history import Performed, simulate
from bob.workload.operations import Workload

RECORD_TIMEOUT = 300.0
"""How long a recording may take on the host (seconds)."""
QUIET_DEADLINE = 600.0
"""How long a file system may go on writing after a workload (seconds of the guest's clock)."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What came out of the guest, as it came: :func:`bob.record.check.checked` makes a Trace of it.

    ``log`` is the dm-log-writes log (bytes), ``timeline`` the text of the trace buffer, ``final`` the differences of
    the device (major, minor) from the base after the recording. The inode numbers are by path, before and after the
    operations.
    """

    log: bytes
    timeline: str
    final: bytes
    device: tuple[int, int]
    effective_options: str
    inodes_before: dict[str, int]
    inodes_after: dict[str, int]


def record(agent: Agent, configuration: Configuration, base: Base, workload: Workload, *, virtual: bool) -> Recording:
    """Record ``workload`` on ``base`` in the agent's guest; ``virtual`` says that waiting is free there.

    Raises UsageError in the kernel's words when it refuses to mount or to perform an operation.
    """
    history, _setup, performed = simulate(workload)
    encoded, blob = encode(performed)
    finish, _ = encode([Performed(operation, 0) for operation in workload.finish.operations])
    header, pieces = agent.ask(
        "record",
        timeout=RECORD_TIMEOUT,
        base=base.name,
        fs=configuration.fs.driver,
        options=configuration.mount_options,
        paths=sorted({name for thing in history.things for name in thing.names}),
        operations=encoded,
        finish=finish,
        natural=workload.finish.natural,
        phase=workload.finish.phase,
        quiet=configuration.fs.quiet,
        deadline=QUIET_DEADLINE,
        virtual=virtual,
        blob=blob,
    )
    log_length, timeline_length, _final_length = header["lengths"]
    return Recording(
        log=pieces[:log_length],
        timeline=pieces[log_length : log_length + timeline_length].decode(),
        final=pieces[log_length + timeline_length :],
        device=(header["device"][0], header["device"][1]),
        effective_options=header["effective_options"],
        inodes_before=header["inodes_before"],
        inodes_after=header["inodes_after"],
    )
