"""The time line of a crash: its events in order, with the fate of each write (on the disk, lost or torn). Times are
seconds after the start of the recording. If writes of the same kind and with the same fate follow each other on the
disk and in time, bob joins them into one event."""

import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from msgspec.structs import replace

from bob.crash.legal import GrowthPoint
from bob.crash.state import CrashState
from bob.schema import Document
from bob.trace.model import Moment, Trace
from bob.workload.pattern import FIRST_SETUP_NUMBER, operations_in

MOST_EVENTS = 150
"""A time line with more events is shortened. bob first leaves out the earliest durable writes. If that is not enough,
bob joins writes with the same kind of block and the same fate, if there are only other writes between them."""


MOST_EARLY = 10  # most system calls before the first event that bob lists although their effects exist


class Fate(StrEnum):
    """The fate of a write at the crash. A DURABLE write survives any crash at this time. Any other write is on the
    medium as a whole (KEPT), in part (TORN) or not at all (LOST)."""

    DURABLE = "durable"
    KEPT = "kept"
    TORN = "torn"
    LOST = "lost"


class CallEvent(Document, frozen=True, kw_only=True, tag_field="event", tag="called"):
    """An operation of the workload, by its ``number``. It begins at ``seconds`` and returns at ``end`` (None: not
    before the crash)."""

    seconds: float
    end: float | None = None
    number: int


class ProgramCallEvent(Document, frozen=True, tag_field="event", tag="asked"):
    """A system call or an output of a program. ``there`` says whether the effect of the call survived the crash: as a
    whole ("there"), in part ("partly") or not at all ("missing"). If bob does not know, ``there`` is empty."""

    seconds: float
    words: str
    there: str = ""


class FlushEvent(Document, frozen=True, kw_only=True, tag_field="event", tag="flushed"):
    """A cache flush. It is sent at ``seconds`` and completed at ``end`` (None: not before the crash). ``node`` is the
    cluster's member whose disk is flushed (None for other subjects)."""

    seconds: float
    end: float | None = None
    task: str = ""
    node: int | None = None


class WriteEvent(Document, frozen=True, kw_only=True, tag_field="event", tag="written"):
    """A write to the disk, or ``count`` writes that bob joined, with ``sectors`` sectors in all. ``first`` is the index
    of the first of them in the trace. ``end`` is None if a member was in flight at the crash.

    ``what`` names the written block, and ``kind`` is the kind of the block, such as data. If the block has data of
    operations of the workload, ``operations`` are the numbers of these operations. A torn write consists of atomic
    units (parts that cannot tear), and ``kept`` names the units on the medium. ``decides`` says that the violation goes
    away if only this write has another fate. ``node`` is the member of the cluster whose disk is written. None stands
    for no cluster."""

    seconds: float
    end: float | None = None
    first: int
    count: int
    sector: int
    sectors: int
    task: str = ""
    fua: bool
    fate: Fate
    kind: str = ""
    what: str = ""
    operations: tuple[int, ...] = ()
    kept: str = ""
    decides: bool = False
    node: int | None = None


StoryEvent = CallEvent | ProgramCallEvent | FlushEvent | WriteEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashTimeline:
    """The ``events`` before the crash, in the order of their beginnings. ``crash`` is the time of the crash (seconds).
    To keep the list short, bob leaves out some durable writes; ``left_out`` is their number."""

    crash: float
    left_out: int = 0
    events: tuple[StoryEvent, ...]

    @property
    def causes(self) -> frozenset[int]:
        return frozenset(one.first for one in self.writes if one.decides)

    @property
    def calls(self) -> tuple[ProgramCallEvent, ...]:
        return tuple(event for event in self.events if isinstance(event, ProgramCallEvent))

    @property
    def writes(self) -> tuple[WriteEvent, ...]:
        return tuple(event for event in self.events if isinstance(event, WriteEvent))


