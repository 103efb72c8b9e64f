"""The file that owns each block, at each write of a trace. A file owns a block if its inode's map points to the block.
But a file system often writes a block before it writes the map. So for a block that no file owns yet, bob looks at
later writes, and takes the first file that owns it then."""

import stat
from bisect import bisect_right
from collections.abc import Mapping
from typing import NamedTuple

MOST_BLOCKS = 1 << 18  # blocks of one file that bob remembers, since a damaged map names billions


class BlockOwner(NamedTuple):
    """The inode that owns a block, and the block's role: ``data``, ``directory``, ``symlink``, ``map`` or
    ``attributes``."""

    inode: int
    role: str


class Owners:
    """The claims of inodes on blocks. An inode claims the blocks that its map points to. Each claim has the index of
    the write that added the block to the map. The index is -1 if the map had the block before the recording."""

    def __init__(self) -> None:
        self._times: dict[int, list[int]] = {}
        self._claims: dict[int, list[BlockOwner | None]] = {}
        self._maps: dict[int, dict[int, str]] = {}

    def remap(self, index: int, inode: int, blocks: Mapping[int, str]) -> None:
        """Record the fact that ``inode`` owns exactly ``blocks`` from write ``index`` on. ``blocks`` has the role of
        each block by its number."""
        old = self._maps.get(inode, {})
        if old == blocks:
            return
        for block in old.keys() - blocks.keys():
            now = self._claims[block][-1]
            if now is not None and now.inode == inode:
                self._note(index, block, None)
        for block, role in blocks.items():
            if old.get(block) != role:
                self._note(index, block, BlockOwner(inode, role))
        self._maps[inode] = dict(blocks)

    def extend(self, index: int, inode: int, blocks: Mapping[int, str]) -> None:
        self.remap(index, inode, {**self._maps.get(inode, {}), **blocks})

    def owner(self, index: int, block: int, role: str | None = None) -> BlockOwner | None:
        """Return the owner of ``block`` at write ``index``. If no inode owns the block then, return the first owner
        after this write. If no inode owns it later either, return the last owner before. If ``role`` is set, only
        claims in this role count."""
        times = self._times.get(block)
        if times is None:
            return None
        claims = [claim if claim and role in (None, claim.role) else None for claim in self._claims[block]]
        now = bisect_right(times, index) - 1
        if now >= 0 and claims[now] is not None:
            return claims[now]
        following = next((claim for claim in claims[now + 1 :] if claim is not None), None)
        # The block is free and not used again, so later writes of it are still of the former owner's content.
        return following or next((claim for claim in reversed(claims[: now + 1]) if claim is not None), None)

    def blocks(self, inode: int) -> Mapping[int, str]:
        return self._maps.get(inode, {})

    def _note(self, index: int, block: int, owner: BlockOwner | None) -> None:
        times, claims = self._times.setdefault(block, []), self._claims.setdefault(block, [])
        times.append(index)
        claims.append(owner)


def role_of(mode: int) -> str | None:
    """Return the role of the blocks of a file with this mode; None for device nodes and unused inodes."""
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISLNK(mode):
        return "symlink"
    return "data" if stat.S_ISREG(mode) else None
