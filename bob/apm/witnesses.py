"""The witness of a refuted clause: the crash state, with a question that ``bob replay`` can ask of it again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from bob.apm.clauses import Clause, Never, Ordered, Whole
from bob.apm.evidence import Sight, Witnessed
from bob.claim.property.bench import inodes_of_things
from bob.claim.property.of_property import OfProperty
from bob.claim.property.presence import Oracle
from bob.claim.property.rules import Property, Question, Rule, is_broken, violation
from bob.claim.property.subjects import Effect
from bob.request import request_from_json
from bob.result import Environment
from bob.witness import document as witness
from bob.witness.document import Showing
from bob.workload.kinds import Change, relation


def witness_of(clause: Clause, workload: Witnessed, sight: Sight) -> dict[str, Any] | None:
    """The witness of a clause that ``sight`` refutes; None where what is there of the operations does not show it.

    A model sees more than the presence of operations does (:mod:`bob.claim.property.presence`), and some clauses no
    property can say: then the crash state is told in the model, but has no witness of its own.
    """
    prop = _property(clause)
    if prop is None:
        return None
    case = workload.case
    history = workload.graph.workings.history
    oracle = Oracle(history, inodes_of_things(history, *case.inodes))
    observation = workload.observation(sight)
    reading = oracle.read(observation)
    for question in _questions(clause, workload.graph.workings.changes):
        if is_broken(prop, question, history, reading):
            found = violation(prop, question, history, oracle, reading, observation)
            assert found is not None
            claim = OfProperty(prop.name, question, prop)
            showing = Showing(case, sight.state, claim, found.evidence)
            about = workload.run.about()
            request, environment = request_from_json(about["request"]), Environment(**about["environment"])
            return witness.write(
                showing,
                environment=asdict(environment),
                configuration=request.configuration,
                model=request.model,
            )
    return None


def file_name(clause: Clause) -> str:
    """What the file of a clause's witness is called."""
    return f"{clause.name.replace(' ', '-')}.json"


def _property(clause: Clause) -> Property | None:
    match clause:
        case Ordered():
            rule, family = Rule.ORDERED, "ordering"
        case Whole() | Never():
            rule, family = Rule.ATOMIC, "atomicity"
        case _:
            return None
    return Property(clause.name.replace(" ", "-"), family, clause.words, rule, tuple(Effect))


def _questions(clause: Clause, changes: tuple[Change, ...]) -> Iterator[Question]:
    for at, change in enumerate(changes):
        match clause:
            case Whole(kind) | Never(kind) if change.kind is kind:
                yield Question((change.number,))
            case Ordered(before, after, how) if change.kind is before:
                for later in changes[at + 1 :]:
                    if later.kind is after and relation(change, later) is how and later.number > change.number:
                        yield Question((change.number,), later.number)
