"""Crash states that bob proposes in a systematic way, such as states with one lost write or one torn write. A *draft*
is such a proposed state at one growth point (the last time before some write becomes durable). The search drops drafts
whose contents it already has. Each generator begins with drafts that are far apart, so a small budget already covers
the whole range evenly."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, chain, islice
from operator import or_
from typing import NamedTuple, TypeVar

from bob.crash.cubes import GrowthMasks, LegalStates
from bob.crash.device import DeviceModel
from bob.crash.legal import GrowthPoint
from bob.crash.state import CrashState, TornWrites
from bob.trace.model import SECTOR_BYTES, Trace

T = TypeVar("T")

# Atomic units in a write that bob tears at every boundary; it tears a longer write only at a sample of its boundaries.
EVERY_BOUNDARY = 64

SAMPLED_BLOCKS = 64  # boundaries of 4 KiB blocks in the sample of a long write

EVERY_SUBSET_ITEMS = 4  # if an operation has more writes, bob does not try to lose each subset of them

BLOCK_BYTES = 4096


class Draft(NamedTuple):
    """A proposed state at growth point number ``point``. Bit i of ``kept`` is 1 if the whole write i is on the medium.
    ``torn`` has the writes that are on the medium only in part."""

    point: int
    kept: int
    torn: TornWrites = ()


@dataclass(frozen=True, slots=True)
class SearchPoint(GrowthMasks):
    """Growth point number ``point`` (the last time before some write becomes durable). The inherited fields are bit
    masks of its writes. The field ``writes`` has the indexes of its pending writes, in submission order."""

    point: int
    writes: tuple[int, ...]


def view(number: int, point: GrowthPoint) -> SearchPoint:
    masks = mask(point.durable), mask(point.pending), mask(point.becomes_durable)
    return SearchPoint(*masks, number, point.pending)


def legal_states(views: Sequence[SearchPoint]) -> LegalStates:
    return LegalStates(views, lambda number, medium: CrashState(number, indexes(views[number].writes, medium)))


def settled(points: Sequence[SearchPoint], medium: int, torn: TornWrites = (), legal_at: int = 0) -> CrashState:
    """Return the crash state with the whole writes ``medium`` (a bit mask) and the torn writes ``torn``. The state is
    legal at growth point number ``legal_at``, and perhaps at later points. The result has the number of the last point
    where it is legal. So calls for the same state give equal results, whatever their ``legal_at``."""
    number = legal_at
    while number + 1 < len(points) and not points[number + 1].durable & ~medium:
        number += 1
    return CrashState(number, indexes(points[number].writes, medium), torn)


def indexes(writes: Sequence[int], medium: int) -> tuple[int, ...]:
    return tuple(index for index in writes if medium >> index & 1)


def mask(indexes: Sequence[int] | frozenset[int]) -> int:
    return sum(1 << index for index in set(indexes))


def prefixes(point: SearchPoint) -> Iterator[Draft]:
    kept = list(accumulate((1 << index for index in point.writes), or_, initial=0))
    for k in spread(len(kept)):
        yield Draft(point.point, kept[k])


def single_lost(point: SearchPoint) -> Iterator[Draft]:
    for k in spread(len(point.writes)):
        yield Draft(point.point, point.pending & ~(1 << point.writes[k]))


def single_kept(point: SearchPoint) -> Iterator[Draft]:
    for k in spread(len(point.writes)):
        yield Draft(point.point, 1 << point.writes[k])


def parts_lost(point: SearchPoint, groups: Sequence[frozenset[int]]) -> Iterator[Draft]:
    """Yield states that lose only data of the workload's operations. Each of ``groups`` has the writes with data of one
    operation. The first states lose all pending writes of some operations. The next states lose some pending writes of
    a single operation."""
    owned = [part for part in (mask(group) & point.pending for group in groups) if part]
    each = (parts([1 << index for index in point.writes if part >> index & 1]) for part in owned)
    for lost in chain(parts(owned), interleave(each)):
        yield Draft(point.point, point.pending & ~lost)


def torn_once(point: SearchPoint, trace: Trace, model: DeviceModel) -> Iterator[Draft]:
    """Yield states with one torn pending write. Each pending write is torn at each of its :func:`boundaries`. Either
    the part before the boundary is on the medium, or the part after it. The other pending writes are all on the medium,
    or all lost."""
    return interleave(_tears(point, index, trace, model) for index in point.writes)


def boundaries(trace: Trace, model: DeviceModel, index: int) -> list[int]:
    """Return the points where bob tears write ``index``, ascending. A point is the number of the write's units (the
    device's atomic units) before the tear. bob tears a write of up to 64 units at all boundaries between its units. It
    tears a longer write at the first and the last eight boundaries, and after 1, 2, 4, 8 ... units. In addition, it
    tears a longer write of up to 64 sectors at each boundary between sectors. If there are more sectors, it instead
    uses up to 64 boundaries between the device's 4 KiB blocks."""
    write = trace.writes[index]
    units = model.units(write)
    inner = range(1, units)
    if units <= EVERY_BOUNDARY:
        return list(inner)
    long = write.sectors > EVERY_BOUNDARY
    grain, begin = BLOCK_BYTES if long else SECTOR_BYTES, write.sector * SECTOR_BYTES
    coarse = [k for k in inner if (begin + model.byte_range(write, k, units)[0]) % grain == 0]
    powers = (1 << k for k in range((units - 1).bit_length()))
    return sorted({*inner[:8], *inner[-8:], *powers, *(coarse[k] for k in islice(spread(len(coarse)), SAMPLED_BLOCKS))})


def parts(items: Sequence[int]) -> Iterator[int]:
    """Yield unions of some of ``items``, which are bit masks. If there are at most four items, yield all nonempty
    unions. If there are more, yield three results for each item: its union with all earlier items, its union with all
    later items, and the item alone."""
    if len(items) <= EVERY_SUBSET_ITEMS:
        for subset in range((1 << len(items)) - 1, 0, -1):
            yield reduce(or_, (item for k, item in enumerate(items) if subset >> k & 1))
        return
    heads = list(accumulate(items, or_))
    tails = list(accumulate(reversed(items), or_))[::-1]
    for k in spread(len(items)):
        yield heads[k]
        yield tails[k]
        yield items[k]


def spread(count: int) -> Iterator[int]:
    """Yield the numbers of ``range(count)`` in such an order that the first few already cover the range evenly. The two
    ends come first, and then the middle of each gap."""
    if count > 0:
        yield count - 1
    if count > 1:
        yield 0
    gaps = deque([(0, count - 1)])
    while gaps:
        low, high = gaps.popleft()
        if high - low > 1:
            middle = (low + high) // 2
            yield middle
            gaps += [(low, middle), (middle, high)]


def interleave(sources: Iterable[Iterator[T]]) -> Iterator[T]:
    turns = deque(sources)
    while turns:
        source = turns.popleft()
        for item in source:
            yield item
            turns.append(source)
            break


def _tears(point: SearchPoint, index: int, trace: Trace, model: DeviceModel) -> Iterator[Draft]:
    units = model.units(trace.writes[index])
    cuts = boundaries(trace, model, index)
    others = point.pending & ~(1 << index)
    for k in spread(len(cuts)):
        for part in ((0, cuts[k]), (cuts[k], units)):
            yield Draft(point.point, others, ((index, (part,)),))
            yield Draft(point.point, 0, ((index, (part,)),))
