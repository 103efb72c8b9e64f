"""The moments of a run without a crash, and a checker that knows them. A program without a checker of its own is asked
one question: does a crash leave its files as they were at some moment? The moments are the start, each output, each
sync, and the end. C3 (Pillai et al., FSE'16) judges programs so. The checker is probes/moments/check."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bob.program.program import CHECK, MOMENTS, ProgramFile
from bob.protocol.replay import ReplayedProgram
from bob.resources import shipped
from bob.workload.history import FileKind, History, HistoryStep
from bob.workload.operations import Acknowledge, Fsync, Sync

MOST_ENTRIES = 400_000  # names in all moments together: the checker compares each of its trees with all of them
Entry = tuple[str, int, str, str]  # kind, size in bytes, digest of the contents or target, first path of the same file


@dataclass(frozen=True, slots=True)
class RunMoment:
    """A moment of a run, with its ``name`` for people and the tree of files by path. The program had written ``told``
    bytes of output."""

    name: str
    told: int
    tree: Mapping[str, Entry]


def moments(again: ReplayedProgram) -> Iterator[RunMoment]:
    """Yield the moments of a program's run in order. Moments after the same output with equal trees are one: yield only
    the first."""
    history, seen, syncs = again.history, set[tuple[int, tuple[tuple[str, Entry], ...]]](), 0
    digests: dict[tuple[int, int], str] = {}
    for number, step in enumerate(history.steps):
        operation = history.operations[number - 1] if number else None
        is_last = number == len(history.steps) - 1
        if isinstance(operation, Acknowledge):
            name = f"after the output {operation.text.strip()!r}"
        elif isinstance(operation, Fsync | Sync):
            syncs += 1
            name = f"after sync {syncs}"
        elif number == 0 or is_last:
            name = "at the end" if is_last else "at the start"
        else:
            continue
        tree, told = _tree(history, step, digests), len(again.outputs[number])
        shape = told, tuple(sorted(tree.items()))
        if shape not in seen:
            seen.add(shape)
            yield RunMoment(name, told, tree)


def moment_files(found: Iterable[RunMoment]) -> tuple[ProgramFile, ProgramFile]:
    """Return the files of a checker that accepts the trees of the moments ``found``. Raise ValueError if these have too
    many names together."""
    numbers: dict[Entry, int] = {}
    written, names = [], 0
    for moment in found:
        names += len(moment.tree)
        if names > MOST_ENTRIES:
            raise ValueError(f"too many files: more than {MOST_ENTRIES:,} names at all outputs and syncs")
        tree = {path: numbers.setdefault(entry, len(numbers)) for path, entry in moment.tree.items()}
        written.append({"name": moment.name, "told": moment.told, "tree": tree})
    document = json.dumps({"entries": list(numbers), "moments": written})
    check = (shipped("probes") / "moments" / "check").read_bytes()
    return ProgramFile(CHECK, check, True), ProgramFile(MOMENTS, document.encode(), False)


def _tree(history: History, step: HistoryStep, digests: dict[tuple[int, int], str]) -> dict[str, Entry]:
    first: dict[int, str] = {}
    tree: dict[str, Entry] = {}
    for path in sorted(step.names.keys() - {"/"}):
        number = step.names[path]
        thing, inode = history.things[number], step.inodes[number]
        if thing.kind is FileKind.FILE:
            key = number, id(inode)  # the history keeps each inode, so its id stays its own
            if key not in digests:
                digests[key] = hashlib.sha256(inode.content).hexdigest()
            tree[path] = ("file", inode.size, digests[key], first.setdefault(number, path))
        else:
            tree[path] = (thing.kind.value, 0, thing.target if thing.kind is FileKind.SYMLINK else "", "")
    return tree
