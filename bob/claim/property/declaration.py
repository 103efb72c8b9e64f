"""A property as a plain document, with the keys of a probe file (docs/write-a-probe.md)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bob import fields
from bob.claim.property.rules import ONLY_FOR, Later, Property, Rule
from bob.claim.property.subjects import Effect, Span
from bob.claim.property.vocabulary import Call
from bob.workload.kinds import ChangeKind, Relation


def declared(document: Mapping[str, Any]) -> Property:
    """The property that a probe file declares, or :func:`declaration` wrote down.

    Raises KeyError, ValueError, TypeError, AttributeError or UsageError for what is none.
    """
    name = fields.text(document["name"], "name")
    (judge,) = fields.tables([document["judge"]], "judge")
    fields.check_keys(
        judge,
        "rule",
        "subject",
        "spans",
        "then_renamed",
        "later",
        "kinds",
        "later_kinds",
        "relations",
        "call",
        "several",
    )
    of_all = judge.get("rule") == Rule.COLLATERAL
    subject = judge.get("subject", ()) if "kinds" in judge or of_all else judge["subject"]
    prop = Property(
        name=name,
        family=fields.text(document["family"], "family"),
        meaning=fields.text(document["meaning"], "meaning"),
        rule=fields.word(Rule, judge["rule"]),
        subjects=tuple(
            fields.word(Effect, name)
            for name in ([subject] if isinstance(subject, str) else fields.texts(subject, "subject"))
        ),
        spans=tuple(fields.word(Span, name) for name in fields.texts(judge.get("spans", ()), "spans")),
        then_renamed=judge.get("then_renamed", False),
        later=fields.word(Later, judge.get("later", Later.ANY)),
        kinds=fields.words(ChangeKind, judge, "kinds"),
        later_kinds=fields.words(ChangeKind, judge, "later_kinds"),
        relations=fields.words(Relation, judge, "relations"),
        call=fields.word(Call, judge["call"]) if "call" in judge else None,
        several=judge.get("several", False),
    )
    if prop.rule is Rule.PREFIX and prop.subjects != (Effect.APPEND,):
        raise ValueError("the rule 'prefix' is about appends only")
    if not isinstance(prop.then_renamed, bool):
        raise ValueError(f"then_renamed: {prop.then_renamed!r} is neither true nor false")
    if not isinstance(prop.several, bool):
        raise ValueError(f"several: {prop.several!r} is neither true nor false")
    unset = {field.name: field.default for field in dataclasses.fields(Property)}
    for key, rules in ONLY_FOR.items():
        if getattr(prop, key) != unset[key] and prop.rule not in rules:
            names = " and ".join(f"'{rule.value}'" for rule in rules)
            raise ValueError(f"'{key}' is for the {'rules' if len(rules) > 1 else 'rule'} {names} only")
    if (prop.rule is Rule.DURABLE) != (prop.call is not None):
        raise ValueError("the rule 'durable' needs a 'call', and no other rule has one")
    if prop.rule is Rule.COLLATERAL and (prop.subjects or prop.spans or prop.kinds):
        raise ValueError("the rule 'collateral' is about all that no operation was to change: it has no 'subject'")
    if prop.rule is Rule.DURABLE and (prop.subjects or prop.spans or not prop.kinds):
        raise ValueError("the rule 'durable' is about 'kinds', and has neither 'subject' nor 'spans'")
    return prop


def declaration(prop: Property) -> dict[str, Any]:
    """``prop`` as a plain document, with the keys of a probe file; it needs no other file to be understood."""
    finer = {"kinds": prop.kinds, "later_kinds": prop.later_kinds, "relations": prop.relations}
    return {
        "name": prop.name,
        "family": prop.family,
        "meaning": prop.meaning,
        "judge": {
            "rule": prop.rule.value,
            "subject": [subject.value for subject in prop.subjects],
            "spans": [span.value for span in prop.spans],
            "then_renamed": prop.then_renamed,
            "later": prop.later.value,
            **{name: [one.value for one in words] for name, words in finer.items() if words},
            **({} if prop.call is None else {"call": prop.call.value}),
            **({"several": True} if prop.several else {}),
        },
    }
