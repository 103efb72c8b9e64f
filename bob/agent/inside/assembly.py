"""Disks made into the one device that is mounted, by the programs that a machine would run at boot."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from bob.agent.inside import mapper
from bob.agent.inside.devices import PART, Loop, forget_file_systems, run, write_text
from bob.agent.inside.documents import LayerDocument
from bob.agent.inside.frames import Denial
from bob.agent.inside.images import SECTOR

DISK = "DISK"
"""``DISK0`` stands in a command for the path of the first device below, and so on."""


class Assembly:
    """What is mounted of ``disks``, which are paths: the only one itself, or else what ``layers`` make, from the bottom
    up. ``with`` assembles, and releases."""

    def __init__(self, layers: Sequence[LayerDocument], disks: Sequence[str]) -> None:
        self._steps: list[tuple[LayerDocument, Sequence[str]]] = []
        for layer in layers:
            self._steps.append((layer, disks))
            disks = [layer.device]
        if len(disks) != 1:
            raise Denial(f"nothing says how {len(disks)} disks are assembled")
        [self.path] = disks

    def assemble(self) -> None:
        """Have the device at ``path``; refuse in the words of the command that failed."""
        for layer, below in self._steps:
            _run(layer.assemble, below)
            forget_file_systems()
            if not os.path.exists(layer.device):
                raise Denial(f"the commands that assemble the disks made no {layer.device}")

    def release(self) -> None:
        """Have the disks alone again: what the layers above them held in memory is gone."""
        for layer, below in reversed(self._steps):
            _run(layer.release, below)

    def __enter__(self) -> Assembly:
        self.assemble()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _run(commands: list[list[str]], below: Sequence[str]) -> None:
    for command in commands:
        run(*[_named(word, below) for word in command])


def _named(word: str, below: Sequence[str]) -> str:
    for number in reversed(range(len(below))):  # DISK12 before DISK1
        word = word.replace(f"{DISK}{number}", below[number])
    return word


def spans(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Where disks of these ``lengths`` (bytes), laid end to end, begin, and how long they are: (start, length)."""
    starts = [sum(lengths[:number]) for number in range(len(lengths))]
    return list(zip(starts, lengths))


class LoopDisks:
    """The disks that are in one ``file``, each a loop device; ``with`` takes them away."""

    def __init__(self, file: str, lengths: Sequence[int]) -> None:
        self._loops: list[Loop] = []
        try:
            for start, length in spans(lengths):
                self._loops.append(Loop(file, start=start, length=length))
        except BaseException:
            self.close()
            raise
        self.paths = [loop.path for loop in self._loops]

    def close(self) -> None:
        for loop in self._loops:
            with suppress(OSError):
                loop.close()

    def __enter__(self) -> LoopDisks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Slices:
    """The disks that are on one block ``device``, laid end to end: itself, where it is one, or else linear targets of
    device-mapper; ``with`` takes these away."""

    def __init__(self, device: str, lengths: Sequence[int]) -> None:
        self._names: list[str] = []
        self.paths = [device]
        if len(lengths) == 1:
            return
        self.paths = []
        for number, (start, length) in enumerate(spans(lengths)):
            minor = mapper.create(f"{PART}-{number}", length // SECTOR, "linear", f"{device} {start // SECTOR}")
            self._names.append(f"{PART}-{number}")
            self.paths.append(f"/dev/dm-{minor}")
            write_text(f"/sys/block/dm-{minor}/queue/write_cache", "write through")

    def __enter__(self) -> Slices:
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._names:
            mapper.remove(name)
