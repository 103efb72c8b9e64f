"""The update protocol of a recorded program: its effects, held against the tree that it left at a clean end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bob.observe.observation import Node
from bob.program.strace import SystemCall
from bob.protocol.effects import ROOT_FILE, Effects
from bob.protocol.follow import follow
from bob.protocol.presence import unexplained


def protocol(calls: Sequence[SystemCall], root: str, before: Mapping[str, Node], after: Mapping[str, Node]) -> Effects:
    """What the ``calls`` have made of the tree ``before``, as far as that explains the tree ``after`` all of them.

    A file whose end the calls do not explain is not followed: something changed it that no call tells.
    """
    effects = follow(calls, root, before)
    _learn_inodes(effects, after)
    for number in unexplained(effects, after):
        effects.files[number].followed = False
    return effects


def _learn_inodes(effects: Effects, after: Mapping[str, Node]) -> None:
    """The inodes of the files that the calls have made, of those that were there in the end."""
    paths = {ROOT_FILE: ""}
    waiting = [ROOT_FILE]
    while waiting:
        folder = waiting.pop()
        for entry in [one for one in effects.entries if one.folder == folder]:
            file = effects.last(entry)
            node = after.get(f"{paths[folder]}/{entry.name}")
            if file is not None and node is not None and file not in paths:
                paths[file] = f"{paths[folder]}/{entry.name}"
                effects.files[file].inode = effects.files[file].inode or node.inode
                waiting.append(file)
