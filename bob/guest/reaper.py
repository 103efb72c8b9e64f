"""bob's end of the process that cleans up after it (reap.py)."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from bob.guest import reap

_CLOSE_SECONDS = 20.0


class Reaper:
    """A child process that ends what bob started when bob ends, even by SIGKILL. There is one per process,
    :meth:`shared`. It works as long as no forked child keeps the pipe: Python and libvirt close it in every program
    they start."""

    def __init__(self) -> None:
        # A session of its own: Ctrl-C goes to the terminal's process group, and the reaper must see the end of bob.
        # Isolated from PYTHON* variables; with site-packages, because destroying a domain needs libvirt.
        self._process = subprocess.Popen(
            [sys.executable, "-I", reap.__file__, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            cwd="/",
        )
        self._lock = threading.Lock()

    @staticmethod
    @cache
    def shared() -> Reaper:
        """Return this process's reaper; start it the first time, and wait for it at the end."""
        reaper = Reaper()
        atexit.register(reaper.close)
        return reaper

    def remove_root(self, root: Path) -> None:
        """Kill the QEMUs of a private libvirt root, and remove it, when bob ends."""
        self._tell("root", str(root))

    @contextmanager
    def watch_domain(self, uri: str, uuid: str) -> Iterator[None]:
        """Destroy a domain of the libvirt connection ``uri`` if bob ends inside the ``with`` block."""
        self._tell("domain", uri, uuid)
        try:
            yield
        finally:
            self._tell("gone", uuid)

    def close(self) -> None:
        """Have everything undone now, and wait for it (20 seconds at most)."""
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_CLOSE_SECONDS)

    def _tell(self, *message: str | int | None) -> None:
        # A killed reaper must not take bob with it: the next start cleans up.
        with self._lock, suppress(OSError, ValueError):
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps(message) + "\n")
                self._process.stdin.flush()
