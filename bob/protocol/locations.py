"""Where in a tree each file is that the calls have to do with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bob.observe.observation import Node, Presence
from bob.protocol.contents import file_signs
from bob.protocol.effects import ROOT_FILE, DirectoryEntry, Effects, TracedFile, Version
from bob.protocol.signs import Signs


def locate(effects: Effects, tree: Mapping[str, Node]) -> dict[int, str]:
    """Return the path of each file in ``tree``, of those that are there."""
    found = {ROOT_FILE: "/"}
    waiting = [ROOT_FILE]
    inside: dict[int, list[DirectoryEntry]] = {}
    for entry in effects.entries:
        inside.setdefault(entry.folder, []).append(entry)
    while waiting:
        folder = waiting.pop()
        for entry in inside.get(folder, []):
            path = path_in(found[folder], entry.name)
            if path not in tree:
                continue
            file = only(effects, candidates(effects, effects.entries[entry], tree[path]), tree[path])
            if file is not None and file not in found:
                found[file] = path
                waiting.append(file)
    return found


def path_in(folder: str, name: str) -> str:
    """Return the path of a name in a directory with this path."""
    return f"{folder.rstrip('/')}/{name}"


def candidates(effects: Effects, history: Sequence[Version[int | None]], node: Node) -> list[int]:
    """Return the files that an entry with this node may lead to. File systems use inode numbers again, so a file of
    unknown inode may have any."""
    files = dict.fromkeys(change.value for change in history if change.value is not None)
    return [file for file in files if _is_like(effects.files[file], node)]


def only(effects: Effects, files: Sequence[int], node: Node) -> int | None:
    """Return which of ``files`` a node is; None if that is not clear. Where an inode number occurs twice, the content
    decides."""
    if len(files) > 1:
        files = [number for number in files if _may_be(effects, number, node)]
    return files[0] if len(files) == 1 else None


def _is_like(file: TracedFile, node: Node) -> bool:
    return file.kind == node.kind and (not file.inode or not node.inode or file.inode == node.inode)


def _may_be(effects: Effects, number: int, node: Node) -> bool:
    file = effects.files[number]
    if not file.followed:
        return True
    if not file.stored and len(file.sizes) <= 1 and node.content != file.content:
        return False  # no call changes what is in it
    signs = Signs(file.calls)
    file_signs(signs, effects, number, file, node)
    return Presence.PARTIAL not in signs.said()
