"""The file of each block, at each write of a trace. A file system often writes a block before its map. So a block
without an owner belongs to the next file that claims it."""

import stat
from bisect import bisect_right
from collections.abc import Mapping
from typing import NamedTuple

MOST_BLOCKS = 1 << 18  # per file: damaged maps name billions


class BlockOwner(NamedTuple):
    """The inode of a block, and the block's role: ``data``, ``directory``, ``symlink``, ``map`` or ``attributes``."""

    inode: int
    role: str


class Owners:
    """Claims of inodes on blocks, by the index of the claiming write; -1 for the base image."""

    def __init__(self) -> None:
        self._times: dict[int, list[int]] = {}
        self._claims: dict[int, list[BlockOwner | None]] = {}
        self._maps: dict[int, dict[int, str]] = {}

    def remap(self, index: int, inode: int, blocks: Mapping[int, str]) -> None:
        """Give ``inode`` these blocks, with their roles, from write ``index`` on."""
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
        """Return the last owner (with this ``role``, if given) of ``block`` up to write ``index``, else the next."""
        times = self._times.get(block)
        if times is None:
            return None
        claims = [claim if claim and role in (None, claim.role) else None for claim in self._claims[block]]
        now = bisect_right(times, index) - 1
        if now >= 0 and claims[now] is not None:
            return claims[now]
        following = next((claim for claim in claims[now + 1 :] if claim is not None), None)
        # Freed and not used again: what is still written there was the former owner's.
        return following or next((claim for claim in reversed(claims[: now + 1]) if claim is not None), None)

    def blocks(self, inode: int) -> Mapping[int, str]:
        return self._maps.get(inode, {})

    def _note(self, index: int, block: int, owner: BlockOwner | None) -> None:
        times, claims = self._times.setdefault(block, []), self._claims.setdefault(block, [])
        times.append(index)
        claims.append(owner)


def role_of(mode: int) -> str | None:
    """Return the role of the blocks of a file of this mode; None for device nodes and unused inodes."""
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISLNK(mode):
        return "symlink"
    return "data" if stat.S_ISREG(mode) else None
