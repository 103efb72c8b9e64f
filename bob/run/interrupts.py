"""Ctrl-C, for the command line and the library: a notebook goes on after it, so all guests must end with the call. At
some instants no ``with`` block knows of a guest, so a call that is interrupted kills all that remain."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bob.errors import BobError

_SAME = 1.0  # seconds: signals within them count as one


class Interrupts:
    """A handler of signals. The first signal raises KeyboardInterrupt; one a second or more later calls ``again``.
    ``since`` is the time of the first (host seconds), or None."""

    def __init__(self, again: Callable[[], None]) -> None:
        self.since: float | None = None
        self._again = again

    def __call__(self, _number: int, _frame: object) -> None:
        now = time.monotonic()
        if self.since is None:
            self.since = now
            raise KeyboardInterrupt
        if now - self.since >= _SAME:
            self._again()


class Begun:
    """Finds the run directory that was begun after this object: ``folder``, or a new one in ``runs``."""

    def __init__(self, folder: Path | None, runs: Path) -> None:
        self._folder, self._runs = folder, runs
        self._earlier = set(runs.glob("*"))

    @property
    def run(self) -> Path | None:
        """The run directory; None if there is not exactly one."""
        found = [self._folder] if self._folder else sorted(set(self._runs.glob("*")) - self._earlier)
        begun = [one for one in found if (one / "run.json").exists()]
        return begun[0] if len(begun) == 1 else None


@contextmanager
def telling_where(folder: Path | None, runs: Path) -> Iterator[None]:
    """If Ctrl-C ends the block, add a note on how Python resumes the run: ``folder``, or a new one in ``runs``."""
    begun = Begun(folder, runs)
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if run := begun.run:
            interrupt.add_note(f"bob keeps what is finished; bob.resume({str(run)!r}) continues")
        raise


class _Calls:
    lock = threading.Lock()
    open = 0


@contextmanager
def no_guest_left() -> Iterator[None]:
    """End all guests of this process if the block raises an error, unless another such block is open. In the main
    thread, Ctrl-C raises KeyboardInterrupt once; another ends all guests at once. A process with its own handler keeps
    that."""
    with _Calls.lock:
        _Calls.open += 1
    try:
        with _interruptible():
            yield
    except BaseException:
        with _Calls.lock:
            is_last = _Calls.open == 1
        if is_last:  # those of another call, in another thread, are at work
            _kill_guests()
        raise
    finally:
        with _Calls.lock:
            _Calls.open -= 1


@contextmanager
def _interruptible() -> Iterator[None]:
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    interrupts = Interrupts(_kill_guests)
    try:
        signal.signal(signal.SIGINT, interrupts)
        yield
    except Exception as error:
        if interrupts.since is None or isinstance(error, BobError):
            raise
        raise KeyboardInterrupt from error  # C code that was under way turns one into an error of its own
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _kill_guests() -> None:
    """End all guests of this process's own libvirt. Their users see a lost guest."""
    from bob.guest.root import Root

    with suppress(OSError):
        Root.end_guests()
