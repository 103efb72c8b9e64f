"""Start and use a process that forks once for each run of a Python checker. The program of this process is
:mod:`bob.agent.inside.forking_python`."""

from __future__ import annotations

import json
import os
import re
import select
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress

from bob.agent.inside import forking_python
from bob.agent.inside.forking_python import LONGEST, READY

_SPEC = forking_python.__spec__
_SOURCE: bytes = _SPEC.loader.get_data(_SPEC.origin)  # type: ignore[union-attr]
"""The source of that process's program. It is read early, because the agent's archive lies in /tmp, which is cleared
before a script runs."""
NAMED = re.compile(rb"#![ \t]*(?:/usr/bin/env[ \t]+)?((?:/\S*/)?python3[0-9.]*)[ \t]*\n")
"""The first line of a script that a plain Python runs. A script whose first line has options for Python does not match,
so Python is started for each check."""


class ForkedChecker:
    """A run of the checker in a process that a :class:`WarmPython` forked. That process is a child of the agent, which
    can wait for it."""

    stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def wait(self) -> int:
        _pid, status = os.waitpid(self.pid, 0)
        self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class WarmPython:
    """A process that has run the imports of the Python checker ``script``, and forks for each run of the checker.
    ``within`` is a function that changes a command so that it runs in the root directory of the checker. bob waits up
    to ``seconds`` for the imports.

    If the process could not be started, ``pid`` is None. This is so if the script is not for Python, if Python is
    missing, or if an import takes too long or prints something. Then each check starts a new Python."""

    def __init__(
        self, script: str, within: Callable[[list[str]], list[str]], environment: dict[str, str], seconds: float
    ) -> None:
        self.pid: int | None = None
        python = _python_of(script)
        if python is None:
            return
        place = f"{os.path.dirname(script)}.warm.py"
        with open(place, "wb") as file:
            file.write(_SOURCE)
        self._end, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # This is a pipe, like the checker's output: Python asks at its start whether its output can seek.
        read_end, written = os.pipe()
        self._said = os.fdopen(read_end, "rb")
        try:
            with theirs, os.fdopen(written, "wb") as output:
                self._process = subprocess.Popen(
                    within([python, place, script, str(theirs.fileno())]),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=[theirs.fileno()],
                    cwd="/",
                    env=environment,
                    start_new_session=True,
                )
        except OSError:  # there is no such Python; the start of the checker then fails with the same message
            self._end.close()
            self._said.close()
            return
        self._end.settimeout(seconds)
        with suppress(OSError):
            if self._end.recv(LONGEST) == READY and not select.select([self._said], [], [], 0)[0]:
                self.pid = self._process.pid
        self._end.settimeout(None)
        if self.pid is None:
            self.end()

    def fork(self, arguments: list[str], output: int) -> ForkedChecker:
        """Run the checker with ``arguments``; it writes to the descriptor ``output``. Raises RuntimeError if the
        process that forks has ended."""
        pid = b""
        with suppress(OSError):
            socket.send_fds(self._end, [json.dumps(arguments).encode()], [output])
            pid = self._end.recv(LONGEST)
        if not pid:
            raise RuntimeError("the Python that forks for the checker has ended")
        return ForkedChecker(int(pid))

    def end(self) -> None:
        if hasattr(self, "_process"):
            self._end.close()
            self._said.close()
            self._process.kill()
            self._process.wait()
            self.pid = None


def _python_of(script: str) -> str | None:
    with suppress(OSError), open(script, "rb") as file:
        if named := NAMED.match(file.readline()):
            return named[1].decode()
    return None
