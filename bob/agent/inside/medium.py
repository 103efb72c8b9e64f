"""The contents of the probed device: packed base images, and one *medium*, two images of the same device. Loading a
base writes into ``pristine`` and ``work``; work changes ``work``, and puts it back from ``pristine``: nothing copies an
image. After a failure the content of ``work`` is unknown, and the medium is thrown away (:func:`drop`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bob.agent.inside.devices import SECTOR, WORK
from bob.agent.inside.frames import Denial
from bob.agent.inside.images import DeviceImage, PatternImage, Runs, differing, unpack
from bob.agent.inside.ram_disk import address_of, map_memory

WHOLE_EVERY = 10
"""One of so many comparisons covers both images whole, at 1.4 ms for each MiB; the others cover known writes."""


@dataclass(frozen=True)
class PackedBase:
    """A base image of ``disks`` of these lengths (bytes), laid end to end, as its difference from a device full of
    ``cell``."""

    disks: tuple[int, ...]
    cell: bytes
    packed: bytes

    @property
    def length(self) -> int:
        """The length of all disks together (bytes)."""
        return sum(self.disks)


class ScratchMedium:
    """``pristine`` and ``work``, equal while no state is at work; full of ``cell`` where no base is loaded. ``work`` is
    a file, for a loop device, or with an ``address`` the guest's memory there, for a :class:`RamDisk`."""

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
        self._written: Runs = [(0, length // SECTOR)]  # by a loaded base; at first all: it is not stale yet
        self._loaded: str | None = None
        self._comparisons = 0
        self.unload()

    def is_a(self, length: int, cell: bytes, address: int | None) -> bool:
        """Return whether it is a medium of this kind, whatever is on it."""
        return (self.length, self.cell, self.address) == (length, cell, address)

    def unload(self) -> None:
        """Be a device that was never written."""
        for image in (self.pristine, self.work):
            self.stale.fill(image, self._written)
        self._loaded, self._written = None, []

    def load(self, name: str, base: PackedBase) -> None:
        """Be ``base``, which is called ``name``."""
        if self._loaded == name:
            return
        self.unload()
        for sector, data in unpack(base.packed):
            self._written.append((sector, len(data) // SECTOR))
            self.pristine.put(sector, data)
            self.work.put(sector, data)
        self._loaded = name

    def adopt(self, name: str) -> Runs:
        """Make the content of ``work``, on an unloaded medium, the base ``name``; return where it was written."""
        runs = differing(self.work, self.stale.address)
        self.pristine.copy(self.work, runs)
        self._loaded, self._written = name, runs
        return runs

    def forget(self, name: str) -> None:
        """Take note that the base ``name`` may change."""
        if self._loaded == name:
            self._loaded = None

    def changed(self, written: Runs | None = None) -> Runs:
        """Return where ``work`` differs from ``pristine``. Where all writes are known (``written``, in any order), only
        these are compared; but once in a while all is, in case of an unknown write."""
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
    """Return the medium as a device of ``length`` bytes that was never written; in memory from ``address`` on, or a
    file."""
    global _medium, _serial
    if _medium is not None and not _medium.is_a(length, cell, address):
        drop()
    if _medium is None:
        _serial += 1  # a failure may have left the files of the one before in use
        _medium = ScratchMedium(length, cell, _serial, address)
    else:
        _medium.unload()
    return _medium


def medium_with(name: str, *, in_memory: bool = False) -> ScratchMedium:
    """Return the medium with the base ``name`` loaded; ``in_memory`` if there is enough, or else a file."""
    base = bases.get(name)
    if base is None:
        raise Denial(f"the guest has no base image {name}")
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
    """Throw the medium away: its content is unknown or useless."""
    global _medium
    if _medium is not None:
        _medium.close()
        _medium = None
