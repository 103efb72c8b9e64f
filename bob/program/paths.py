"""Names of files below a root, as the system calls of each process have them."""

from __future__ import annotations

import posixpath

from bob.program.strace import SystemCall, unescaped


class Paths:
    """Follows the working directory of each process, so that a relative name becomes one below ``root``."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._folders: dict[int, str] = {}

    def below(self, path: str) -> str:
        """A path of the guest as one below the root: ``/f``; empty where it is elsewhere, or the root itself."""
        _before, found, rest = path.partition(self._root)
        return rest if found and rest.startswith("/") else ""

    def at(self, call: SystemCall, place: int) -> str:
        """The name at ``place``, which may be relative to a directory at the place before, or to the process's own."""
        folder = call.path(place - 1) if place else ""
        if place and call.arguments[place - 1].startswith("AT_FDCWD"):
            self._folders[call.pid] = folder
        name = unescaped(call.arguments[place].strip('"')).decode(errors="surrogateescape")
        return self.below(posixpath.normpath(posixpath.join(folder or self._folders.get(call.pid, self._root), name)))

    def changed(self, call: SystemCall) -> None:
        """Take in a chdir or fchdir."""
        if call.name == "fchdir":
            self._folders[call.pid] = call.path(0)
        else:
            name = unescaped(call.arguments[0].strip('"')).decode(errors="surrogateescape")
            self._folders[call.pid] = posixpath.normpath(posixpath.join(self._folders.get(call.pid, self._root), name))

    def forked(self, parent: int, child: int) -> None:
        """A new process begins in the directory of the one that made it."""
        if parent in self._folders:
            self._folders.setdefault(child, self._folders[parent])
