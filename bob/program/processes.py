"""A process's own state: a new process shares it with its parent, or begins with a copy (clone(2))."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Generic, TypeVar

from bob.program.strace import FORKS, SystemCall

T = TypeVar("T")


class PerProcess(Generic[T]):
    """One ``T`` for each process. The first process has a ``new`` one. A child has a copy (``copied``) of its parent's
    from the call that made it, or the same one if that call has this ``flag`` (``CLONE_FILES``)."""

    def __init__(self, calls: Sequence[SystemCall], flag: str, new: Callable[[], T], copied: Callable[[T], T]) -> None:
        self._made = {call.result: call for call in calls if call.name in FORKS and call.result}
        self._flag, self._new, self._copied = flag, new, copied
        self._of: dict[int, T] = {}

    def of(self, pid: int) -> T:
        """Return the state of a process. strace may list the first calls of a child before the call that made it; then
        it is made here."""
        if pid not in self._of:
            made = self._made.get(pid)
            if made is None or made.pid == pid:  # a pid that was given anew is its own parent
                self._of[pid] = self._new()
            else:
                theirs = self.of(made.pid)
                is_shared = any(self._flag in argument for argument in made.arguments)
                self._of[pid] = theirs if is_shared else self._copied(theirs)
        return self._of[pid]

    def every(self) -> Collection[T]:
        """Return the states of all known processes."""
        return self._of.values()

    def forked(self, call: SystemCall) -> None:
        """Take in a call that has made a process: later changes of the parent are the parent's alone."""
        if call.result:
            self.of(call.result)

    def put(self, pid: int, own: T) -> None:
        """Give the process a state of its own."""
        self._of[pid] = own
