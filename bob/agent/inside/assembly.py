"""Make the device that bob mounts. To make it, start the layers (such as RAID) over a file system's disks, as a machine
would do at boot."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from bob.agent.inside import devices
from bob.agent.inside.devices import SECTOR, WORK, Loop, forget_file_systems, run_anyhow, write_text
from bob.agent.inside.documents import LayerDocument
from bob.agent.inside.frames import ContentRefused, Denial
from bob.agent.inside.layer_commands import DISK, StartedLayer, does_without
from bob.agent.inside.md_array import MISSING
from bob.agent.inside.refusals import LayerFailed, StartBroke

LINK = f"{WORK}/volume"
"""The path of the device that the layers make. It is the same in each crash state, whatever the kernel calls the
device."""


class Assembly:
    """The device that is mounted. ``disks`` are the paths of its disks, and ``layers`` lie over the disks (from the
    bottom up). Without layers, each disk is mounted by itself (:mod:`bob.agent.inside.volumes`), and ``path`` is the
    path of the first disk. The disks with numbers in ``lost`` are left out. A ``with`` block assembles the device. If
    ``makes`` is true, the first assembly also creates the layers on the disks, for example by writing superblocks. If
    ``crashed`` is true, a layer may fail to start, as at a boot. A RAID array or a bcache device above may then
    start without the failed layer."""

    def __init__(
        self,
        layers: Sequence[LayerDocument],
        disks: Sequence[str],
        *,
        makes: bool = False,
        lost: Sequence[int] = (),
        crashed: bool = False,
    ) -> None:
        self._layers, self._makes, self._crashed = layers, makes, crashed
        self.disks = [MISSING if number in lost else disk for number, disk in enumerate(disks)]
        self._started: list[StartedLayer] = []
        self.path = LINK if layers else disks[0]
        for module in dict.fromkeys(name for layer in layers for name in layer.modules):
            run_anyhow(["modprobe", "--quiet", module], "")

    def assemble(self) -> None:
        """Start the layers; then ``path`` is the path of the device that is mounted. If that fails, take all layers
        away again, and raise LayerFailed. It has the message of the first layer that failed. If ``crashed`` is true,
        raise StartBroke instead for an error that does not come from the contents of the disks."""
        paths = list(self.disks)
        failed: LayerFailed | None = None
        for number, layer in enumerate(self._layers):
            devices_below = [paths[below] for below in layer.below]
            if MISSING in devices_below and (not does_without(layer) or set(devices_below) == {MISSING}):
                paths.append(MISSING)
                continue
            started = StartedLayer(number, layer, devices_below)
            self._started.append(started)
            try:
                if self._makes:
                    started.make()
                started.start()
                paths.append(started.path)
            except Denial as failure:
                self._abandon()
                if self._crashed and not isinstance(failure, ContentRefused):
                    self.release()
                    raise StartBroke(f"the layer {layer.name} cannot be started: {failure}") from failure
                paths.append(MISSING)
                failed = failed or LayerFailed(f"the layer {layer.name} does not start: {failure}", failure.hint)
                if not self._crashed:
                    break
        if paths[-1] == MISSING:
            self.release()
            raise failed or LayerFailed(f"the layer {self._layers[-1].name} does not start: it lacks a disk")
        self._makes = False
        if self._layers:
            forget_file_systems()
            _link(LINK, paths[-1])
            for place, below in enumerate(self._layers[-1].below):
                _link(f"{LINK}-{place}", paths[below])

    def mkfs(self, words: list[str]) -> list[str]:
        """Return the mkfs command ``words``, with the arguments that the topmost layer adds. Only a layer that hands
        several devices to the file system adds any."""
        return [
            *words[:-1],
            *(self._named(word) for word in (self._layers[-1].mkfs if self._layers else ())),
            words[-1],
        ]

    def options(self, options: str) -> str:
        """Return the mount options ``options``, with those that the topmost layer adds. Leave out an option that names
        a disk in ``lost``."""
        more = self._layers[-1].mount.split(",") if self._layers else []
        return ",".join([word for word in (options, *(self._named(one) for one in more if self._has(one))) if word])

    def tool(self, words: list[str]) -> list[str]:
        """Return the command ``words``, which checks or repairs the file system, with the words that the topmost layer
        adds."""
        more = self._layers[-1].check if self._layers else []
        return [*words[:1], *map(self._named, more), *words[1:]] if all(map(self._has, more)) else words

    def _named(self, word: str) -> str:
        return re.sub(rf"\b{DISK}(\d+)\b", rf"{LINK}-\1", word)

    def _has(self, word: str) -> bool:
        numbers = [self._layers[-1].below[int(found)] for found in re.findall(rf"\b{DISK}(\d+)\b", word)]
        return not any(number < len(self.disks) and self.disks[number] == MISSING for number in numbers)

    def examine(self) -> str | None:
        """Carry out the checks that the declarations of the started layers have. Return the first fault, or None."""
        try:
            for layer in self._started:
                layer.examine()
        except ContentRefused as fault:
            return str(fault)
        return None

    def release(self) -> None:
        """Take all layers away, the upper layers first. Raises Denial if a layer cannot be stopped."""
        while self._started:
            self._started.pop().stop()

    def _abandon(self) -> None:
        """Take the last layer away, which failed to start."""
        failed = self._started.pop()
        try:
            failed.stop()
        except Denial:  # a program that stops a layer may refuse a layer that never started
            failed.remove_devices()

    def __enter__(self) -> Assembly:
        self.assemble()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _link(link: str, path: str) -> None:
    if not os.path.islink(link) or os.readlink(link) != path:
        with suppress(FileNotFoundError):
            os.unlink(link)
        os.symlink(path, link)


def spans(lengths: Sequence[int]) -> list[tuple[int, int]]:
    starts = [sum(lengths[:number]) for number in range(len(lengths))]
    return list(zip(starts, lengths))


@contextmanager
def loop_disks(file: str, lengths: Sequence[int]) -> Iterator[list[str]]:
    """Yield the paths of loop devices, one for each disk in ``file``. The disks lie end to end in the file, with these
    ``lengths`` (bytes)."""
    loops: list[Loop] = []
    try:
        for start, length in spans(lengths):
            loops.append(Loop(file, start=start, length=length))
        yield [loop.path for loop in loops]
    finally:
        for loop in loops:
            with suppress(OSError):
                loop.close()


@contextmanager
def slices(device: str, lengths: Sequence[int]) -> Iterator[list[str]]:
    """Yield the paths of the disks that lie end to end on ``device``. Each is a linear device-mapper target, unless the
    device holds only one disk."""
    if len(lengths) == 1:
        yield [device]
        return
    with ExitStack() as made:
        paths = []
        for number, (start, length) in enumerate(spans(lengths)):
            name = f"{devices.PART}-{number}"
            minor = devices.make_mapped(name, length // SECTOR, "linear", f"{device} {start // SECTOR}")
            made.callback(devices.remove_mapped, name)
            write_text(f"/sys/block/dm-{minor}/queue/write_cache", "write through")
            paths.append(f"/dev/dm-{minor}")
        yield paths
