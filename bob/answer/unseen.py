"""Notes about properties that have the verdict HOLDS, although bob did not see many crash states. It explored less than
half of the torn ones, or some on layers do not mount. A result does not store these notes. Each report computes them,
because the numbers change when results are merged."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from bob.answer.answer import Answer, ByRecording
from bob.answer.result import SubjectResult
from bob.claim.verdict import Verdict
from bob.observe.unknown_torn import TornCause
from bob.text import compact

HIDDEN = "crash states that do not mount, so that nobody sees whether data is lost there"


def notes_of(subject: SubjectResult) -> tuple[str, ...]:
    """Return the notes of ``subject``, and then notes about crash states that bob did not see."""
    return (*subject.notes, *hidden(subject), *mostly_unknown(subject.answers))


def hidden(subject: SubjectResult) -> Iterator[str]:
    """Yield a note if answers about a file system on layers have the verdict HOLDS, but some crash states do not mount.
    A layer may have lost the data of such a state, and bob cannot look."""
    if not subject.stack:
        return
    counts = [
        f"{compact(one.states.unmountable)} for {one.name}"
        for one in subject.answers
        if one.verdict is Verdict.HOLDS and one.states.unmountable
    ]
    if counts:
        yield f"{HIDDEN}: {', '.join(counts)}"


def mostly_unknown(answers: Sequence[Answer]) -> Iterator[str]:
    """Yield notes about answers with the verdict HOLDS and less than half of the torn states explored. A note names the
    recording with the most unexplored torn states, and the main cause why they are unexplored. If no recording of an
    answer has such a cause, yield no note about the answer, which is then from an older version of bob. (Older versions
    did not look for causes.)"""
    by_recording: defaultdict[tuple[str, str, TornCause | None, bool], list[str]] = defaultdict(list)
    for one in answers:
        if one.verdict is not Verdict.HOLDS or not one.states.is_mostly_torn_unknown:
            continue
        if any(recording.unknown_torn is not None for recording in one.recordings):
            largest = max(one.recordings, key=_unexplored)
            is_most = 2 * _unexplored(largest) > sum(map(_unexplored, one.recordings))
            by_recording[largest.name, largest.finish, largest.unknown_torn, is_most].append(one.name)
    for (name, finish, cause, is_most), names in by_recording.items():
        others = "most of the others are of" if is_most else "no recording has more of the others than"
        because = f", where {_CAUSES[cause]}" if cause is not None else ""
        told = ", ".join(names)
        yield f"less than half of the torn states are explored for {told}: {others} {name!r} ({finish}){because}"


def _unexplored(one: ByRecording) -> int:
    return one.states.legal_torn - (one.states.explored_torn or 0)


_CAUSES: Mapping[TornCause, str] = {
    TornCause.JOURNAL: "recovery reads torn blocks of the journal",
    TornCause.METADATA: "recovery reads torn metadata",
    TornCause.SEVERAL_WRITES: "several writes put data in one place",
    TornCause.APPENDED: "files show torn data in new places",
    TornCause.OVERWRITTEN: "files show torn data over other data",
    TornCause.BUDGET: "mixtures of old and new data would take too many mounts",
    TornCause.UNTESTABLE: "mixtures of old and new data need crash states that are not legal, or have too many parts",
    TornCause.MIXED: "bob knows mixtures of old and new data, but these properties are not judged by pairs of sectors",
    TornCause.UNJUDGED: "bob cannot judge mixtures of old and new data by pairs of sectors",
    TornCause.UNMOUNTABLE: "they do not mount",
    TornCause.UNCOUNTED: "bob knows the outcomes of more, but cannot count these",
}
"""The causes in words that follow the word "where" in a note."""
