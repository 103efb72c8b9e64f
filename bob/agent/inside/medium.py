"""The contents of the probed device: packed base images, and one *medium*, which is two images of the device. A state
changes ``work``; then the changed parts are put back from ``pristine``, so nothing copies an image. After a failure
``work`` is unknown: :func:`drop` it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bob.agent.inside.devices import SECTOR, WORK
from bob.agent.inside.frames import Denial
from bob.agent.inside.images import DeviceImage, PatternImage, Runs, differing, unpack
from bob.agent.inside.ram_disk import address_of, map_memory

WHOLE_EVERY = 10  # comparisons for one that covers both images whole (1.4 ms per MiB); others cover known writes


@dataclass(frozen=True)
class PackedBase:
    """A base image of ``disks`` (lengths in bytes), laid end to end, as differences from a device full of ``cell``."""

    disks: tuple[int, ...]
    cell: bytes
    packed: bytes

    @property
    def length(self) -> int:
        return sum(self.disks)


class ScratchMedium:
    """The images ``pristine`` and ``work``, equal except while a state is used; full of ``cell`` if no base is loaded.
    ``work`` is a file, for a loop device, or the guest's memory at ``address``, for a :class:`RamDisk`."""

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
        self._written: Runs = [(0, length // SECTOR)]  # by a loaded base; at first everywhere: it is not stale yet
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
        """Make the content of ``work``, on a medium without a base, the base ``name``; return where it was written."""
        runs = differing(self.work, self.stale.address)
        self.pristine.copy(self.work, runs)
        self._loaded, self._written = name, runs
        return runs

    def forget(self, name: str) -> None:
        if self._loaded == name:
            self._loaded = None

    def changed(self, written: Runs | None = None) -> Runs:
        """Return where ``work`` differs from ``pristine``. Compares only ``written``, if given, or now and then all."""
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
    """Return the medium without a base, ``length`` bytes long: in memory from ``address`` on, or in a file."""
    global _medium, _serial
    if _medium is not None and not _medium.is_a(length, cell, address):
        drop()
    if _medium is None:
        _serial += 1  # a failure may have left files of the last one in use
        _medium = ScratchMedium(length, cell, _serial, address)
    else:
        _medium.unload()
    return _medium


def medium_with(name: str, *, in_memory: bool = False) -> ScratchMedium:
    """Return the medium with the base ``name``, ``in_memory`` if there is enough, else in a file. Raises Denial."""
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
