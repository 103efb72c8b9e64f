"""Properties, and when an observation violates one.

- atomicity of k: the effect of k is never partial;
- prefix: an append leaves nothing, or a block-granular prefix of it, in order;
- ordering X -> Y: whenever any of Y's effect is there, X's effect is there in full;
- durability of k after a call: whenever that has returned before the crash, k's effect is there in full;
- collateral: what no operation was to change is as it was. Damage of which the only suspect is an operation that an
  atomicity property speaks of breaks that property; all else is this one's. So is what two operations have left half
  done, it is unknown which, where no atomicity property speaks of both.

What is asked of recovery itself is in :mod:`bob.claim.idempotence`.
"""

from __future__ import annotations

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
    """How a property is judged."""

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
}
"""Fields of a property, as in a probe file, that only these rules take."""


class Later(StrEnum):
    """Which later operations an ordering property speaks of."""

    ANY = "any"
    APPEND_SAME_FILE = "append-same-file"


@dataclass(frozen=True, slots=True)
class Property:
    """One row of the table: its name, what it means, and how it is judged.

    Its operations are those of ``subjects``, ``spans`` and ``kinds``, where these are not empty: of kinds, operations
    that are one change only. For an ordering, ``later_kinds`` says the same of the later one, and ``relations`` how the
    two are related; for durability, ``relations`` says how the change is related to what ``call`` is made on.
    """

    name: str
    family: str
    meaning: str
    rule: Rule
    subjects: tuple[Effect, ...] = ()
    spans: tuple[Span, ...] = ()
    then_renamed: bool = False
    """The subject is the write together with a later rename of its file."""
    later: Later = Later.ANY
    kinds: tuple[ChangeKind, ...] = ()
    later_kinds: tuple[ChangeKind, ...] = ()
    relations: tuple[Relation, ...] = ()
    call: Call | None = None
    several: bool = False
    """Of durability: asked only of operations that are several changes, or that are on what another one made. These are
    lost where their making is, if that was to be durable, too."""


@dataclass(frozen=True, slots=True)
class Question:
    """A property asked of particular operations of one workload.

    ``required`` must be there in full (ordering, durability), or must not be partial (atomicity); ``later`` is the
    operation whose presence asks for it (ordering only), ``returned`` that which had returned before the crash
    (durability only). One that requires nothing is asked of what no operation was to change: it is ``beside`` them.
    """

    required: tuple[int, ...]
    later: int | None = None
    returned: int | None = None
    beside: bool = False

    @property
    def operations(self) -> tuple[int, ...]:
        """The numbers of all operations that it is about."""
        others = (number for number in (self.later, self.returned) if number is not None)
        return tuple(dict.fromkeys((*self.required, *others)))


@dataclass(frozen=True, slots=True)
class Violation:
    """An observation that breaks a property: which question it answers wrongly, and what is there, in one line.

    As data, ``wrong`` is what is not as it should be: an operation of which not all is there, or damage; ``accounts``
    are what is there of each operation that the question is about.
    """

    question: Question
    evidence: str
    wrong: Account | Damage
    accounts: tuple[Account, ...] = ()

    @property
    def is_clear(self) -> bool:
        """Whether the later operation is there whole, where the question has one."""
        later = self.question.later
        return all(one.extent is EffectExtent.WHOLE for one in self.accounts if one.number == later)


def questions(prop: Property, history: History) -> tuple[Question, ...]:
    """Everything that ``prop`` asks of a workload; empty if the workload has nothing to do with it."""
    if prop.call is not None:
        numbers = covered(prop.call, prop.kinds, prop.relations, history, several=prop.several)
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
    """Whether operation ``number`` is one change of these kinds; of no kinds, any operation is."""
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
    """Whether an ordering that is about kinds or relations is about these two operations."""
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
    """Whether an observation that the oracle reads as ``reading`` breaks ``prop``."""
    return _wrong(prop, question, history, reading) is not None


def _wrong(prop: Property, question: Question, history: History, reading: Reading) -> int | Damage | None:
    """What is not as it should be: the number of an operation of which not all is there, or damage; None where ``prop``
    is not broken."""
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
        # Where what it is about was never made, only its making is lost: unless that was to be durable, too.
        return lost if not missing or (prop.several and missing <= _all_durable(prop, history)) else None
    if reading.of(number) is Presence.PARTIAL:
        return number if prop.rule is not Rule.PREFIX or number not in reading.prefixes else None
    return _damage(prop, number, history, reading)


