"""One crash state, described by the writes that are on the medium, whole or in part. The description is hashable, and
can be written as JSON. :func:`effective` computes the content of the medium in a simple, slow way. The fast way is in
``bob.crash.image``, and tests compare the two."""

from collections.abc import Sequence
from dataclasses import dataclass

from bob.crash.device import DeviceModel
from bob.crash.legal import GrowthPoint
from bob.errors import MalformedError
from bob.trace.model import DeviceWrite, Trace

Ranges = tuple[tuple[int, int], ...]
"""Units ``(first, stop)`` of one write, ``stop`` exclusive. The ranges ascend and do not touch, so each set of units
has only one form."""

TornWrites = tuple[tuple[int, Ranges], ...]  # by the index of a write: some of its units, but not all


@dataclass(frozen=True, slots=True)
class CrashState:
    """A crash state at the growth point number ``point`` (a time when the set of possible states changes). The medium
    has all writes that are durable at that time. ``kept`` has the pending writes (indexes, ascending) that the medium
    has as a whole. ``torn`` has the pending writes that the medium has only in part: some of their atomic units (the
    smallest parts that reach the medium as a whole), but not all."""

    point: int
    kept: tuple[int, ...] = ()
    torn: TornWrites = ()


@dataclass(frozen=True, slots=True)
class WritePiece:
    """The bytes ``start`` to ``stop`` (exclusive) of ``write.data``."""

    write: DeviceWrite
    start: int
    stop: int


def effective(
    trace: Trace, model: DeviceModel, points: Sequence[GrowthPoint], state: CrashState
) -> tuple[WritePiece, ...]:
    """Return the pieces of writes that are on the medium in ``state``, durable writes included. The pieces are in the
    submission order of their writes, so a later piece overwrites earlier pieces."""
    whole = {*points[state.point].durable, *state.kept}
    torn = dict(state.torn)
    pieces = []
    for index in sorted({*whole, *torn}):
        write = trace.writes[index]
        if index in whole:
            pieces.append(WritePiece(write, 0, len(write.data)))
        else:
            pieces += [WritePiece(write, *model.byte_range(write, *units)) for units in torn[index]]
    return tuple(pieces)


def check_state(trace: Trace, model: DeviceModel, points: Sequence[GrowthPoint], state: CrashState) -> None:
    """Raise :class:`MalformedError` if ``state`` is not legal under this device model, or not in normal form (indexes
    and torn parts ascend, and nothing occurs twice)."""
    if not 0 <= state.point < len(points):
        raise MalformedError(f"growth point {state.point} is out of range: the trace has {len(points)}")
    pending = set(points[state.point].pending)
    torn = [index for index, _ in state.torn]
    for indexes in (list(state.kept), torn):
        if indexes != sorted(set(indexes)):
            raise MalformedError("the writes of a crash state are not in ascending order")
    if not {*state.kept, *torn} <= pending or set(state.kept) & set(torn):
        raise MalformedError(f"a crash state at growth point {state.point} names a write that is not pending there")
    for index, ranges in state.torn:
        units = model.units(trace.writes[index])
        edges = [edge for pair in ranges for edge in pair]
        if not edges or edges != sorted(set(edges)) or edges[0] < 0 or edges[-1] > units or edges == [0, units]:
            raise MalformedError(f"write {index} has {units} atomic units and cannot be torn as {list(ranges)}")


def is_legal_at(points: Sequence[GrowthPoint], state: CrashState, number: int) -> bool:
    """Return whether a crash at growth point ``number`` can also leave the legal state ``state``. The state may belong
    to another growth point."""
    here = points[number]
    whole = {*points[state.point].durable, *state.kept}
    torn = {index for index, _ranges in state.torn}
    return whole.issuperset(here.durable) and {*here.durable, *here.pending} >= whole | torn


def departure(state: CrashState) -> tuple[int, int]:
    """Return a key that sorts states from easy to hard to explain. The key has the number of torn writes, then the
    number of unbroken series of kept writes (writes with consecutive indexes)."""
    runs = sum(1 for before, index in zip((-2, *state.kept), state.kept, strict=False) if index != before + 1)
    return len(state.torn), runs
