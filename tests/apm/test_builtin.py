"""What the built-in models allow, held against what OSDI'14 says of them in Table 4."""

from __future__ import annotations

import pytest
from inline_snapshot import snapshot

from bob.apm.builtin import builtin, names
from bob.apm.micro import workings
from bob.apm.model import Model
from bob.apm.model_graph import graph_under
from bob.apm.model_states import ModelStates
from bob.apm.what_if import what_if
from bob.errors import UsageError
from bob.observe.observation import Node
from bob.workload.simulation import simulate
from wording import text_with

from .cases import workload

SETUP = "create /a; write /a 0 512; create /b; write /b 0 512"
Found = list[tuple[int, dict[str, Node]]]


def states(name: str | Model, operations: str) -> Found:
    """Each tree that a model allows, with how many operations had returned."""
    model, asked = builtin(name) if isinstance(name, str) else name, workload(operations, SETUP)
    taken = workings(simulate(asked)[0])
    returns = [str(number).encode() for number in range(len(asked.operations) + 1)]
    tries = ModelStates(graph_under(asked, taken, model.promised), model.promised, returns, 100_000)
    found = [(state.crash.returned, dict(tries.nodes(state))) for state in tries]
    assert tries.is_all
    return found


def done(operations: str, path: str) -> bytes:
    """What is in a file when all is done."""
    history = simulate(workload(operations, SETUP))[0]
    return history.steps[-1].inodes[history.steps[-1].names[path]].content


@pytest.mark.parametrize(
    "operations",
    [
        "append /a 700; rename /a /c; write /b 0 512; truncate /b 100; append /b 5000",
        "truncate /a 0; append /a 9000; fsync /a; link /a /x; unlink /a; mkdir /d; rename /x /d/x",
        "write /a 0 512 mmap; fallocate /a 0 8192; chmod /b 600; create /new; append /new 10; rename /new /b",
    ],
)
def test_soft_crashes_leave_what_the_calls_so_far_made(operations: str) -> None:
    """Each tree is that after the calls that have returned, or after one more call, which has not returned."""
    trees = []
    for step in simulate(workload(operations, SETUP))[0].steps:
        contents = {path: step.inodes[identity].content for path, identity in step.names.items()}
        trees.append({path: content for path, content in contents.items() if path != "/"})
    found: dict[int, list[dict[str, bytes]]] = {}
    for returned, nodes in states("soft", operations):
        tree = {path: node.content if node.kind == "file" else b"" for path, node in nodes.items()}
        found.setdefault(returned, []).append(tree)
    for returned, those in found.items():
        assert all(tree in trees[returned : returned + 2] for tree in those)
    assert found.keys() == set(range(len(trees)))


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("call", ["write /a 0 512 sync", "write /a 0 512 dsync", "write /a 0 512; msync /a"])
def test_a_write_that_syncs_is_durable_when_it_has_returned(name: str, call: str) -> None:
    found = [nodes["/a"].content for returned, nodes in states(name, call) if returned == call.count(";") + 1]
    assert set(found) == {done(call, "/a")}


@pytest.mark.parametrize("name", names())
def test_a_write_that_syncs_makes_what_it_wrote_to_a_new_file_durable(name: str) -> None:
    asked = "create /new; append /new 512 sync"
    for returned, nodes in states(name, asked):
        assert returned < 2 or nodes["/new"].content == done(asked, "/new")


@pytest.mark.parametrize("later", ["rename /a /c", "mkdir /c", "fsync /b", "append /b 512"])
def test_ext3_w_orders_the_size_of_an_append_and_not_its_data(later: str) -> None:
    """«Directory operations and file sizes ordered among themselves and before sync operations»."""
    asked = f"append /a 512; {later}"
    grown = done("append /a 512", "/a")
    after = [
        nodes.get("/c", nodes.get("/a")) if later.startswith("rename") else nodes["/a"]
        for returned, nodes in states("ext3-w", asked)
        if "/c" in nodes or nodes["/b"].size > 512 or (returned == 2 and later.startswith("fsync"))
    ]
    assert {node.size for node in after if node} == {1024}
    assert len({node.content for node in after if node} - {grown}) >= 2, "zeros, and old contents of the disk"
    for returned, nodes in states("ext3-o", asked):
        is_after = "/c" in nodes or nodes["/b"].size > 512 or (returned == 2 and later.startswith("fsync"))
        moved = nodes["/c"] if later.startswith("rename") and "/c" in nodes else nodes.get("/a")
        assert not is_after or (moved is not None and moved.content == grown)


def test_ext3_w_is_weaker_than_the_journals_that_have_data_in_order() -> None:
    assert builtin("ext3-w").promised < builtin("ext3-o").promised < builtin("ext3-j").promised


@pytest.mark.parametrize(
    ("name", "said", "gone"),
    [
        ("ext4-o", "-whole truncate-down block", {"whole truncate-down block", "whole truncate-down whole"}),
        ("ext4-o", "-never-in append last-block zeros", {"never append zeros", "never-in append last-block zeros"}),
        ("ccfs", "-whole append block", {"whole append block", "whole append whole"}),
        (
            "ext3-w",
            "-ordered mkdir mkdir same-directory",
            {"ordered mkdir mkdir same-directory", "in-turn metadata metadata"},
        ),
        ("ext3-w", "-durable msync other-names", {"durable msync other-names"}),
        ("ext3-w", "-in-turn metadata syncs", {"in-turn metadata syncs"}),
    ],
)
def test_what_says_more_than_a_clause_that_is_taken_is_gone_too(name: str, said: str, gone: set[str]) -> None:
    assert {clause.name for clause in what_if(builtin(name), [said], "x").gone} == gone


def test_the_opposite_of_a_change_gives_no_order_that_it_does_not_take() -> None:
    given = what_if(builtin("btrfs"), ["-fsync persists only its file"], "x").new
    assert {clause.name.split()[0] for clause in given} == {"durable"}


@pytest.mark.parametrize("said", [["-in-turn names names"], ["-safe rename", "-in-turn names names"]])
def test_a_change_that_leaves_what_it_takes_is_refused(said: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        what_if(builtin("ext3-j"), said, "x")
    assert text_with(str(caught.value), "in-turn names names") == snapshot(
        "'-in-turn names names' leaves 'in-turn names names' promised"
    )
    assert caught.value.hint == snapshot("other clauses imply it: take away one of them, too")
