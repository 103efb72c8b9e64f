"""The mounts of one workload's crash states in one guest. The *scratch device* of the guest holds the state that is
mounted. For each state, the guest gets a recipe: bytes, and the sectors of this device that they belong in. The
guest mounts the device, and returns what it observed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bob.agent.client import Agent, AgentBroken
from bob.crash.case import Case
from bob.crash.image import ByteRun
from bob.observe.accesses import Access, Accesses, accesses
from bob.observe.events import Decoder
from bob.observe.host_checks import GuestPayload, HostCheckers, HostRecovery, RecoveredState
from bob.observe.leftovers import Leftovers, Stretches
from bob.observe.mount_cache import CachedMount, OutcomeCollector
from bob.observe.observation import OutcomeTable, split
from bob.observe.observations import Complaint
from bob.program.answer import CheckerAnswer, CheckerRun
from bob.record.base import put_base
from bob.record.encode import encode_subject
from bob.subject import Subject
from bob.trace.base import Base

NO_BLOCKS = [1, 0]
"""The range without a block, for a guest that traces no lookups. Without readahead, lookups show nothing, and a
thousand of them are more text than some reads."""
PREPARE_TIMEOUT = 120.0
STATE_TIMEOUT = 60.0  # host seconds; after this time, a guest counts as hung on one crash state
VIRTUAL_SLOWNESS = 5  # on a busy host, a second of a guest in virtual time may take so many seconds
EXAMINE_TIMEOUT = 120.0  # host seconds; after this time, a guest counts as hung on the examination of one state


@dataclass(frozen=True, slots=True)
class MountedState:
    """A mounted crash state. ``outcome`` is the index of the guest's observation in ``Session.findings``. ``accesses``
    has all accesses from the file system's check to the unmount, if the guest traces reads. ``left`` describes the disk
    after the unmount (None without stretches, see :class:`Session`). ``ahead`` is True if the kernel read blocks ahead.
    ``complaint`` is an error message of the kernel about this state. If messages differ only in numbers and the like,
    bob keeps only the text of the first message. ``on_host`` is True if a sandbox on the host ran the file system's
    check."""

    outcome: int
    accesses: tuple[Access, ...]
    left: Leftovers | None = None
    ahead: bool = False
    complaint: Complaint | None = None
    on_host: bool = False


class Session:
    """The scratch device of one workload in one guest.

    An *outcome* is the number of an observation in ``findings``. ``watched`` are the sectors whose reads the caller
    wants to know (None: the guest traces no reads). In some file systems, recovery overwrites blocks that it has read,
    so that their old contents no longer matter. For such a file system, the caller gives ``stretches``, which are runs
    of sectors. The guest then also reports what recovery left in these sectors (:mod:`bob.observe.leftovers`). If
    ``closely``, the guest observes everything that a program could see (:class:`bob.agent.inside.look.Look`). With
    ``checkers`` (sandboxes on the host), the file system's check runs on the host, if possible, before the guest mounts
    the disk. If the check leaves the same disk for several states, the guest mounts this disk only once.

    The recipe of a state is its *delta*. It lists runs of sectors, and for each run the position of its content in the
    ``payload``, one long sequence of bytes. Later calls may add contents to the payload, but never change the contents
    that are already in the payload."""

    def __init__(
        self,
        agent: Agent,
        subject: Subject,
        base: Base,
        floor: Sequence[ByteRun],
        payload: bytes,
        *,
        watched: Sequence[int] | None = None,
        stretches: Stretches | None = None,
        closely: bool = False,
        checkers: HostCheckers | None = None,
    ) -> None:
        self._agent = agent
        self._by_disk: dict[str, MountedState] = {}
        self._watched = None if watched is None else frozenset(watched)
        self._stretches = stretches
        self.forgets = stretches is not None
        self.forgettable = None if stretches is None else stretches.forgettable
        self._ahead: set[int] = set()
        self._lookups: list[int] = []
        self.findings = OutcomeTable()
        self._gathering = OutcomeCollector(self.findings)
        self._complaints: list[Complaint] = []
        self._payload = GuestPayload(len(payload))
        put_base(agent, base)
        prepared, _ = agent.ask(
            "observe_prepare",
            timeout=PREPARE_TIMEOUT,
            base=base.name,
            subject=encode_subject(subject),
            floor=_flat(floor),
            reads=watched is not None,
            stretches=[number for run in stretches.runs for number in run] if stretches is not None else [],
            exempt=_exempt(stretches),
            closely=closely,
            blob=payload,
        )
        self._decoder = Decoder(prepared["events"], prepared["disk"])
        self._host: HostRecovery | None = None
        if checkers is not None and stretches is None and subject.fs.check_on_host and subject.is_one_disk:
            self._host = HostRecovery(checkers, subject, base, floor, payload, clock=prepared["clock"])

    def observe(self, deltas: Sequence[Sequence[ByteRun]], payload: bytes) -> list[int]:
        """Return the outcome of each state. The guest gets the part of ``payload`` that is new since the last call.
        Raises GuestLost if the guest does not return all outcomes."""
        return [mounted.outcome for mounted in self.mount(deltas, payload)]

    def mount(
        self, deltas: Sequence[Sequence[ByteRun]], payload: bytes, *, audit: bool = True, in_guest: bool = False
    ) -> list[MountedState]:
        """Mount the states as :meth:`observe` does. Return the outcome of each state, with the accesses to its device.

        With ``audit``, the guest also compares the scratch device with its base image (the disk before the recording),
        which takes as long as several mounts. Without ``audit``, the caller must not trust the result until a later
        call with ``audit`` succeeds. If ``in_guest``, the guest itself runs the file system's check before the mount,
        even if the host could. Raises AgentBroken if the trace lacks reads that the device counted."""
        recovered = None if in_guest or self._host is None else self._host.recover(deltas, payload)
        if recovered is None:
            return self._mount(deltas, payload, audit=audit)
        new: dict[str, int] = {}
        for number, one in enumerate(recovered):
            if one.digest not in self._by_disk:
                new.setdefault(one.digest, number)
        found: dict[int, MountedState] = {}
        if new or audit:
            found = self._mount_recovered(deltas, payload, recovered, list(new.values()), audit=audit)
        # A refused disk is repaired once, so that what the repair shows holds for one mount only.
        for number, mounted in found.items():
            if not self.findings.repaired(mounted.outcome):
                self._by_disk[recovered[number].digest] = mounted
        again = [n for n, one in enumerate(recovered) if n not in found and one.digest not in self._by_disk]
        if again:
            found |= self._mount_recovered(deltas, payload, recovered, again, audit=audit)
        return [_after(one, found.get(n) or self._by_disk[one.digest]) for n, one in enumerate(recovered)]

    def _mount_recovered(
        self,
        deltas: Sequence[Sequence[ByteRun]],
        payload: bytes,
        recovered: Sequence[RecoveredState],
        numbers: Sequence[int],
        *,
        audit: bool,
    ) -> dict[int, MountedState]:
        self._payload.extend(payload)
        runs = [[*self._payload.runs(deltas[n]), *self._changed(recovered[n])] for n in numbers]
        mounted = self._mount(runs, payload, audit=audit, checks=False, placed=True)
        return dict(zip(numbers, mounted, strict=True))

    def _changed(self, recovered: RecoveredState) -> list[ByteRun]:
        return [self._payload.put(sector, data) for sector, data in recovered.changed]

    def _mount(
        self,
        deltas: Sequence[Sequence[ByteRun]],
        payload: bytes,
        *,
        audit: bool,
        checks: bool = True,
        placed: bool = False,
    ) -> list[MountedState]:
        timeout = STATE_TIMEOUT + len(deltas)
        more = {"audit": audit, "lookups": self._lookups} | ({} if checks else {"checks": False})
        header, contents = self._ask("observe", deltas, payload, timeout, placed=placed, **more)
        position = sum(header["chunks"])
        self._gathering.tell(header["new_outcomes"], header["chunks"], contents[:position])
        outcomes = [self._gathering.number_of(outcome) for outcome in header["outcomes"]]
        self._complaints += [Complaint(*words) for words in header["new_complaints"]]
        complaints = [self._complaints[number - 1] if number else None for number in header["complaints"]]
        traced: list[Accesses] = []
        for pages, sectors in zip(split(contents[position:], header["traces"]), header["sectors_read"], strict=True):
            traced.append(accesses(self._decoder.events(pages)))
            if traced[-1].sectors_read != sectors:
                raise AgentBroken("the agent failed: the trace of recovery's reads is incomplete")
        if self._watched is None:
            traced = [Accesses()] * len(outcomes)
        else:
            self._choose_lookups(traced, self._watched)
        left: Sequence[Leftovers | None] = [None] * len(traced)
        if self._stretches is not None:
            left = [
                self._stretches.left([(place, content) for place, content in each], map(tuple, others), trace.bios)
                for each, others, trace in zip(header["left"], header["elsewhere"], traced, strict=True)
            ]
        return [
            MountedState(outcome, trace.bios, behind, bool(trace.ahead), complaint)
            for outcome, trace, behind, complaint in zip(outcomes, traced, left, complaints, strict=True)
        ]

    def examine(self, deltas: Sequence[Sequence[ByteRun]], payload: bytes) -> list[list[Complaint]]:
        """Let the guest recover and unmount each state, run the file system's checker, mount again, and remove all
        files. Return, for each state, the errors that the checker reports, or that the second mount or the removal
        shows. Raises the errors of :meth:`mount`."""
        header, _ = self._ask("examine", deltas, payload, EXAMINE_TIMEOUT * (1 + len(deltas)))
        self._lookups = NO_BLOCKS
        return [[Complaint(*wrong) for wrong in each] for each in header["wrong"]]

    def check_program(
        self, asked: Sequence[CheckerRun[Sequence[ByteRun]]], payload: bytes, seconds: float
    ) -> list[CheckerAnswer]:
        """Return the result of a program's checker for each run in ``asked``. ``seconds`` is the time limit of a run.
        A run may have a *spoiler*: a script that damages the state first, to test the checker. Raises the errors of
        :meth:`mount`, and UsageError if a state does not mount, or its spoiler fails."""
        timeout = STATE_TIMEOUT + (seconds + EXAMINE_TIMEOUT) * len(asked)
        header, _ = self._ask(
            "check_program",
            [one.state for one in asked],
            payload,
            timeout if self._agent.real_time else VIRTUAL_SLOWNESS * timeout,
            told=[one.output.decode("latin-1") for one in asked],
            spoilers=[one.spoiler for one in asked],
            seconds=seconds,
        )
        self._lookups = NO_BLOCKS
        return [CheckerAnswer(code, printed) for code, printed in header["answers"]]

    def sight(self, mounted: MountedState) -> CachedMount | None:
        """Return the part of a mounted state that sessions for other workloads may use. Return None if the disk did not
        mount without a repair, or if the kernel read blocks ahead. After readahead, this session knows only for its
        watched sectors whether recovery used them. Other sessions watch other sectors."""
        sight = None if mounted.ahead else self._gathering.sight(mounted.outcome, mounted.accesses)
        return sight and replace(sight, on_host=mounted.on_host)

    def recall(self, sight: CachedMount) -> MountedState:
        return MountedState(self._gathering.recalled(sight), sight.accesses, on_host=sight.on_host)

    def _ask(
        self,
        request: str,
        deltas: Sequence[Sequence[ByteRun]],
        payload: bytes,
        timeout: float,
        *,
        placed: bool = False,
        **more: Any,
    ) -> tuple[dict[str, Any], bytes]:
        self._payload.extend(payload)
        states = [_flat(delta if placed else self._payload.runs(delta)) for delta in deltas]
        return self._agent.ask(request, timeout=timeout, states=states, blob=self._payload.unsent(), **more)

    def _choose_lookups(self, traced: Sequence[Accesses], watched: frozenset[int]) -> None:
        """From now on, let the guest trace lookups in the buffer cache only for a range of blocks. The range spans all
        watched blocks that were read ahead, and all blocks that jbd2 needed when it read ahead. If there are no such
        blocks, the guest traces all lookups if readahead occurred in some of the states ``traced``, and otherwise no
        lookups."""
        if not traced:
            return
        if self._lookups != NO_BLOCKS:  # without traced lookups, bob does not know what jbd2 wanted
            for trace in traced:
                ahead = {block for block, sectors in trace.ahead.items() if not watched.isdisjoint(sectors)}
                if ahead:
                    self._ahead |= ahead | trace.wanted
        if self._ahead:
            self._lookups = [min(self._ahead), max(self._ahead)]
        else:
            self._lookups = [] if any(trace.ahead for trace in traced) else NO_BLOCKS


def session_of(agent: Agent, case: Case, *, closely: bool = False) -> Session:
    """Return a session that can mount each crash state of ``case``. If ``closely``, the guest observes everything that
    a program could see."""
    composer = case.plan.composer
    return Session(agent, case.subject, case.base, composer.floor_delta(), composer.payload_since(0), closely=closely)


def _after(recovered: RecoveredState, mounted: MountedState) -> MountedState:
    """Return ``mounted``, with the accesses of the check on the host before those of the mount."""
    count = len(recovered.accesses)
    later = [access._replace(used=access.used + count) for access in mounted.accesses]
    return replace(mounted, accesses=(*recovered.accesses, *later), on_host=True)


def _exempt(stretches: Stretches | None) -> list[int] | None:
    if stretches is None:
        return None
    return [stretches.exempt.start, len(stretches.exempt)] if stretches.exempt else []


def _flat(runs: Sequence[ByteRun]) -> list[int]:
    return [number for run in runs for number in run]
