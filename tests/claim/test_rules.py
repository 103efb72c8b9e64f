"""The thirteen properties: never violated by whole operations in order, always by what breaks them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, fields, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.catalogue.probe_files import shipped_probes
from bob.catalogue.sets import RowSet, probes_of
from bob.claim.claim import Context
from bob.claim.property.of_property import OfProperty
from bob.claim.property.rules import Question, Rule, is_broken, questions, violation
from bob.errors import MalformedError
from bob.observe.observation import Node, Observation, Presence
from bob.story.timeline import CrashTimeline
from bob.workload.language import parse
from bob.workload.operations import Workload
from bob.workload.pattern import FIRST_SETUP_NUMBER, contents, stale
from workload.generators import random_workload

from .worlds import World

PROPERTIES = {probe.property.name: probe.property for probe in shipped_probes()}
SHIPPED = {
    (workload.setup, workload.operations): workload for probe in shipped_probes() for workload in probe.workloads
}
BLOCK = 4096


def broken(world: World, seen: Observation) -> str:
    """The properties that ``seen`` breaks, and the operations: "directory-op 1 2; append-any 2>3; ..."."""
    oracle = world.oracle()
    reading = oracle.read(seen)
    found = []
    for name, prop in PROPERTIES.items():
        shown = []
        for question in questions(prop, world.history):
            if is_broken(prop, question, world.history, reading):
                shown.append(asked(question))
                told = violation(prop, question, world.history, oracle, reading, seen)
                assert told is not None
                assert told.question == question
                assert "operation" in told.evidence
        if shown:
            found.append(" ".join([name, *shown]))
    return "; ".join(found)


def _values(one: Field[Any]) -> st.SearchStrategy[Any]:
    """Of a field of a Question, whichever a later rule adds."""
    numbers = st.integers(1, 3)
    if one.name == "required":
        return st.lists(numbers, max_size=3, unique=True).map(tuple)
    return st.booleans() if isinstance(one.default, bool) else st.none() | numbers


@given(st.fixed_dictionaries({one.name: _values(one) for one in fields(Question)}).map(lambda made: Question(**made)))
def test_every_field_of_a_question_is_in_its_witness_and_it_can_be_told(question: Question) -> None:
    """A field that was lost on the way would have a witness judged by another rule than it was found by."""
    asks_after_a_call = question.returned is not None
    probe = probes_of(RowSet.DURABILITY)[0] if asks_after_a_call else shipped_probes(["append-any"])[0]
    workload = Workload("w", (), parse("create /x; append /x 10; fsync /x"))
    claim = OfProperty(probe.property.name, question, probe.property)
    document = json.loads(json.dumps(claim.to_json()))
    if len(question.required) > 1 and question.later is None:
        with pytest.raises(ValueError) as refused:
            OfProperty.read(document, workload, {}.get)
        assert str(refused.value) == snapshot("its question names several operations at once")
    elif question.required or question.beside:
        assert OfProperty.read(document, workload, {}.get) == claim
        assert claim.sentence(CrashTimeline(events=(), crash=1.0), Context(workload, ({}, {}), ({}, {})), None)
        assert all(isinstance(claim.role(number), str) for number in (1, 2, 3))
    document["question"]["whatever"] = True
    with pytest.raises(MalformedError) as refused:
        OfProperty.read(document, workload, {}.get)
    assert str(refused.value) == snapshot("its question has the unknown field 'whatever'")


def asked(question: Question) -> str:
    return "+".join(map(str, question.required)) + ("" if question.later is None else f">{question.later}")


def names_of(found: str) -> set[str]:
    return {one.split()[0] for one in found.split("; ") if one}


@pytest.mark.parametrize("workload", SHIPPED.values(), ids=lambda workload: workload.name)
def test_no_prefix_of_a_shipped_workload_breaks_anything(workload: Workload) -> None:
    world = World.of(workload)
    for last in range(len(world.all) + 1):
        assert not broken(world, world.step(last)), last


@pytest.mark.parametrize("workload", SHIPPED.values(), ids=lambda workload: workload.name)
def test_an_operation_lost_from_a_shipped_workload_breaks_order_and_nothing_else(workload: Workload) -> None:
    world = World.of(workload)
    # Of what a later operation hides nobody can say that it is there without another one.
    whole = world.oracle().read(world.step(len(world.all)))
    seen_later = {number for number in world.all if whole.of(number) is Presence.FULL}
    for lost in world.all:
        there = set(world.all) - {lost}
        if not world.is_possible(there):
            continue
        seen = world.crash(there)
        wanted = []
        for name, prop in PROPERTIES.items():
            orders = questions(prop, world.history) if prop.rule is Rule.ORDERED else ()
            if shown := _those(orders, lost, seen_later):
                wanted.append(" ".join([name, *shown]))
        # Where a later operation did the same again, or wrote over it, the observation cannot tell.
        is_told = world.oracle().read(seen).of(lost) is Presence.NONE
        assert broken(world, seen) == ("; ".join(wanted) if is_told else ""), lost


@pytest.mark.parametrize("seed", range(0, 200, 100))
def test_no_prefix_of_a_random_workload_breaks_anything(seed: int) -> None:
    for number in range(seed, seed + 100):
        world = World.of(random_workload(Random(number)))
        for last in range(len(world.all) + 1):
            assert not broken(world, world.step(last)), (number, last)


@pytest.mark.parametrize("seed", range(0, 200, 100))
def test_whole_operations_in_any_order_break_no_atomicity(seed: int) -> None:
    for number in range(seed, seed + 100):
        rng = Random(number)
        world = World.of(random_workload(rng))
        there = {one for one in world.all if rng.random() < 0.6}
        if world.is_possible(there):
            found = names_of(broken(world, world.crash(there)))
            assert {PROPERTIES[name].rule for name in found} <= {Rule.ORDERED}, number


def world_of(setup: str, operations: str) -> World:
    return World.of(Workload("written", parse(setup), parse(operations)))


def file(inode: int, content: bytes, **more: object) -> Node:
    return replace(Node("file", inode, 1, len(content), content), **more)  # type: ignore[arg-type]


TREE = "mkdir /d; mkdir /e; write /d/a 0 16K; write /d/b 0 16K; write /d/s 0 100; create /d/empty; write /e/o 0 4K"


def made(tree: Mapping[str, Node | None]) -> Observation:
    return Observation(True, None, {path: node for path, node in tree.items() if node is not None})


Mutate = Callable[[Mapping[str, Node]], dict[str, Node | None]]


def with_content(path: str, content: bytes) -> Mutate:
    return lambda tree: {path: replace(tree[path], content=content, size=len(content))}


def with_links(links: int, *paths: str) -> Mutate:
    return lambda tree: {path: replace(tree[path], links=links) for path in paths}


def moved(old: str, new: str) -> Mutate:
    def mutate(tree: Mapping[str, Node]) -> dict[str, Node | None]:
        paths = [path for path in tree if path == old or path.startswith(old + "/")]
        return {**{new + path[len(old) :]: tree[path] for path in paths}, **dict.fromkeys(paths)}

    return mutate


def spliced(path: str, start: int, data: bytes) -> Mutate:
    def mutate(tree: Mapping[str, Node]) -> dict[str, Node | None]:
        old = tree[path].content
        return {path: replace(tree[path], content=old[:start] + data + old[start + len(data) :])}

    return mutate


INITIAL_A = contents(FIRST_SETUP_NUMBER + 2, 0, 16384)
INITIAL_S = contents(FIRST_SETUP_NUMBER + 4, 0, 100)
UNREADABLE = "cannot be listed: Structure needs cleaning"


@pytest.mark.parametrize(
    ("operation", "mutate", "properties"),
    [
        # overwrites
        ("write /d/a 512 512", spliced("/d/a", 512, INITIAL_A[512:768]), {"single-sector-overwrite"}),
        ("write /d/a 512 512", spliced("/d/a", 512, bytes(512)), {"single-sector-overwrite"}),
        ("write /d/a 512 512", spliced("/d/a", 600, stale(16)), {"single-sector-overwrite"}),
        ("write /d/a 4096 4096", spliced("/d/a", 4608, INITIAL_A[4608:5120]), {"single-block-overwrite"}),
        ("write /d/a 4096 4096", spliced("/d/a", 8191, b"?"), {"single-block-overwrite"}),
        ("write /d/a 4096 8192", spliced("/d/a", 4096, INITIAL_A[4096:8192]), {"multi-block-append"}),
        ("write /d/a 4096 4096", with_content("/d/a", INITIAL_A[:4096]), {"single-block-overwrite"}),
        ("write /d/a 4096 4096", with_content("/d/a", b""), {"single-block-overwrite"}),
        # appends: size without data, data of others, zeros, garbage, too much and too little
        ("append /d/empty 512", with_content("/d/empty", bytes(512)), {"single-sector-append"}),
        ("append /d/empty 512", with_content("/d/empty", stale(512)), {"single-sector-append"}),
        ("append /d/empty 512", with_content("/d/empty", contents(1, 0, 300)), {"single-sector-append"}),
        ("append /d/empty 512", with_content("/d/empty", contents(1, 0, 512) + bytes(512)), {"single-sector-append"}),
        ("append /d/empty 512", with_content("/d/empty", INITIAL_A[:512]), {"single-sector-append"}),
        ("append /d/empty 512", with_content("/d/empty", contents(1, 4096, 512)), {"single-sector-append"}),
        ("append /d/s 60", with_content("/d/s", INITIAL_S + bytes(60)), {"single-sector-append"}),
        ("append /d/s 60", with_content("/d/s", INITIAL_S + contents(1, 100, 59)), {"single-sector-append"}),
        (
            "append /d/a 4096",
            with_content("/d/a", INITIAL_A + contents(1, 16384, 2048) + bytes(2048)),
            {"single-block-append"},
        ),
        (
            "append /d/a 12288",
            with_content("/d/a", INITIAL_A + contents(1, 16384, 4096) + bytes(4096) + contents(1, 24576, 4096)),
            {"multi-block-append", "multi-block-prefix-append"},
        ),
        ("append /d/a 12288", with_content("/d/a", INITIAL_A + contents(1, 16384, 4096)), {"multi-block-append"}),
        (
            "append /d/a 12288",
            with_content("/d/a", INITIAL_A + contents(1, 16384, 512)),
            {"multi-block-append", "multi-block-prefix-append"},
        ),
        (
            "append /d/a 12288",
            with_content("/d/a", INITIAL_A + bytes(4096)),
            {"multi-block-append", "multi-block-prefix-append"},
        ),
        # names
        ("rename /d/b /e/n", lambda t: {"/d/b": file(15, t["/e/n"].content)}, {"directory-op"}),
        ("rename /d/b /e/n", lambda _t: {"/e/n": None}, {"directory-op"}),
        ("rename /d/b /e/o", lambda t: {"/d/b": t["/e/o"]}, {"directory-op"}),
        ("rename /d/b /e/o", lambda _t: {"/e/o": None}, {"directory-op"}),
        ("rename /d/b /e/o", lambda _t: {"/e/o": file(777, b"")}, {"directory-op"}),
        ("rename /d /e/d", lambda _t: {"/d": Node("directory", 12)}, {"directory-op"}),
        ("link /d/b /e/n", with_links(1, "/d/b", "/e/n"), {"directory-op"}),
        ("link /d/b /e/n", lambda t: {"/e/n": None}, {"directory-op"}),
        ("link /d/b /e/n", lambda _t: {"/e/n": file(777, b"")}, {"directory-op"}),
        ("symlink here /e/n", lambda _t: {"/e/n": Node("symlink", 20, target="there")}, {"directory-op"}),
        ("symlink here /e/n", lambda _t: {"/e/n": Node("symlink", 20, fault="Input/output error")}, {"directory-op"}),
        ("create /e/n", lambda _t: {"/e/n": file(19, contents(FIRST_SETUP_NUMBER + 2, 0, 512))}, {"directory-op"}),
        ("create /e/n", lambda _t: {"/e/n": Node("directory", 19)}, {"directory-op"}),
        ("create /e/n", lambda _t: {"/e/n": Node("unreadable", fault="Structure needs cleaning")}, {"directory-op"}),
        ("mkdir /e/n", lambda _t: {"/e/n": file(19, b"")}, {"directory-op"}),
        ("mkdir /e/n", lambda _t: {"/e/n": Node("directory", fault=UNREADABLE)}, {"directory-op"}),
        ("unlink /e/o", lambda _t: {"/e": Node("directory", fault=UNREADABLE)}, {"directory-op"}),
        ("unlink /e/o", lambda _t: {"/e/o": file(999, b"")}, {"directory-op"}),
        # what cannot be read, or is lost
        ("append /d/a 512", lambda t: {"/d/a": replace(t["/d/a"], fault="I/O error")}, {"single-sector-append"}),
        ("append /d/a 512", lambda _t: {"/d/a": None}, {"single-sector-append"}),
        ("write /d/a 0 4096", lambda _t: {"/d/a": None}, {"single-block-overwrite"}),
        ("write /d/a 0 4096", lambda t: {"/d/a": replace(t["/d/a"], content=b"")}, {"single-block-overwrite"}),
    ],
)  # fmt: skip
def test_what_is_half_done_is_seen(operation: str, mutate: Mutate, properties: set[str]) -> None:
    world = world_of(TREE, operation)
    seen = world.step(1)
    tree = {**(seen.tree or {}), **mutate(seen.tree or {})}
    seen = made(tree)
    assert names_of(broken(world, seen)) == properties


def at(path: str, *pieces: bytes) -> Mutate:
    return with_content(path, b"".join(pieces))


def both(*mutations: Mutate) -> Mutate:
    return lambda tree: {path: node for mutate in mutations for path, node in mutate(tree).items()}


def gone(*paths: str) -> Mutate:
    return lambda _tree: dict.fromkeys(paths)


def _those(orders: Iterable[Question], lost: int, later: set[int]) -> list[str]:
    return [asked(question) for question in orders if lost in question.required and question.later in later]


TWICE = "write /d/a 512 512; write /d/a 512 512; create /e/n"
APPENDS = "append /d/s 20000; append /d/s 5000"
GROWN = contents(1, 100, 20000)
MORE = contents(2, 20100, 5000)
REPLACED = "create /d/t; append /d/t 4096; rename /d/t /d/b; create /e/n"
REUSED = "unlink /e/o; create /e/o; append /e/o 4096; mkdir /e/n"


@pytest.mark.parametrize(
    ("operations", "step", "mutate", "expected"),
    [
        # the same range twice: what the second covers says nothing of the first, what neither wrote says all
        (TWICE, 3, spliced("/d/a", 512, INITIAL_A[512:1024]), "overwrite-any 1>3 2>3"),
        (TWICE, 3, spliced("/d/a", 512, contents(1, 512, 512)), "overwrite-any 2>3"),
        (TWICE, 2, spliced("/d/a", 512, contents(1, 512, 256)), "single-sector-overwrite 2"),
        (TWICE, 2, spliced("/d/a", 512, INITIAL_A[512:768]), "single-sector-overwrite 2; overwrite-any 1>2"),
        (TWICE, 2, spliced("/d/a", 512, stale(512)), "single-sector-overwrite 1 2"),
        # garbage that either of two kinds of write may have left: no row speaks of both, and one is not whole
        ("append /d/empty 4096; write /d/empty 0 512", 2, spliced("/d/empty", 0, stale(512)), "collateral "),
        ("append /d/empty 4096; write /d/empty 0 512", 2, spliced("/d/empty", 0, stale(4096)), "single-block-append 1"),
        # prefixes of an append that begins and ends unaligned
        (APPENDS, 1, at("/d/s", INITIAL_S, GROWN[:3996]), "multi-block-append 1"),
        (APPENDS, 1, at("/d/s", INITIAL_S, GROWN[:16284]), "multi-block-append 1"),
        (APPENDS, 1, at("/d/s", INITIAL_S, GROWN[:4096]), "multi-block-append 1; multi-block-prefix-append 1"),
        (APPENDS, 1, at("/d/s", INITIAL_S, GROWN[:19999]), "multi-block-append 1; multi-block-prefix-append 1"),
        (
            APPENDS, 1, at("/d/s", INITIAL_S, GROWN[:3996], bytes(4096)),
            "multi-block-append 1; multi-block-prefix-append 1",
        ),
        # and with another append behind it: a hole that the second leaves is no part of the first
        (APPENDS, 2, at("/d/s", INITIAL_S, GROWN, MORE[:380]), "multi-block-append 2"),
        (APPENDS, 2, at("/d/s", INITIAL_S, GROWN, MORE[:400]), "multi-block-append 2; multi-block-prefix-append 2"),
        (
            APPENDS, 2, at("/d/s", INITIAL_S, GROWN[:8092], bytes(11908), MORE),
            snapshot("multi-block-append 1; append-append-same-file 1>2; append-any 1>2"),
        ),
        (
            APPENDS, 2, at("/d/s", INITIAL_S, bytes(20000), MORE),
            "append-append-same-file 1>2; append-any 1>2",
        ),
        (
            APPENDS, 2, at("/d/s", INITIAL_S, bytes(25000)),
            snapshot("multi-block-append 2; multi-block-prefix-append 2; append-append-same-file 1>2; append-any 1>2"),
        ),
        (
            "append /d/empty 12K; write /d/empty 0 512", 2,
            at("/d/empty", contents(2, 0, 512, 1), contents(1, 512, 7680)),
            "multi-block-append 1; append-any 1>2",
        ),
        # the file that was renamed over another is empty
        (
            REPLACED, 4, with_content("/d/b", b""),
            "append-rename-any 2+3>4; append-any 2>3 2>4",
        ),
        (
            REPLACED, 4, lambda t: {"/d/b": file(15, contents(FIRST_SETUP_NUMBER + 3, 0, 16384)), "/d/t": t["/d/b"]},
            "append-rename-any 2+3>4; directory-op-any 3>4",
        ),
        ("append /d/a 4096 trunc; create /e/n", 2, with_content("/d/a", b""), "trunc-append-any 1>2"),
        ("append /d/a 4096 trunc; create /e/n", 2, with_content("/d/a", INITIAL_A), "trunc-append-any 1>2"),
        ("append /d/a 4096 trunc; create /e/n", 2, with_content("/d/a", INITIAL_A[:4096]), "trunc-append-any 1>2"),
        # a later operation takes away what an earlier one did
        ("append /d/a 512; unlink /d/a; create /e/n", 3, gone(), ""),
        ("append /d/a 512; truncate /d/a 16384; create /e/n", 3, gone(), ""),
        ("append /d/a 512; truncate /d/a 100; create /e/n", 3, gone(), ""),
        ("write /d/a 0 512; rename /d/b /d/a; create /e/n", 3, gone(), ""),
        ("create /e/n; unlink /e/n; create /d/n", 3, gone(), ""),
        # names in a chain
        ("rename /d/b /e/x; rename /e/x /e/y", 2, gone("/e/y"), "directory-op 1 2"),
        ("rename /d/b /e/x; rename /e/x /d/b", 2, lambda t: {"/e/x": t["/d/b"]}, "directory-op 1 2"),
        ("rename /d/b /e/x; rename /e/x /d/b", 2, gone("/d/b"), "directory-op 1 2"),
        ("rename /d /f; create /f/n", 2, gone("/f/n"), ""),
        ("rename /d /f; create /f/n", 2, moved("/f", "/d"), "directory-op-any 1>2"),
        (
            "create /e/n; unlink /e/o", 2, both(gone("/e/n"), lambda _t: {"/e": Node("directory", fault=UNREADABLE)}),
            "directory-op 1 2",
        ),
        # an inode that is used again under the same name
        (REUSED, 4, with_content("/e/o", contents(FIRST_SETUP_NUMBER + 6, 0, 4096)), ""),
        (REUSED, 4, with_content("/e/o", b""), "append-any 3>4"),
        (REUSED, 4, with_content("/e/o", bytes(4096)), "single-block-append 3; append-any 3>4"),
        # two names of one file
        (
            "link /d/a /e/n; append /e/n 512; mkdir /e/x", 3, both(gone("/e/n"), with_links(1, "/d/a")),
            "directory-op-any 1>2 1>3",
        ),
        ("link /d/a /e/n; link /d/a /e/m", 2, with_links(2, "/d/a", "/e/m", "/e/n"), ""),
        ("link /d/a /e/n; link /d/a /e/m", 2, with_links(9, "/d/a", "/e/m", "/e/n"), "directory-op 1 2"),
        # a file that is made by its first write is neither a directory operation nor an append
        ("write /e/n 0 4096; mkdir /e/x", 2, with_content("/e/n", b""), ""),
        ("mkdir /e/x; write /e/n 0 4096", 2, both(gone("/e/x"), with_content("/e/n", b"")), "directory-op-any 1>2"),
    ],
)  # fmt: skip
def test_what_several_operations_leave(operations: str, step: int, mutate: Mutate, expected: str) -> None:
    world = world_of(TREE, operations)
    tree = dict(world.step(step).tree or {})
    assert broken(world, made({**tree, **mutate(tree)})) == expected
