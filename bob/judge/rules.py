"""Properties, and when an observation violates one.

- atomicity of k: the effect of k is never partial;
- prefix: an append leaves nothing, or a block-granular prefix of it, in order;
- ordering X -> Y: whenever any of Y's effect is there, X's effect is there in full.

What is asked of recovery itself is in :mod:`bob.judge.idempotence`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from bob.judge.contents import Fact
from bob.judge.presence import Damage, Oracle, Presence, Reading
from bob.judge.subjects import Effect, Span, Subject, subjects
from bob.observe.observation import Observation
from bob.workload import operations as ops
from bob.workload.history import History
from bob.workload.language import write_one


class Rule(StrEnum):
    """How a property is judged."""

    ATOMIC = "atomic"
    PREFIX = "prefix"
    ORDERED = "ordered"


class Later(StrEnum):
    """Which later operations an ordering property speaks of."""

    ANY = "any"
    APPEND_SAME_FILE = "append-same-file"


@dataclass(frozen=True, slots=True)
class Property:
    """One row of the table: its name, what it means, and how it is judged."""

    name: str
    family: str
    meaning: str
    rule: Rule
    subjects: tuple[Effect, ...]
    spans: tuple[Span, ...] = ()
    then_renamed: bool = False
    """The subject is the write together with a later rename of its file."""
    later: Later = Later.ANY


@dataclass(frozen=True, slots=True)
class Question:
    """A property asked of particular operations of one workload.

    ``required`` must be there in full (ordering), or must not be partial (atomicity); ``later`` is the operation whose
    presence asks for it, None for atomicity. One that requires nothing is asked of recovery
    (:mod:`bob.judge.idempotence`).
    """

    required: tuple[int, ...]
    later: int | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """An observation that breaks a property: which question it answers wrongly, and what is there, in one line."""

    question: Question
    evidence: str


def questions(prop: Property, history: History) -> tuple[Question, ...]:
    """Everything that ``prop`` asks of a workload; empty if the workload has nothing to do with it."""
    everything = subjects(history)
    chosen = _chosen(prop, everything)
    if prop.rule is not Rule.ORDERED:
        return tuple(Question((subject.number,)) for subject in chosen)
    return tuple(question for subject in chosen for question in _ordered(prop, history, subject, everything))


def _chosen(prop: Property, everything: tuple[Subject, ...]) -> list[Subject]:
    return [s for s in everything if s.effect in prop.subjects and (not prop.spans or s.span in prop.spans)]


def _ordered(prop: Property, history: History, subject: Subject, everything: tuple[Subject, ...]) -> Iterator[Question]:
    required: tuple[int, ...] = (subject.number,)
    if prop.then_renamed:
        numbers = range(subject.number + 1, len(history.operations) + 1)
        renames = [number for number in numbers if _renames(history, number, subject)]
        if not renames:
            return
        required = (subject.number, renames[0])
    for later in everything:
        if later.number <= required[-1]:
            continue
        same_append = later.effect is Effect.APPEND and later.thing == subject.thing
        if prop.later is Later.ANY or same_append:
            yield Question(required, later.number)


def _renames(history: History, number: int, subject: Subject) -> bool:
    operation = history.operations[number - 1]
    return isinstance(operation, ops.Rename) and history.steps[number - 1].names.get(operation.old) == subject.thing


def is_broken(prop: Property, question: Question, history: History, reading: Reading) -> bool:
    """Whether an observation that the oracle reads as ``reading`` breaks ``prop``."""
    if question.later is not None:
        there = reading.of(question.later) in (Presence.PARTIAL, Presence.FULL)
        return there and any(reading.of(number) in _LOST for number in question.required)
    (number,) = question.required
    if reading.of(number) is Presence.PARTIAL:
        return prop.rule is not Rule.PREFIX or number not in reading.prefixes
    return _damage(prop, number, history, reading) is not None


def violation(
    prop: Property, question: Question, history: History, oracle: Oracle, reading: Reading, observation: Observation
) -> Violation | None:
    """What ``observation``, read by ``oracle`` as ``reading``, breaks of ``prop``, in words; None if it does not."""
    if not is_broken(prop, question, history, reading):
        return None
    number = next(number for number in question.required if question.later is None or reading.of(number) in _LOST)
    detail = _detail(number, oracle, observation)
    if question.later is not None:
        lost = "nothing" if reading.of(number) is Presence.NONE else "only a part"
        there = quoted(history, question.later)
        return Violation(question, f"{there} is there, but {lost} of the earlier {quoted(history, number)} ({detail})")
    damage = _damage(prop, number, history, reading)
    if reading.of(number) is Presence.PARTIAL or damage is None:
        return Violation(question, f"only a part of {quoted(history, number)} is there ({detail})")
    suspects = " or ".join(quoted(history, suspect) for suspect in sorted(damage.suspects))
    return Violation(question, f"only a part of {suspects} is there ({damage.about})")


_LOST = (Presence.NONE, Presence.PARTIAL)


def _damage(prop: Property, number: int, history: History, reading: Reading) -> Damage | None:
    """Damage that this operation may have done. Nobody knows which suspect did, but ``prop`` speaks of all of them."""
    for damage in reading.damage:
        if number in damage.suspects and damage.suspects <= {s.number for s in _chosen(prop, subjects(history))}:
            return damage
    return None


def quoted(history: History, number: int) -> str:
    """Operation ``number`` as people are told of it."""
    return f"operation {number} ({write_one(history.operations[number - 1])})"


def _detail(number: int, oracle: Oracle, observation: Observation) -> str:
    findings = oracle.findings(number, observation)
    wrong = [finding for finding in findings if finding.fact in (Fact.NEITHER, Fact.BEFORE)] or findings
    return "; ".join(finding.words for finding in wrong[:2])
