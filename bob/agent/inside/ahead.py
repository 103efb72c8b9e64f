"""A process that reads what strace writes before the program under test goes on.

strace writes the line of a call into a pipe, and only then lets the program go on. Whoever reads the pipe has the
highest priority, on the processor of the program. So it has read the line, and has done what it does, by then.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress

from bob.agent.inside.devices import read_text

RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
FAILED = 1


class Ahead:
    """While it lasts, a process runs ``copies``, which reads ``pipe`` (a path; it is made) to its end and says how it
    went (0: well). All that is started meanwhile runs on one processor."""

    def __init__(self, pipe: str, copies: Callable[[], int]) -> None:
        self._pipe, self._copies = pipe, copies
        self._pid = 0

    def __enter__(self) -> Ahead:
        with suppress(FileNotFoundError):
            os.unlink(self._pipe)
        os.mkfifo(self._pipe)
        self._processors = os.sched_getaffinity(0)
        self._runtime = read_text(RUNTIME)
        _write(RUNTIME, "-1")  # or the kernel would let the program go on after most of a second
        os.sched_setaffinity(0, {min(self._processors)})
        self._pid = os.fork()
        if self._pid == 0:
            code = FAILED
            try:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
                code = self._copies()
            except OSError as error:
                code = error.errno or FAILED
            finally:
                os._exit(code)
        return self

    def wait(self) -> int:
        """Wait until all is copied: whoever writes to the pipe has ended. Return how it went: the number of an error of
        the kernel, or what :attr:`copies` has said; negative where a signal has ended it."""
        pid, self._pid = self._pid, 0
        _pid, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status)

    def __exit__(self, *_what: object) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.sched_setaffinity(0, self._processors)
        _write(RUNTIME, self._runtime)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
