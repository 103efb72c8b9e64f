"""The update protocol of a recorded program: the effects of its calls, checked against the tree after the program's end
without a crash."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from bob.observe.observation import Node
from bob.program.strace import SystemCall
from bob.protocol.effects import ROOT_FILE, Effects
from bob.protocol.follow import follow
from bob.protocol.presence import strange_names, unexplained

LARGEST = 256 * 1024 * 1024  # bytes; a file with a larger store is not followed, as bob compares trees by blocks


def protocol(calls: Sequence[SystemCall], root: str, before: Mapping[str, Node], after: Mapping[str, Node]) -> Effects:
    """Return the effects of ``calls`` on the tree ``before``. Check them against the tree ``after``, which the program
    left when it ended without a crash. Do not follow a file if the calls do not explain its final content, or if one
    call writes more than ``LARGEST`` bytes to it. Then bob draws no conclusions from the file's content in crash
    states. Names that the calls do not explain are in ``strange``."""
    effects = follow(calls, root, before)
    _learn_inodes(effects, after)
    for file in effects.files:
        file.followed = file.followed and all(one.value.end - one.value.start <= LARGEST for one in file.stored)
    for number in unexplained(effects, after):
        effects.files[number].followed = False
    effects.strange.update(strange_names(effects, after))
    return effects


def without(effects: Effects, is_left_out: Callable[[str], bool]) -> tuple[Effects, int]:
    """Return ``effects`` without the calls on some files, and the number of these calls. A file is left out if
    ``is_left_out`` is true for its paths. Raises ValueError if ``is_left_out`` is true for one path of a file, but
    false for another path of the same file."""
    names = [_paths(effects, number) for number in range(len(effects.files))]
    left = {number for number, paths in enumerate(names) if any(map(is_left_out, paths))}
    for number in left:
        if other := [path for path in sorted(names[number]) if not is_left_out(path)]:
            raise ValueError(f"a file to leave out also has the path {other[0]}")
    deeds = [deed for deed in effects.deeds if deed.file not in left]
    calls = {deed.call for deed in effects.deeds} - {deed.call for deed in deeds}
    return replace(effects, deeds=deeds), len(calls)


def _paths(effects: Effects, file: int) -> set[str]:
    if effects.files[file].kind == "directory":
        return set()
    names = {entry for entry, _place, _call in effects.leading_to(file)}
    return {f"{folder}/{entry.name}" for entry in names for folder in _folders(effects, entry.folder)}


def _folders(effects: Effects, folder: int, below: frozenset[int] = frozenset()) -> set[str]:
    """Return all paths that a directory ever had, except for paths that contain a directory in ``below``. The recursion
    goes from a directory to its parents, and ``below`` has the directories that it has passed. Renames may have made
    directory a the parent of b at one time, and b the parent of a at another time. Without ``below``, the recursion
    would then not end."""
    if folder == ROOT_FILE:
        return {""}
    through = {entry for entry, _place, _call in effects.leading_to(folder) if entry.folder not in below}
    return {f"{above}/{one.name}" for one in through for above in _folders(effects, one.folder, below | {folder})}


def _learn_inodes(effects: Effects, after: Mapping[str, Node]) -> None:
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
