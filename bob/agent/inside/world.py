"""The *world* of a program: another root file system for the program's scripts (such as its checker), which need more
than the guest's own root has. The world is on a disk of its own, but what scripts write to it is in memory. The file
system under test is mounted in the agent's folder. bob mounts that folder in the world, too, so scripts see the file
system there."""

from __future__ import annotations

import os
from contextlib import suppress

from bob.agent.inside.devices import WORK, read_text
from bob.agent.inside.frames import Denial
from bob.agent.inside.mounts import MS_BIND, MS_RDONLY, MS_REC, MS_SHARED, mount_at
from bob.agent.inside.processes import MOST_OF_MEMORY

HOME = f"{WORK}/program"  # the files of the program, in the world, too
WORLD_SERIAL = "bob-world"  # the disk's serial number
PLACE = "/run/bob-world"
LOWER, MEMORY, WORLD = f"{PLACE}/lower", f"{PLACE}/memory", f"{PLACE}/root"


def enter_world() -> None:
    if os.path.exists(f"{WORLD}/usr"):
        return
    device = _device()
    os.makedirs(LOWER, exist_ok=True)
    mount_at(device, LOWER, "erofs", MS_RDONLY)
    lay_over(LOWER, MOST_OF_MEMORY)


def lay_over(lower: str, most: str, options: str = "") -> None:
    """Make the world from the root ``lower``. A tmpfs takes what scripts write to the world. Its size is limited to
    ``most``, in the form of tmpfs(5). ``options`` are added to those of overlayfs."""
    for path in (MEMORY, WORLD):
        os.makedirs(path, exist_ok=True)
    mount_at("bob", MEMORY, "tmpfs", 0, f"size={most}")
    for name in ("upper", "work"):
        os.makedirs(f"{MEMORY}/{name}", exist_ok=True)
    folders = f"lowerdir={lower},upperdir={MEMORY}/upper,workdir={MEMORY}/work"
    mount_at("bob", WORLD, "overlay", 0, folders + options)
    for path in ("/proc", "/sys", "/dev", "/tmp", "/run", "/root"):
        os.makedirs(WORLD + path, exist_ok=True)
    for path in ("/proc", "/sys", "/dev"):
        mount_at(path, WORLD + path, "", MS_BIND | MS_REC)
    os.chmod(f"{WORLD}/tmp", 0o1777)
    os.makedirs(WORLD + WORK, exist_ok=True)
    # The kernel gives strace the guest's paths of files that the program has mapped, but libunwind looks for these
    # below the program's root. A link makes both lead to the same file. An absolute link would lead to strace's root.
    os.makedirs(WORLD + PLACE, exist_ok=True)
    os.symlink(os.path.relpath("/", PLACE), WORLD + WORLD)
    mount_at("", WORK, "", MS_SHARED)
    mount_at(WORK, WORLD + WORK, "", MS_BIND)
    with suppress(OSError):
        os.makedirs(f"{WORLD}/etc", exist_ok=True)
        with open(f"{WORLD}/etc/hosts", "w") as hosts:
            hosts.write("127.0.0.1 localhost bob\n")


def within(words: list[str], folder: str) -> list[str]:
    """Return a command that runs the command ``words`` in the world, with the working directory ``folder``."""
    return ["chroot", WORLD, "/bin/sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", folder, *words]


def _device() -> str:
    for name in sorted(os.listdir("/sys/block")):
        with suppress(OSError):
            if read_text(f"/sys/block/{name}/serial").strip() == WORLD_SERIAL:
                return f"/dev/{name}"
    raise Denial("the guest lacks the disk with the program's packages")
