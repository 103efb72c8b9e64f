"""Ctrl-C on the command line and in Python. In a notebook, Ctrl-C ends only the current call of bob, and Python runs
on. So the interrupted call must end all its guests. ``with`` blocks end guests, but Ctrl-C may come at an instant when
a guest runs outside such a block. So the interrupted call kills all guests that still run."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bob.errors import BobError

_SAME = 1.0  # seconds: signals within this time count as one


class Interrupts:
    """A signal handler. The first signal raises KeyboardInterrupt. Each signal that comes at least one second after the
    first calls the function ``again``. ``since`` is the time of the first signal (seconds of the host's clock), or None
    before the first signal."""

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
    """A finder for the directory of a run. The caller makes this object before the run begins. The run directory is
    ``folder`` (None: the run makes a new directory in ``runs``)."""

    def __init__(self, folder: Path | None, runs: Path) -> None:
        self._folder, self._runs = folder, runs
        self._earlier = set(runs.glob("*"))

    @property
    def run(self) -> Path | None:
        """The run directory. None stands for no new run directory, or for several."""
        found = [self._folder] if self._folder else sorted(set(self._runs.glob("*")) - self._earlier)
        begun = [one for one in found if (one / "run.json").exists()]
        return begun[0] if len(begun) == 1 else None


@contextmanager
def telling_where(folder: Path | None, runs: Path) -> Iterator[None]:
    """Add a note to the exception if Ctrl-C ends the ``with`` block. The note says which call in Python resumes the
    run. The run directory is ``folder`` (None: a new directory in ``runs``)."""
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
    """End all guests of this process if the ``with`` block raises an error. But let them run if another thread is still
    inside a block of this function. In the main thread, the first Ctrl-C raises KeyboardInterrupt. If Ctrl-C comes
    again at least one second later, all guests end at once. If the process has set a signal handler of its own, this
    function does not replace it."""
    with _Calls.lock:
        _Calls.open += 1
    try:
        with _interruptible():
            yield
    except BaseException:
        with _Calls.lock:
            is_last = _Calls.open == 1
        if is_last:  # otherwise a call in another thread still uses its guests
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
        raise KeyboardInterrupt from error  # C code may have turned the interrupt into an error of its own
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _kill_guests() -> None:
    """End all guests that this process started in bob's own libvirt, and all sandboxes. Code that uses such a guest
    then sees that the guest is lost."""
    from bob.guest.root import Root
    from bob.sandbox.agents import end_sandboxes

    end_sandboxes()
    with suppress(OSError):
        Root.end_guests()
