"""The timeline of bios: parse the text of the kernel's trace buffer (a tracefs instance).

The agent switches on ``block:block_bio_queue``, ``block:block_bio_remap`` and ``block:block_bio_complete``
(include/trace/events/block.h), sets ``trace_clock`` to ``mono``, and writes marks to ``trace_marker``. A line is

      kworker/0:1-12      [000] d.h2.    12.345678: block_bio_complete: 253,0 WS 2048 + 8 [0]
      (task-pid)          (cpu) (flags)  (seconds)  (event)             (device, rwbs, sector + sectors [error])

The guest has one CPU, so the order of the lines is the order of the events. bob uses the number of a line as the
time of the event."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from bob.errors import MalformedError, RecordingError
from bob.trace.model import Moment

Device = tuple[int, int]  # a block device's (major, minor)

MARK_PREFIX = "bob: "  # the beginning of the lines that the agent writes to ``trace_marker``


class Op(Enum):
    """The operations of bios. The value of each is its letter in tracepoints (blk_fill_rwbs in
    kernel/trace/blktrace.c)."""

    READ = "R"
    WRITE = "W"
    DISCARD = "D"
    FLUSH = "F"
    OTHER = "N"


@dataclass(frozen=True, slots=True)
class Rwbs:
    """The operation of a bio and its flags about durability. bob parses both from ``text``, the kernel's field rwbs."""

    text: str
    op: Op
    preflush: bool = False
    fua: bool = False
    meta: bool = False

    @property
    def flushes(self) -> bool:
        """Whether the bio flushes the device's cache, by the flag REQ_PREFLUSH or by the operation REQ_OP_FLUSH."""
        return self.preflush or self.op is Op.FLUSH


# A leading F is REQ_PREFLUSH if an operation follows it. After the operation: FUA, rAhead, Sync, Meta, atomic (U).
_RWBS = re.compile(r"(?P<preflush>F(?=[RWDNF]))?(?P<op>[RWDNF])(?P<flags>F?A?S?M?U?)")


@lru_cache(maxsize=256)
def parse_rwbs(text: str) -> Rwbs:
    """Return the parsed field rwbs. For example, "FWFSM" is a synchronous write of metadata that flushes first and is
    FUA. Unknown letters give the operation OTHER."""
    if (found := _RWBS.fullmatch(text)) is None:
        return Rwbs(text, Op.OTHER, preflush=text.startswith("F"))
    flags = found["flags"]
    return Rwbs(text, Op(found["op"]), found["preflush"] is not None, "F" in flags, "M" in flags)


@dataclass(frozen=True, slots=True)
class BioEvent:
    at: Moment
    task: str
    pid: int
    device: Device
    rwbs: Rwbs
    sector: int
    sectors: int


@dataclass(frozen=True, slots=True)
class BioQueued(BioEvent):
    """An event ``block_bio_queue``: a task has submitted a bio to ``device``."""


@dataclass(frozen=True, slots=True)
class BioSent(BioEvent):
    """An event ``block_bio_remap``: device-mapper has sent a clone of a bio on ``origin`` down to ``device``."""

    origin: Device
    origin_sector: int


@dataclass(frozen=True, slots=True)
class BioCompleted(BioEvent):
    """An event ``block_bio_complete``: ``device`` has completed a bio. ``error`` is 0 or a negative errno."""

    error: int


@dataclass(frozen=True, slots=True)
class Marker:
    at: Moment
    text: str


@dataclass(frozen=True, slots=True)
class CallReturned:
    """An event ``sys_exit``: system call ``number`` of process ``pid`` has returned ``result`` (negative: an errno).
    ``at`` is the moment of the return."""

    at: Moment
    pid: int
    number: int
    result: int


@dataclass(frozen=True, slots=True)
class PacketEvent:
    """An event of a packet between the nodes of a cluster. The kernel knows the packet by the address ``packet`` of its
    buffer (struct sk_buff). When the buffer is free again, another packet may get the same address."""

    at: Moment
    packet: str


@dataclass(frozen=True, slots=True)
class PacketSent(PacketEvent):
    """An event ``net_dev_start_xmit``: the network device ``device`` sends a packet."""

    device: str


@dataclass(frozen=True, slots=True)
class PacketReceived(PacketEvent):
    """An event ``netif_receive_skb``: the network device ``device`` has received a packet."""

    device: str


@dataclass(frozen=True, slots=True)
class PacketFreed(PacketEvent):
    """An event ``kfree_skb`` or ``consume_skb``: the kernel does not need the packet any more."""


TimelineEvent = BioQueued | BioSent | BioCompleted | Marker | CallReturned | PacketSent | PacketReceived | PacketFreed


@dataclass(frozen=True, slots=True)
class Timeline:
    events: tuple[TimelineEvent, ...]


