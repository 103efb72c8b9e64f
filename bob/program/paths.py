"""Find out which files below a root directory are meant by the names in system calls. That depends on the calling
process, such as on its working directory. The root is the directory on the guest where the file system under test is
mounted."""

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from bob.program.processes import PerProcess
from bob.program.strace import FORKS, SystemCall, name_of

MOST_LINKS = 40  # symbolic links in one name, at most (MAXSYMLINKS, include/linux/namei.h)


_OPEN = re.compile(r"(?:/proc/(?P<process>self|thread-self|\d+)|/dev)/fd/(?P<number>\d+)(?P<rest>/.*)?")
_OWN_FOLDER = re.compile(r"/proc/(?:self|thread-self)/cwd(?P<rest>/.*)?")


@dataclass(slots=True)
class _Folder:
    """The working directory and the umask of a process, or of threads that share both (``struct fs_struct``)."""

    path: str
    umask: int = 0o022


class Paths:
    """The working directories of all processes, after the calls so far. A relative name in a call is relative to the
    working directory of the calling process. The constructor gets two functions. Given a path relative to the root,
    ``link_at`` returns the target of the symbolic link there, or None if there is no link. Given a pid and a file
    descriptor, ``open_at`` returns the path of the open file relative to the root, or None if bob does not know the
    file."""

    def __init__(
        self,
        root: str,
        calls: Sequence[SystemCall],
        link_at: Callable[[str], str | None] = lambda _path: None,
        open_at: Callable[[int, int], str | None] = lambda _pid, _number: None,
    ) -> None:
        self._root, self._link_at, self._open_at = root, link_at, open_at
        self._folders = PerProcess(calls, "CLONE_FS", lambda: _Folder(root), replace)
        self._elsewhere: dict[str, None] = {}
        self._leading: dict[str, None] = {}

    def below(self, path: str) -> str:
        """Return a path of the guest relative to the root, such as ``/f``. Return "" for a path outside the root, and
        for the root itself."""
        _before, found, rest = path.partition(self._root)
        return rest if found and rest.startswith("/") else ""

    def at(self, call: SystemCall, place: int, *, follows: bool = False) -> str:
        """Take the call's argument at index ``place`` as the name of a file, and return the path of the file, relative
        to the root. Return "" if the file is not below the root. If ``follows``, a symbolic link at the end of the path
        is resolved."""
        path = self.of_guest(call, place, follows=follows)
        below = self.below(path)
        if not below:
            self._elsewhere[path] = None
        return below

    def opened(self, call: SystemCall, place: int) -> None:
        """Compare the name that a call opened (its argument at index ``place``) with the path of the file that the
        kernel opened. If the file is below the root, but the name is not, then the name leads below the root through a
        symbolic link that bob does not see. In that case, remember the name."""
        path, below = self.of_guest(call, place, follows=True), self.below(call.opened)
        if below and not self.below(path) and not path.startswith(("/proc/", "/dev/")):
            names, others = path.split("/"), call.opened.split("/")
            alike = sum(
                1 for _pair in takewhile(lambda pair: pair[0] == pair[1], zip(names[::-1], others[::-1], strict=False))
            )
            self._leading["/".join(names[: len(names) - alike])] = None

    @property
    def through_links(self) -> list[str]:
        """Names outside the root that may lead below the root, through a symbolic link that bob does not see."""
        return [path for path in self._elsewhere if any(f"{path}/".startswith(f"{one}/") for one in self._leading)]

    def of_guest(self, call: SystemCall, place: int, *, follows: bool = False) -> str:
        """Take the call's argument at index ``place`` as the name of a file, and return the absolute path of the file
        in the guest. The file may be outside the root."""
        folder = call.path(place - 1) if place else ""
        own = self._folders.of(call.pid)
        if place and call.arguments[place - 1].startswith("AT_FDCWD") and folder:
            own.path = folder
        named = self._of_process(call.pid, posixpath.join(folder or own.path, name_of(call.arguments[place])))
        return self._resolved(named, follows)

    def take(self, call: SystemCall) -> None:
        """Update the working directories and umasks after a successful call, such as a chdir, umask or clone."""
        if call.name in FORKS:
            self._folders.forked(call)
        elif call.name == "umask":
            self._folders.of(call.pid).umask = int(call.arguments[0], 8)
        elif call.name == "fchdir":
            self._folders.of(call.pid).path = call.path(0)
        elif call.name == "chdir":
            own = self._folders.of(call.pid)
            named = self._of_process(call.pid, posixpath.join(own.path, name_of(call.arguments[0])))
            own.path = self._resolved(named, follows=True)

    def umask(self, pid: int) -> int:
        """Return the umask of a process: the permission bits that new files do not get."""
        return self._folders.of(pid).umask

    def moved(self, renamed: Mapping[str, str]) -> None:
        """Change the paths of working directories after directories have been renamed. ``renamed`` maps old paths to
        new paths, relative to the root. For a process whose working directory is at an old path, or below it, bob
        changes the path of the working directory."""
        for folder in {id(one): one for one in self._folders.every()}.values():
            below = self.below(folder.path)
            for old, new in renamed.items():
                if below == old or below.startswith(f"{old}/"):
                    folder.path = folder.path.removesuffix(below) + new + below.removeprefix(old)
                    break

    def _of_process(self, pid: int, path: str) -> str:
        """Return ``path``. If it is a name in /proc that stands for an open file or a working directory, return the
        path of that file or directory instead."""
        if found := _OPEN.fullmatch(path):
            named = found["process"]
            there = self._open_at(int(named) if named and named.isdigit() else pid, int(found["number"]))
            return path if there is None else f"{self._root}{there}{found['rest'] or ''}"
        if found := _OWN_FOLDER.fullmatch(path):
            return f"{self._folders.of(pid).path}{found['rest'] or ''}"
        return path

    def _resolved(self, path: str, follows: bool) -> str:
        """Return ``path`` with the symbolic links below the root resolved (path_resolution(7)). ``..`` after a link
        leads to the parent of the link's target."""
        found, links = "/", 0
        waiting = path.split("/")[::-1]
        while waiting:
            name = waiting.pop()
            if name == "..":
                found = posixpath.dirname(found)
            elif name not in ("", "."):
                here = posixpath.join(found, name)
                below = self.below(here)
                target = self._link_at(below) if below and (waiting or follows) and links < MOST_LINKS else None
                if target is None:
                    found = here
                else:
                    links += 1
                    found = "/" if target.startswith("/") else found
                    waiting += target.split("/")[::-1]
        return found
