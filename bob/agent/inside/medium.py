"""The contents of the device under test. This module keeps packed *base images*. A base image is the device's content
before a recording. The module also keeps one *medium*, a pair of images of the device, ``pristine`` and ``work``. bob
builds and mounts each crash state in the image ``work``. Afterwards it copies only the changed parts back from the
image ``pristine``, never a whole image. After a failure the content of ``work`` is unknown, so the caller must
:func:`drop` the medium. A device without a base image is full of stale data: the bytes ``cell``, over and over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bob.agent.inside.devices import SECTOR, WORK
from bob.agent.inside.frames import Denial
from bob.agent.inside.images import DeviceImage, PatternImage, Runs, differing, unpack
from bob.agent.inside.ram_disk import address_of, map_memory

WHOLE_EVERY = 10  # one comparison in so many covers the whole images (1.4 ms per MiB); the others cover known writes


@dataclass(frozen=True)
class PackedBase:
    """A base image: the contents of several disks, end to end. ``disks`` has their lengths in bytes. ``packed`` has
    only the difference from a device that is full of the bytes ``cell``, repeated."""

    disks: tuple[int, ...]
    cell: bytes
    packed: bytes

    @property
    def length(self) -> int:
        return sum(self.disks)


class ScratchMedium:
    """The images ``pristine`` and ``work``, which are equal except while a crash state is in use. While no base image
    (the content before a recording) is loaded, both are full of the bytes ``cell``, repeated. ``work`` is a file (for a
    loop device), or the guest's memory from ``address`` on (for a :class:`RamDisk`)."""

    def __init__(self, length: int, cell: bytes, serial: int, address: int | None) -> None:
        self.length = length
        self.cell = cell
        self.address = address
        self.stale = PatternImage(cell)
        self.work_path = f"{WORK}/work-{serial}"
        if address is None:
            self.work = DeviceImage(length, self.work_path)
        else:
            self.work = DeviceImage(length, memory=map_memory(address, length))
        self.pristine = DeviceImage(length, beside=self.work)
        self._written: Runs = [(0, length // SECTOR)]  # everything: no image is full of ``cell`` yet
        self._loaded: str | None = None
        self._comparisons = 0
        self.unload()

    def is_a(self, length: int, cell: bytes, address: int | None) -> bool:
        return (self.length, self.cell, self.address) == (length, cell, address)

    def unload(self) -> None:
        for image in (self.pristine, self.work):
            self.stale.fill(image, self._written)
        self._loaded, self._written = None, []

    def load(self, name: str, base: PackedBase) -> None:
        if self._loaded == name:
            return
        self.unload()
        for sector, data in unpack(base.packed):
            self._written.append((sector, len(data) // SECTOR))
            self.pristine.put(sector, data)
            self.work.put(sector, data)
        self._loaded = name

    def adopt(self, name: str) -> Runs:
        """Make the present content of ``work`` the base image ``name``. Return the runs of sectors where this content
        differs from a medium full of ``cell``. The caller must not have loaded another base image."""
        runs = differing(self.work, self.stale.address)
        self.pristine.copy(self.work, runs)
        self._loaded, self._written = name, runs
        return runs

    def forget(self, name: str) -> None:
        if self._loaded == name:
            self._loaded = None

    def changed(self, written: Runs | None = None) -> Runs:
        """Return the runs of sectors where ``work`` differs from ``pristine``. If ``written`` is given, compare only
        these runs. As a check, however, one call out of :data:`WHOLE_EVERY` compares the whole images."""
        self._comparisons += 1
        if self._comparisons % WHOLE_EVERY == 1:
            written = None
        return differing(self.work, self.pristine.address, written)

    def put_back(self, runs: Iterable[tuple[int, int]]) -> None:
        self.work.copy(self.pristine, runs)

    def close(self) -> None:
        self.pristine.close()
        self.work.close()


bases: dict[str, PackedBase] = {}
_medium: ScratchMedium | None = None
_serial = 0


def medium_of(length: int, cell: bytes, address: int | None = None) -> ScratchMedium:
    """Return this module's medium, ``length`` bytes long, without a base image. If the arguments differ from those of
    the last call, make the medium anew. The image ``work`` is in memory from ``address`` on (None: it is in a file)."""
    global _medium, _serial
    if _medium is not None and not _medium.is_a(length, cell, address):
        drop()
    if _medium is None:
        _serial += 1  # after a failure the file of the last medium may still be in use
        _medium = ScratchMedium(length, cell, _serial, address)
    else:
        _medium.unload()
    return _medium


def medium_with(name: str, *, in_memory: bool = False) -> ScratchMedium:
    """Return the medium with the base image ``name`` loaded. Its image ``work`` is in memory if ``in_memory`` is true
    and the memory suffices; otherwise it is in a file. Raises Denial if the guest does not have the base image."""
    base = bases.get(name)
    if base is None:
        raise Denial(f"the guest lacks the base image {name}")
    address = address_of(base.length) if in_memory else None
    if _medium is None or not _medium.is_a(base.length, base.cell, address):
        medium_of(base.length, base.cell, address)
    assert _medium is not None
    _medium.load(name, base)
    return _medium


def forget(name: str) -> None:
    bases.pop(name, None)
    if _medium is not None:
        _medium.forget(name)


def drop() -> None:
    global _medium
    if _medium is not None:
        _medium.close()
        _medium = None