def timeline(
    trace: Trace,
    point: GrowthPoint,
    state: CrashState,
    names: Sequence[tuple[str, str]],
    causes: Collection[int] = (),
    *,
    of_nodes: bool = False,
) -> CrashTimeline:
    """Return the time line of a crash that leaves ``state``. ``point`` has the time of the crash and the writes that
    are durable then. ``names`` has the kind and the name of the written block for each write of ``trace``, in order.
    ``causes`` are the indexes of the decisive writes: with another fate of one of them, the violation goes away. If
    ``of_nodes`` is true, each disk belongs to a member of a cluster."""
    time, start = point.time, trace.start.seconds

    def ended(moment: Moment, device: int) -> float | None:
        return _seconds(moment.seconds - start) if moment.time <= point.moment(device) else None

    torn = dict(state.torn)
    fates = {
        **dict.fromkeys(torn, Fate.TORN),
        **dict.fromkeys(state.kept, Fate.KEPT),
        **dict.fromkeys(point.durable, Fate.DURABLE),
    }
    events: list[tuple[int, StoryEvent]] = []
    for write in trace.writes:
        if write.submitted.time > point.moment(write.device):
            continue
        index = write.index
        kind, what = names[index]
        event = WriteEvent(
            seconds=_seconds(write.submitted.seconds - start),
            end=ended(write.completed, write.device),
            first=index,
            count=1,
            sector=write.sector,
            sectors=write.sectors,
            task=write.task,
            fua=write.fua,
            fate=fates.get(index, Fate.LOST),
            kind=kind,
            what=what,
            operations=tuple(sorted(one for one in operations_in(write.data) if one < FIRST_SETUP_NUMBER)),
            kept=_units(torn.get(index, ())),
            decides=index in causes,
            node=write.device if of_nodes else None,
        )
        events.append((write.submitted.time, event))
    for flush in trace.flushes:
        if trace.start.time <= flush.submitted.time <= point.moment(flush.device):
            began = _seconds(flush.submitted.seconds - start)
            node = flush.device if of_nodes else None
            flushed = FlushEvent(seconds=began, end=ended(flush.completed, flush.device), task=flush.task, node=node)
            events.append((flush.submitted.time, flushed))
    events += _calls(trace, time)
    events.sort(key=lambda pair: pair[0])
    sent = [write.submitted for write in trace.writes] + [flush.submitted for flush in trace.flushes]
    known = [at.seconds for at in (*sent, *(mark.at for mark in trace.marks)) if at.time <= time]
    few, left_out = _fewer(_together(event for _time, event in events))
    if len(few) > MOST_EVENTS:
        few = list(_by_kind(few))
    crash = _seconds(max(known, default=start) - start)
    return CrashTimeline(events=tuple(few), crash=crash, left_out=left_out)


def with_calls(line: CrashTimeline, calls: Iterable[ProgramCallEvent]) -> CrashTimeline:
    """Return ``line`` with the calls in ``calls`` that began before the crash. If many calls began before the first
    event of ``line``, keep only the last :data:`MOST_EARLY` of them. But always keep a call whose effect the crash
    lost, as a whole or in part."""
    first = min((event.seconds for event in line.events), default=line.crash)
    before = sorted((call for call in calls if call.seconds <= line.crash), key=lambda call: call.seconds)
    early = [call for call in before if call.seconds < first and call.there in ("", "there")][:-MOST_EARLY]
    told = [call for call in before if call not in early]
    events = sorted([*told, *line.events], key=lambda event: event.seconds)
    return dataclasses.replace(line, events=tuple(events))


def alike(one: CrashTimeline, other: CrashTimeline) -> bool:
    """Return whether two time lines are equal apart from times, tasks, and the kinds and names of blocks. ``one`` and
    ``other`` are the time lines."""
    return one.left_out == other.left_out and [*map(_timeless, one.events)] == [*map(_timeless, other.events)]


