"""Differences between the trees of files of two crash states, if no traced call explains them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from bob.observe.observation import Node, letters
from bob.protocol.effects import DirectoryEntry, Effects
from bob.protocol.presence import path_in
from bob.protocol.signs import is_elsewhere_as_at_first


class Aspect(StrEnum):
    """A property of a file, such as its owner. bob compares it between crash states if no call of the program explains
    its value. The value of each enum member is a phrase for messages, with ``{}`` in place of the file's path."""

    NAME = "the name {}"
    CONTENT = "the contents of {}"
    ATTRIBUTES = "the extended attributes of {}"
    OWNER = "the owner of {}"
    MODE = "the mode of {}"
    FLAGS = "the flags of {}"
    TARGET = "where {} leads"
    FAULT = "that {} cannot be read"


class PathAspect(NamedTuple):
    aspect: Aspect
    path: str


@dataclass(frozen=True, slots=True)
class Untold:
    """The properties in one tree of files, if no call explains them. ``values`` maps each such property to its value.
    ``paths`` has all paths of the tree, and ``contents`` the bytes of its files. ``parts`` is about calls that
    persisted in part. It maps each such call to a value that stands for the part that persisted
    (:meth:`bob.protocol.signs.Signs.parts`)."""

    values: Mapping[PathAspect, object] = field(default_factory=dict)
    paths: Set[str] = frozenset()
    contents: Mapping[str, bytes] = field(default_factory=dict)
    parts: Mapping[int, object] = field(default_factory=dict)

    def differing(self, other: Untold) -> list[PathAspect]:
        """Return the differences between this tree and the tree of ``other`` that no call explains. They are names that
        only one tree has, and properties with different values at paths that both trees have."""
        if not self.values and not other.values:
            return []
        places = {place for place, _value in self.values.items() ^ other.values.items()}
        return sorted(
            place for place in places if place.aspect is Aspect.NAME or place.path in self.paths & other.paths
        )

    def words(self, other: Untold) -> tuple[str, ...]:
        mine, others = self.contents, other.contents
        return tuple(
            str(aspect).format(path) + (_range(mine.get(path), others.get(path)) if aspect is Aspect.CONTENT else "")
            for aspect, path in self.differing(other)
        )


def untold(
    effects: Effects, tree: Mapping[str, Node], located: Mapping[int, str], parts: Mapping[int, object]
) -> Untold:
    at = {path: number for number, path in located.items()}
    values: dict[PathAspect, object] = {}
    for path, node in tree.items():
        if node.fault:
            values[PathAspect(Aspect.FAULT, path)] = node.fault
        if path not in at:
            folder, _slash, name = path.rpartition("/")
            if (folder or "/") in at and DirectoryEntry(at[folder or "/"], name) not in effects.entries:
                values[PathAspect(Aspect.NAME, path)] = node.kind
            continue
        number, file = at[path], effects.files[at[path]]
        if node.xattrs:
            values[PathAspect(Aspect.ATTRIBUTES, path)] = tuple(sorted(node.xattrs.items()))
        if any((node.uid, node.gid)):
            values[PathAspect(Aspect.OWNER, path)] = node.uid, node.gid
        if not (file.followed and len(file.modes) > 1) and node.mode != _first_mode(effects, number):
            values[PathAspect(Aspect.MODE, path)] = node.mode
        if node.kind == "symlink" and node.target != file.target:
            values[PathAspect(Aspect.TARGET, path)] = node.target
        if node.kind == "file" and not (file.followed and is_elsewhere_as_at_first(effects, number, file, node)):
            long = tuple((node.pieces or {}).items())
            values[PathAspect(Aspect.CONTENT, path)] = node.size, hash(node.content), hash(long)
        if (flags := letters(node.flags)) or node.project:  # other flags are the file system's own
            values[PathAspect(Aspect.FLAGS, path)] = flags, node.project
    for entry, history in effects.entries.items():
        path = path_in(located[entry.folder], entry.name) if entry.folder in located else ""
        if path and (path not in tree if len(history) == 1 else entry in effects.strange and path in tree):
            values[PathAspect(Aspect.NAME, path)] = ""
    contents = {path: node.content for path, node in tree.items()}
    return Untold(values, tree.keys(), contents, parts)


def _first_mode(effects: Effects, number: int) -> int | None:
    modes = effects.files[number].modes
    return modes[0].value if modes else effects.made_modes.get(number)


def _range(one: bytes | None, other: bytes | None) -> str:
    """Return words for the range of bytes where two contents differ. The words are empty if one content is unknown, or
    if the two are equal."""
    if one is None or other is None:
        return ""
    length = max(len(one), len(other))
    left, right = (np.frombuffer(content.ljust(length, b"\0"), dtype=np.uint8) for content in (one, other))
    differing = np.flatnonzero(left != right)
    if not len(differing):
        return " (its size)" if len(one) != len(other) else ""
    return f" (bytes {differing[0]} to {differing[-1]})"
