"""All workloads of a given length within bounds, or a drawn sample of these workloads. A workload tests what its last
call (such as fsync) promises to make durable, or it tests named properties. If a file system would refuse a workload,
or if a workload tests nothing, bob leaves it out. If several workloads differ only in names, bob tries only one of
them."""

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from random import Random

from bob.claim.property.rules import Property
from bob.search.alike import Renamings
from bob.search.bounds import Bounds, together
from bob.search.space import Space, is_asked
from bob.workload import operations as ops
from bob.workload.language import write_one
from bob.workload.operations import NATURAL, At, Finish, Operation, Workload
from bob.workload.simulation import is_possible

LATER = tuple(Finish(f"natural {phase}", natural=True, phase=phase) for phase in (2.5, 4.5))
"""Natural finishes with another phase: the kernel's periodic work begins earlier or later after the operations."""
MOST_TRIES = 30  # most draws of an operation, until a file system would not refuse it


class Within(Space):
    """The workloads within ``bounds``. They test one of the properties ``props``. If ``props`` is empty, they test the
    promises that ``bounds`` lists: what each call (such as fsync) makes durable.

    The last operation of a workload that tests promises is one of the calls in ``bounds``, and the crash comes
    after it returns. A workload that tests properties ends with such a call, or *naturally*: without a call, bob waits
    until the file system has written all changes. In a workload that tests properties, the crash may come at any
    time."""

    def __init__(self, bounds: Bounds, props: tuple[Property, ...] = ()) -> None:
        self.bounds, self.name, self._props = bounds, bounds.name, props
        self.asked = props or (*bounds.promises, *together(bounds.promises))

    def every(self, length: int) -> Iterator[Workload]:
        return chain.from_iterable(map(self._new_ones, self._sequences((), length)))

    def draw(self, length: int, random: Random, seen: set[Hashable]) -> tuple[Hashable, Workload] | None:
        operations = self._draw(length, random)
        workload = _chosen(list(self._new_ones(operations)), random) if operations else None
        return None if workload is None or workload.title in seen else (workload.title, workload)

    def _ends(self, operations: Sequence[Operation]) -> Iterator[Workload]:
        if not self._props:
            for call in self.bounds.calls:
                yield workload_of(self.bounds, (*operations, call), at=At.END)
            return
        for finish in (NATURAL, *LATER, *(Finish(write_one(call), (call,)) for call in self.bounds.calls)):
            yield workload_of(self.bounds, operations, finish)

    @cached_property
    def _alike(self) -> Renamings:
        return Renamings(self.bounds)

    def _new_ones(self, operations: Sequence[Operation]) -> Iterator[Workload]:
        """Yield workloads that begin with ``operations``, one for each possible end (a call, or only waiting). Leave
        out those that test nothing. If several workloads differ only in names, yield only one."""
        for workload in self._ends(operations):
            done = (*workload.operations, *workload.finish.operations)
            if is_possible(workload) and self._alike.is_first(done) and is_asked(self.asked, workload):
                yield workload

    def _sequences(self, before: tuple[Operation, ...], left: int) -> Iterator[tuple[Operation, ...]]:
        """Yield each possible sequence that begins with ``before`` and has ``left`` more operations. One of the calls
        ``between`` of the bounds may come between two of the operations."""
        if not left:
            yield before
            return
        for operation in self.bounds.operations:
            done = (*before, *operation)
            if not self._can_begin(done):
                continue
            yield from self._sequences(done, left - 1)
            if left > 1:
                for call in self.bounds.between:
                    if self._can_begin((*done, call)):
                        yield from self._sequences((*done, call), left - 1)

    def _draw(self, length: int, random: Random) -> tuple[Operation, ...]:
        done: tuple[Operation, ...] = ()
        for number in range(length):
            choices = (random.choice(self.bounds.operations) for _ in range(MOST_TRIES))
            if (more := next((one for one in choices if self._can_begin((*done, *one))), None)) is None:
                return ()
            done = (*done, *more)
            if number < length - 1 and self.bounds.between and random.random() < 1 / 2:
                call = random.choice(self.bounds.between)
                done = (*done, call) if self._can_begin((*done, call)) else done
        return done

    def _can_begin(self, operations: Sequence[Operation]) -> bool:
        return is_possible(workload_of(self.bounds, operations))


def _chosen(ends: Sequence[Workload], random: Random) -> Workload | None:
    """Return one of ``ends`` at random, or None if ``ends`` is empty. ``ends`` are workloads that differ only in how
    they end. Half of the time, return one that ends naturally, without a call.

    Otherwise first draw the kind of the last call (:func:`_sort`), then a call of this kind. If bob drew directly from
    all calls, it would almost always take one that syncs a single file, since there are many of these. It would rarely
    take the only call that syncs everything. Only this call lets bob find data of a new file in the blocks of a removed
    file, since the call writes all data first."""
    natural = [one for one in ends if one.finish.natural]
    called: dict[str, list[Workload]] = {}
    for one in ends:
        if not one.finish.natural:
            called.setdefault(_sort(one), []).append(one)
    halves = [half for half in ([natural] if natural else [], [*called.values()]) if half]
    return random.choice(random.choice(random.choice(halves))) if halves else None


def _sort(workload: Workload) -> str:
    """Return the kind of the workload's last call, according to the objects that it syncs. The kind is "everything",
    "directory" (a directory that got a new name from an operation), or "thing" (any other file or directory)."""
    [call] = workload.finish.operations
    path = getattr(call, "path", None)
    if path is None:
        return "everything"
    got = (new.rpartition("/")[0] for new in map(_new_name, workload.operations) if new)
    return "directory" if path in got else "thing"


def _new_name(operation: Operation) -> str:
    if isinstance(operation, ops.Rename | ops.Link):
        return operation.new
    return operation.path if isinstance(operation, ops.Create | ops.Mknod | ops.Symlink | ops.Mkdir) else ""


def workload_of(bounds: Bounds, operations: Sequence[Operation], finish: Finish = NATURAL, at: At = At.ANY) -> Workload:
    """Return the workload of ``operations`` on the initial tree of ``bounds``. The name of the workload is the text of
    its operations. ``at`` says when crashes may come."""
    done = (*bounds.begin, *operations)
    return Workload("; ".join(map(write_one, done)), bounds.setup, done, finish, at)
