"""Inode numbers in a program's trees: a model does not take two numbers, or one used twice, for what it forbids."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bob.apm.allowed import TreeOracle
from bob.apm.clauses import every_clause
from bob.apm.dependencies import graph
from bob.apm.micro import workings
from bob.observe.observation import Node
from bob.program.program import Program
from bob.protocol.effects import Deed, Effects
from bob.protocol.protocol import without
from bob.protocol.replay import replayed
from bob.run.program_protocol import without_logs
from bob.workload import operations
from tests.apm.cases import graph_of

EVERY = frozenset(every_clause())


def oracle_of(effects: Effects, before: Mapping[str, Node]) -> TreeOracle:
    replay = replayed("p", effects, before, {})
    return TreeOracle(graph(replay.workload, workings(replay.history)), EVERY, replay.outputs)


def create(effects: Effects, call: int, path: str) -> None:
    file = effects.new("file")
    effects.lead(call, path, file)
    effects.deeds.append(Deed(call, operations.Create(path), file))


@pytest.mark.parametrize("number", [13, 14])
def test_a_new_file_may_have_the_number_of_a_removed_log(number: int) -> None:
    program = Program("p", "", (), logs=("log",))
    before = {"/": Node("directory", 2), "/log": Node("file", 13)}
    effects = Effects.of_tree(before)
    log = effects.leads("/log")
    effects.lead(0, "/log", None)
    effects.deeds.append(Deed(0, operations.Unlink("/log"), log))
    create(effects, 1, "/db")
    effects, left_out = without(effects, program.is_log)
    after = {"/": Node("directory", 2), "/db": Node("file", number)}
    assert left_out == 1
    assert oracle_of(effects, before).allows(b"", without_logs(program, before, after)) is True


def test_a_log_that_is_a_link_to_another_file_keeps_its_number() -> None:
    program = Program("p", "", (), logs=("log",))
    before = {"/": Node("directory", 2), "/log": Node("file", 13, 2), "/db": Node("file", 13, 2)}
    assert without_logs(program, before, before) == before


@pytest.mark.parametrize("kind", ["file", "symlink", "other"])
def test_two_names_of_one_thing_are_allowed_from_the_beginning(kind: str) -> None:
    thing = Node(kind, 13, 2, target={"symlink": "/f", "other": "10000 0"}.get(kind, ""))
    before = {"/": Node("directory", 2), "/f": Node("file", 12), "/one": thing, "/other": thing}
    effects = Effects.of_tree(before)
    create(effects, 0, "/new")
    oracle = oracle_of(effects, before)
    assert oracle.allows(b"", before) is True
    assert oracle.allows(b"", before | {"/new": Node("file", 14)}) is True


@pytest.mark.parametrize("times", [2, 8, 200])
def test_names_that_change_places_again_and_again_are_read_in_a_moment(times: int) -> None:
    """Readings were pairs of all writers of both names: a minute for a hundred exchanges."""
    asked = graph_of("; ".join(["rename /a /b exchange"] * times), "create /a; create /b")
    oracle = TreeOracle(asked, EVERY, [b""] * len(asked.returns))
    tree = {"/": Node("directory", 2), "/a": Node("file", 11), "/b": Node("file", 12)}
    assert oracle.allows(b"", tree) is True
