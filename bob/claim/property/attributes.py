"""Expected modes, owners, link counts of directories, and times of modification.

A mode or owner must stay the same unless an operation sets it. The time of modification of a file or directory must
stay the same unless an operation touches the file or directory. Most file systems, such as ext4, count two links for a
directory, and one more for each directory in it. On these file systems, bob checks the count. On btrfs, the count is
always 1, and bob does not check it."""

from collections.abc import Iterator, Mapping, Sequence

from bob.observe.observation import Node
from bob.trace.recording import InodeStatus, Statuses
from bob.workload.history import MODE, OWNER, TIME, FileKind, History, HistoryStep, attribute_set_by

_OWN_LINKS = 2  # the name in the directory above, and the directory's own ``.``


class Attributes:
    """Expected attributes of files and directories. They come from the ``statuses`` (mode, owner, time, link count) of
    the names before and after the operations. bob does not check the attributes of names without a status."""

    def __init__(self, history: History, statuses: Sequence[Statuses]) -> None:
        before, after = (*statuses, {}, {})[:2]
        self._before = _of_things(history.steps[0], before)
        self._expected: Mapping[int, InodeStatus] = {**_of_things(history.steps[-1], after), **self._before}
        folders = {path: thing for path, thing in history.steps[0].names.items() if path in before and path != "/"}
        directories = {path for path, thing in folders.items() if history.things[thing].kind is FileKind.DIRECTORY}
        counts = {path: sum(inner.rpartition("/")[0] == path for inner in directories) for path in directories}
        self._set = {
            (history.steps[number].thing(done[0]), done[1])
            for number, operation in enumerate(history.operations, start=1)
            if (done := attribute_set_by(operation)) is not None
        }
        self._times: dict[int, set[int]] = {}  # ns since 1970, as operations set them
        for step in history.steps[1:]:
            for thing, inode in step.inodes.items():
                if (thing, TIME) in self._set and inode.modified is not None:
                    self._times.setdefault(thing, set()).add(inode.modified * 1_000_000_000)
        self._counts_directories = bool(counts) and all(
            before[path].links == _OWN_LINKS + count for path, count in counts.items()
        )

    def wrong(self, thing: int, node: Node, *, is_touched: bool) -> Iterator[str]:
        """Yield words about each attribute of ``node`` that changed although no operation changed it. ``node`` is a
        file or directory as observed after a crash, and ``thing`` is its index in ``History.things``. ``is_touched`` is
        True if some operation changes this file or directory."""
        expected = self._expected.get(thing)
        if expected is None:
            return
        if node.mode is not None and node.mode != expected.mode and (thing, MODE) not in self._set:
            yield f"the mode is {node.mode:o} instead of {expected.mode:o}"
        owner = expected.uid, expected.gid
        if node.uid is not None and (node.uid, node.gid) != owner and (thing, OWNER) not in self._set:
            yield f"the owner is {node.uid}:{node.gid} instead of {expected.uid}:{expected.gid}"
        first = self._before.get(thing)
        if first is None or not first.mtime or node.mtime is None:
            return
        if (times := self._times.get(thing)) is not None:
            if node.mtime and node.mtime not in {first.mtime, *times}:
                yield f"the time of modification is {_time(node.mtime)}, which no operation set"
        elif not is_touched and node.mtime != first.mtime:
            yield f"the time of modification is {_time(node.mtime)} instead of {_time(first.mtime)}"

    def links_of_directory(self, node: Node, directories: int) -> str | None:
        """Return words about a wrong link count of a directory that contains ``directories`` directories; None if the
        count is right."""
        expected = _OWN_LINKS + directories
        if not self._counts_directories or node.mode is None or node.links == expected:
            return None
        return f"{node.links} links instead of {expected}, with {directories} directories in it"


def _of_things(step: HistoryStep, statuses: Statuses) -> dict[int, InodeStatus]:
    return {thing: statuses[path] for path, thing in sorted(step.names.items()) if path in statuses}


def _time(modified: int) -> str:
    return f"{modified / 1e9:.3f} s" if modified else "a later one"
