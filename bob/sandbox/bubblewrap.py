"""The command that confines an agent on the host, by bubblewrap.

Bubblewrap gives the agent namespaces of its own. In its user namespace the agent is the user root, and no other user
exists. So all files that it makes have the same owner. Its root directory is a read-only folder of the host. Files that
the agent writes are in memory, and their sizes are limited. If bob runs as root, bubblewrap and everything in the
sandbox run as the user :data:`STRANGER`, who does not own any file of the host."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bob.agent.shared import LOWER

PROGRAM, PACKAGE = "bwrap", "bubblewrap"
STRANGER = 0x7000_B0B0  # a user number that systems do not use (docs/UIDS-GIDS.md of systemd)
SHARED_MEMORY = 512 * 2**20  # bytes of /dev/shm
SHARED = "/tmp/bob"  # the path in a sandbox of the folder that it shares with the host, if any
SMALL = 2**20  # bytes of a file system that only has mount points of the agent
_PATIENCE = 30.0  # seconds that a trial may take
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}
_ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "USER": "root",
    "LOGNAME": "root",
    "SHELL": "/bin/sh",
}
# STRANGER cannot enter root's cache. So a mount that only this process sees shows the folder of the root elsewhere.
_SHOWN_AT = "/mnt"
_SHOW = f'mount --make-rprivate / && mount --bind "$1" {_SHOWN_AT} && shift && exec "$@"'


def owner() -> int:
    """Return the user ID that owns, on the host, the files that belong to root in a sandbox."""
    return os.geteuid() or STRANGER


def is_installed() -> bool:
    return shutil.which(PROGRAM) is not None


def why_not() -> str | None:
    """Return why bubblewrap cannot make a sandbox on this machine, in bubblewrap's words. Return None if it can."""
    try:
        words = confined(Path("/"), ["/bin/true"])
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    said = done.stderr.strip().splitlines()
    return (said[-1] if said else f"it ends with {done.returncode}") if done.returncode else None


def confined(root: Path, words: Sequence[str], shared: Path | None = None) -> list[str]:
    """Return the command that runs the command ``words`` in a sandbox with the folder ``root`` as its root. The host's
    folder ``shared`` is :data:`SHARED` there, and what ``words`` write to it stays. It belongs to :func:`owner`."""
    if os.geteuid():
        return [*_bubblewrap(str(root), shared), *words]
    another = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups", "--inh-caps=-all"]
    shown = ["unshare", "--mount", "--propagation", "unchanged", "sh", "-c", _SHOW, "sh", str(root)]
    return [*shown, *another, *_bubblewrap(_SHOWN_AT, shared), *words]


def _bubblewrap(root: str, shared: Path | None) -> list[str]:
    alone = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--as-pid-1"]
    # The agent has the rights to mount file systems, in a namespace of its own where bubblewrap's mounts are locked.
    # Its scripts have fewer rights.
    user = ["--uid", "0", "--gid", "0", "--cap-add", "ALL", "--hostname", "bob", "--clearenv"]
    environment = [word for name, value in _ENVIRONMENT.items() for word in ("--setenv", name, value)]
    devices = [*_memory("/dev", SMALL)]
    devices += [word for name in _DEVICES for word in ("--dev-bind-try", f"/dev/{name}", f"/dev/{name}")]
    devices += [word for name, to in _LINKS.items() for word in ("--symlink", to, f"/dev/{name}")]
    devices += [*_memory("/dev/shm", SHARED_MEMORY, "1777"), "--remount-ro", "/dev"]
    folders = [*_memory("/sys", SMALL), "--dir", "/sys/block", *_memory("/run", SMALL), *_memory("/tmp", SMALL, "1777")]
    # The root is mounted a second time, without other mounts in it: overlayfs would show what is below such mounts.
    mounts = ["--ro-bind", root, "/", "--proc", "/proc", *devices, *folders, "--ro-bind", root, LOWER, "--chdir", "/"]
    mounts += [] if shared is None else ["--bind", str(shared), SHARED]
    return [PROGRAM, *alone, *user, *environment, *mounts, "--"]


def _memory(place: str, most: int, mode: str = "0755") -> list[str]:
    return ["--perms", mode, "--size", str(most), "--tmpfs", place]
