"""The rules of docs/design.md, section 3, spelled out: every time of the window, every subset, no shortcut.

Nothing here is shared with ``bob.crash`` but the dataclasses of its input. Small traces only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import combinations
from typing import TypeVar

from bob.crash.device import DeviceModel
from bob.trace.model import DeviceWrite, Trace

T = TypeVar("T")
Unit = tuple[int, int]
"""(write index, atomic unit of the device in which the bytes lie)"""


SPELLED_OUT = ("volatile", "none", "ordered")
"""The kinds of write cache that are spelled out here; of any other one this model knows nothing."""


def is_durable(trace: Trace, model: DeviceModel, write: DeviceWrite, time: int) -> bool:
    if model.write_cache.name == "none" and write.completed.time <= time:
        return True
    if write.fua and write.completed.time <= time:
        return True
    return any(
        flush.device == write.device and write.completed.time <= flush.submitted.time and flush.completed.time <= time
        for flush in trace.flushes
    )


def durable_and_pending(trace: Trace, model: DeviceModel, time: int) -> Iterator[tuple[set[int], set[int]]]:
    """What a crash at ``time`` finds on the medium for sure, and any part of which it may find: one way, or several."""
    assert model.write_cache.name in SPELLED_OUT, "spell the rule of this kind of cache out here"
    submitted = {write.index for write in trace.writes if write.submitted.time <= time}
    if model.write_cache.name == "ordered":
        yield from _in_order(trace, submitted, time)
        return
    durable = {write.index for write in trace.writes if is_durable(trace, model, write, time)}
    yield durable, submitted - durable


def _in_order(trace: Trace, submitted: set[int], time: int) -> Iterator[tuple[set[int], set[int]]]:
    """The lost are the last of those that completed; the first of them may be there in part. What is promised is not
    among the lost."""
    done = {write.index: write.completed.time for write in trace.writes if write.completed.time <= time}
    promised = {
        index
        for index, completed in done.items()
        if any(completed <= flush.submitted.time and flush.completed.time <= time for flush in trace.flushes)
        or any(one.fua and completed <= one.completed.time <= time for one in trace.writes)
    }
    for lost in subsets(done):
        kept = done.keys() - lost
        if lost & promised or any(done[gone] <= done[there] for gone in lost for there in kept):
            continue
        first = {index for index in lost if done[index] == min(done[gone] for gone in lost)}
        yield set(kept), first or submitted - done.keys()


def subsets(items: Iterable[T]) -> Iterator[frozenset[T]]:
    pool = list(items)
    for size in range(len(pool) + 1):
        yield from map(frozenset, combinations(pool, size))


def window(trace: Trace) -> range:
    return range(trace.start.time, trace.end.time + 1)


def legal_writes(trace: Trace, model: DeviceModel) -> set[frozenset[int]]:
    legal = set()
    for time in window(trace):
        for durable, pending in durable_and_pending(trace, model, time):
            legal |= {frozenset(durable | kept) for kept in subsets(pending)}
    return legal


@lru_cache(maxsize=4096)
def units_of(write: DeviceWrite, model: DeviceModel) -> dict[Unit, list[int]]:
    """The byte offsets in ``write.data`` of each of its atomic units."""
    units: dict[Unit, list[int]] = {}
    for offset in range(len(write.data)):
        unit = (write.sector * 512 + offset) // model.atomic_write_bytes
        units.setdefault((write.index, unit), []).append(offset)
    return units


def units_of_all(trace: Trace, model: DeviceModel, indexes: Iterable[int]) -> frozenset[Unit]:
    return frozenset(unit for index in indexes for unit in units_of(trace.writes[index], model))


def legal_units(trace: Trace, model: DeviceModel) -> set[frozenset[Unit]]:
    legal = set()
    moments = {
        tuple(map(frozenset, both)) for time in window(trace) for both in durable_and_pending(trace, model, time)
    }
    for durable, pending in moments:
        always = units_of_all(trace, model, durable)
        legal |= {always | kept for kept in subsets(units_of_all(trace, model, pending))}
    return legal


class Medium:
    """Contents of sets of units on a given base."""

    def __init__(self, trace: Trace, model: DeviceModel, base: bytes) -> None:
        self.base = base
        self.order: list[tuple[Unit, int, bytes]] = []
        for write in trace.writes:
            begin = (sum(trace.device_sectors[: write.device]) + write.sector) * 512
            for unit, offsets in units_of(write, model).items():
                self.order.append((unit, begin + offsets[0], write.data[offsets[0] : offsets[-1] + 1]))

    def content(self, units: frozenset[Unit]) -> bytes:
        image = bytearray(self.base)
        for unit, at, data in self.order:
            if unit in units:
                image[at : at + len(data)] = data
        return bytes(image)
