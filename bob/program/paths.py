"""Names of files below a root, as the system calls of each process have them."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bob.program.processes import Inherited
from bob.program.strace import FORKS, SystemCall, name_of

MOST_LINKS = 40
"""So many symbolic links the kernel follows for one name (``MAXSYMLINKS`` in include/linux/namei.h)."""


def _no_links(_path: str) -> str | None:
    return None


@dataclass(slots=True)
class _Folder:
    """The working directory of a process, or of threads that share it."""

    path: str


class Paths:
    """Follows the working directory of each process that ``calls`` are of, so that a relative name becomes one below
    ``root``. ``link_at`` says where the symbolic link at a path below the root leads; None where there is none."""

    def __init__(
        self, root: str, calls: Sequence[SystemCall], link_at: Callable[[str], str | None] = _no_links
    ) -> None:
        self._root, self._link_at = root, link_at
        self._folders = Inherited(calls, "CLONE_FS", lambda: _Folder(root), replace)

    def below(self, path: str) -> str:
        """A path of the guest as one below the root: ``/f``; empty where it is elsewhere, or the root itself."""
        _before, found, rest = path.partition(self._root)
        return rest if found and rest.startswith("/") else ""

    def at(self, call: SystemCall, place: int, *, follows: bool = False) -> str:
        """The name at ``place``, which may be relative to a directory at the place before, or to the process's own. The
        call ``follows`` it where it is a symbolic link; those on the way to it every call follows."""
        return self.below(self.of_guest(call, place, follows=follows))

    def of_guest(self, call: SystemCall, place: int, *, follows: bool = False) -> str:
        """The same as a path of the guest, wherever it is."""
        folder = call.path(place - 1) if place else ""
        own = self._folders.of(call.pid)
        if place and call.arguments[place - 1].startswith("AT_FDCWD") and folder:
            own.path = folder
        return self._resolved(posixpath.join(folder or own.path, name_of(call.arguments[place])), follows)

    def take(self, call: SystemCall) -> None:
        """Take in a call that has succeeded: chdir and fchdir say where a process is, and a new process begins in the
        directory of the one that made it."""
        if call.name in FORKS:
            self._folders.forked(call)
        elif call.name == "fchdir":
            self._folders.of(call.pid).path = call.path(0)
        elif call.name == "chdir":
            own = self._folders.of(call.pid)
            own.path = self._resolved(posixpath.join(own.path, name_of(call.arguments[0])), follows=True)

    def _resolved(self, path: str, follows: bool) -> str:
        """The path without the links below the root (path_resolution(7)): ``..`` leads out of where a link led."""
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
