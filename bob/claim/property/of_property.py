"""The claim that a property holds for some operations. A property is a rule about crashes, such as "an append is
atomic". A *witness* is a document about one crash state that breaks a claim."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from bob.claim.claim import NEWER, BrokenClaim, Context, Judgeable, PropertyLookup, View
from bob.claim.property.declaration import PropertyDocument
from bob.claim.property.judged_case import JudgedCase
from bob.claim.property.presence import Oracle
from bob.claim.property.readings import inodes_of_things
from bob.claim.property.rules import Property, Question, Violation, violation
from bob.claim.property.sentence import of_question
from bob.claim.property.vocabulary import row_of_today
from bob.crash.state import CrashState
from bob.errors import MalformedError, UsageError
from bob.observe.observation import Observation
from bob.schema import Document, adapt, decode, encode
from bob.story.timeline import CrashTimeline
from bob.workload.history import History
from bob.workload.operations import At, Finish, Workload
from bob.workload.simulation import simulate


@dataclass(frozen=True, slots=True)
class OfProperty(Judgeable):
    """The claim that property ``name`` holds for the operations that ``question`` is about. ``declared`` is the
    property, or None if neither bob nor the witness defines it."""

    name: str = field()  # a field, since the default would be Claim's property of that name
    question: Question = field()
    declared: Property | None = None

    kind = "property"
    is_shown_by_the_tree = True

    @property
    def title(self) -> str:
        return self.name

    @property
    def asks(self) -> tuple[str, str]:
        return f"What {self.name} asks for", "" if self.declared is None else self.declared.meaning

    @property
    def resolved(self) -> Property:
        """The property that has this name. Raises UsageError if neither bob nor the witness defines it."""
        if self.declared is None:
            raise UsageError(
                f"unknown property {self.name!r}", hint="neither this version of bob nor the witness defines it"
            )
        return self.declared

    @property
    def operations(self) -> tuple[int, ...]:
        return self.question.operations

    def headline(self, configuration: str) -> str:
        return f"{self.name} is violated on {configuration}"

    def violation(self, seen: Observation, context: Context) -> Violation | None:
        """Return how ``seen`` breaks the claim. Return None if it satisfies the claim, or if the state did not mount.
        Raises UsageError if neither bob nor the witness defines the property."""
        if not seen.mounted:
            return None
        history, oracle = _oracle(context)
        return violation(self.resolved, self.question, history, oracle, oracle.read(seen), seen)

    def broken(self, view: View, context: Context) -> str | None:
        found = self.violation(view.observation, context)
        return None if found is None else found.evidence

    def asking(self, workload: Workload) -> Workload:
        returned = self.question.returned
        if returned is None or returned == len(workload.operations):
            return workload
        # If crashes come after a call in the middle, cut the workload after that call: then each crash comes after it.
        finish = Finish("natural", natural=True)
        return replace(workload, operations=workload.operations[:returned], finish=finish, at=At.END)

    def easiest(self, bench: JudgedCase) -> BrokenClaim | None:
        judged = bench.judge(self.resolved)
        if judged is None or judged.evidence is None:
            return None
        violation = judged.evidence.violation
        claim = OfProperty(self.name, violation.question, self.resolved)
        found = bench.observation(judged.evidence.outcome)
        return BrokenClaim(judged.evidence.state, claim, violation.evidence, found, violation.is_clear)

    def kept_in(self, bench: JudgedCase, state: CrashState) -> bool:
        return bench.satisfies(self.resolved, state)

    def sentence(self, line: CrashTimeline, context: Context, found: Observation | None) -> str:
        extents = {}
        if found is not None and found.mounted:
            _history, oracle = _oracle(context)
            extents = {number: oracle.account(number, found).extent for number in self.question.operations}
        return of_question(line, context.workload.operations, self.question, extents)

    def role(self, number: int) -> str:
        question = self.question
        if number not in question.operations:
            return ""
        if question.returned is not None:
            is_call = number == question.returned
            return "had returned" if is_call else f"must be there after operation {question.returned} has returned"
        if question.later is None:
            return "is there only in part"
        return "is there too early" if number == question.later else f"must come before operation {question.later}"

    def to_json(self) -> dict[str, Any]:
        asked = encode(adapt(QuestionDocument, self.question))
        return {"property": self.name, "probe": encode(PropertyDocument.of(self.resolved)), "question": asked}

    @classmethod
    def read(cls, document: Mapping[str, Any], workload: Workload, known: PropertyLookup) -> Self | None:
        name, asked = document["property"], document["question"]
        if name is None or asked is None:
            return None
        if not isinstance(name, str):
            raise TypeError("the name of its property is not a string")
        if unknown := asked.keys() - set(QuestionDocument.__struct_fields__):
            raise MalformedError(f"its question has the unknown field {min(unknown)!r}", hint=NEWER)
        question = adapt(Question, decode(QuestionDocument, asked))
        if not question.required and not question.beside:
            raise ValueError("its question does not name an operation")
        if len(question.required) > 1 and question.later is None:
            raise ValueError("its question names several operations at once")
        if not all(0 < number <= len(workload.operations) for number in question.operations):
            raise ValueError("its question names operations that its workload lacks")
        probe = document.get("probe")
        found = known(name) if probe is None else decode(PropertyDocument, probe).declared
        if found is not None and found.name != name:
            raise ValueError(f"it is about the property {name!r}, but declares {found.name!r}")
        if found is not None and found.call is None and question.returned is not None:
            raise ValueError("its question is about the return of a call, and its property is not")
        name = row_of_today(name)
        return cls(name, question, None if found is None else replace(found, name=name))


def _oracle(context: Context) -> tuple[History, Oracle]:
    history = simulate(context.workload)[0]
    return history, Oracle(history, inodes_of_things(history, *context.inodes), context.statuses)


class QuestionDocument(Document, frozen=True):
    """The part of a witness that names the operations of the broken property (a :class:`Question`). An unknown field is
    an error, as it may change the question. Each field means the same as in :class:`Question`."""

    required: tuple[int, ...]
    later: int | None
    returned: int | None = None
    beside: bool = False
