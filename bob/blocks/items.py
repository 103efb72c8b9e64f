"""The items of a tree of btrfs or reiserfs. To find what a new version of a leaf changes, bob compares its items with
the old items."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping
from typing import Any

ItemKey = tuple[Any, ...]  # tuples compare as the file system orders its keys


class Items:
    def __init__(self) -> None:
        self._keys: list[ItemKey] = []
        self._bodies: dict[ItemKey, bytes] = {}

    def differences(self, leaf: Mapping[ItemKey, bytes]) -> tuple[dict[ItemKey, bytes], dict[ItemKey, bytes]]:
        """Return two groups of items. The first group has the items of ``leaf`` that are new or changed. The second
        group has stored items that ``leaf`` removes: their keys are between the first and the last key of ``leaf``, but
        ``leaf`` does not contain them."""
        if not leaf:
            return {}, {}
        changed = {key: body for key, body in leaf.items() if self._bodies.get(key) != body}
        first, last = bisect_left(self._keys, min(leaf)), bisect_right(self._keys, max(leaf))
        gone = {key: self._bodies[key] for key in self._keys[first:last] if key not in leaf}
        return changed, gone

    def get(self, key: ItemKey) -> bytes | None:
        return self._bodies.get(key)

    def of(self, first: ItemKey, last: ItemKey) -> dict[ItemKey, bytes]:
        start, stop = bisect_left(self._keys, first), bisect_right(self._keys, last)
        return {key: self._bodies[key] for key in self._keys[start:stop]}

    def update(self, leaf: Mapping[ItemKey, bytes]) -> None:
        """Store the items of ``leaf``. Remove all other items whose keys are between the first and the last key of
        ``leaf``."""
        changed, gone = self.differences(leaf)
        for key in gone:
            del self._bodies[key]
            del self._keys[bisect_left(self._keys, key)]
        for key, body in changed.items():
            if key not in self._bodies:
                insort(self._keys, key)
            self._bodies[key] = body
