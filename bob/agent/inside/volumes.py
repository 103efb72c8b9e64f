"""The mounted file systems of a subject. An ordinary subject has one, which is mounted at ``ROOT``. A cluster has one
for each node, on a disk of its own. Node number 2 has its file system at ``ROOT``/n2, and ``ROOT`` itself is a small
file system in memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from bob.agent.inside.assembly import Assembly
from bob.agent.inside.complaints import CHECKER, run_checker
from bob.agent.inside.devices import run, run_anyhow, with_device
from bob.agent.inside.documents import SubjectDocument
from bob.agent.inside.frames import Denial
from bob.agent.inside.mounts import ROOT, Mount, effective_options, mount_at, mount_or_refuse, node_place, unmount
from bob.agent.inside.removal import remove_all


class Volume(NamedTuple):
    """A file system on ``device``, which is mounted at the path ``place``."""

    subject: SubjectDocument
    device: str
    place: str


class Volumes:
    """The file systems of ``subject``, on the disks that ``assembly`` has assembled, or will assemble."""

    def __init__(self, subject: SubjectDocument, assembly: Assembly) -> None:
        self._assembly, self._are_nodes = assembly, bool(subject.nodes)
        if not subject.layers and len(assembly.disks) != (len(subject.nodes) or 1):
            raise Denial(f"the subject does not say how to assemble {len(assembly.disks)} disks")
        self.each = [Volume(subject, assembly.path, ROOT)]
        if self._are_nodes:
            devices = zip(subject.nodes, assembly.disks)
            self.each = [Volume(node, disk, node_place(number)) for number, (node, disk) in enumerate(devices)]

    def make(self) -> str:
        """Make the file systems, and return what their mkfs printed."""
        mkfs = self._assembly.mkfs
        return "".join(run(*with_device(mkfs(volume.subject.mkfs), volume.device)) for volume in self.each)

    def mount_or_refuse(self) -> None:
        """Mount all. Raises Denial with the kernel's message if the kernel refuses one."""
        self._make_places()
        for volume in self.each:
            options = self._assembly.options(volume.subject.options)
            mount_or_refuse(volume.device, volume.subject.driver, options, volume.place)

    def mounting(self, more: tuple[str, ...]) -> Callable[[], int]:
        """Return a function that mounts all, and returns 0 or the errno of the first refusal. After a refusal, nothing
        is mounted. ``more`` has further mount options."""
        options = self._assembly.options
        each = [
            Mount(one.device, one.subject.driver, options(one.subject.options), more, one.place) for one in self.each
        ]
        if not self._are_nodes:
            return each[0]

        def mount_each() -> int:
            self._make_places()
            for mount in each:
                if number := mount():
                    unmount()
                    return number
            return 0

        return mount_each

    def check(self) -> None:
        """Run the check of a boot on each file system that has one."""
        for volume in self.each:
            if volume.subject.check:
                run_anyhow(self._assembly.tool(volume.subject.check), volume.device)

    def repair(self) -> None:
        for volume in self.each:
            if volume.subject.repair:
                run_anyhow(self._assembly.tool(volume.subject.repair), volume.device)

    def faults(self) -> list[tuple[str, str]]:
        """Run the checkers on the file systems, which are not mounted. Return the errors that they report, as pairs of
        kind and words."""
        wrong = []
        for volume in self.each:
            if checker := volume.subject.checker:
                code, printed = run_checker(self._assembly.tool(checker), volume.device)
                if code not in volume.subject.clean:
                    wrong.append((CHECKER, f"{checker[0]} ends with {code}: {printed}"))
        return wrong

    def remove_all(self) -> str | None:
        """Remove all files. Return why one could not be removed, or None."""
        return next(filter(None, (remove_all(volume.place) for volume in self.each)), None)

    def effective_options(self) -> str:
        return effective_options(self.each[0].place)

    def are_writable(self) -> bool:
        return all(os.access(volume.place, os.W_OK) for volume in self.each)

    def _make_places(self) -> None:
        if self._are_nodes:
            mount_at("bob", ROOT, "tmpfs", 0, "mode=755,size=1m")
            for volume in self.each:
                os.mkdir(volume.place)
