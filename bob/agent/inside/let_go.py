"""Remove what keeps a program's file system mounted: other mounts, loop devices and swap on its files, or a freeze of
the file system."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress

from bob.agent.inside.devices import LOOP_CLR_FD, opened, read_text
from bob.agent.inside.frames import Denial
from bob.agent.inside.mounts import MNT_DETACH, ROOT, libc, unmount
from bob.agent.inside.world import WORLD

FITHAW = 0xC0045878
ROOTS = ROOT, WORLD + ROOT  # a mount at the first path shows at the second, too; an unmount of either unmounts both
DELETED = " (deleted)"  # at the end of the path of a file without a name

MountLine = tuple[str, ...]  # number, parent, device, root in it, mount point (proc_pid_mountinfo(5))


def mounts() -> str:
    return read_text("/proc/self/mountinfo")


def _lines(table: str) -> list[MountLine]:
    return [tuple(line.split()[:5]) for line in table.splitlines()]


def unmount_after_scripts(before: str) -> None:
    """Unmount the file system under test (at ``ROOT``) after a program's scripts have ended. Also unmount everything
    that the scripts mounted: ``before`` is what :func:`mounts` returned before the scripts ran. Raises Denial (an error
    for the user) if the scripts have left the file system busy, or have unmounted it."""
    with suppress(OSError), opened(ROOT, os.O_RDONLY) as root:
        fcntl.ioctl(root, FITHAW, 0)
    # A mount hides an older mount below it, which shows when the upper one is gone.
    while (table := mounts()) != before and (there := _lines(table)) != (known := _lines(before)):
        for _over in [one for one in there if one[-1] == ROOT][1:]:
            libc.umount2(ROOT.encode(), MNT_DETACH)
        for *_others, place in reversed([one for one in there if one not in known]):
            if place not in ROOTS:
                libc.umount2(_unescaped(place), MNT_DETACH)
        if mounts() == table:
            break
    if libc.umount2(ROOT.encode(), 0) == 0:
        return
    if not os.path.ismount(ROOT):
        raise Denial("a script has unmounted the directory under test", "it must be mounted when the script ends")
    busy = _clear_files()
    try:
        unmount()
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        why = f" ({', '.join(busy)})" if busy else ""
        raise Denial(f"a script has left its file system busy{why}", "the script must undo this itself") from None


def _clear_files() -> list[str]:
    found, devices = [], set[str]()
    for name in sorted(os.listdir("/sys/block")):
        with suppress(OSError):
            file = read_text(f"/sys/block/{name}/loop/backing_file").strip()
            if file.startswith(f"{ROOT}/"):
                found.append(f"/dev/{name} is on {file[len(ROOT) :].replace(DELETED, '')}")
                devices.add(name)
    for line in read_text("/proc/swaps").splitlines()[1:]:
        path = _unescaped(line.split()[0])
        if path.startswith(ROOT.encode() + b"/") or os.path.basename(path).decode(errors="replace") in devices:
            found.append("a swap file")
            libc.swapoff(path)
    for name in devices:
        with suppress(OSError), opened(f"/dev/{name}", os.O_RDONLY) as loop:
            fcntl.ioctl(loop, LOOP_CLR_FD)
    return found


def _unescaped(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape").decode("unicode_escape").encode("latin-1")
