"""Properties, and when an observation (what the mount of a crash state showed) violates one. A *question* is a
property, applied to certain operations of a workload. Each property is a row in a table of results.

* Atomicity of k: the effect of k is never partial.
* Prefix: an append leaves nothing, all, or a prefix of whole blocks.
* Ordering X -> Y: if any of Y's effect is there, X's effect is there in full.
* Durability of k after a call: if the call returned before the crash, k's effect is there in full.
* Collateral: everything that no operation was to change is as it was. If such damage has a single suspect (an operation
  that may have done it), and an atomicity property is about that operation, the damage breaks atomicity instead. A
  half-done effect breaks Collateral if bob cannot tell which of several operations left it, and these operations have
  different atomicity properties."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from bob.claim.property.account import Account, EffectExtent
from bob.claim.property.calls import covered, makers
from bob.claim.property.collateral import Damage
from bob.claim.property.presence import Oracle, Reading
from bob.claim.property.subjects import ClassifiedOperation, Effect, Span, subjects
from bob.claim.property.vocabulary import Call
from bob.observe.observation import Observation, Presence
from bob.workload import operations as ops
from bob.workload.history import History
from bob.workload.kinds import ChangeKind, Relation, changes, relation, single_changes
from bob.workload.language import write_one


class Rule(StrEnum):
    ATOMIC = "atomic"
    PREFIX = "prefix"
    ORDERED = "ordered"
    DURABLE = "durable"
    COLLATERAL = "collateral"


ONLY_FOR: dict[str, tuple[Rule, ...]] = {
    "then_renamed": (Rule.ORDERED,),
    "later": (Rule.ORDERED,),
    "later_kinds": (Rule.ORDERED,),
    "relations": (Rule.ORDERED, Rule.DURABLE),
    "several": (Rule.DURABLE,),
    "own": (Rule.DURABLE,),
}
"""Fields of a property that only some rules take, and these rules."""


class Later(StrEnum):
    ANY = "any"
    APPEND_SAME_FILE = "append-same-file"


@dataclass(frozen=True, slots=True)
class Property:
    """One row of the table of properties. It is about operations whose effect is one of ``subjects``, such as an
    append. ``spans`` says which ranges the operations may change: inside a sector, inside a block, or over several
    blocks. ``kinds`` distinguish their changes further, such as a rename from a link. An empty field allows all. If
    ``kinds`` is not empty, atomicity and ordering are only about operations that make a single change.

    ``relations`` restricts an ordering to pairs of changes with such a relation. It restricts durability to changes
    with such a relation to the target of ``call``."""

    name: str
    family: str
    meaning: str
    rule: Rule
    subjects: tuple[Effect, ...] = ()
    spans: tuple[Span, ...] = ()
    then_renamed: bool = False  # the subject is the write together with a later rename of its file
    later: Later = Later.ANY
    kinds: tuple[ChangeKind, ...] = ()
    later_kinds: tuple[ChangeKind, ...] = ()
    relations: tuple[Relation, ...] = ()
    call: Call | None = None
    several: bool = False
    """Only operations of several changes, or operations on a file or directory that another operation made. Such an
    operation is lost together with that other operation, if both had to be durable."""
    own: bool = False  # only the write that is the call itself


@dataclass(frozen=True, slots=True)
class Question:
    """A property, applied to certain operations of a workload (by their numbers). The rule of the property decides
    which fields are set.

    For an ordering, ``required`` must be there in full if any part of operation ``later`` is there. For durability,
    ``required`` must be there in full if operation ``returned`` had returned before the crash. If neither ``later`` nor
    ``returned`` is set, ``required`` must be there in full or not at all (or as a prefix, if the rule is Prefix). If
    ``beside`` is True, everything that no operation was to change must be as it was."""

    required: tuple[int, ...]
    later: int | None = None
    returned: int | None = None
    beside: bool = False

    @property
    def operations(self) -> tuple[int, ...]:
        others = (number for number in (self.later, self.returned) if number is not None)
        return tuple(dict.fromkeys((*self.required, *others)))


@dataclass(frozen=True, slots=True)
class Violation:
    """A breach of a property: an observation does not fulfil ``question``. ``evidence`` says so in one line.
    ``accounts`` has one account (the facts about an operation) for each operation of the question. ``wrong`` is the
    account of an operation that is not there in full, or it is damage."""

    question: Question
    evidence: str
    wrong: Account | Damage
    accounts: tuple[Account, ...] = ()

    @property
    def is_clear(self) -> bool:
        later = self.question.later
        return all(one.extent is EffectExtent.WHOLE for one in self.accounts if one.number == later)


def questions(prop: Property, history: History) -> tuple[Question, ...]:
    """Return all questions that ``prop`` asks about a workload; none if the workload does not test ``prop``."""
    if prop.call is not None:
        numbers = covered(prop.call, prop.kinds, prop.relations, history, several=prop.several, own=prop.own)
        return tuple(Question((number,), returned=len(history.operations)) for number in numbers)
    if prop.rule is Rule.COLLATERAL:
        return (Question((), beside=True),) if subjects(history) else ()
    chosen = _chosen(prop, history)
    if prop.rule is not Rule.ORDERED:
        return tuple(Question((subject.number,)) for subject in chosen)
    return tuple(question for subject in chosen for question in _ordered(prop, history, subject))


def _chosen(prop: Property, history: History) -> list[ClassifiedOperation]:
    return [
        subject
        for subject in subjects(history)
        if (not prop.subjects or subject.effect in prop.subjects)
        and (not prop.spans or subject.span in prop.spans)
        and _is_of(prop.kinds, history, subject.number)
    ]


def _is_of(kinds: tuple[ChangeKind, ...], history: History, number: int) -> bool:
    change = single_changes(history).get(number)
    return not kinds or (change is not None and change.kind in kinds)


def _ordered(prop: Property, history: History, subject: ClassifiedOperation) -> Iterator[Question]:
    required: tuple[int, ...] = (subject.number,)
    if prop.then_renamed:
        numbers = range(subject.number + 1, len(history.operations) + 1)
        renames = [number for number in numbers if _renames(history, number, subject)]
        if not renames:
            return
        required = (subject.number, renames[0])
    for later in subjects(history):
        if later.number <= required[-1]:
            continue
        same_append = later.effect is Effect.APPEND and later.thing == subject.thing
        if (prop.later is Later.ANY or same_append) and _is_paired(prop, history, subject.number, later.number):
            yield Question(required, later.number)


def _is_paired(prop: Property, history: History, first: int, later: int) -> bool:
    single = single_changes(history)
    if not _is_of(prop.later_kinds, history, later):
        return False
    if not prop.relations:
        return True
    return first in single and later in single and relation(single[first], single[later]) in prop.relations


def _renames(history: History, number: int, subject: ClassifiedOperation) -> bool:
    operation = history.operations[number - 1]
    return isinstance(operation, ops.Rename) and history.steps[number - 1].names.get(operation.old) == subject.thing


def is_broken(prop: Property, question: Question, history: History, reading: Reading) -> bool:
    return _wrong(prop, question, history, reading) is not None


def _wrong(prop: Property, question: Question, history: History, reading: Reading) -> int | Damage | None:
    """Return the incomplete operation, or the damage, that breaks ``prop``; None if nothing breaks it."""
    if question.beside:
        return _beside(history, reading)
    lost = next((number for number in question.required if reading.of(number) in _LOST), None)
    if question.later is not None:
        return lost if reading.of(question.later) in (Presence.PARTIAL, Presence.FULL) else None
    (number,) = question.required
    if question.returned is not None:
        if lost is None:
            return _torn_by_a_shift(prop, number, history, reading)
        missing = {maker for maker in makers(history, number) if reading.of(maker) is not Presence.FULL}
        # If the operation that made the file is lost, this operation does not count as lost. But the operation that
        # made the file may have to be durable, too.
        durable = frozenset(covered(prop.call, prop.kinds, prop.relations, history)) if prop.call else frozenset()
        return lost if not missing or (prop.several and missing <= durable) else None
    if reading.of(number) is Presence.PARTIAL:
        return number if prop.rule is not Rule.PREFIX or number not in reading.prefixes else None
    return _damage(prop, number, history, reading)


def is_clear(question: Question, reading: Reading) -> bool:
    return question.later is None or question.later in reading.whole


def violation(
    prop: Property, question: Question, history: History, oracle: Oracle, reading: Reading, observation: Observation
) -> Violation | None:
    """Return how ``observation`` breaks ``prop`` for the operations of ``question``, or None if it does not.
    ``reading`` is the result of ``oracle`` for this observation."""
    found = _wrong(prop, question, history, reading)
    if found is None:
        return None
    accounts = {number: oracle.account(number, observation) for number in question.operations}
    wrong = found if isinstance(found, Damage) else accounts[found]
    said = _said(question, history, reading, wrong)
    if question.returned is not None:
        said = f"{quoted(history, question.returned)} had returned, but {said}"
    if question.later is not None:
        said = f"{accounts[question.later].appears(quoted(history, question.later))}; {said}"
    return Violation(question, said, wrong, tuple(accounts.values()))


def _said(question: Question, history: History, reading: Reading, wrong: Account | Damage) -> str:
    if isinstance(wrong, Account):
        who = "it" if wrong.number == question.returned else quoted(history, wrong.number)
        return wrong.lacks(who if question.later is None else f"{who}, issued earlier,")
    if wrong in reading.collateral and question.required:
        (number,) = question.required
        return f"{quoted(history, number)} did more than it was to do, or not all ({wrong.about})"
    return _of_suspects(wrong, history, beside=wrong in reading.collateral)


def blamed(prop: Property, question: Question, history: History, reading: Reading) -> tuple[int, ...]:
    """Return the operations to blame for a breach of ``prop``. For collateral damage, these are its suspects. Otherwise
    they are the incomplete operations of ``question.required``. If none of these is incomplete, return all operations
    of ``question.required``."""
    if question.beside:
        found = _beside(history, reading)
        return () if found is None else tuple(sorted(found.suspects))
    lost = tuple(number for number in question.required if reading.of(number) in _LOST)
    return lost or question.required


def _torn_by_a_shift(prop: Property, number: int, history: History, reading: Reading) -> Damage | None:
    """Return damage to a file after fallocate(2) shifted a range of it, or None without such damage. The damage counts
    only if operation ``number`` is one of its suspects, and if the call of ``prop`` must make all suspects durable."""
    assert prop.call is not None
    torn = [damage for damage in reading.damage if number in damage.suspects]
    shifts = {change.number for change in changes(history) if change.kind is ChangeKind.SHIFT}
    if not any(damage.suspects & shifts for damage in torn):
        return None
    durable = frozenset(covered(prop.call, tuple(ChangeKind), prop.relations, history))
    return next((one for one in torn if one.suspects & shifts and one.suspects <= durable), None)


_LOST = (Presence.NONE, Presence.PARTIAL)


def _damage(prop: Property, number: int, history: History, reading: Reading) -> Damage | None:
    """Return damage that operation ``number`` may have done, or None without such damage. If several operations may
    have done it, the damage counts only if ``prop`` is about each of them."""
    for damage in reading.damage:
        if number in damage.suspects and damage.suspects <= {s.number for s in _chosen(prop, history)}:
            return damage
    return next((damage for damage in reading.collateral if damage.suspects == {number}), None)


def _beside(history: History, reading: Reading) -> Damage | None:
    """Return damage that breaks the property "collateral", or None without such damage. Two sorts of damage count.

    The first sort is damage to things that no operation was to change. There is an exception if the damage has a single
    suspect, and an atomicity property is about this operation. Then the damage breaks the atomicity property instead.

    The second sort is damage that one of several operations did, if an atomicity property is about each of them. It
    counts only if these properties are different rows of Table 1 (bob's main table of properties), and if bob does not
    know any of the operations to be partial."""
    atomic = {subject.number: subject for subject in subjects(history) if subject.effect in _ATOMIC}
    beside = (one for one in reading.collateral if len(one.suspects) != 1 or not one.suspects <= atomic.keys())
    between = (
        damage
        for damage in reading.damage
        if damage.suspects <= atomic.keys()
        and not any(reading.of(number) is Presence.PARTIAL for number in damage.suspects)
        and not _is_of_one_row([atomic[number] for number in damage.suspects])
    )
    return next(chain(beside, between), None)


_ATOMIC = (Effect.OVERWRITE, Effect.APPEND, Effect.DIRECTORY)  # effects that have atomicity rows in Table 1


def _is_of_one_row(several: Sequence[ClassifiedOperation]) -> bool:
    """Return whether one row of Table 1, bob's main table of properties, asks for the atomicity of each of these
    operations. All writes of several blocks have the same row."""
    rows = {
        (None, subject.span) if subject.span is Span.BLOCKS else (subject.effect, subject.span) for subject in several
    }
    return len(rows) == 1


def _of_suspects(damage: Damage, history: History, *, beside: bool) -> str:
    suspects = " or ".join(quoted(history, number) for number in sorted(damage.suspects))
    if not beside:
        return f"{suspects} is neither there nor left out ({damage.about})"
    return f"what no operation was to change is damaged ({damage.about})" + (f": by {suspects}" if suspects else "")


def quoted(history: History, number: int) -> str:
    return f"operation {number} ({write_one(history.operations[number - 1])})"