# trace_print_context and trace_print_lat_fmt (kernel/trace/trace_output.c). The task's name may be any 15 bytes, so the
# pattern finds its end by the columns that must follow. The columns for thread group and irq flags are optional.
_LINE = re.compile(
    r"\s*(?P<task>.{1,64}?)-(?P<pid>\d+)\s+(?:\(\s*[-\d]+\)\s+)?\[(?P<cpu>\d+)\]\s+"
    r"(?:[^\s:]{4,8}\s+)?(?P<seconds>\d+\.\d+): (?P<event>[^\s:]+): ?(?P<body>.*)"
)
_BIO = r"(\d+),(\d+) (\S+) (\d+) \+ (\d+) "
_QUEUE = re.compile(_BIO + r"\[.*\]")
_COMPLETE = re.compile(_BIO + r"\[(-?\d+)\]")
_REMAP = re.compile(_BIO + r"<- \((\d+),(\d+)\) (\d+)")
_PACKET = re.compile(r"(?:dev=(\S+) )?(?:.* )?skbaddr=([0-9a-fx]+)(?: .*)?")
_RETURNED = re.compile(r"NR (-?\d+) = (-?\d+)")
_LOST = re.compile(r"CPU:\d+ \[LOST (?:\d+ )?EVENTS\]")
_WRITTEN = re.compile(r"#\s*entries-in-buffer/entries-written: (\d+)/(\d+)")


def parse_timeline(text: str) -> Timeline:
    """Return the timeline in ``text``, which comes from the file ``trace`` or ``trace_pipe`` of tracefs. The timeline
    leaves out events that bob does not use. Raises RecordingError if the buffer lost events, if it has events of
    several CPUs, or if a line has an earlier time than the line before it. Raises MalformedError for a line that is not
    from ftrace."""
    return Timeline(tuple(_events(text)))


def _events(text: str) -> Iterator[TimelineEvent]:
    first_cpu = None
    seconds = 0.0
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("#") or not line.strip():
            _check_comment(number, line)
            continue
        if _LOST.fullmatch(line.strip()):
            raise _lost(number, line.strip())
        found = _LINE.fullmatch(line)
        if found is None:
            raise MalformedError(f"timeline line {number} is not a line of ftrace: {line[:80]!r}")
        first_cpu = first_cpu or found["cpu"]
        if found["cpu"] != first_cpu:
            raise RecordingError(
                f"timeline line {number}: events of CPUs {first_cpu} and {found['cpu']}, so their order is not exact",
                hint="record in a guest with one CPU",
            )
        if float(found["seconds"]) < seconds:
            raise RecordingError(
                f"timeline line {number} runs backwards: {found['seconds']} after {seconds:.6f}",
                hint="the agent must set trace_clock to mono, and one CPU must write the whole buffer",
            )
        seconds = float(found["seconds"])
        if (event := _event(found, Moment(number, seconds))) is not None:
            yield event


def _event(line: re.Match[str], at: Moment) -> TimelineEvent | None:
    task, pid, body = line["task"], int(line["pid"]), line["body"]
    match line["event"]:
        case "block_bio_queue":
            return BioQueued(at, task, pid, *_bio(_matched(_QUEUE, body, at)))
        case "block_bio_remap":
            found = _matched(_REMAP, body, at)
            return BioSent(at, task, pid, *_bio(found), (int(found[6]), int(found[7])), int(found[8]))
        case "block_bio_complete":
            found = _matched(_COMPLETE, body, at)
            return BioCompleted(at, task, pid, *_bio(found), int(found[6]))
        case "sys_exit":
            found = _matched(_RETURNED, body, at)
            return CallReturned(at, pid, int(found[1]), int(found[2]))
        case "net_dev_start_xmit":
            found = _matched(_PACKET, body, at)
            return PacketSent(at, found[2], found[1])
        case "netif_receive_skb":
            found = _matched(_PACKET, body, at)
            return PacketReceived(at, found[2], found[1])
        case "kfree_skb" | "consume_skb":
            return PacketFreed(at, _matched(_PACKET, body, at)[2])
        case _ if body.startswith(MARK_PREFIX):  # the event's name is only a symbol, tracing_mark_write
            return Marker(at, body.removeprefix(MARK_PREFIX).rstrip())
    return None


def _matched(form: re.Pattern[str], body: str, at: Moment) -> re.Match[str]:
    if (found := form.fullmatch(body.rstrip())) is None:
        raise MalformedError(f"timeline line {at.time} has an event of unknown form: {body[:80]!r}")
    return found


def _bio(found: re.Match[str]) -> tuple[Device, Rwbs, int, int]:
    return (int(found[1]), int(found[2])), parse_rwbs(found[3]), int(found[4]), int(found[5])


def _check_comment(number: int, line: str) -> None:
    if (found := _WRITTEN.match(line)) is not None and found[1] != found[2]:
        raise _lost(number, f"{found[1]} of {found[2]} events are left")


def _lost(number: int, what: str) -> RecordingError:
    return RecordingError(
        f"timeline line {number}: the trace buffer lost events ({what})", hint="give the guest a larger buffer_size_kb"
    )
