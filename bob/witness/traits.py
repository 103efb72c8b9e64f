"""The traits of a witness (a recorded crash), which describe how it breaks a property. Each trait is a set of words
from a fixed list. bob compares the traits with known reasons for violations. The traits follow from the witness alone:
its claim (such as a property, which the crash breaks), its tree, its workload, and the fate of each write (lost, kept
or torn). If none of the other words fits, the trait has the word ``nothing``. For example, the trait for torn blocks
has the word ``nothing`` if no block is torn."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from bob.blocks.parts import BlockKind
from bob.claim.property.account import Account, EffectExtent, EffectPart
from bob.claim.property.of_property import OfProperty
from bob.claim.property.rules import Violation
from bob.claim.property.subjects import Effect, subjects
from bob.claim.property.vocabulary import Call, What
from bob.story.timeline import CallEvent, CrashTimeline, Fate, WriteEvent
from bob.witness.document import Witness
from bob.workload import operations as ops
from bob.workload.history import History
from bob.workload.language import GRAMMAR, write_one
from bob.workload.operations import How, Operation
from bob.workload.simulation import simulate


class Trait(StrEnum):
    """A trait of a witness. :data:`WORDS` has the possible words of each trait. The *wrong operation* is the one that
    is missing or damaged after the crash, in whole or in part."""

    OPERATION = "operation"  # kind of the wrong operation, and its manner, such as direct
    BESIDE = "beside"  # kinds of the other operations that must survive, such as a rename after an append
    LATER = "later"  # kind of the later operation, which survived at least in part (only for an ordering)
    EXTENT = "extent"  # how much of the later operation survived (only for an ordering)
    CALLS = "calls"  # calls and flags of open(2) that ask for durability in the workload or its finish
    MISSING = "missing"  # missing part of the wrong operation
    LOST = "lost"  # kinds of lost blocks: those that decide; else those with the operation's data; else all
    KEPT = "kept"  # kinds of blocks on the medium that were not flushed
    TORN = "torn"  # kinds of torn blocks
    DURABLE = "durable"  # kinds of blocks written during the recording and durable at the crash
    SENT = "sent"  # when the kernel sent the operation's data to the disk; the lost or torn data, if any


class SendTime(StrEnum):
    IN_THE_CALL = "in-the-call"  # before the operation closed its file and returned
    AFTER_THE_CALL = "after-the-call"
    NEVER = "never"  # not before the crash


Traits = Mapping[Trait, frozenset[str]]

NOTHING = "nothing"
REPLACE = "replace"  # a rename to an existing name; a rename to a free name is "rename"
MORE = "more"  # nothing is missing: the operation changed more than it should
OTHER = "other"  # any other damage
_KINDS = frozenset(BlockKind)
_SORTS = frozenset({*Effect, *(how for how in How if how is not How.PLAIN), *GRAMMAR})
WORDS: Mapping[Trait, frozenset[str]] = {
    trait: frozenset(map(str, words)) | {NOTHING}
    for trait, words in {
        Trait.OPERATION: _SORTS | {REPLACE},
        Trait.BESIDE: _SORTS | {REPLACE},
        Trait.LATER: _SORTS | {REPLACE},
        Trait.EXTENT: frozenset(EffectExtent),
        Trait.CALLS: {"fsync", "fdatasync", "sync_file_range", "msync", "sync", "syncfs", Call.O_SYNC, Call.O_DSYNC},
        Trait.MISSING: {What.DATA, What.SIZE, What.NAMES, What.ATTRIBUTES, MORE, OTHER},
        Trait.LOST: _KINDS,
        Trait.KEPT: _KINDS,
        Trait.TORN: _KINDS,
        Trait.DURABLE: _KINDS,
        Trait.SENT: frozenset(SendTime),
    }.items()
}
_SYNCS = {How.SYNC: Call.O_SYNC, How.DSYNC: Call.O_DSYNC}
_PARTS = {
    EffectPart.NAME: What.NAMES,
    EffectPart.FILE: What.NAMES,
    EffectPart.SIZE: What.SIZE,
    EffectPart.DATA: What.DATA,
    EffectPart.LINKS: What.NAMES,
    EffectPart.ATTRIBUTE: What.ATTRIBUTES,
}
"""The word of the trait ``MISSING`` for each part of an operation's effect that may be missing."""


