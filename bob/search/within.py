"""Every workload of a length within bounds, or a drawn sample. A workload tests the promises of its last call, or one
property. Workloads that a file system would refuse, that differ only in names, or that test nothing are left out."""

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from random import Random

from bob.claim.property.rules import Property
from bob.search.alike import Renamings
from bob.search.bounds import Bounds, together
from bob.search.space import Space, is_asked, is_possible
from bob.workload import operations as ops
from bob.workload.language import write_one
from bob.workload.operations import NATURAL, At, Finish, Operation, Workload

LATER = tuple(Finish(f"natural {phase}", natural=True, phase=phase) for phase in (2.5, 4.5))
"""The kernel's periodic work falls at other moments with these."""
MOST_TRIES = 30  # draws for a place, until one is not refused


class Within(Space):
    """The workloads within ``bounds`` that test one of ``props``, or else the bounds' promises. For properties, the
    finish is natural or a call, and the crash may come at any time. For promises, a call is the last operation, and the
    crash comes when it has returned."""

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
        """Yield the possible workloads that ask for something, only the first of all that are alike."""
        for workload in self._ends(operations):
            done = (*workload.operations, *workload.finish.operations)
            if is_possible(workload) and self._alike.is_first(done) and is_asked(self.asked, workload):
                yield workload

    def _sequences(self, before: tuple[Operation, ...], left: int) -> Iterator[tuple[Operation, ...]]:
        """Yield the possible sequences of ``left`` more operations, with a call or none between two."""
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
    """Return one of ``ends``, or None: half of the time natural, else each sort of call as often. There are many files
    to sync, but sync of everything writes all data first, and so shows data in a removed file's blocks."""
    natural = [one for one in ends if one.finish.natural]
    called: dict[str, list[Workload]] = {}
    for one in ends:
        if not one.finish.natural:
            called.setdefault(_sort(one), []).append(one)
    halves = [half for half in ([natural] if natural else [], [*called.values()]) if half]
    return random.choice(random.choice(random.choice(halves))) if halves else None


def _sort(workload: Workload) -> str:
    """Return the object of the last call: everything, a directory that got a name, or one other thing."""
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
    """Return the workload of ``operations`` on the tree of ``bounds``, with their text as its name."""
    done = (*bounds.begin, *operations)
    return Workload("; ".join(map(write_one, done)), bounds.setup, done, finish, at)
