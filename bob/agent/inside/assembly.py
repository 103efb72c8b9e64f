"""Disks assembled into the device that is mounted, by the programs that a machine would run at boot."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from bob.agent.inside import devices
from bob.agent.inside.devices import SECTOR, Loop, forget_file_systems, run, write_text
from bob.agent.inside.documents import LayerDocument
from bob.agent.inside.frames import Denial

DISK = "DISK"  # ``DISK0`` in a command stands for the path of the first device below, and so on


class Assembly:
    """The device that is mounted: ``disks`` (paths) below ``layers`` (from the bottom up). ``with`` assembles it."""

    def __init__(self, layers: Sequence[LayerDocument], disks: Sequence[str]) -> None:
        self._steps: list[tuple[LayerDocument, Sequence[str]]] = []
        for layer in layers:
            self._steps.append((layer, disks))
            disks = [layer.device]
        if len(disks) != 1:
            raise Denial(f"the subject does not say how to assemble {len(disks)} disks")
        [self.path] = disks

    def assemble(self) -> None:
        """Make the device at ``path``. Raises Denial with the output of the command that failed."""
        for layer, below in self._steps:
            _run(layer.assemble, below)
            forget_file_systems()
            if not os.path.exists(layer.device):
                raise Denial(f"the commands that assemble the disks did not make {layer.device}")

    def release(self) -> None:
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
    starts = [sum(lengths[:number]) for number in range(len(lengths))]
    return list(zip(starts, lengths))


@contextmanager
def loop_disks(file: str, lengths: Sequence[int]) -> Iterator[list[str]]:
    """Yield the paths of loop devices over the disks in ``file``, laid end to end."""
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
    """Yield the paths of the disks laid end to end on ``device``: linear targets, or the one disk itself."""
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
