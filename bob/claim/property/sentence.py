"""The sentence that explains a crash that breaks a property. It comes from the crash's time line (its events in
order) and from the *question*, which names the operations that the property should hold for. The sentence says nothing
that the time line does not show (:mod:`bob.story.decisive`)."""

import re
from collections.abc import Mapping, Sequence

from bob.claim.property.account import EffectExtent
from bob.claim.property.rules import Question
from bob.story.decisive import at, decisive, in_words
from bob.story.timeline import CallEvent, CrashTimeline, Fate, WriteEvent
from bob.workload.language import write_one
from bob.workload.operations import Operation

JOURNAL, METADATA = "journal", "metadata"


def of_question(
    line: CrashTimeline, operations: Sequence[Operation], question: Question, extents: Mapping[int, EffectExtent]
) -> str:
    """Return a sentence about a crash. ``line`` has the events of the crash, which breaks a property for the operations
    of ``question``. ``extents`` says how much of each operation's effect survived the crash, or is empty if bob does
    not know."""
    if question.beside:
        return f"{decisive(line)}, and something that no operation should change is damaged."
    if question.returned is not None:
        number = question.required[0]
        if number == question.returned:
            it = "it" if extents.get(number, EffectExtent.NOTHING) is EffectExtent.NOTHING else "a part of it"
            return f"{_name(operations, number)} had returned, but {it} {_still(line, number)}."
        returned, missing = _name(operations, question.returned), _missing(operations, number, extents)
        return f"{returned} had returned while {missing} {_still(line, number)}."
    if question.later is None and len(question.required) > 1:
        several = ", ".join(_name(operations, number) for number in question.required)
        return f"{decisive(line)}, and {several} are not all there as they should be."
    if question.later is None:
        (number,) = question.required
        broken = extents.get(number, EffectExtent.PART) is EffectExtent.BROKEN
        how_much = "is neither there nor left out" if broken else "is there only in part"
        return f"When the power failed, {_where(line, number)}: {_name(operations, number)} {how_much}."
    lost = _lost(question.required, extents)
    there, missing = _name(operations, question.later), _missing(operations, lost, extents)
    if extents.get(question.later, EffectExtent.WHOLE) is not EffectExtent.WHOLE:
        there = f"something of {there}"
    how, since = _how(line, question.later)
    sent = _sent(line, lost)
    if sent is not None and sent.fate is Fate.LOST and since is not None and sent.seconds > since:
        return f"{there} {how}; {missing} was sent to the disk only at {at(sent.seconds)}, and was still in its cache."
    return f"{there} {how} while {missing} {_still(line, lost)}."


def _name(operations: Sequence[Operation], number: int) -> str:
    return f"«{write_one(operations[number - 1])}»"


def _lost(required: Sequence[int], extents: Mapping[int, EffectExtent]) -> int:
    """Return the first operation of ``required`` that is lost in whole or in part. If none is surely lost, return the
    first one that may be lost."""
    for here in ((EffectExtent.NOTHING, EffectExtent.PART, EffectExtent.BROKEN), (EffectExtent.UNCLEAR,)):
        if found := [number for number in required if extents.get(number) in here]:
            return found[0]
    return required[0]


def _missing(operations: Sequence[Operation], number: int, extents: Mapping[int, EffectExtent]) -> str:
    is_nothing_there = extents.get(number, EffectExtent.NOTHING) is EffectExtent.NOTHING
    return f"{'' if is_nothing_there else 'a part of '}{_name(operations, number)}, issued before it,"


def _how(line: CrashTimeline, number: int) -> tuple[str, float | None]:
    """Return words that say how the effect of operation ``number`` came to the disk, such as the write that carried it.
    If the words are about a certain write, also return the time (seconds) when that write was sent."""
    called = next((event for event in line.events if isinstance(event, CallEvent) and event.number == number), None)
    began = called.seconds if called else 0.0
    there = [one for one in line.writes if one.fate is not Fate.LOST and one.seconds >= began]
    commits = [one for one in there if one.kind == JOURNAL and "commit" in one.what]
    own = [one for one in there if number in one.operations and one.kind != JOURNAL]
    if commits and commits[0].fate is Fate.DURABLE:
        return f"was committed at {at(commits[0].seconds)}", commits[0].seconds
    if commits:
        return f"reached the disk with the {_short(commits[0])} of {at(commits[0].seconds)}", commits[0].seconds
    for one in (*own, *(one for one in there if one.kind in (JOURNAL, METADATA))):
        verb = "became durable" if one.fate is Fate.DURABLE else "reached the disk"
        return f"{verb} with the {_short(one)} of {at(one.seconds)}", one.seconds
    return "was already there", None


def _short(one: WriteEvent) -> str:
    return re.split(r" \(|: ", one.what, maxsplit=1)[0] if one.kind == JOURNAL else one.what


def _sent(line: CrashTimeline, number: int) -> WriteEvent | None:
    """Return the first lost or torn write with data of operation ``number``. Some writes are *decisive*: if only such a
    write had another fate (on the disk instead of lost, or lost instead of on the disk), the property would hold. If
    bob knows decisive writes of this crash, look only at these."""
    own = [one for one in line.writes if number in one.operations and one.fate in (Fate.LOST, Fate.TORN)]
    return next((one for one in own if one.decides or not line.causes), None)


def _still(line: CrashTimeline, number: int) -> str:
    if first := _sent(line, number):
        what = "was torn as the disk wrote it" if first.fate is Fate.TORN else "was still only in the disk's cache"
        return f"{what}, sent at {at(first.seconds)}"
    own = any(number in one.operations for one in line.writes)
    if line.causes or any(one.fate is not Fate.DURABLE for one in line.writes):
        all_the_same = ", though its data was written" if own else ""
        return f"is not there{all_the_same}: {in_words(line)}"
    if own:
        return "is not there, though its data was written: no metadata on the disk shows it"
    return "was still only in memory"


def _where(line: CrashTimeline, number: int) -> str:
    own = [one for one in line.writes if number in one.operations]
    if not line.causes or any(one.decides for one in own):
        there = sum(one.sectors for one in own if one.fate in (Fate.DURABLE, Fate.KEPT))
        torn = [one for one in own if one.fate is Fate.TORN]
        lost = sum(one.sectors for one in own if one.fate is Fate.LOST)
        if torn:
            return f"the write of {torn[0].what} at {at(torn[0].seconds)} was torn (there: {torn[0].kept})"
        if there and lost:
            return f"the disk had {there} of the sectors of its data, and {lost} were only in its cache"
        if own and lost:
            return f"the sectors of its data, sent at {at(own[0].seconds)}, were only in the disk's cache"
    data = "its data was on the disk, but " if own else ""
    if line.causes or any(one.fate is not Fate.DURABLE for one in line.writes):
        return f"{data}{in_words(line)}"
    return f"{data}not all of the metadata that would show it" if own else "a part of it was still only in memory"
