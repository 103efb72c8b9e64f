"""Every workload of so many operations within bounds, and the probes that ask what was promised of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from bob.catalogue.probe_files import Probe, shipped_probes
from bob.claim.property.rules import Property, questions
from bob.search.alike import Renamings
from bob.search.bounds import Bounds
from bob.workload.history import RefusedError, simulate
from bob.workload.language import write_one
from bob.workload.operations import At, Finish, Operation, Workload

BESIDE = "collateral"
"""The property that is asked of every workload: what no operation was to change is as it was."""


def workloads(bounds: Bounds, length: int) -> Iterator[Workload]:
    """The workloads of ``length`` operations: one after the other, with a call or none between two, and a call at their
    end.

    The crash comes after that call has returned. Left out is what a file system would refuse, what differs from
    another one in names alone, and a workload whose call promises nothing.
    """
    alike = Renamings(bounds)
    for operations in _sequences(bounds, (), length):
        for call in bounds.calls:
            workload = _workload(bounds, (*operations, call))
            if _is_possible(workload) and alike.is_first(workload.operations) and _asking(bounds.promises, workload):
                yield workload


def probes(bounds: Bounds, length: int) -> tuple[Probe, ...]:
    """What ``bounds`` promise, each with the workloads of up to ``length`` operations that ask for it, the shorter ones
    first; and that all else is as it was."""
    made = tuple(chain.from_iterable(workloads(bounds, number) for number in range(1, length + 1)))
    asked = {one.name: [workload for workload in made if _asking((one,), workload)] for one in bounds.promises}
    [beside] = shipped_probes((BESIDE,))
    promised = [one for one in bounds.promises if asked[one.name]]
    found = [Probe(row, one, tuple(asked[one.name])) for row, one in enumerate(promised, start=1)]
    return (*found, Probe(len(found) + 1, beside.property, made))


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


def _workload(bounds: Bounds, operations: Sequence[Operation]) -> Workload:
    name = "; ".join(map(write_one, operations))
    return Workload(name, bounds.setup, tuple(operations), Finish("natural", natural=True), At.END)


def _is_possible(workload: Workload) -> bool:
    try:
        simulate(workload)
    except RefusedError:
        return False
    return True


def _asking(promises: Sequence[Property], workload: Workload) -> bool:
    history = simulate(workload)[0]
    return any(questions(one, history) for one in promises)
