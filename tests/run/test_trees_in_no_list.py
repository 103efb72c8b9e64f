"""A model may allow a tree that is in no list of its states: one with contents of a file that was removed."""

from __future__ import annotations

import pytest

from bob.apm.allowed import TreeOracle
from bob.apm.dependencies import graph
from bob.apm.micro import workings
from bob.apm.model_graph import graph_under
from bob.apm.model_states import ModelStates
from bob.apm.named import named_model
from bob.observe.observation import Node
from bob.program.strace import SystemCall
from bob.protocol.protocol import protocol
from bob.protocol.replay import replayed
from bob.run.program_models import Allows, by_list

OLD, NEW, THIRD = b"O" * 512, b"N" * 512, b"T" * 512
ROOT = Node("directory", 1, 2, mode=0o755)
WRITTEN = '"' + "".join(f"\\x{byte:02x}" for byte in NEW) + '"'
CALLS = [
    SystemCall(1, 0.0, "unlink", ('"\\x2f\\x72\\x2f\\x61"',), 0),
    SystemCall(1, 0.0, "openat", ("AT_FDCWD", '"\\x2f\\x72\\x2f\\x62"', "O_WRONLY|O_CREAT", "0644"), 3, "/r/b"),
    SystemCall(1, 0.0, "write", ("3<\\x2f\\x72\\x2f\\x62>", WRITTEN, "512"), 512),
]


def of_b(content: bytes) -> dict[str, Node]:
    return {"/": ROOT, "/b": Node("file", 12, 1, 512, content, mode=0o644)}


@pytest.mark.parametrize(
    ("name", "shows_stale"),
    [
        ("ext3-w", True),
        ("ext3-writeback", True),
        ("ext2", True),
        ("ext4-ordered", False),
        ("xfs", False),
        ("btrfs", False),
    ],
)
def test_contents_of_a_removed_file_are_allowed_where_stale_ones_are(name: str, shows_stale: bool) -> None:
    before = {"/": ROOT, "/a": Node("file", 11, 1, 512, OLD, mode=0o644)}
    again = replayed("p", protocol(CALLS, "/r", before, of_b(NEW)), before, {})
    model, apart = named_model(name), workings(again.history)
    tries = ModelStates(graph_under(again.workload, apart, model.promised), model.promised, again.outputs, 10_000)
    assert all(
        OLD not in [node.content for node in tries.nodes(state).values()] or "/a" in tries.nodes(state)
        for state in tries
    )
    foreseen = TreeOracle(graph(again.workload, apart), model.promised, again.outputs)
    allows = by_list(tries, Allows(foreseen.allows, foreseen.clauses), model)
    assert (tries.is_all, tries.shows_stale) == (True, shows_stale)
    assert allows.says(b"", of_b(OLD)) is shows_stale
    assert allows.says(b"", of_b(NEW)) is True
    assert allows.says(b"", of_b(THIRD)) is (name == "ext2")  # which promises nothing of contents


@pytest.mark.parametrize(("name", "allows_garbage"), [("ext2", True), ("ext4-writeback", True), ("ext3-j", False)])
def test_garbage_is_in_no_list_either(name: str, allows_garbage: bool) -> None:
    """A file that is cut to nothing leaves no hole: a model may allow all the same that anything is found in it."""
    before = {"/": ROOT, "/a": Node("file", 11, 1, 512, OLD, mode=0o644)}
    cut = {"/": ROOT, "/a": Node("file", 11, 1, 0, b"", mode=0o644)}
    calls = [SystemCall(1, 0.0, "truncate", ('"\\x2f\\x72\\x2f\\x61"', "0"), 0)]
    again = replayed("p", protocol(calls, "/r", before, cut), before, {})
    model, apart = named_model(name), workings(again.history)
    tries = ModelStates(graph_under(again.workload, apart, model.promised), model.promised, again.outputs, 10_000)
    assert list(tries) and tries.is_all and not tries.shows_stale
    foreseen = TreeOracle(graph(again.workload, apart), model.promised, again.outputs)
    allows = by_list(tries, Allows(foreseen.allows, foreseen.clauses), model)
    found = {"/": ROOT, "/a": Node("file", 11, 1, 512, THIRD, mode=0o644)}
    assert allows.says(b"", found) is allows_garbage
    assert allows.says(b"", before) is allows.says(b"", cut) is True