def is_clear(question: Question, reading: Reading) -> bool:
    """Whether the later operation of ``question`` is there whole, where it has one."""
    return question.later is None or question.later in reading.whole


def violation(
    prop: Property, question: Question, history: History, oracle: Oracle, reading: Reading, observation: Observation
) -> Violation | None:
    """What ``observation``, read by ``oracle`` as ``reading``, breaks of ``prop``, in words; None if it does not."""
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
    """What is ``wrong``, in words."""
    if isinstance(wrong, Account):
        who = "it" if wrong.number == question.returned else quoted(history, wrong.number)
        return wrong.lacks(who if question.later is None else f"{who}, issued earlier,")
    if wrong in reading.collateral and question.required:
        (number,) = question.required
        return f"{quoted(history, number)} did more than it was to do, or not all ({wrong.about})"
    return _of_suspects(wrong, history, beside=wrong in reading.collateral)


def blamed(prop: Property, question: Question, history: History, reading: Reading) -> tuple[int, ...]:
    """The operations that are not there as they should be in an observation, read as ``reading``, that breaks ``prop``:
    those required of which nothing or only a part is there, or the suspects of the damage; in their order."""
    if question.beside:
        found = _beside(history, reading)
        return () if found is None else tuple(sorted(found.suspects))
    lost = tuple(number for number in question.required if reading.of(number) in _LOST)
    return lost or question.required


def _torn_by_a_shift(prop: Property, number: int, history: History, reading: Reading) -> Damage | None:
    """Damage to a file in which a range moves, of which this operation is suspected: bob cannot say whose tear it is,
    but the call was to make all suspects durable."""
    assert prop.call is not None
    torn = [damage for damage in reading.damage if number in damage.suspects]
    shifts = {change.number for change in changes(history) if change.kind is ChangeKind.SHIFT}
    if not any(damage.suspects & shifts for damage in torn):
        return None
    durable = frozenset(covered(prop.call, tuple(ChangeKind), prop.relations, history))
    return next((one for one in torn if one.suspects & shifts and one.suspects <= durable), None)


def _all_durable(prop: Property, history: History) -> frozenset[int]:
    """The operations that a property of durability says to be durable, also those that it does not ask for."""
    assert prop.call is not None
    return frozenset(covered(prop.call, prop.kinds, prop.relations, history))


_LOST = (Presence.NONE, Presence.PARTIAL)


def _damage(prop: Property, number: int, history: History, reading: Reading) -> Damage | None:
    """Damage that this operation may have done. It is unknown which suspect did, but ``prop`` speaks of all of them."""
    for damage in reading.damage:
        if number in damage.suspects and damage.suspects <= {s.number for s in _chosen(prop, history)}:
            return damage
    return next((damage for damage in reading.collateral if damage.suspects == {number}), None)


def _beside(history: History, reading: Reading) -> Damage | None:
    """The first damage to what no operation was to change, but what breaks the atomicity of its only suspect; or what
    only a part of one of several operations explains, where no atomicity row speaks of all of these, and none of them
    is known to be there in part."""
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


_ATOMIC = (Effect.OVERWRITE, Effect.APPEND, Effect.DIRECTORY)
"""The effects that the atomicity rows of Table 1 speak of."""


def _is_of_one_row(several: Sequence[ClassifiedOperation]) -> bool:
    """Whether an atomicity row of Table 1 speaks of all of these: writes over several blocks are one row's, be they
    appended or not."""
    rows = {
        (None, subject.span) if subject.span is Span.BLOCKS else (subject.effect, subject.span) for subject in several
    }
    return len(rows) == 1


def _of_suspects(damage: Damage, history: History, *, beside: bool) -> str:
    """Damage in words, with the operations that may have done it; it is ``beside`` what they were to change, or not."""
    suspects = " or ".join(quoted(history, number) for number in sorted(damage.suspects))
    if not beside:
        return f"{suspects} is neither there nor left out ({damage.about})"
    return f"what no operation was to change is damaged ({damage.about})" + (f": by {suspects}" if suspects else "")


def quoted(history: History, number: int) -> str:
    """Operation ``number`` as people are told of it."""
    return f"operation {number} ({write_one(history.operations[number - 1])})"
