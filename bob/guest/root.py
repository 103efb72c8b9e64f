"""The private folder of the libvirt that runs inside bob (``qemu:///embed?root=DIR``): sockets, pid files, consoles.

There is one per process, because libvirt takes only one in a process. The owner holds a lock on it, which the kernel
releases whatever becomes of the owner: so the next start can tell a dead bob's folder from a living one's, should the
reaper have died as well.
"""

from __future__ import annotations

import fcntl
import grp
import os
import pwd
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import IO

from bob.guest import reap
from bob.guest.reaper import Reaper
from bob.settings import cache_folder

_PREFIX = "bob-qemu-"
_LOCK = "owner.lock"
_MAKING_SECONDS = 600.0  # an owner is quicker from making its folder to its lock

# A socket's path may have 108 bytes, and libvirt adds "/lib/qemu/domain-NNNN-bob-XXXXXXXX/monitor.sock" to ours.
_LONGEST_TMP = 40

# facts.md, "Guests": no virtlogd, no security labels, no changes of ownership. No mount namespace and no cgroups:
# they need root and systemd, and protect from nothing here.
_QEMU_CONF = """\
stdio_handler = "file"
security_driver = "none"
dynamic_ownership = 0
remember_owner = 0
namespaces = []
cgroup_controllers = []
"""


@dataclass(frozen=True, slots=True)
class Root:
    """A private libvirt root; ``lock`` is the open file whose lock says that the owner lives."""

    path: Path
    lock: IO[str]

    @property
    def uri(self) -> str:
        """The libvirt connection URI."""
        return f"qemu:///embed?root={self.path}"

    @staticmethod
    @cache
    def shared() -> Root:
        """Return this process's root, made the first time; dead bobs' roots are removed first."""
        sweep()
        return _make()

    @staticmethod
    def end_guests() -> None:
        """Kill every guest of this process, if it has had any."""
        if Root.shared.cache_info().currsize:
            reap.kill_all(Root.shared().path)


def sweep() -> None:
    """Remove the roots of dead bobs, and end what still runs in them."""
    for folder in _parent().glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if not (folder / _LOCK).exists():  # one that is being made, or what a libvirt wrote that ended last
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
        Reaper.shared().remove_root(path)  # before it is there: a signal may come between the two
        path.mkdir(0o700)
        lock = (path / _LOCK).open("w")
        with suppress(BlockingIOError):  # a sweep was quicker and removes it: make another
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if (path / _LOCK).exists():
                break
    # libvirt looks at QEMU's abilities the first time (8 s) and remembers them in its cache: one for all bobs.
    cache = cache_folder("libvirt")
    (path / "cache").symlink_to(cache)
    (path / "etc").mkdir()
    caller = ""
    if os.geteuid() == 0:  # or root's guests would run as libvirt-qemu, who may not read root's files
        user, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(os.getegid()).gr_name
        caller = f'user = "{user}"\ngroup = "{group}"\n'
    (path / "etc" / "qemu.conf").write_text(_QEMU_CONF + caller)
    return Root(path, lock)
