"""What bob sends to an agent that builds a tree: the files must come out as bob saw them."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bob.agent.shared import CHUNK
from bob.observe.observation import Node, split
from bob.observe.tree_builder import TreeBuilder
from bob.program.answer import CheckerRun

PIECES = st.dictionaries(st.integers(0, 5 * CHUNK), st.binary(min_size=1, max_size=CHUNK + 9), max_size=4)


class Agent:
    """An agent that keeps the chunks, and writes down the last tree."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.tree: list[list[Any]] = []

    def ask(self, do: str, *, timeout: float, blob: bytes = b"", **asked: Any) -> tuple[dict[str, Any], bytes]:
        if do == "check_built":
            self.chunks += split(blob, asked["lengths"])
            [self.tree] = asked["trees"]
        return {"answers": [[0, ""]], "without": []}, b""


def sent(node: Node) -> tuple[Agent, list[Any]]:
    agent: Any = Agent()
    TreeBuilder(agent, Node("directory")).check([CheckerRun({"/f": node}, b"")], 1.0)
    [entry] = agent.tree
    return agent, entry


def built(agent: Agent, entry: list[Any]) -> bytes:
    """The contents of a file, as the agent writes them."""
    _path, _kind, _inode, _mode, _uid, _gid, size, _target, numbers, *_others = entry
    found = b"".join(bytes(-number * CHUNK) if number < 0 else agent.chunks[number] for number in numbers)
    return found[:size].ljust(size, b"\0")


@given(PIECES, st.integers(0, 9 * CHUNK))
def test_a_long_file_has_its_pieces_and_holes(pieces: dict[int, bytes], size: int) -> None:
    apart: dict[int, bytes] = {}  # pieces do not overlap
    for start, piece in sorted(pieces.items()):
        if all(start >= at + len(other) for at, other in apart.items()):
            apart[start] = piece
    node = Node("file", size=size, pieces=apart)
    assert built(*sent(node)) == node.read(0, size)


@given(st.binary(max_size=3 * CHUNK + 5), st.integers(0, 4 * CHUNK))
def test_a_short_file_has_its_contents(content: bytes, more: int) -> None:
    node = Node("file", size=len(content) + more, content=content)
    assert built(*sent(node)) == content + bytes(more)


def test_a_hole_takes_neither_time_nor_room() -> None:
    began = time.process_time()
    _agent, entry = sent(Node("file", size=2**50, pieces={2**40: b"x", 2**45: b"y"}))
    assert len(entry[8]) == 4
    many = {place * CHUNK: place.to_bytes(4, "big") for place in range(1, 2**13)}
    sent(Node("file", size=2**30, pieces=many))
    assert time.process_time() - began < 5