def _timeless(event: StoryEvent) -> StoryEvent:
    told: dict[str, object] = {"seconds": 0.0, "task": "", "kind": "", "what": ""}
    if getattr(event, "end", None) is not None:
        told["end"] = 0.0
    return replace(event, **{name: value for name, value in told.items() if hasattr(event, name)})


def _calls(trace: Trace, time: int) -> Iterator[tuple[int, StoryEvent]]:
    began: dict[int, tuple[int, float]] = {}
    done: dict[int, float] = {}
    for mark in trace.marks:
        if (found := re.fullmatch(r"op (\d+) (begin|end)", mark.text)) is None or mark.at.time > time:
            continue
        number, seconds = int(found[1]), _seconds(mark.at.seconds - trace.start.seconds)
        if found[2] == "begin":
            began[number] = mark.at.time, seconds
        else:
            done[number] = seconds
    for number, (at, seconds) in began.items():
        if number:  # the finish has the number 0
            yield at, CallEvent(seconds=seconds, end=done.get(number), number=number)


def _together(events: Iterable[StoryEvent]) -> list[StoryEvent]:
    found: list[StoryEvent] = []
    for event in events:
        last = found[-1] if found else None
        if isinstance(last, WriteEvent) and isinstance(event, WriteEvent) and _belong_together(last, event):
            found[-1] = _joined(last, event)
        else:
            found.append(event)
    return found


def _belong_together(one: WriteEvent, other: WriteEvent) -> bool:
    alike = _manner(one) == _manner(other)
    is_alone = one.decides or other.decides or one.fate is Fate.TORN
    follows = one.sector + one.sectors == other.sector and (one.what == other.what or one.kind == "data")
    return alike and follows and not is_alone


def _manner(one: WriteEvent) -> tuple[object, ...]:
    return one.fate, one.kind, one.task, one.fua, one.node


def _joined(one: WriteEvent, other: WriteEvent) -> WriteEvent:
    return replace(
        one,
        end=None if None in (one.end, other.end) else other.end,
        count=one.count + other.count,
        sectors=one.sectors + other.sectors,
        operations=tuple(sorted({*one.operations, *other.operations})),
    )


def _by_kind(events: Iterable[StoryEvent]) -> Iterator[StoryEvent]:
    """Yield ``events``, with some writes joined into one event: those that have the same kind of block and
    the same fate, if no call and no flush comes between them. A torn or decisive write stays alone."""
    kinds: dict[tuple[object, ...], WriteEvent] = {}
    for event in events:
        if not isinstance(event, WriteEvent):
            yield from kinds.values()
            kinds.clear()
            yield event
            continue
        by_itself = event.first if event.fate is Fate.TORN or event.decides else None
        key = event.fate, event.kind, bool(event.operations), by_itself, event.node
        kinds[key] = _joined(kinds[key], event) if key in kinds else event
    yield from kinds.values()


def _fewer(events: Sequence[StoryEvent]) -> tuple[Sequence[StoryEvent], int]:
    """Return ``events`` without some durable writes, and the number of writes left out. Leave out all durable writes
    with a negative time, for example those of the mount before the recording. If more than MOST_EVENTS events remain,
    also leave out the earliest of the other durable writes."""
    spare = len(events) - MOST_EVENTS
    left_out = 0
    few: list[StoryEvent] = []
    for event in events:
        is_early = spare > 0 or event.seconds < 0
        if isinstance(event, WriteEvent) and event.fate is Fate.DURABLE and is_early:
            spare -= 1
            left_out += event.count
        else:
            few.append(event)
    return few, left_out


def _units(ranges: Sequence[tuple[int, int]]) -> str:
    spans = [f"{first}" if stop == first + 1 else f"{first}-{stop - 1}" for first, stop in ranges]
    if not spans:
        return ""
    return f"unit {spans[0]}" if len(ranges) == 1 and "-" not in spans[0] else f"units {', '.join(spans)}"


def _seconds(value: float) -> float:
    return round(value, 6)
