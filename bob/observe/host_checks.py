"""Recovery of crash states on the host. Some file systems recover by a command, their check, which a boot runs before
the mount. With this module, bob runs this command on the host instead of in a guest.

The command runs in a sandbox, whose root has the files of the guest's image (:mod:`bob.agent.inside.host_checks`). A
guest then mounts the recovered disk. Several states may lead to the same recovered disk, which needs only one mount. As
a control, the guest itself runs the command for some states, and bob compares the outcomes (what the mounts show)."""

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
    """The disk of a crash state after the host has run the file system's check. Disks with an equal ``digest`` are
    equal. ``accesses`` has the check's reads and writes. ``changed`` has the sectors that the check changed, as (first
    sector, data)."""

    digest: str
    accesses: tuple[Access, ...]
    changed: tuple[tuple[int, bytes], ...]


@dataclass(eq=False)
class HostCheckers:
    """The file system checks that run on the host for one worker (a thread of the run that works with guests).
    ``agent`` is bob's program in a sandbox, which runs these checks. If the agent fails (a check that finds errors is
    no failure), bob sets ``agent`` to None, and calls ``told`` with the reason. From then on, guests run the checks.
    ``is_doubted`` is True if a guest has recovered a state differently from the host."""

    agent: Agent | None
    told: Callable[[str], None]
    is_doubted: bool = False

    def fail(self, reason: object) -> None:
        if self.agent is not None:
            self.agent = None
            self.told(str(reason))

    def doubt(self, reason: object) -> None:
        """Note that a guest has recovered a state differently from the host, so that guests run all further checks."""
        self.is_doubted = True
        self.fail(reason)


class HostRecovery:
    """The recovery of one workload's crash states on the host, by the agent of ``checkers``. ``clock`` is the time that
    the check sees: the time of the guest that mounts the recovered states (seconds since 1970)."""

    def __init__(
        self,
        checkers: HostCheckers,
        subject: Subject,
        base: Base,
        floor: Sequence[ByteRun],
        payload: bytes,
        *,
        clock: int,
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
                clock=clock,
                blob=payload,
            )
        except (GuestLost, AgentBroken, UsageError) as failure:
            checkers.fail(failure)

    def recover(self, deltas: Sequence[Sequence[ByteRun]], payload: bytes) -> list[RecoveredState] | None:
        """Run the file system's check on each crash state, and return the recovered disks. Each of ``deltas`` is the
        recipe of a state: a list of contents to copy, each with its place on the disk. ``payload`` has all these
        contents. Return None if the sandbox fails."""
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
    """The payload in a guest. A payload is one sequence of contents. The recipe of a crash state says, for each sector,
    which of these contents belongs there. bob's composer (:mod:`bob.crash.image`) makes the payload of a recording. The
    guest's payload has all parts of the composer's payload, in the same order. Between these parts, it also has the
    contents that programs on the host wrote. bob sends each of these contents once."""

    def __init__(self, length: int) -> None:
        self._known = self._end = length // SECTOR_BYTES  # sectors of the composer's payload, and of the guest's
        self._parts: list[tuple[int, int, int]] = []  # parts that lie elsewhere: first, end, place in the guest's
        self._placed: dict[bytes, int] = {}
        self._unsent: list[bytes] = []

    def extend(self, payload: bytes) -> None:
        """Take the composer's whole ``payload``, and add the part of it that is new since the last call."""
        first, end = self._known, len(payload) // SECTOR_BYTES
        if first < end:
            self._parts.append((first, end, self._end))
            self._unsent.append(payload[first * SECTOR_BYTES :])
            self._known, self._end = end, self._end + end - first

    def runs(self, delta: Sequence[ByteRun]) -> list[ByteRun]:
        """Translate ``delta``, the recipe of a state, for the guest. A run is an item of the recipe, which copies bytes
        from a position of the payload. The positions in ``delta`` are those in the composer's payload. The positions in
        the returned runs are those of the same contents in the guest's payload."""
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
        """Add ``data`` to the guest's payload, if the payload does not have this content yet. Return a run (part of a
        recipe) that copies the data to ``sector`` of a disk."""
        if data not in self._placed:
            self._placed[data] = self._end
            self._unsent.append(data)
            self._end += len(data) // SECTOR_BYTES
        return sector, self._placed[data], len(data) // SECTOR_BYTES

    def unsent(self) -> bytes:
        """Return the part of the payload that bob has not sent to the guest yet. The caller must send it."""
        new, self._unsent = b"".join(self._unsent), []
        return new
