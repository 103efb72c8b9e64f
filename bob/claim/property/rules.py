"""Properties, and when an observation violates one.

- atomicity of k: the effect of k is never partial;
- prefix: an append leaves nothing, or a block-granular prefix of it, in order;
- ordering X -> Y: whenever any of Y's effect is there, X's effect is there in full;
- durability of k after a call: whenever that has returned before the crash, k's effect is there in full;
- collateral: what no operation was to change is as it was. Damage whose only suspect is an operation of an atomicity
  property breaks that property instead. What one of two operations left half done is collateral, too, if no atomicity
  property speaks of both.
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
"""Fields of a property that only these rules take."""


class Later(StrEnum):
    """The later operations of an ordering property."""

    ANY = "any"
    APPEND_SAME_FILE = "append-same-file"


@dataclass(frozen=True, slots=True)
class Property:
    """One row of the table: its name, its meaning, and its rule.

    Its operations are those of ``subjects``, ``spans`` and ``kinds`` unless empty; ``kinds`` allow only operations
    that are one change. For an ordering, ``later_kinds`` are those of the later operation, and ``relations`` is between
    the two; for durability, ``relations`` is between the change and the target of ``call``.
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
    """Durability only of operations that are several changes, or on a thing that another one made. They are lost with
    its making, if that was to be durable, too."""


@dataclass(frozen=True, slots=True)
class Question:
    """A property asked of particular operations of one workload.

    ``required`` must be there in full (ordering, durability), or must not be partial (atomicity). ``later`` is the
    operation whose presence asks for it (ordering), ``returned`` the one that had returned before the crash
    (durability). A question ``beside`` the operations asks about all that none was to change.
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
    """An observation that answers ``question`` wrongly, with the evidence in one line.

    ``wrong`` is an operation of which not all is there, or damage. ``accounts`` has each operation of the question.
    """

    question: Question
    evidence: str
    wrong: Account | Damage
    accounts: tuple[Account, ...] = ()

    @property
    def is_clear(self) -> bool:
        """Whether the later operation, if any, is there whole."""
        later = self.question.later
        return all(one.extent is EffectExtent.WHOLE for one in self.accounts if one.number == later)


def questions(prop: Property, history: History) -> tuple[Question, ...]:
    """Return all questions of ``prop`` about a workload; none if the workload has nothing to do with it."""
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
    """Return whether operation ``number`` is one change of these kinds, or there are no ``kinds``."""
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
    """Return whether the kinds and relations of an ordering fit these two operations."""
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
    """Return whether an observation with this ``reading`` breaks ``prop``."""
    return _wrong(prop, question, history, reading) is not None


def _wrong(prop: Property, question: Question, history: History, reading: Reading) -> int | Damage | None:
    """Return the number of an operation of which not all is there, or the damage; None if ``prop`` is not broken."""
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
        # If its thing was never made, only the making is lost: unless that was to be durable, too.
        durable = frozenset(covered(prop.call, prop.kinds, prop.relations, history)) if prop.call else frozenset()
        return lost if not missing or (prop.several and missing <= durable) else None
    if reading.of(number) is Presence.PARTIAL:
        return number if prop.rule is not Rule.PREFIX or number not in reading.prefixes else None
    return _damage(prop, number, history, reading)


def is_clear(question: Question, reading: Reading) -> bool:
    """Return whether the later operation of ``question``, if any, is there whole."""
    return question.later is None or question.later in reading.whole


def violation(
    prop: Property, question: Question, history: History, oracle: Oracle, reading: Reading, observation: Observation
) -> Violation | None:
    """Return how ``observation``, read by ``oracle`` as ``reading``, breaks ``prop``; None if it does not."""
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
    """Return the operations that break ``prop`` in an observation with this ``reading``, in their order: those required
    that are missing or partial, or the suspects of the damage."""
    if question.beside:
        found = _beside(history, reading)
        return () if found is None else tuple(sorted(found.suspects))
    lost = tuple(number for number in question.required if reading.of(number) in _LOST)
    return lost or question.required


def _torn_by_a_shift(prop: Property, number: int, history: History, reading: Reading) -> Damage | None:
    """Return damage by this operation, or by another, to a file in which a range moves. bob cannot say whose tear it
    is, but the call was to make all suspects durable."""
    assert prop.call is not None
    torn = [damage for damage in reading.damage if number in damage.suspects]
    shifts = {change.number for change in changes(history) if change.kind is ChangeKind.SHIFT}
    if not any(damage.suspects & shifts for damage in torn):
        return None
    durable = frozenset(covered(prop.call, tuple(ChangeKind), prop.relations, history))
    return next((one for one in torn if one.suspects & shifts and one.suspects <= durable), None)


_LOST = (Presence.NONE, Presence.PARTIAL)


def _damage(prop: Property, number: int, history: History, reading: Reading) -> Damage | None:
    """Return damage that this operation may have done. bob does not know the culprit; ``prop`` covers all suspects."""
    for damage in reading.damage:
        if number in damage.suspects and damage.suspects <= {s.number for s in _chosen(prop, history)}:
            return damage
    return next((damage for damage in reading.collateral if damage.suspects == {number}), None)


def _beside(history: History, reading: Reading) -> Damage | None:
    """Return the first damage to what no operation was to change, but not if it breaks the atomicity of its only
    suspect. Or return damage that only a part of one of several operations explains, if no atomicity row speaks of all
    of these, and none of them is known to be there in part."""
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
"""The effects in the atomicity rows of Table 1."""


def _is_of_one_row(several: Sequence[ClassifiedOperation]) -> bool:
    """Return whether an atomicity row of Table 1 covers all of these. Multi-block writes belong to one row, appended or
    not."""
    rows = {
        (None, subject.span) if subject.span is Span.BLOCKS else (subject.effect, subject.span) for subject in several
    }
    return len(rows) == 1


def _of_suspects(damage: Damage, history: History, *, beside: bool) -> str:
    """Return damage in words, with its suspects; ``beside``: it is in what they were not to change."""
    suspects = " or ".join(quoted(history, number) for number in sorted(damage.suspects))
    if not beside:
        return f"{suspects} is neither there nor left out ({damage.about})"
    return f"what no operation was to change is damaged ({damage.about})" + (f": by {suspects}" if suspects else "")


def quoted(history: History, number: int) -> str:
    """Return operation ``number`` in words."""
    return f"operation {number} ({write_one(history.operations[number - 1])})"
