"""Recipes in, observations out: the crash states of one workload in one guest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bob.agent.client import Agent, AgentBroken
from bob.crash.case import Case
from bob.crash.image import ByteRun
from bob.observe.accesses import Access, Accesses, accesses
from bob.observe.events import Decoder
from bob.observe.leftovers import Leftovers, Stretches
from bob.observe.mount_cache import CachedMount, OutcomeCollector
from bob.observe.observation import OutcomeTable
from bob.program.answer import CheckerAnswer
from bob.record.base import put_base
from bob.record.encode import encode_subject
from bob.subject import Subject
from bob.trace.base import Base

NO_BLOCKS = [1, 0]
"""Without readahead, lookups say nothing, and to look up a thousand blocks is more text than to read some."""
PREPARE_TIMEOUT = 120.0
STATE_TIMEOUT = 60.0
"""How long one crash state may take before its guest counts as hung, and how long preparing may (host seconds)."""


EXAMINE_TIMEOUT = 120.0
"""As much for a state that is examined."""


class Complaint(NamedTuple):
    """Something that is wrong with a state though it mounts: ``kind`` is a TroubleKind."""

    kind: str
    words: str


@dataclass(frozen=True, slots=True)
class MountedState:
    """A crash state that was mounted: the number of its outcome, and how its device was accessed from the first check,
    mount or repair until the unmount was done, in order (empty in a session that does not trace reads). ``left`` is
    what was left behind, in a session with stretches; ``ahead`` says that something was read ahead. ``complaint`` is
    what the kernel said of it, in the words of the first state of which it said so."""

    outcome: int
    accesses: tuple[Access, ...]
    left: Leftovers | None = None
    ahead: bool = False
    complaint: Complaint | None = None


@dataclass(frozen=True, slots=True)
class CheckerRun:
    """A crash state that a program's checker is to look at, the ``output`` before the crash, and what spoils the
    state first (empty: nothing does)."""

    delta: Sequence[ByteRun]
    output: bytes
    spoiler: str = ""


class Session:
    """The scratch device of one workload in one guest.

    An *outcome* is the number of an observation in ``findings``: states with equal observations have the same one.
    ``watched`` are the sectors of which the caller wants to know whether they were read, and None where it does not:
    then the guest does not trace reads. By ``stretches`` it is told what states leave behind, where recovery
    ``forgets``; ``forgettable`` says of which of the watched sectors that is told. Where it looks ``closely``, all that
    a program could see makes an outcome (:class:`bob.agent.inside.look.Look`).
    """

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
    ) -> None:
        self._agent = agent
        self._watched = None if watched is None else frozenset(watched)
        self._stretches = stretches
        self.forgets = stretches is not None
        self.forgettable = None if stretches is None else stretches.forgettable
        self._ahead: set[int] = set()
        self._lookups: list[int] = []
        self.findings = OutcomeTable()
        self._gathering = OutcomeCollector(self.findings)
        self._complaints: list[Complaint] = []
        self._sent = len(payload)
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
        self._decoder = Decoder(prepared["events"])

    def observe(self, deltas: Sequence[Sequence[ByteRun]], payload: bytes) -> list[int]:
        """The outcome of each state; ``payload`` is all of it, of which the guest is sent what it does not have.

        Raises GuestLost when the guest does not come back with all of them.
        """
        return [mounted.outcome for mounted in self.mount(deltas, payload)]

    def mount(self, deltas: Sequence[Sequence[ByteRun]], payload: bytes, *, audit: bool = True) -> list[MountedState]:
        """As :meth:`observe`, with what each state's device was read and written.

        Without ``audit`` the scratch image is not compared with its base at the end, which costs as much as some
        mounts: then the answer is to be believed only when a later request with ``audit`` succeeds. Raises AgentBroken
        where the trace does not have all the reads that the device has counted.
        """
        new = payload[self._sent :]
        self._sent = len(payload)
        header, contents = self._agent.ask(
            "observe",
            timeout=STATE_TIMEOUT + len(deltas),
            states=[_flat(delta) for delta in deltas],
            audit=audit,
            lookups=self._lookups,
            blob=new,
        )
        position = sum(header["chunks"])
        self._gathering.tell(header["new_outcomes"], header["chunks"], contents[:position])
        outcomes = [self._gathering.number_of(outcome) for outcome in header["outcomes"]]
        self._complaints += [Complaint(*words) for words in header.get("new_complaints", ())]
        complaints = [
            self._complaints[number - 1] if number else None for number in header.get("complaints", [0] * len(outcomes))
        ]
        traced: list[Accesses] = []
        for length, sectors in zip(header["traces"], header["sectors_read"], strict=True):
            traced.append(accesses(self._decoder.events(contents[position : position + length])))
            position += length
            if traced[-1].sectors_read != sectors:
                raise AgentBroken("the agent failed: the trace of what recovery read is not complete")
        if self._watched is None:
            return [
                MountedState(outcome, (), complaint=complaint)
                for outcome, complaint in zip(outcomes, complaints, strict=True)
            ]
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
        """What the file system's checker, and the removal of all that is there, find wrong with each of these states.

        Raises as :meth:`mount` does.
        """
        new = payload[self._sent :]
        self._sent = len(payload)
        header, _ = self._agent.ask(
            "examine",
            timeout=EXAMINE_TIMEOUT * (1 + len(deltas)),
            states=[_flat(delta) for delta in deltas],
            blob=new,
        )
        self._lookups = NO_BLOCKS
        return [[Complaint(*wrong) for wrong in each] for each in header["wrong"]]

    def check_program(self, asked: Sequence[CheckerRun], payload: bytes, seconds: float) -> list[CheckerAnswer]:
        """What the checker of the program that was put into the guest says of each state, in ``seconds`` at most.

        Raises as :meth:`mount` does; UsageError where a state does not mount, or cannot be spoilt.
        """
        new = payload[self._sent :]
        self._sent = len(payload)
        header, _ = self._agent.ask(
            "check_program",
            timeout=STATE_TIMEOUT + (seconds + EXAMINE_TIMEOUT) * len(asked),
            states=[_flat(one.delta) for one in asked],
            told=[one.output.decode("latin-1") for one in asked],
            spoilers=[one.spoiler for one in asked],
            seconds=seconds,
            blob=new,
        )
        self._lookups = NO_BLOCKS
        return [CheckerAnswer(code, printed) for code, printed in header["answers"]]

    def sight(self, mounted: MountedState) -> CachedMount | None:
        """What others may recall of a state that was mounted; None where they may not.

        What was used of what was read ahead is told for the sectors that are watched here: elsewhere, less would be
        predicted from it.
        """
        return None if mounted.ahead else self._gathering.sight(mounted.outcome, mounted.accesses)

    def recall(self, sight: CachedMount) -> MountedState:
        """A state, as if it were mounted, of whose disk there is a sight from another session."""
        return MountedState(self._gathering.recalled(sight), sight.accesses)

    def _choose_lookups(self, traced: Sequence[Accesses], watched: frozenset[int]) -> None:
        """Of which blocks lookups are to be traced from now on, by what was ``traced`` last: from the
        first to the last that was read ahead and is watched, or that jbd2 wanted when it did so; before that, of all
        where something was read ahead, and else of none."""
        if not traced:
            return
        if self._lookups != NO_BLOCKS:  # or else what was wanted is not known
            for trace in traced:
                ahead = {block for block, sectors in trace.ahead.items() if not watched.isdisjoint(sectors)}
                if ahead:
                    self._ahead |= ahead | trace.wanted
        if self._ahead:
            self._lookups = [min(self._ahead), max(self._ahead)]
        else:
            self._lookups = [] if any(trace.ahead for trace in traced) else NO_BLOCKS


def session_of(agent: Agent, case: Case, *, closely: bool = False) -> Session:
    """Return a session for any state of ``case``; ``closely`` as in :class:`Session`."""
    composer = case.plan.composer
    return Session(agent, case.subject, case.base, composer.floor_delta(), composer.payload_since(0), closely=closely)


def _exempt(stretches: Stretches | None) -> list[int] | None:
    """What the agent is told of the area that is exempt; None where the caller does not ask for it."""
    if stretches is None:
        return None
    return [stretches.exempt.start, len(stretches.exempt)] if stretches.exempt else []


def _flat(runs: Sequence[ByteRun]) -> list[int]:
    return [number for run in runs for number in run]
