"""Find the file that a call is about. The call gives a name, a descriptor, or a name relative to a descriptor."""

from collections.abc import Mapping, Sequence

from bob.program.paths import Paths
from bob.program.strace import SystemCall
from bob.protocol import arguments as args
from bob.protocol.descriptors import Descriptors, OpenFile
from bob.protocol.effects import Effects, handle


class PathResolver:
    """The names and open files of all processes, after the calls so far. ``effects`` has the files that names lead
    to."""

    def __init__(self, calls: Sequence[SystemCall], root: str, effects: Effects) -> None:
        self._effects = effects
        self.paths = Paths(root, calls, self._link_at, self._open_at)
        self.descriptors = Descriptors(calls)
        self.removed: dict[str, int] = {}  # the last file at each path that was removed

    def take(self, call: SystemCall) -> None:
        self.paths.take(call)
        self.descriptors.take(call)

    def about(self, call: SystemCall, places: Mapping[str, int]) -> tuple[str, int | None]:
        """Return the path and the number of the file that a call is about. ``places`` has, by the name of a system
        call, the index of the argument that is a path. A call that ``places`` lacks has a descriptor as its first
        argument."""
        place = places.get(call.name)
        if place is None:
            open_file, path = self.descriptors.at(call, 0), self.paths.below(call.path(0))
        elif args.has_no_name(call, place):
            open_file, path = self.descriptors.at(call, place - 1), self.paths.below(call.path(place - 1))
        elif open_file := self._by_number(call, place):
            path = self._effects.path_of(open_file.file) or handle(open_file.file)
        else:
            path = self.paths.at(call, place, follows=args.follows_links(call))
            return path, self._effects.leads(path) if path else None
        return path, open_file.file if open_file else None

    def linked(self, call: SystemCall) -> tuple[str, int | None]:
        """Return the old path and the number of the file that a link(2) or linkat(2) links. The path is "" if bob does
        not know it, or if the file lost its name or never had one (O_TMPFILE)."""
        place = args.LINKS[call.name][0]
        if args.has_no_name(call, place):
            open_file = self.descriptors.at(call, place - 1)
        else:
            open_file = self._by_number(call, place)
        if open_file is not None:
            return self._effects.path_of(open_file.file) or "", open_file.file
        path = self.paths.at(call, place, follows=args.follows_links(call))
        return path, self._effects.leads(path) if path else None

    def mode_of(self, call: SystemCall) -> int:
        return args.mode_of(call, self.paths.umask(call.pid))

    def file_at(self, path: str) -> int | None:
        """Return the number of the file at ``path`` after the calls so far. If ``path`` does not exist any more, return
        the number of the last file that it led to."""
        return self._effects.leads(path) or self.removed.get(path)

    def words(self, file: int, path: str) -> str:
        """Return the words that stand for a file in messages to the user. ``path`` is the path that strace printed for
        the file. It may be wrong, because strace prints a path even if the file no longer has a name."""
        if self.file_at(path) == file:
            return path
        return self._effects.path_of(file) or "a file without a name"

    def name(self, file: int, path: str) -> str:
        """Return the name that stands for a file in operations. This is its ``path``, or a handle
        (:func:`bob.protocol.effects.handle`) if ``path`` does not lead to the file any more."""
        return path if self._effects.leads(path) == file else handle(file)

    def _by_number(self, call: SystemCall, place: int) -> OpenFile | None:
        """Return the open file if the argument at index ``place`` is a path that contains a descriptor, such as
        ``/proc/self/fd/3``. Return None for any other path."""
        found = args.OPEN_FILE.fullmatch(args.text(call.arguments[place]))
        return self.descriptors.numbered(args.process_of(found, call), int(found["number"])) if found else None

    def _open_at(self, pid: int, number: int) -> str | None:
        open_file = self.descriptors.numbered(pid, number)
        return None if open_file is None else self._effects.path_of(open_file.file)

    def _link_at(self, path: str) -> str | None:
        file = self._effects.leads(path)
        is_link = file is not None and self._effects.files[file].kind == "symlink"
        return self._effects.files[file].target if is_link and file is not None else None
