"""The pairs: each can be told from a tree that shows Y without X, and those that were left out cannot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product

import pytest

from bob.catalogue import pairs
from bob.catalogue.sets import Rows, probes_of
from bob.claim.property.presence import Reading
from bob.claim.property.rules import Property, Question, Rule, is_broken, questions, violation
from bob.workload.kinds import ChangeKind, Relation
from bob.workload.language import parse
from bob.workload.operations import Workload
from claim.worlds import World

PROBES = probes_of(Rows.PAIRS)
WORLDS = {(workload.setup, workload.operations): World.of(workload) for probe in PROBES for workload in probe.workloads}
ORACLES = {done: world.oracle() for done, world in WORLDS.items()}
DONE = tuple(WORLDS)


@cache
def without(place: int, lost: int) -> Reading:
    """What is read from the tree that workload ``place`` leaves where operation ``lost`` is not there."""
    world = WORLDS[DONE[place]]
    return ORACLES[DONE[place]].read(world.crash(set(world.all) - {lost}))


def broken(properties: Sequence[Property]) -> dict[str, list[tuple[int, Question]]]:
    """Where the loss of X alone breaks each of ``properties``."""
    found: dict[str, list[tuple[int, Question]]] = {prop.name: [] for prop in properties}
    for place, world in enumerate(WORLDS.values()):
        for prop in properties:
            for question in questions(prop, world.history):
                (lost,) = question.required
                if is_broken(prop, question, world.history, without(place, lost)):
                    found[prop.name].append((place, question))
    return found


def test_every_pair_that_can_be_told_is_asked() -> None:
    properties = list(pairs.properties())
    assert len(properties) == 3 * 14 * 14 - len(pairs.UNTELLABLE)
    told = {name for name, several in broken(properties).items() if several}
    assert told == {probe.property.name for probe in PROBES}


def test_what_was_left_out_cannot_be_told() -> None:
    same_file = (Relation.SAME_FILE,)
    left_out = [
        Property(f"{first} {later}", "", "", Rule.ORDERED, kinds=(first,), later_kinds=(later,), relations=same_file)
        for first, later in pairs.UNTELLABLE
    ]
    assert not any(broken(left_out).values())


def test_no_order_is_broken_where_all_is_there_up_to_some_operation() -> None:
    for done, world in WORLDS.items():
        readings = [ORACLES[done].read(world.step(last)) for last in (0, *world.all)]
        for probe in PROBES:
            for question in questions(probe.property, world.history):
                assert not any(is_broken(probe.property, question, world.history, one) for one in readings)


def test_a_violation_is_told_in_words() -> None:
    [probe] = [probe for probe in PROBES if probe.property.name == "append-then-rename.same-file"]
    place, question = broken([probe.property])[probe.property.name][0]
    world, oracle = WORLDS[DONE[place]], ORACLES[DONE[place]]
    seen = world.crash(set(world.all) - {question.required[0]})
    found = violation(probe.property, question, world.history, oracle, oracle.read(seen), seen)
    assert found is not None
    assert "(rename /d/f /d/y-moved) is there, but nothing of the earlier operation 1 (append /d/f 4096)" in (
        found.evidence
    )


def test_a_pair_is_asked_in_its_relation_only() -> None:
    setup = "mkdir /d; mkdir /e; write /d/a 0 8192; write /d/b 0 8192; write /e/c 0 8192"
    operations = "write /d/a 0 4096; append /d/a 10; append /d/b 10; append /e/c 10; write /d/new 0 10"
    history = World.of(Workload("w", parse(setup), parse(operations))).history
    for relation, later in zip(Relation, (2, 3, 4), strict=True):
        [prop] = [one for one in pairs.properties() if one.name == f"overwrite-then-append.{relation.value}"]
        assert questions(prop, history) == (Question((1,), later),)


@pytest.mark.parametrize("relation", Relation)
def test_names_say_all(relation: Relation) -> None:
    of_it = [prop for prop in pairs.properties() if prop.relations == (relation,)]
    for first, later in product(ChangeKind, ChangeKind):
        named = [prop for prop in of_it if (prop.kinds, prop.later_kinds) == ((first,), (later,))]
        assert [prop.name for prop in named] in ([], [f"{first.value}-then-{later.value}.{relation.value}"])
