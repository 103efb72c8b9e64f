"""Names of writes. The name of a write is a short line of words that describes its blocks."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from bob.blocks.data import operation_words
from bob.blocks.owners import BlockOwner
from bob.blocks.parts import BlockKind, BlockPiece, WritePart, owned
from bob.workload.pattern import FIRST_SETUP_NUMBER

LONGEST = 90  # characters in a line, at most

_LONGEST_PATH = 28
_FEW = 2  # if a write changes no more inodes than these, bob gives their paths instead of their numbers

_FOR_INODES, _FOR_INODE, _FOR_COUNT = 34, 22, 12
"""Characters for the inodes beside the notes: for several inodes, for one, or only for their count."""

_FOR_NOTES = 24  # characters; if the notes would get fewer, bob gives only the number of inodes

_LEAST_NOTES = 20

_OF_A_TRANSACTION = r"journal (?:(?:descriptor|commit|revoke) block|block of an unknown type|copy of|data)\b"
"""Names of the blocks in a transaction of a journal (ext3, ext4, reiserfs)."""

Owned = Callable[[int, str | None], BlockOwner | None]


@dataclass(frozen=True, slots=True)
class BlockName:
    """A name of a write. ``text`` is a short description in lower case. ``sort`` is a coarser one, such as "inode
    table" or "data", which many writes share. ``kind`` is the kind of most blocks of the write, and ``sort`` describes
    the write's last block of this kind."""

    kind: BlockKind
    text: str
    sort: str


def summary(parts: Sequence[WritePart], owner_of: Owned, paths: Mapping[int, str]) -> BlockName:
    if not parts:
        return BlockName(BlockKind.UNKNOWN, "unknown", BlockKind.UNKNOWN.value)
    owners = {(part.place, part.role): owner_of(part.place, part.role) for part in parts if part.place is not None}
    parts = [part if part.place is None else owned(part, owners[part.place, part.role]) for part in parts]

    def same(part: WritePart) -> tuple[BlockKind, str, int | None]:
        owner = None if part.place is None else owners[part.place, part.role]
        return part.kind, part.what, part.of if owner is None else owner.inode

    groups = [(key, list(group)) for key, group in groupby(parts, same)]
    kinds = dict.fromkeys(part.kind for part in parts)  # few, while a long write has a part for each block
    kind = max(kinds, key=lambda kind: _blocks(one for one in parts if one.kind == kind))
    sort = sort_of(kind, next(part.what for part in reversed(parts) if part.kind is kind))
    lines = [_line(group, owner, paths) for (_kind, _what, owner), group in groups]
    whole = "; ".join(lines)
    if len(whole) <= LONGEST:
        return BlockName(kind, whole, sort)
    first = next(number for number, (key, _group) in enumerate(groups) if key[0] == kind)
    others = _blocks(part for number, (_key, group) in enumerate(groups) if number != first for part in group)
    more = f", and {others} more" if others else ""
    return BlockName(kind, shortened(lines[first], LONGEST - len(more)) + more, sort)


def sort_of(kind: BlockKind, what: str) -> str:
    """Return the sort of a block, from the words ``what`` that describe it. The sort is without the details that differ
    from block to block, such as numbers. All blocks of a journal's transactions have one sort, because the loss of any
    of them has the same effect: recovery ignores the whole transaction."""
    if kind in (BlockKind.DATA, BlockKind.UNKNOWN):
        return kind.value
    if kind is BlockKind.JOURNAL and re.match(_OF_A_TRANSACTION, what):
        return "journal transaction"
    if " tree blocks of " in what:  # in btrfs, only a log tree is always written separately
        return "log tree" if kind is BlockKind.JOURNAL else "tree blocks"
    head = re.split("[,(:;]", what)[0]
    head = re.sub(r"(?:\b(?:of|at|in) (?:(?:transaction|group|block|inode) )?)?\b\d[\d/]*", "", head)
    head = re.sub(r"(\w+ tree) (?:leaf|node)$", r"\1", " ".join(head.split()))
    return f"{head} with a log tree" if what.endswith("with a log tree") else head


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3].rstrip(" ,;:(.") + "..."


def listed(names: Sequence[str], most: int, between: str = ", ") -> str:
    """Return a list such as "a, b and 30 more". It has as many of ``names`` as fit into ``most`` characters, but at
    least one name."""
    for shown in range(len(names), 1, -1):
        text = _first(names, shown, between)
        if len(text) <= most:
            return text
    more = _first(names, 1)[len(names[0]) :]
    return shortened(names[0], max(most - len(more), 8)) + more


def _first(names: Sequence[str], shown: int, between: str = ", ") -> str:
    rest = len(names) - shown
    return between.join(names[:shown]) + (f" and {rest} more" if rest else "")


