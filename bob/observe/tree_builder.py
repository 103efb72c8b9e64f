"""Trees in, what the checker says out: states that a model allows, built in a guest's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from bob.agent.client import Agent
from bob.observe.observation import Node
from bob.program.answer import CheckerAnswer

CHUNK = 4096
MOST_CHUNKS = 50_000
"""So many different chunks are kept in the guest (200 MiB); where there are more, all are forgotten and sent anew."""
TREE_TIMEOUT = 60.0
"""How long building one tree may take before its guest counts as hung (host seconds)."""


@dataclass(frozen=True, slots=True)
class BuiltTree:
    """A tree that a checker is to look at (without its root), the ``output`` before it, and what spoils the tree first
    (empty: nothing does)."""

    tree: Mapping[str, Node]
    output: bytes
    spoiler: str = ""


class TreeBuilder:
    """Builds trees in the guest of an agent; ``root`` is what the root directory is like. The program must be there.

    ``without`` are the extended attributes that the guest could not give to what it built.
    """

    def __init__(self, agent: Agent, root: Node) -> None:
        self._agent = agent
        self._root = [0o755 if root.mode is None else root.mode, root.uid or 0, root.gid or 0]
        self._numbers: dict[bytes, int] = {}  # by a digest: the chunks themselves are kept in the guest alone
        self.without: tuple[str, ...] = ()
        self._forget()

    def check(self, asked: Sequence[BuiltTree], seconds: float) -> list[CheckerAnswer]:
        """What the checker says of each tree, in ``seconds`` at most.

        Raises UsageError where a tree cannot be built or spoilt, and GuestLost when the guest does not come back.
        """
        if len(self._numbers) > MOST_CHUNKS:
            self._forget()
        new: list[bytes] = []
        trees = [[self._entry(path, node, new) for path, node in sorted(one.tree.items())] for one in asked]
        header, _ = self._agent.ask(
            "check_built",
            timeout=TREE_TIMEOUT + (seconds + TREE_TIMEOUT) * len(asked),
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
        content = node.content[: node.size]
        numbers = [self._number(content[at : at + CHUNK], new) for at in range(0, len(content), CHUNK)]
        xattrs = [[name, self._number(value, new)] for name, value in sorted(node.xattrs.items())]
        status = [node.mode or 0, node.uid or 0, node.gid or 0]
        return [path, node.kind, node.inode, *status, node.size, node.target, numbers, xattrs]

    def _number(self, chunk: bytes, new: list[bytes]) -> int:
        digest = blake2b(chunk, digest_size=16).digest()
        if digest not in self._numbers:
            self._numbers[digest] = len(self._numbers)
            new.append(chunk)
        return self._numbers[digest]
