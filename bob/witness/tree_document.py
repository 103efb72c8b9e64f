"""The tree after the crash, as a document in a witness (a file about one crash), so that bob can judge the tree without
a guest. The contents of all files are in one recipe, one after the other, each padded to whole sectors. A recipe is a
short description of data: for sectors that an operation wrote, it has the number of the operation instead of the bytes
(:mod:`bob.witness.recipes`)."""

from __future__ import annotations

from collections.abc import Mapping

from bob.observe.observation import Node, Observation
from bob.schema import Document, adapt, field
from bob.trace.model import SECTOR_BYTES
from bob.witness.recipes import DataRecipe, from_recipe, to_recipe


class NodeDocument(Document, frozen=True):
    """A :class:`Node` (a file, directory or other object) of the tree. ``size`` is from stat. The recipe has
    ``length`` bytes of the node's contents (without padding), perhaps fewer than ``size``."""

    kind: str
    inode: int = 0
    links: int = 1
    size: int = 0
    target: str = ""
    fault: str | None = None
    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    length: int = 0
    xattrs: Mapping[str, bytes] = field(default_factory=dict)
    mtime: int | None = None


class FoundDocument(Document, frozen=True):
    """An observation: what a mount on ``kernel`` found. ``data`` is the recipe of all contents."""

    kernel: str
    mounted: bool
    error: str | None
    repaired: bool
    tree: Mapping[str, NodeDocument] | None
    data: DataRecipe

    @classmethod
    def of(cls, found: Observation, kernel: str) -> FoundDocument:
        tree, data = None, b""
        if found.tree is not None:
            ordered = sorted(found.tree.items())
            tree = {path: adapt(NodeDocument, node, length=len(node.content)) for path, node in ordered}
            data = b"".join(_padded(node.content) for _path, node in ordered)
        return adapt(cls, found, kernel=kernel, tree=tree, data=to_recipe(data))

    @property
    def observation(self) -> Observation:
        """The observation. Raises ValueError or LZMAError if the data does not fit the tree."""
        data, position = from_recipe(self.data), 0
        tree: dict[str, Node] = {}
        for path, entry in (self.tree or {}).items():
            content = data[position : position + entry.length]
            if len(content) != entry.length:
                raise ValueError("the tree's data is shorter than its files")
            tree[path] = adapt(Node, entry, content=content)
            position += len(_padded(content))
        if position != len(data):
            raise ValueError("the tree's data is longer than its files")
        return adapt(Observation, self, tree=None if self.tree is None else tree)


def _padded(content: bytes) -> bytes:
    return content.ljust(-(-len(content) // SECTOR_BYTES) * SECTOR_BYTES, b"\0")
