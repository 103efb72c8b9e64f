"""Makes a program under test wait after each call that changes something: a slow, or a busy, machine.

strace has written the line of a call, and not let the program go on. Then it is stopped itself, for as long as the pace
has it: nothing that the program does is traced meanwhile, and so nothing is changed, by any of its processes.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import time
from contextlib import suppress

from bob.agent.inside.ahead import Ahead
from bob.agent.inside.devices import read_text
from bob.agent.inside.frames import Denial
from bob.agent.inside.neighbour import Neighbour
from bob.agent.inside.strace_lines import StraceLines, lines_of
from bob.agent.inside.traced_calls import TracedChanges

NO_CALL = 255
"""How the process ends where no call changed anything; no error of the kernel has this number."""
_TRACER = re.compile(r"^TracerPid:\t(\d+)$", re.MULTILINE)


class PacedPipe:
    """While it lasts, what strace writes into ``pipe`` (a path; it is made) is copied into the file ``out``, and strace
    waits ``delay`` seconds at each call that changes something below ``root``. Then the ``neighbour`` syncs."""

    def __init__(self, pipe: str, out: str, root: str, delay: float, neighbour: Neighbour | None) -> None:
        self._pipe, self._out, self._root, self._delay, self._neighbour = pipe, out, root, delay, neighbour
        self._ahead = Ahead(pipe, self._copy)

    def __enter__(self) -> PacedPipe:
        self._ahead.__enter__()
        return self

    def wait(self) -> None:
        """Wait until all is copied: strace has ended. Refuses where the pace was not kept: a call was not waited for,
        or the neighbour failed, or had nothing to wait for."""
        code = self._ahead.wait()
        if code == NO_CALL and self._neighbour is not None:
            raise Denial("the process that syncs beside the workload had no call to wait for")
        if code not in (0, NO_CALL):
            why = os.strerror(code) if code > 0 else f"signal {-code}"
            what = "syncs beside the workload" if self._neighbour else "makes the workload wait"
            raise Denial(f"the process that {what} failed: {why}")

    def __exit__(self, *what: object) -> None:
        self._ahead.__exit__(*what)

    def _copy(self) -> int:
        lines, changes, waits, tracer = StraceLines(), TracedChanges(self._root), 0, 0
        with open(self._pipe, "rb", buffering=0) as pipe, open(self._out, "wb") as copied:
            for whole in lines_of(pipe):
                for text in whole:
                    copied.write(text + b"\n")
                    line = lines.take(text)
                    if line is not None and changes.made_by(line):
                        waits += 1
                        tracer = tracer or _tracer_of(line.pid)
                        self._hold(tracer, waits)
        return 0 if waits else NO_CALL

    def _hold(self, tracer: int, number: int) -> None:
        """Keep strace at a call. It ends beside that where the workload has ended, and all that is left is killed."""
        with suppress(ProcessLookupError):
            os.kill(tracer, signal.SIGSTOP)
        try:
            if self._neighbour is not None:
                self._neighbour.sync(number)
            time.sleep(self._delay)
        finally:
            with suppress(ProcessLookupError):
                os.kill(tracer, signal.SIGCONT)


def _tracer_of(pid: int) -> int:
    """Who traces a process; there is one strace for all. Raise OSError if the process is gone, or nobody does."""
    found = _TRACER.search(read_text(f"/proc/{pid}/status"))
    if found is None or found[1] == "0":
        raise OSError(errno.ESRCH, "nobody traces it")
    return int(found[1])
