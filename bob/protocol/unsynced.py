"""Find the files with changes that a program has not synced when it writes an output, such as an acknowledgement. Also
find the changes of names that its syncs have made durable."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from bob.program.paths import Paths
from bob.program.strace import SystemCall
from bob.program.untraced import CHANGES, RENAMES, is_exchange
from bob.protocol import arguments as args
from bob.protocol.descriptors import Descriptors, OpenFile
from bob.protocol.effects import Effects
from bob.text import plural, shortened
from bob.workload import operations as ops
from bob.workload.operations import How

_AT_ONCE = (How.SYNC, How.DSYNC)


MOST_OUTPUTS = 3  # outputs that a sentence names


class UnsyncedFiles(NamedTuple):
    """The ``files`` with unsynced changes when the program wrote ``output``, by the names that they then had. The file
    whose first unsynced change is the oldest comes first."""

    output: bytes
    files: tuple[str, ...]


def unsynced_in_words(calls: Sequence[SystemCall], pipe: int, root: str) -> tuple[str, ...]:
    """Return a sentence for each set of files that the program had changed, but not synced, when it wrote an output.
    The arguments are those of :func:`unsynced_at_outputs`."""
    every = list(unsynced_at_outputs(calls, pipe, root))
    places: dict[tuple[str, ...], list[int]] = {}
    for place, (_output, files) in enumerate(every):
        if files:
            places.setdefault(files, []).append(place)
    return tuple(
        f"changed, but not synced, when the program wrote {_which(every, at)}: {', '.join(files)}"
        for files, at in places.items()
    )


def _which(every: Sequence[UnsyncedFiles], at: Sequence[int]) -> str:
    if at == [len(every) - 1]:
        return "its last output"
    if len(at) == len(every):
        return f"each of its {len(every)} outputs"
    named = [f"‘{shortened(every[place].output.decode(errors='replace').strip(), 30)}’" for place in at[:MOST_OUTPUTS]]
    more = [f"and {plural(len(at) - MOST_OUTPUTS, 'other output')}"] if len(at) > MOST_OUTPUTS else []
    return ", ".join([*named, *more])


def unsynced_at_outputs(calls: Sequence[SystemCall], pipe: int, root: str) -> Iterator[UnsyncedFiles]:
    """Yield the files below ``root`` with unsynced changes at each write of the program to its output. The output is
    the pipe with the inode ``pipe``."""
    names, descriptors = Paths(root, calls), Descriptors(calls)
    dirty: dict[str, None] = {}
    for call in calls:
        if call.result is None:
            continue
        names.take(call)
        descriptors.take(call)
        if call.name in args.OPENS:
            is_below = names.below(call.opened)
            descriptors.opened(call, OpenFile(0, how=args.how_opened(call)) if is_below else None)
        elif call.name in RENAMES:
            old, new = (names.at(call, place) for place in RENAMES[call.name])
            moved = {old: new, new: old} if is_exchange(call) else {old: new}
            dirty = _renamed(dirty, moved)
            names.moved(moved)
        elif call.name in CHANGES and call.path(0) == f"pipe:[{pipe}]":
            if call.result:
                yield UnsyncedFiles(call.written, tuple(dirty))
        elif call.name in CHANGES:
            open_file = descriptors.at(call, 0)
            how = args.how_of(call) or (open_file.how if open_file else How.PLAIN)
            if (name := names.below(call.path(0))) and (how not in _AT_ONCE or call.name in ("ftruncate", "fallocate")):
                dirty[name] = None
        elif call.name in (*args.COPIES, *args.TRUNCATES):
            is_copy = call.name in args.COPIES
            name = names.below(call.path(args.copy_of(call).into)) if is_copy else names.at(call, 0, follows=True)
            if name:
                dirty[name] = None
        elif call.name in ("fsync", "fdatasync"):
            dirty.pop(names.below(call.path(0)), None)
        elif call.name == "sync" or (
            call.name == "syncfs" and (names.below(call.path(0)) or call.path(0).endswith(root))
        ):
            dirty.clear()
        elif call.name in args.REMOVES:
            dirty.pop(names.at(call, args.REMOVES[call.name]), None)


def _renamed(dirty: Iterable[str], moved: Mapping[str, str]) -> dict[str, None]:
    """Return the names of the changed files ``dirty`` after a rename. ``moved`` maps the old path of a renamed file or
    directory to the new path. The files in a renamed directory get new names, too. A changed file that the rename
    replaces is left out."""
    found: dict[str, None] = {}
    for name in dirty:
        old = next((old for old in moved if _is_in(name, old)), None)
        if old is not None:
            found[moved[old] + name.removeprefix(old)] = None
        elif not any(_is_in(name, new) for new in moved.values()):
            found[name] = None
    return found


def _is_in(name: str, path: str) -> bool:
    return bool(path) and f"{name}/".startswith(f"{path}/")


def names_kept(effects: Effects, before: int | None) -> frozenset[int]:
    """Return the calls that changed a name, if the change was durable before call ``before`` was made. A sync of the
    directory, or of the whole file system, makes it durable; a sync of the file does not. Without ``before`` (None),
    return the empty set."""
    if before is None:
        return frozenset()
    last: dict[int | None, int] = {}  # the last sync by directory; the key None is for a sync of everything
    for deed in effects.deeds:
        if deed.call < before and isinstance(deed.operation, ops.Fsync | ops.Sync):
            last[deed.file if isinstance(deed.operation, ops.Fsync) else None] = deed.call
    if not last:
        return frozenset()
    of_all = last.get(None, -1)
    return frozenset(
        change.call
        for entry, history in effects.entries.items()
        for change in history
        if 0 <= change.call < max(of_all, last.get(entry.folder, -1))
    )
