"""Every workload of so many operations within bounds, or some that are drawn, and the probes that ask about them.

A workload asks either what its last call promises, or for one property. Left out is what a file system would refuse,
what differs from another one in names alone, and what asks for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from random import Random

from bob.catalogue.probe_files import Probe, shipped_probes
from bob.claim.property.rules import Property, questions
from bob.errors import UsageError
from bob.search.alike import Renamings
from bob.search.bounds import Bounds
from bob.workload.history import RefusedError, simulate
from bob.workload.lacking import without
from bob.workload.language import write_one
from bob.workload.operations import At, Finish, Operation, Workload

NATURAL = Finish("natural", natural=True)
BESIDE = "collateral"
"""The property that is asked of every workload: what no operation was to change is as it was."""
MOST_MISSES = 300
"""After so many draws in a row of which none is a new workload, there are taken to be no more."""
MOST_TRIES = 30
"""So many operations are drawn for a place until one is not refused."""
Ending = Callable[[Sequence[Operation]], Iterator[Workload]]
"""Of operations, the workloads that they make, each with another end."""


def promising(bounds: Bounds) -> Ending:
    """The ends that ask what ``bounds`` promise: one of the calls. The crash comes after it has returned."""

    def workloads(operations: Sequence[Operation]) -> Iterator[Workload]:
        for call in bounds.calls:
            yield _workload(bounds, (*operations, call), at=At.END)

    return _new_ones(bounds, workloads, bounds.promises)


def asking(bounds: Bounds, prop: Property) -> Ending:
    """The ends that ask for ``prop``: that the kernel writes when it wants to, or one of the calls. The crash may come
    at any time."""
    finishes = [NATURAL, *(Finish(write_one(call), (call,)) for call in bounds.calls)]

    def workloads(operations: Sequence[Operation]) -> Iterator[Workload]:
        for finish in finishes:
            yield _workload(bounds, operations, finish)

    return _new_ones(bounds, workloads, (prop,))


def every(bounds: Bounds, length: int, ending: Ending) -> Iterator[Workload]:
    """All workloads of ``length`` operations, with a call or none between two."""
    return chain.from_iterable(map(ending, _sequences(bounds, (), length)))


def drawn(bounds: Bounds, length: int, ending: Ending, seed: int) -> Iterator[Workload]:
    """Different workloads of ``length`` operations, in an order that ``seed`` draws, until new ones are rare."""
    random, seen, misses = Random(seed), set[str](), 0
    while misses < MOST_MISSES:
        misses += 1
        operations = _draw(bounds, length, random)
        ends = list(ending(operations)) if operations else []
        workload = random.choice(ends) if ends else None
        if workload is not None and workload.title not in seen:
            seen.add(workload.title)
            misses = 0
            yield workload


@dataclass(frozen=True, slots=True)
class Part:
    """Which workloads are tried: those of shard ``shard`` of ``shards`` (from 1); with a ``sample``, so many for each
    shard, drawn by ``seed``, all of the greatest length."""

    shard: int = 1
    shards: int = 1
    sample: int | None = None
    seed: int = 1

    def of(self, bounds: Bounds, length: int, ending: Ending) -> tuple[Workload, ...]:
        """The workloads of up to ``length`` operations that belong to it, the shorter ones first."""
        if self.sample is None:
            return tuple(self._mine(chain(*(every(bounds, number, ending) for number in range(1, length + 1)))))
        return tuple(islice(self._mine(drawn(bounds, length, ending, self.seed)), self.sample))

    def _mine(self, workloads: Iterable[Workload]) -> Iterator[Workload]:
        return islice(workloads, self.shard - 1, None, self.shards)


ALL = Part()


def probes(bounds: Bounds, length: int, part: Part = ALL, lacks: Sequence[str] = ()) -> tuple[Probe, ...]:
    """What ``bounds`` promise, each with the workloads of up to ``length`` operations that ask for it; and that all
    else is as it was. The file system ``lacks`` operations: workloads go without them.

    Raises UsageError where no workload asks for any promise: nothing would be tried.
    """
    made = _possible(part.of(bounds, length, promising(bounds)), lacks, bounds.promises)
    if not made:
        raise UsageError(
            f"no workload within {bounds.name} that is to be tried asks for what its calls promise",
            hint="--count tells how many there are; a --shard of many may have none",
        )
    asked = {one.name: [workload for workload in made if _is_asked((one,), workload)] for one in bounds.promises}
    promised = [one for one in bounds.promises if asked[one.name]]
    found = [Probe(row, one, tuple(asked[one.name])) for row, one in enumerate(promised, start=1)]
    return (*found, _beside(len(found) + 1, made))


def probes_of_property(
    bounds: Bounds, length: int, prop: Property, part: Part = ALL, lacks: Sequence[str] = ()
) -> tuple[Probe, ...]:
    """``prop`` with the workloads of up to ``length`` operations that ask for it, as by :func:`probes`.

    Raises UsageError where none asks for it.
    """
    made = _possible(part.of(bounds, length, asking(bounds, prop)), lacks, (prop,))
    if not made:
        raise UsageError(
            f"no workload of {length} operations within {bounds.name} asks for {prop.name}",
            hint="an order takes two operations (--ops 2), append-rename-any three; --bounds says which there are",
        )
    return Probe(1, prop, made), _beside(2, made)


def _possible(workloads: Iterable[Workload], lacks: Sequence[str], asked: Sequence[Property]) -> tuple[Workload, ...]:
    """``workloads``, each once, as they are where a file system ``lacks`` operations: those that still ask for it."""
    kept: dict[object, Workload] = {}
    for workload in workloads:
        if (possible := without(workload, lacks)) is not None and (not lacks or _is_asked(asked, possible)):
            kept.setdefault((possible.operations, possible.finish.name), possible)
    return tuple(kept.values())


def _beside(row: int, made: tuple[Workload, ...]) -> Probe:
    [beside] = shipped_probes((BESIDE,))
    return Probe(row, beside.property, made)


def _sequences(bounds: Bounds, before: tuple[Operation, ...], left: int) -> Iterator[tuple[Operation, ...]]:
    """The sequences of ``left`` more operations after those ``before`` that a file system does not refuse."""
    if not left:
        yield before
        return
    for operation in bounds.operations:
        done = (*before, operation)
        if not _is_possible(_workload(bounds, done)):
            continue
        yield from _sequences(bounds, done, left - 1)
        if left > 1:
            for call in bounds.between:
                if _is_possible(_workload(bounds, (*done, call))):
                    yield from _sequences(bounds, (*done, call), left - 1)


def _draw(bounds: Bounds, length: int, random: Random) -> tuple[Operation, ...]:
    """A sequence of ``length`` operations; empty where the ones drawn next are refused too often."""
    done: tuple[Operation, ...] = ()
    for number in range(length):
        choices = (random.choice(bounds.operations) for _ in range(MOST_TRIES))
        if (more := next((one for one in choices if _is_possible(_workload(bounds, (*done, one)))), None)) is None:
            return ()
        done = (*done, more)
        if number < length - 1 and bounds.between and random.random() < 1 / 2:
            call = random.choice(bounds.between)
            done = (*done, call) if _is_possible(_workload(bounds, (*done, call))) else done
    return done


def _new_ones(bounds: Bounds, workloads: Ending, asked: Sequence[Property]) -> Ending:
    """Of the ``workloads`` that operations make, those that can be done, that come first of all that are alike, and
    that ask for one of the properties ``asked``."""
    alike = Renamings(bounds)

    def chosen(operations: Sequence[Operation]) -> Iterator[Workload]:
        for workload in workloads(operations):
            done = (*workload.operations, *workload.finish.operations)
            if _is_possible(workload) and alike.is_first(done) and _is_asked(asked, workload):
                yield workload

    return chosen


def _workload(bounds: Bounds, operations: Sequence[Operation], finish: Finish = NATURAL, at: At = At.ANY) -> Workload:
    return Workload("; ".join(map(write_one, operations)), bounds.setup, tuple(operations), finish, at)


def _is_possible(workload: Workload) -> bool:
    try:
        simulate(workload)
    except RefusedError:
        return False
    return True


def _is_asked(asked: Sequence[Property], workload: Workload) -> bool:
    history = simulate(workload)[0]
    return any(questions(one, history) for one in asked)
