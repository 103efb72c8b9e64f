"""State of a process, which a new process shares with its parent, or gets a copy of (clone(2))."""

from collections.abc import Callable, Collection, Sequence
from typing import Generic, TypeVar

from bob.program.strace import FORKS, SystemCall

T = TypeVar("T")


class PerProcess(Generic[T]):
    """One ``T`` for each process; the first process gets ``new()``. A child shares its parent's if the call that made
    the child has this ``flag`` (such as ``CLONE_FILES``); else it gets a copy as of that call."""

    def __init__(self, calls: Sequence[SystemCall], flag: str, new: Callable[[], T], copied: Callable[[T], T]) -> None:
        self._made = {call.result: call for call in calls if call.name in FORKS and call.result}
        self._flag, self._new, self._copied = flag, new, copied
        self._of: dict[int, T] = {}

    def of(self, pid: int) -> T:
        """Return the state of a process, also if strace lists a child's calls before the call that made the child."""
        if pid not in self._of:
            made = self._made.get(pid)
            if made is None or made.pid == pid:  # a reused pid is its own parent
                self._of[pid] = self._new()
            else:
                theirs = self.of(made.pid)
                is_shared = any(self._flag in argument for argument in made.arguments)
                self._of[pid] = theirs if is_shared else self._copied(theirs)
        return self._of[pid]

    def every(self) -> Collection[T]:
        return self._of.values()

    def forked(self, call: SystemCall) -> None:
        """Process a call that created a process: later changes of the parent do not reach a copy."""
        if call.result:
            self.of(call.result)

    def put(self, pid: int, own: T) -> None:
        self._of[pid] = own
