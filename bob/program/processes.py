"""The state of each process, such as its open files. A new process shares the state of its parent, or gets a copy
(clone(2))."""

from collections.abc import Callable, Collection, Sequence
from typing import Generic, TypeVar

from bob.program.strace import FORKS, SystemCall

T = TypeVar("T")


class PerProcess(Generic[T]):
    """A state of type ``T`` for each process. The first process gets ``new()``. If the call that created a child has
    the constructor's ``flag`` (such as ``CLONE_FILES``), the child shares the state of its parent. Otherwise it gets a
    copy of the state at the time of that call."""

    def __init__(self, calls: Sequence[SystemCall], flag: str, new: Callable[[], T], copied: Callable[[T], T]) -> None:
        self._made = {call.result: call for call in calls if call.name in FORKS and call.result}
        self._flag, self._new, self._copied = flag, new, copied
        self._of: dict[int, T] = {}

    def of(self, pid: int) -> T:
        """Return the state of a process. strace may list calls of a child before the call that created the child. This
        method works even then."""
        if pid not in self._of:
            made = self._made.get(pid)
            if made is None or made.pid == pid:  # the pid was reused, so the process seems to be its own parent
                self._of[pid] = self._new()
            else:
                theirs = self.of(made.pid)
                is_shared = any(self._flag in argument for argument in made.arguments)
                self._of[pid] = theirs if is_shared else self._copied(theirs)
        return self._of[pid]

    def every(self) -> Collection[T]:
        return self._of.values()

    def forked(self, call: SystemCall) -> None:
        """Remember a call that created a process. A copy of the parent's state is made now, before the parent changes
        this state."""
        if call.result:
            self.of(call.result)

    def put(self, pid: int, own: T) -> None:
        self._of[pid] = own
