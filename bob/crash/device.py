"""The device model: what a recorded device promises about unflushed writes (docs/design.md, section 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bob.crash.caches import CACHES, VOLATILE, WriteCache
from bob.errors import UsageError
from bob.schema import Document, adapt, field, older
from bob.trace.model import SECTOR_BYTES, DeviceWrite
from bob.trace.recording import Completion

SMALLEST_ATOMIC_BYTES = 8  # bytes in an aligned store to byte-addressable memory


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """A device with a ``write_cache`` (:mod:`bob.crash.caches`). A crash never tears a unit of ``atomic_write_bytes``
    bytes. These atomic units begin at multiples of their size on the device, so the first or last unit of a write may
    be shorter. The units of each write are numbered from 0. Raises :class:`UsageError` unless ``atomic_write_bytes`` is
    a power of two, 8 or more."""

    write_cache: WriteCache = VOLATILE
    atomic_write_bytes: int = SECTOR_BYTES
    completion: Completion = Completion.PROMPT

    def __post_init__(self) -> None:
        size = self.atomic_write_bytes
        if size < SMALLEST_ATOMIC_BYTES or size & (size - 1):
            raise UsageError(
                f"a device cannot write {size} bytes atomically",
                hint=f"choose a power of two, {SMALLEST_ATOMIC_BYTES} or more, for example 512 or 4096",
            )

    @property
    def words(self) -> str:
        """The model in words. ``completion`` (when the device completes writes) is part of the words only if it is not
        the default, ``prompt``."""
        at_once = self.completion is Completion.PROMPT
        late = "" if at_once else f", done late, {self.completion.value.replace('-', ' ')}"
        return f"{self.write_cache.words}, writes of {self.atomic_write_bytes:,} bytes are atomic{late}"

    def units(self, write: DeviceWrite) -> int:
        """Return the number of atomic units that ``write`` covers, whole or in part."""
        first = write.sector * SECTOR_BYTES // self.atomic_write_bytes
        last = (write.sector * SECTOR_BYTES + len(write.data) - 1) // self.atomic_write_bytes
        return last - first + 1

    def byte_range(self, write: DeviceWrite, first: int, stop: int) -> tuple[int, int]:
        """Return the range of bytes (``start, stop``) of ``write.data`` that the units ``first`` to ``stop``
        (exclusive) cover."""
        skipped = write.sector * SECTOR_BYTES % self.atomic_write_bytes
        start = max(first * self.atomic_write_bytes - skipped, 0)
        return start, min(stop * self.atomic_write_bytes - skipped, len(write.data))

    def byte_edges(self, write: DeviceWrite, units: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the offset in ``write.data`` where each of ``units`` begins. For the number after the last unit, this
        is the end of the data. For many units, this is faster than :meth:`byte_range`."""
        skipped = write.sector * SECTOR_BYTES % self.atomic_write_bytes
        edges: NDArray[np.int64] = np.clip(units * self.atomic_write_bytes - skipped, 0, len(write.data))
        return edges


class DeviceModelDocument(Document, frozen=True):
    """The document of a device model. Older documents lack ``completion``."""

    write_cache: str
    atomic_write_bytes: int
    completion: Completion = field(default_factory=older(Completion.PROMPT))

    @classmethod
    def of(cls, model: DeviceModel) -> DeviceModelDocument:
        return adapt(cls, model, write_cache=model.write_cache.name)

    @property
    def model(self) -> DeviceModel:
        """The device model. Raises UsageError for an unknown write cache."""
        if self.write_cache not in CACHES:
            hint = f"it knows {', '.join(CACHES)}"
            raise UsageError(f"this bob does not know the write cache {self.write_cache!r}", hint=hint)
        return adapt(DeviceModel, self, write_cache=CACHES[self.write_cache])