def traits_of(witness: Witness) -> Traits | None:
    """Return the traits of ``witness``. Return None if its claim is not a property, or if its tree does not break the
    property. Raises UsageError for a property that this version of bob does not know."""
    if not isinstance(witness.claim, OfProperty) or witness.found is None:
        return None
    violation = witness.claim.violation(witness.found, witness.context)
    if violation is None:
        return None
    question, line = violation.question, witness.timeline
    history = simulate(witness.workload)[0]
    wrong = violation.wrong
    number = wrong.number if isinstance(wrong, Account) else next(iter(question.required), None)
    found: dict[Trait, Iterable[str]] = {
        Trait.OPERATION: _sort(history, number),
        Trait.BESIDE: {word for other in question.required if other != number for word in _sort(history, other)},
        Trait.LATER: _sort(history, question.later),
        Trait.EXTENT: {one.extent for one in violation.accounts if one.number == question.later},
        Trait.CALLS: _calls((*witness.workload.operations, *witness.workload.finish.operations)),
        Trait.MISSING: _missing(violation, number),
        Trait.LOST: _lost(line, number),
        Trait.KEPT: {one.kind for one in line.writes if one.fate is Fate.KEPT},
        Trait.TORN: {one.kind for one in line.writes if one.fate is Fate.TORN},
        Trait.DURABLE: {one.kind for one in line.writes if one.fate is Fate.DURABLE and one.seconds >= 0},
        Trait.SENT: _sent(line, history, number),
    }
    return {trait: frozenset(map(str, words)) or frozenset({NOTHING}) for trait, words in found.items()}


def _missing(violation: Violation, number: int | None) -> set[str]:
    wrong = violation.wrong
    if isinstance(wrong, Account):
        return {_PARTS[finding.part] for finding in wrong.lacking}
    if wrong.part is not None:
        return {_PARTS[wrong.part]}
    return {MORE if wrong.suspects == {number} else OTHER}


def _sort(history: History, number: int | None) -> set[str]:
    if number is None:
        return set()
    operation = history.operations[number - 1]
    found: set[str] = {one.effect for one in subjects(history) if one.number == number}
    match operation:
        case ops.Write(how=How.PLAIN):
            pass
        case ops.Write(how=how):
            found.add(how)
        case ops.Rename(new=new) if new in history.steps[number - 1].names:
            found.add(REPLACE)
        case _:
            found.add(write_one(operation).split()[0])
    return found


def _calls(operations: Iterable[Operation]) -> set[str]:
    found: set[str] = set()
    for operation in operations:
        if isinstance(operation, ops.SYNC_OPERATIONS):
            found.add(write_one(operation).split()[0])
        elif isinstance(operation, ops.Write) and operation.how in _SYNCS:
            found.add(_SYNCS[operation.how])
    return found


def _lost(line: CrashTimeline, number: int | None) -> set[str]:
    lost = [one for one in line.writes if one.fate is Fate.LOST]
    deciding, own = [one for one in lost if one.decides], [one for one in lost if number in one.operations]
    return {one.kind for one in deciding or own or lost}


def _sent(line: CrashTimeline, history: History, number: int | None) -> set[str]:
    if number not in history.data:
        return set()
    own = [one for one in line.writes if number in one.operations and one.kind == BlockKind.DATA]
    gone = [one for one in own if one.fate in (Fate.LOST, Fate.TORN)] or own
    ends = [event.end for event in line.events if isinstance(event, CallEvent) and event.number == number]
    return {_when(one, ends) for one in gone} or {SendTime.NEVER}


def _when(one: WriteEvent, ends: Iterable[float | None]) -> str:
    """Return when the kernel sent the write ``one`` to the disk: before the operation that made its data had returned,
    or later. ``ends`` has the time when this operation returned. If the operation had not returned by the crash,
    ``ends`` is empty or contains None."""
    return (
        SendTime.AFTER_THE_CALL if any(end is not None and one.seconds > end for end in ends) else SendTime.IN_THE_CALL
    )