def numbers(values: Sequence[int]) -> str:
    """Return ascending numbers as ranges: "12-43, 50"."""
    ranges: list[list[int]] = []
    for value in values:
        if ranges and ranges[-1][1] == value - 1:
            ranges[-1][1] = value
        else:
            ranges.append([value, value])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def bitmap_changes(piece: BlockPiece, first: int, most: int, word: str) -> tuple[str, ...]:
    """Return the changes that a write makes in a block of a bitmap. Examples are "allocates block 5" and "frees 400"
    (400 blocks, too many to list). ``word`` is the word for a counted thing (here "block"). Bit 0 stands for number
    ``first``. The bits from ``most`` on are ignored."""
    old, new = (
        np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")[:most].astype(bool)
        for data in (piece.before, piece.after)
    )
    notes = []
    for verb, changed in (("allocates", new & ~old), ("frees", old & ~new)):
        found = (np.flatnonzero(changed) + first).tolist()
        if found:
            exact = numbers(found)
            notes.append(f"{verb} {len(found)}" if len(exact) > 24 else f"{verb} {word} {exact}")
    return tuple(notes)


def inode_changes(links: tuple[int, int], sizes: tuple[int, int], *, is_new: bool) -> tuple[str, ...]:
    """Return in words the changes that a write makes in an inode. ``links`` has the number of the inode's hard links
    before the write and after it, and ``sizes`` its sizes in bytes."""
    if is_new or (links[1] and not links[0]):
        return ("new",)
    if links[0] and not links[1]:
        return ("last link removed",)
    found = (("size", sizes), ("links", links))
    return tuple(f"{what} {before} to {after}" for what, (before, after) in found if before != after)


def _blocks(parts: Iterable[WritePart]) -> int:
    return sum(part.blocks for part in parts)


def _line(group: Sequence[WritePart], owner: int | None, paths: Mapping[int, str]) -> str:
    if any(part.runs for part in group):
        return _data(group, owner, paths)
    inodes = sorted({inode for part in group for inode in part.inodes})
    notes = list(dict.fromkeys(note for part in group for note in _notes(part, len(inodes), paths)))
    text = group[0].what
    if len(group) > 1 and group[0].kind is not BlockKind.UNKNOWN and not inodes:
        text += f" ({_blocks(group)} blocks)"
    if owner is not None:
        text += f" of {_path(owner, paths)}"
    room = LONGEST - len(text) - 2
    beside = room - (_FOR_INODES if len(inodes) > 1 else _FOR_INODE) if inodes else room
    space = beside if beside >= _FOR_NOTES else room - _FOR_COUNT
    noted = listed(notes, space, "; ") if notes and space >= _LEAST_NOTES else ""
    noted = f": {noted}" if noted else ""
    if inodes:
        text += _inodes(inodes, paths, LONGEST - len(text) - len(noted))
    return text + noted


def _notes(part: WritePart, inodes: int, paths: Mapping[int, str]) -> Sequence[str]:
    if len(part.inodes) == 1 and inodes > 1:
        return [f"{_path(part.inodes[0], paths)} {note}" for note in part.notes]
    return part.notes


def _inodes(inodes: Sequence[int], paths: Mapping[int, str], room: int) -> str:
    if len(inodes) == 1:
        return f", inode {inodes[0]}" + (f" ({_path(inodes[0], paths)})" if inodes[0] in paths else "")
    told = [_path(inode, paths) for inode in sorted(inodes, key=lambda inode: inode not in paths)]
    count, exact = f"{len(inodes)} inodes", f"inodes {numbers(inodes)}"
    if not any(inode in paths for inode in inodes):
        return f" ({exact})" if len(exact) + 3 <= room else f" ({count})"
    for which in (exact, count):
        for shown in range(len(told), 0, -1):
            text = f" ({which}: {_first(told, shown)})"
            if len(text) <= room and (which is count or shown >= min(len(told), _FEW)):
                return text
    return f" ({count})"


def _data(group: Sequence[WritePart], owner: int | None, paths: Mapping[int, str]) -> str:
    spans: dict[int, list[int]] = {}
    for operation, first, last in (run for part in group for run in part.runs):
        spans.setdefault(operation, []).extend(range(first, last + 1))
    what = group[0].what.removesuffix("data")
    place = "" if owner is None else f" in {_path(owner, paths)}"
    operations = sorted(spans)
    if len(spans) == 1:
        said = operation_words(operations)
        said = said if said == "initial data" else f"data of {said}"
        return f"{what}{said}{place} ({_sectors(spans[operations[0]])})"
    own = [number for number in operations if number < FIRST_SETUP_NUMBER]
    said = f"data of operation{'s' * (len(own) > 1)} "
    said += ", ".join(f"{number} ({_sectors(spans[number])})" for number in own)
    if len(own) < len(operations):
        said += f" and initial data ({_sectors(spans[operations[-1]])})"
    whole = what + said + place
    return whole if len(whole) <= LONGEST else f"{what}data of {operation_words(operations)}{place}"


def _sectors(sectors: Sequence[int]) -> str:
    return f"sector{'s' * (len(sectors) > 1)} {listed(numbers(sectors).split(', '), 16)}"


def _path(inode: int, paths: Mapping[int, str]) -> str:
    path = paths.get(inode)
    if path is None:
        return f"inode {inode}"
    return path if len(path) <= _LONGEST_PATH else "..." + path[-(_LONGEST_PATH - 3) :]
