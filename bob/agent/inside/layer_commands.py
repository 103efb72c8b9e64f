"""Carry out the commands of a layer. Most commands are programs. The agent carries out the following verbs by system
calls, because each crash state needs them:

- ``dm NAME TABLE`` makes a device-mapper device with that table; ``;`` separates its targets.
- ``md NAME DEVICE...`` assembles an array from the superblocks on these devices.
- ``md-create level=1 data=2048 [chunk=N] [layout=N] [bitmap=N] [ppl=N] DEVICE...`` writes such superblocks; a DEVICE
  may be ``missing``, and the last DEVICE may be ``journal:DEVICE``.
- ``loop NAME FILE`` makes a loop device of the file.
- ``nbd NAME DEVICE`` makes a network block device, which a process of the agent serves from the device.
- ``mount NAME TYPE DEVICE [OPTIONS]`` mounts a file system of that type.
- ``bcache NAME BACKING CACHE`` registers a backing device and its cache with bcache.
- ``bcache-create MODE BACKING CACHE`` writes their superblocks; MODE is ``writethrough`` or ``writeback``.
- ``message DEVICE SECTOR TEXT...`` sends a message to a device-mapper target.
- ``remove NAME`` removes a device that an earlier command made. After the commands that create the layer (its list
  ``make``), the agent itself removes the devices that are left.
- ``zero DEVICE N`` writes zeros to the first N sectors.
- ``set DEVICE FILE VALUE`` writes the value into a file below /sys/block/DEVICE.
- ``wait DEVICE FILE VALUE`` waits until the file has that value.
- ``expect DEVICE FILE VALUE`` fails if the file has another value.

In later commands, NAME stands for the path of the device that ``dm``, ``md``, ``bcache``, ``loop`` or ``nbd`` made, or
for the mount point. In the same way, DISK0 stands for the path of the first device below the layer. If a device below
the layer failed, its path is the word ``missing``. Then ``md`` and a table of dm-raid do without that device, and
``bcache`` does without its cache. If any other table has a missing device, NAME becomes ``missing``, too."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Sequence

from bob.agent.inside import bcache, devices, md_array
from bob.agent.inside.devices import SECTOR, Loop, comes_true, opened, read_text, run, write_text
from bob.agent.inside.documents import LayerDocument
from bob.agent.inside.frames import ContentRefused, Denial
from bob.agent.inside.md_array import MISSING
from bob.agent.inside.mounts import LAYER_FILES, mount_at, unmount
from bob.agent.inside.refusals import refusal
from bob.agent.inside.served_disk import ServedDisk

DISK = "DISK"
MOST_ARRAYS = 8  # in a layer
WAIT_SECONDS = 120.0  # a resync may take so long
PIECE = 1 << 20  # bytes that one write of ``zero`` has
CORRECT = "correct this command in the layer's declaration"
MISTAKES = (OSError, ValueError, TypeError, LookupError, MemoryError, OverflowError, struct.error)
"""Errors because of wrong words in a command, such as a name that is not a path, or text that is not a number. Commands
that start a crash state have worked before, so there these are errors of bob."""


def does_without(layer: LayerDocument) -> bool:
    """Return whether the layer may be started although a device below it is missing. The layer's own rules (those of
    RAID, for example) then decide whether the start succeeds."""
    return not layer.start or any(command[0] in ("md", "bcache") or "raid" in command for command in layer.start)


class StartedLayer:
    """Layer number ``number``, such as RAID. It lies over the devices ``below`` (paths), and ``path`` is the path of
    the device that it makes."""

    def __init__(self, number: int, layer: LayerDocument, below: Sequence[str]) -> None:
        self._number, self._layer = number, layer
        self._paths = {f"{DISK}{place}": path for place, path in enumerate(below)}
        self._undo: dict[str, Callable[[], None]] = {}  # by the NAME of the device
        self.path = layer.device if layer.start else next((path for path in below if path != MISSING), MISSING)

    def make(self) -> None:
        """Carry out the commands that create the layer, and then remove the devices that these commands made. A set
        of disks needs this only once."""
        self._carry_out(self._layer.make)
        self.remove_devices()

    def start(self) -> None:
        """Carry out the commands that start the layer. Raises ContentRefused if the contents of the disks keep the
        layer from starting, or if its device has another length than the layer's declaration says. Raises Denial if a
        command fails for another reason."""
        self._carry_out(self._layer.start)
        if not os.path.exists(self.path):
            raise ContentRefused(f"the commands that start the layer {self._layer.name} did not make {self.path}")
        try:
            sectors = devices.sectors_of(self.path)
        except OSError:
            raise Denial(f"{self.path} is not a block device", "correct `device` in its declaration") from None
        if sectors != self._layer.sectors:
            raise ContentRefused(
                f"the layer {self._layer.name} made a device of {sectors} sectors, not {self._layer.sectors}",
                "correct `sectors` in its declaration",
            )

    def examine(self) -> None:
        """Carry out the commands that examine the layer. Raises ContentRefused if one of them finds a fault."""
        self._carry_out(self._layer.examine)

    def stop(self) -> None:
        """Carry out the commands that stop the layer, even if the layer failed to start. Then remove the devices that
        the commands made, the last one first."""
        self._carry_out(self._layer.stop)
        self.remove_devices()

    def remove_devices(self) -> None:
        while self._undo:
            self._undo.popitem()[1]()

    def _carry_out(self, commands: Sequence[list[str]]) -> None:
        for command in commands:
            try:
                self._carry_out_one(*command)
            except MISTAKES as error:
                reason = (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
                raise Denial(f"{_shown(command)}: {reason}", CORRECT) from error
        if self._layer.device and self._layer.start:
            self.path = self._layer.device

    def _carry_out_one(self, verb: str, *words: str) -> None:
        make = {
            "dm": self._dm,
            "md": self._md,
            "bcache": self._bcache,
            "loop": self._loop,
            "nbd": self._nbd,
            "mount": self._mount,
        }
        if verb == "remove":
            self._remove(words[0])
        elif verb in make:
            self.path = self._paths[words[0]] = make[verb](words[0], list(map(self._named, words[1:])))
        elif verb in _VERBS:
            _VERBS[verb](list(map(self._named, words)))
        else:
            run(verb, *map(self._named, words))

    def _named(self, word: str) -> str:
        names = "|".join(sorted(self._paths, key=len, reverse=True))
        return re.sub(rf"\b(?:{names})\b", lambda found: self._paths[found[0]], word)

    def _dm(self, label: str, words: list[str]) -> str:
        targets = []
        for text in " ".join(words).split(";"):
            start, sectors, kind, *parameters = text.split()
            if MISSING in parameters:
                if kind != "raid":
                    return MISSING
                parameters = ["-" if word == MISSING else word for word in parameters]
            targets.append((int(start), int(sectors), kind, " ".join(parameters)))
        name = f"{devices.STACK}-{self._number}-{label.lower()}"
        minor = devices.make_table(name, targets)
        self._undo[label] = lambda: devices.remove_mapped(name)
        return f"/dev/dm-{minor}"

    def _md(self, label: str, disks: list[str]) -> str:
        name = devices.array_name(MOST_ARRAYS * self._number + len(self._undo))
        path = md_array.assemble(name, disks)
        self._undo[label] = lambda: devices.stop_array(name)
        return path

    def _bcache(self, label: str, words: list[str]) -> str:
        backing, its_cache = words
        if backing == MISSING:
            raise ContentRefused("bcache lacks its backing device")
        its_cache = "" if its_cache == MISSING else its_cache
        path = bcache.register(backing, its_cache)
        self._undo[label] = lambda: bcache.stop(backing, its_cache)
        return path

    def _loop(self, label: str, words: list[str]) -> str:
        [file] = words
        try:
            os.stat(file)
        except OSError as error:
            raise refusal(f"the loop device has no file {file}", error) from error
        made = Loop(file)
        made.release_holder()
        self._undo[label] = made.close
        return made.path

    def _nbd(self, label: str, words: list[str]) -> str:
        [below] = words
        made = ServedDisk(self._number, below)
        self._undo[label] = made.close
        return made.path

    def _mount(self, label: str, words: list[str]) -> str:
        kind, device, *options = words
        folder = f"{LAYER_FILES}-{self._number}-{label.lower()}"
        os.makedirs(folder, exist_ok=True)
        mount_at(device, folder, kind, data=",".join(options))
        self._undo[label] = lambda: unmount(folder)
        return folder

    def _remove(self, label: str) -> None:
        if label not in self._undo:
            raise Denial(f"the layer {self._layer.name} removes {label}, which it did not make")
        self._undo.pop(label)()
        del self._paths[label]


def _shown(command: list[str]) -> str:
    return " ".join(command).encode("unicode_escape").decode()


def _md_create(words: list[str]) -> None:
    given = {name: int(value) for name, _sign, value in (word.partition("=") for word in words if "=" in word)}
    md_array.make_array([word for word in words if "=" not in word], **given)


def _bcache_create(words: list[str]) -> None:
    mode, backing, its_cache = words
    bcache.make(backing, its_cache, mode)


def _zero(words: list[str]) -> None:
    path, sectors = words
    left, at = int(sectors) * SECTOR, 0
    with opened(path) as fd:
        while left > 0:
            written = os.pwrite(fd, bytes(min(left, PIECE)), at)
            left, at = left - written, at + written
        os.fsync(fd)


def _message(words: list[str]) -> None:
    path, sector, *text = words
    devices.send_message(path, int(sector), " ".join(text))


def _set(words: list[str]) -> None:
    path, file, value = words
    try:
        write_text(f"{devices.in_sysfs(path)}/{file}", value)
    except OSError as error:
        raise refusal(f"the kernel does not take {value!r} for {file}", error) from error


def _wait(words: list[str]) -> None:
    path, file, value = words
    if not comes_true(lambda: _has(path, file) == value, WAIT_SECONDS, 0.002):
        raise Denial(f"{file} was not {value!r} for {WAIT_SECONDS:g} s, but {_has(path, file)!r}")


def _expect(words: list[str]) -> None:
    path, file, value = words
    if (found := _has(path, file)) != value:
        raise ContentRefused(f"{file} is {found!r}, not {value!r}")


def _has(path: str, file: str) -> str:
    return read_text(f"{devices.in_sysfs(path)}/{file}").strip()


_VERBS: dict[str, Callable[[list[str]], None]] = {
    "bcache-create": _bcache_create,
    "md-create": _md_create,
    "message": _message,
    "zero": _zero,
    "set": _set,
    "wait": _wait,
    "expect": _expect,
}
