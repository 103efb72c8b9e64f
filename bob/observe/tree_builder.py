"""Trees of files that, according to a model of a file system, a crash may leave. bob builds them in a guest's memory,
and runs a program's checker on them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from bob.agent.client import Agent
from bob.agent.shared import CHUNK, HOLE
from bob.observe.observation import Node
from bob.program.answer import CheckerAnswer, CheckerRun

MOST_CHUNKS = 50_000  # different chunks that the guest keeps (200 MiB); beyond that, bob sends all chunks again
TREE_TIMEOUT = 60.0  # host seconds before a guest counts as hung on building one tree


class TreeBuilder:
    """A builder of trees in one guest. ``without`` has the names of the extended attributes that the guest could not
    set."""

    def __init__(self, agent: Agent, root: Node) -> None:
        self._agent = agent
        self._root = [0o755 if root.mode is None else root.mode, root.uid or 0, root.gid or 0]
        self._numbers: dict[bytes, int] = {}  # by a digest, since only the guest keeps the chunks themselves
        self.without: tuple[str, ...] = ()
        self._forget()

    def check(
        self, asked: Sequence[CheckerRun[Mapping[str, Node]]], seconds: float, *, longest: float | None = None
    ) -> list[CheckerAnswer]:
        """Return the checker's result (exit code and output) for each tree of ``asked``. A tree maps paths to files,
        without its root directory. The checker may take ``seconds`` for each tree. ``longest`` is the time of a
        whole check, if that is longer. A run in ``asked`` may have a
        *spoiler*: a script that damages the tree first, to test the checker. Raises UsageError if a tree cannot be
        built, or if a spoiler fails. Raises GuestLost if the guest does not answer in time."""
        if len(self._numbers) > MOST_CHUNKS:
            self._forget()
        new: list[bytes] = []
        trees = [[self._entry(path, node, new) for path, node in sorted(one.state.items())] for one in asked]
        header, _ = self._agent.ask(
            "check_built",
            timeout=TREE_TIMEOUT + ((longest or seconds) + TREE_TIMEOUT) * len(asked),
            trees=trees,
            root=self._root,
            told=[one.output.decode("latin-1") for one in asked],
            spoilers=[one.spoiler for one in asked],
            seconds=seconds,
            lengths=[len(chunk) for chunk in new],
            blob=b"".join(new),
        )
        self.without = tuple(sorted({*self.without, *header["without"]}))
        return [CheckerAnswer(code, printed) for code, printed in header["answers"]]

    def _forget(self) -> None:
        self._numbers.clear()
        self._agent.ask("forget_chunks", timeout=TREE_TIMEOUT)

    def _entry(self, path: str, node: Node, new: list[bytes]) -> list[Any]:
        numbers: list[int] = []
        end = 0
        for place, chunk in _chunks(node):
            numbers += [HOLE * (place - end)] if place > end else []
            numbers.append(self._number(chunk, new))
            end = place + 1
        xattrs = [[name, self._number(value, new)] for name, value in sorted(node.xattrs.items())]
        status = [node.mode or 0, node.uid or 0, node.gid or 0]
        return [path, node.kind, node.inode, *status, node.size, node.target, numbers, xattrs, node.mtime or 0]

    def _number(self, chunk: bytes, new: list[bytes]) -> int:
        digest = blake2b(chunk, digest_size=16).digest()
        if digest not in self._numbers:
            self._numbers[digest] = len(self._numbers)
            new.append(chunk)
        return self._numbers[digest]


def _chunks(node: Node) -> Iterator[tuple[int, bytes]]:
    """Yield the chunks of a file of which bob knows data, each with its place. What lies between them, and up to the
    file's size, is zero."""
    if node.pieces is None:
        for start in range(0, min(len(node.content), node.size), CHUNK):
            yield start // CHUNK, node.read(start, min(start + CHUNK, node.size))
        return
    near: dict[int, dict[int, bytes]] = {}  # the pieces that reach into a chunk
    for start, piece in node.pieces.items():
        for place in range(start // CHUNK, -(-min(start + len(piece), node.size) // CHUNK)):
            near.setdefault(place, {})[start] = piece
    for place, pieces in sorted(near.items()):
        yield place, replace(node, pieces=pieces).read(place * CHUNK, (place + 1) * CHUNK)
