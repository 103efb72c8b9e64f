"""Crash states recovered by a program on the host. A sandbox runs the command that a boot would run before the mount,
from the same image as the guest's (:mod:`bob.agent.inside.host_checks`). A guest then mounts the recovered disk, once
for all states that lead to it. Controls let the guest run the command, too, and compare."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bob.agent.client import Agent, AgentBroken
from bob.agent.loss import GuestLost
from bob.crash.image import ByteRun
from bob.errors import UsageError
from bob.observe.accesses import Access
from bob.record.base import put_base
from bob.subject import Subject
from bob.trace.base import Base
from bob.trace.model import SECTOR_BYTES

PREPARE_SECONDS = 120.0
STATE_SECONDS = 60.0  # for one state, before the sandbox counts as hung


class RecoveredState(NamedTuple):
    """A disk after the command. Equal ``digest`` means an equal disk. ``accesses`` are the command's; ``changed`` are
    sectors that it changed, as (first sector, data)."""

    digest: str
    accesses: tuple[Access, ...]
    changed: tuple[tuple[int, bytes], ...]


@dataclass(eq=False)
class HostCheckers:
    """The agent of a sandbox for one worker. After a failure ``agent`` is None, and guests run all commands. ``told``
    gets the reason, once."""

    agent: Agent | None
    told: Callable[[str], None]

    def fail(self, reason: object) -> None:
        if self.agent is not None:
            self.agent = None
            self.told(str(reason))


class HostRecovery:
    """The recovery of one workload's states by ``checkers``."""

    def __init__(
        self, checkers: HostCheckers, subject: Subject, base: Base, floor: Sequence[ByteRun], payload: bytes
    ) -> None:
        self._checkers = checkers
        self._sent = len(payload)
        if (agent := checkers.agent) is None:
            return
        try:
            put_base(agent, base)
            agent.ask(
                "recover_prepare",
                timeout=PREPARE_SECONDS,
                base=base.name,
                check=list(subject.fs.check),
                floor=[number for run in floor for number in run],
                blob=payload,
            )
        except (GuestLost, AgentBroken, UsageError) as failure:
            checkers.fail(failure)

    def recover(self, deltas: Sequence[Sequence[ByteRun]], payload: bytes) -> list[RecoveredState] | None:
        """Return each state recovered; None if the sandbox cannot. ``payload`` is the whole payload."""
        new, self._sent = payload[self._sent :], len(payload)
        if (agent := self._checkers.agent) is None:
            return None
        states = [[number for run in delta for number in run] for delta in deltas]
        try:
            header, data = agent.ask("recover", timeout=STATE_SECONDS + len(deltas), states=states, blob=new)
        except (GuestLost, AgentBroken, UsageError) as failure:
            self._checkers.fail(failure)
            return None
        recovered, position = [], 0
        for digest, touched, runs in zip(header["digests"], header["accesses"], header["changed"], strict=True):
            changed = []
            for sector, count in runs:
                changed.append((sector, data[position : position + count * SECTOR_BYTES]))
                position += count * SECTOR_BYTES
            flat = enumerate(zip(touched[::3], touched[1::3], touched[2::3], strict=True))
            accesses = tuple(Access(bool(reads), sector, count, number) for number, (reads, sector, count) in flat)
            recovered.append(RecoveredState(digest, accesses, tuple(changed)))
        return recovered


class GuestPayload:
    """The payload as a guest has it: parts of the composer's in their order, and between them what programs on the host
    wrote. Each content that they wrote is sent once."""

    def __init__(self, length: int) -> None:
        self._known = self._end = length // SECTOR_BYTES  # sectors of the composer's payload, and of the guest's
        self._parts: list[tuple[int, int, int]] = []  # parts that lie elsewhere: first, end, place in the guest's
        self._placed: dict[bytes, int] = {}
        self._unsent: list[bytes] = []

    def extend(self, payload: bytes) -> None:
        """Add what is new of the composer's whole ``payload``."""
        first, end = self._known, len(payload) // SECTOR_BYTES
        if first < end:
            self._parts.append((first, end, self._end))
            self._unsent.append(payload[first * SECTOR_BYTES :])
            self._known, self._end = end, self._end + end - first

    def runs(self, delta: Sequence[ByteRun]) -> list[ByteRun]:
        """Return the runs of ``delta`` with places in the guest's payload."""
        if not self._parts or all(first == place for first, _end, place in self._parts):
            return list(delta)
        placed: list[ByteRun] = []
        for sector, source, count in delta:
            stop = source + count
            begin = min(stop, self._parts[0][0])
            if source < begin:
                placed.append((sector, source, begin - source))
            for first, end, place in self._parts:
                low, high = max(source, first), min(stop, end)
                if low < high:
                    placed.append((sector + low - source, place + low - first, high - low))
        return placed

    def put(self, sector: int, data: bytes) -> ByteRun:
        """Return a run of ``data`` at ``sector``."""
        if data not in self._placed:
            self._placed[data] = self._end
            self._unsent.append(data)
            self._end += len(data) // SECTOR_BYTES
        return sector, self._placed[data], len(data) // SECTOR_BYTES

    def unsent(self) -> bytes:
        """Return what the guest lacks, once."""
        new, self._unsent = b"".join(self._unsent), []
        return new
