"""The namespaces of a cluster's node. A node has a network, processes, a hostname and mounts of its own. So two nodes
share nothing but the network: each sees its own disk, and folders for temporary files of its own. The rest is
read-only, because a crash would not take away what a node writes there."""

from __future__ import annotations

import os

from bob.agent.inside.devices import WORK, write_text
from bob.agent.inside.mounts import ROOT, node_place
from bob.agent.inside.world import WORLD

NAMESPACES = "/run/netns"
SCRIPT, MOUNTS = f"{WORK}/isolate", f"{WORK}/mounts"
TEMPORARY = "/var/tmp", "/dev/shm", "/run"

# The shell is the process number 1 of the node's processes. When the node's own process ends, the kernel kills all
# others.
_SCRIPT = """
umount {others} && mount -a -T {mounts} && {hide} || exit 125
hostname "$1" && shift && "$@"
"""


def prepare_isolation(count: int, uses_world: bool) -> None:
    """Write the scripts that isolate each of ``count`` nodes. If ``uses_world`` is true, nodes run in a world."""
    root = WORLD if uses_world else ""
    write_text(MOUNTS, _mounts(root))
    for number in range(count):
        others = [place for other in range(count) if other != number for place in _places(other, uses_world)]
        text = _SCRIPT.format(others=" ".join(others) or "-V >/dev/null", mounts=MOUNTS, hide=_hiding(root))
        write_text(f"{SCRIPT}-{number}", text)


def isolated(number: int, words: list[str]) -> list[str]:
    """Return a command that runs the command ``words`` of a node in namespaces of its own. If the returned command is
    killed, all processes of the node die."""
    name = f"n{number}"
    others = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
    return ["setsid", *within_network(name), *others, "sh", f"{SCRIPT}-{number}", name, *words]


def within_network(name: str) -> list[str]:
    """Return the words before a command that runs in the network of the node ``name``."""
    return ["nsenter", f"--net={NAMESPACES}/{name}"]


def _places(number: int, uses_world: bool) -> list[str]:
    return [node_place(number), *([WORLD + node_place(number)] if uses_world else [])]


def _mounts(root: str) -> str:
    """Return the node's mounts in the form of fstab(5). The folder /mnt is to become /tmp, with bob's own folder. That
    is read-only, because a node may empty /tmp. The disk of the node is a mount below it, and stays writable."""
    work = f"{root}/mnt/{os.path.basename(WORK)}"
    below = ROOT.replace(WORK, work)
    lines = [
        f"node {root}/proc proc defaults",
        *(f"node {root}{folder} tmpfs mode=1777" for folder in (*TEMPORARY, "/mnt")),
        f"{root}{WORK} {work} none rbind,ro,X-mount.mkdir",
        f"{below} {below} none rbind,ro",
    ]
    return "".join(f"{line} 0 0\n" for line in lines)


def _hiding(root: str) -> str:
    return f"mount --move {root}/mnt {root}/tmp && mount -o remount,bind,ro {root or '/'}"
