"""The private folder of bob's own libvirt, called its *root* (``qemu:///embed?root=DIR``). The bob process that made a
root is its owner. A lock shows that the owner lives. This module also starts the reaper, a process that cleans up when
the owner has ended."""

from __future__ import annotations

import atexit
import fcntl
import grp
import json
import os
import pwd
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import IO

from bob.guest import reap
from bob.settings import cache_folder

_PREFIX = "bob-qemu-"
_LOCK = "owner.lock"
_CLOSE_SECONDS = 20.0
_MAKING_SECONDS = 600.0  # an owner takes less time between making its folder and locking it

# The path of a socket may have 108 bytes; libvirt adds "/lib/qemu/domain-NNNN-bob-XXXXXXXX/monitor.sock" to the root.
_LONGEST_TMP = 40

# Without virtlogd, labels and changes of ownership (facts.md, "Guests"). Namespaces and cgroups need root and systemd.
_QEMU_CONF = """\
stdio_handler = "file"
security_driver = "none"
dynamic_ownership = 0
remember_owner = 0
namespaces = []
cgroup_controllers = []
"""


class Reaper:
    """A child process of bob. When bob ends, even by SIGKILL, the reaper ends what bob has started. It notices bob's
    end when a pipe from bob closes. So a forked child of bob must not keep this pipe open. Python and libvirt close the
    pipe in every program that they start."""

    def __init__(self) -> None:
        # The reaper has a session of its own, so Ctrl-C does not reach it. "-I" ignores PYTHON* variables, but keeps
        # site-packages, which it needs to destroy a domain.
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
        """Return the reaper of this process. The first call starts the reaper. When this process exits, it waits for
        the reaper."""
        reaper = Reaper()
        atexit.register(reaper.close)
        return reaper

    def remove_root(self, root: Path) -> None:
        self._tell("root", str(root))

    @contextmanager
    def watch_domain(self, uri: str, uuid: str) -> Iterator[None]:
        self._tell("domain", uri, uuid)
        try:
            yield
        finally:
            self._tell("gone", uuid)

    def close(self) -> None:
        """Make the reaper clean up now, and wait until it has finished (20 seconds at most)."""
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_CLOSE_SECONDS)

    def _tell(self, *message: str | int | None) -> None:
        # If the reaper was killed, bob goes on without it: the next start of a bob cleans up.
        with self._lock, suppress(OSError, ValueError):
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps(message) + "\n")
                self._process.stdin.flush()


@dataclass(frozen=True, slots=True)
class Root:
    """A private libvirt root, at ``path``. Its owner holds a lock on the open file ``lock`` as long as the owner
    lives."""

    path: Path
    lock: IO[str]

    @property
    def uri(self) -> str:
        return f"qemu:///embed?root={self.path}"

    @staticmethod
    @cache
    def shared() -> Root:
        """Return the root of this process. The first call makes this root, and removes the roots of bob processes that
        have ended."""
        sweep()
        return _make()

    @staticmethod
    def end_guests() -> None:
        if Root.shared.cache_info().currsize:
            reap.kill_all(Root.shared().path)


def sweep() -> None:
    """Remove the roots whose owners are dead, and end what still runs in these roots."""
    for folder in _parent().glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if not (folder / _LOCK).exists():  # an owner is making it, or an ending libvirt wrote into it last
                if time.time() - folder.stat().st_mtime > _MAKING_SECONDS:
                    reap.remove_root(folder)
                continue
            with (folder / _LOCK).open("r+") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                reap.remove_root(folder)


def _parent() -> Path:
    temporary = tempfile.gettempdir()
    return Path(temporary if len(os.fsencode(temporary)) <= _LONGEST_TMP else "/tmp")


def _make() -> Root:
    while True:
        path = _parent() / f"{_PREFIX}{token_hex(4)}"
        if path.exists():
            continue
        Reaper.shared().remove_root(path)  # before the folder exists: a signal may come between the two steps
        path.mkdir(0o700)
        lock = (path / _LOCK).open("w")
        with suppress(BlockingIOError):  # another bob's sweep was quicker, and removes the folder: make another
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if (path / _LOCK).exists():
                break
    # libvirt probes QEMU the first time (8 s) and caches the result. All bobs share one cache.
    (path / "cache").symlink_to(cache_folder("libvirt"))
    (path / "etc").mkdir()
    caller = ""
    if os.geteuid() == 0:  # otherwise root's guests would run as libvirt-qemu, who may not read root's files
        user, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(os.getegid()).gr_name
        caller = f'user = "{user}"\ngroup = "{group}"\n'
    (path / "etc" / "qemu.conf").write_text(_QEMU_CONF + caller)
    return Root(path, lock)
