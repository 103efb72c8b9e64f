"""The document that declares a property. Its keys are those of a probe file, the TOML file of a property and its
workloads (docs/extend.md)."""

from __future__ import annotations

import dataclasses

from bob.claim.property.rules import ONLY_FOR, Later, Property, Rule
from bob.claim.property.subjects import Effect, Span
from bob.claim.property.vocabulary import Call
from bob.schema import Declaration, Document, OneLine, adapt, field, older
from bob.workload.kinds import ChangeKind, Relation


class JudgeDeclaration(Declaration, frozen=True, omit_defaults=True):
    rule: Rule
    subject: Effect | tuple[Effect, ...] | None = field(default_factory=older(None))
    spans: tuple[Span, ...] = field(default_factory=older(()))
    then_renamed: bool = field(default_factory=older(False))
    later: Later = field(default_factory=older(Later.ANY))
    kinds: tuple[ChangeKind, ...] = ()
    later_kinds: tuple[ChangeKind, ...] = ()
    relations: tuple[Relation, ...] = ()
    call: Call | None = None
    several: bool = False
    own: bool = False

    @property
    def subjects(self) -> tuple[Effect, ...]:
        """The kinds of operations that the property is about. Raises ValueError if the document does not declare them,
        although the property's rule needs them."""
        if self.subject is None and not self.kinds and self.rule is not Rule.COLLATERAL:
            raise ValueError("judge: 'subject' is missing")
        return (self.subject,) if isinstance(self.subject, Effect) else self.subject or ()


class PropertyDocument(Document, frozen=True):
    name: OneLine
    family: OneLine
    meaning: OneLine
    judge: JudgeDeclaration

    @classmethod
    def of(cls, prop: Property) -> PropertyDocument:
        return adapt(cls, prop, judge=adapt(JudgeDeclaration, prop, subject=prop.subjects))

    @property
    def declared(self) -> Property:
        """The property that this document declares. Raises ValueError for keys that do not go together."""
        own = {"name": self.name, "family": self.family, "meaning": self.meaning}
        prop = adapt(Property, self.judge, **own)
        if prop.rule is Rule.PREFIX and prop.subjects != (Effect.APPEND,):
            raise ValueError("the rule 'prefix' is only for appends")
        unset = {field.name: field.default for field in dataclasses.fields(Property)}
        for key, rules in ONLY_FOR.items():
            if getattr(prop, key) != unset[key] and prop.rule not in rules:
                names = " and ".join(f"'{rule.value}'" for rule in rules)
                raise ValueError(f"only the {'rules' if len(rules) > 1 else 'rule'} {names} can have '{key}'")
        if (prop.rule is Rule.DURABLE) != (prop.call is not None):
            raise ValueError("the rule 'durable' needs a 'call', and no other rule takes one")
        if prop.rule is Rule.COLLATERAL and (prop.subjects or prop.spans or prop.kinds):
            raise ValueError("the rule 'collateral' does not take 'subject', 'spans' or 'kinds'")
        if prop.rule is Rule.DURABLE and (prop.subjects or prop.spans or not prop.kinds):
            raise ValueError("the rule 'durable' needs 'kinds', and takes neither 'subject' nor 'spans'")
        return prop
