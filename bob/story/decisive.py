"""The decisive writes of a violation, in words. A write is *decisive* if the violation depends on its fate (lost, torn
or on the disk). With another fate of this write alone, the violation goes away
(:func:`bob.crash.neighbours.causes`)."""

from collections.abc import Sequence

from bob.story.timeline import CallEvent, CrashTimeline, Fate, FlushEvent, ProgramCallEvent, WriteEvent
from bob.trace.model import SECTOR_BYTES

UNKNOWN = "unknown"
MOST_NAMED = 3  # deciding writes that the sentence names; it only counts the others
_WORDS = {Fate.LOST: "lost", Fate.KEPT: "on the disk", Fate.TORN: "torn"}


def decisive(line: CrashTimeline) -> str:
    """Return the decisive writes in words (:func:`in_words`). The first letter is a capital, for the beginning of a
    sentence."""
    words = in_words(line)
    return words[:1].upper() + words[1:]


def in_words(line: CrashTimeline) -> str:
    """Return the decisive writes in words. If no write is known to be decisive, return how many of the unflushed writes
    were lost, torn, or on the disk."""
    decisive = [one for one in line.writes if one.decides]
    if len(decisive) == 1:
        return _fate(decisive[0])
    if decisive:
        more = len(decisive) - MOST_NAMED
        told = [*map(_fate, decisive[:MOST_NAMED]), *([f"{more} more like these"] if more > 0 else [])]
        return f"{', '.join(told[:-1])} and {told[-1]} (bob cannot say which: any one of them taken back is enough)"
    counts = {fate: sum(one.count for one in line.writes if one.fate is fate) for fate in Fate}
    told = [
        f"{counts[fate]} {'was' if counts[fate] == 1 else 'were'} {_WORDS[fate]}"
        for fate in (Fate.LOST, Fate.KEPT, Fate.TORN)
        if counts[fate]
    ]
    if not told:
        return "nothing that the disk had been sent was lost"
    if sum(counts[fate] for fate in _WORDS) == 1:
        [one] = [one for one in line.writes if one.fate in _WORDS]
        return f"of the writes that were not flushed {_and(told)}, the {_what(one)}"
    return f"of the writes that were not flushed {_and(told)} (bob cannot say which of them makes the difference)"


def sealing(line: CrashTimeline) -> frozenset[int]:
    """Return the indexes in ``line.events`` of the events that made writes durable. Such an event is a FUA write, or a
    flush that made an earlier write durable. The function ignores writes from before the first system call or operation
    (docs/how-it-works.md#the-rules)."""
    calls = (event.seconds for event in line.events if isinstance(event, CallEvent | ProgramCallEvent))
    began = min((seconds for seconds in calls if seconds >= 0), default=0.0)
    found: set[int] = set()
    done: list[float] = []  # times when the writes ended that no flush has made durable so far
    for place, event in enumerate(line.events):
        match event:
            case WriteEvent(fate=Fate.DURABLE, fua=True) if event.seconds >= began:
                found.add(place)
            case WriteEvent(fate=Fate.DURABLE, end=float() as end) if event.seconds >= began:
                done.append(end)
            case FlushEvent(end=float()) if any(end <= event.seconds for end in done):
                found.add(place)
                done = [end for end in done if end > event.seconds]
    return frozenset(found)


def _what(one: WriteEvent) -> str:
    unnamed = f"write of {one.sectors * SECTOR_BYTES:,} bytes at sector {one.sector:,}"
    of = "" if one.node is None else f"node {one.node}, "
    return f"{unnamed if one.kind == UNKNOWN else one.what} of {of}{at(one.seconds)}"


def _fate(one: WriteEvent) -> str:
    match one.fate:
        case Fate.TORN:
            became = f"was torn (there: {one.kept})"
        case Fate.KEPT:
            became = "was on the disk already, though not flushed"
        case _:
            became = f"was {one.fate.value}"
    return f"the {_what(one)} {became}"


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def at(seconds: float) -> str:
    """Return a time of a recording, in words. ``seconds`` count from the start of the recording."""
    return f"{seconds:.1f} s" if abs(seconds) >= 1 else f"{seconds * 1000:.3g} ms"
