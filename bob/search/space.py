"""A space of workloads: all that there are of so many operations, and which part of them is tried.

Spaces are made in :mod:`bob.search.within` (bounds of a file) and :mod:`bob.search.ace` (those of ACE).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Protocol

from bob.catalogue.probe_files import Probe, shipped_probes
from bob.claim.property.rules import Property, questions
from bob.errors import UsageError
from bob.workload.history import RefusedError, simulate
from bob.workload.lacking import without
from bob.workload.operations import Workload

BESIDE = "collateral"
"""The property that is asked of every workload: what no operation was to change is as it was."""


class Space(Protocol):
    """Where the workloads of a search come from. ``asked`` are the properties of which each asks at least one."""

    @property
    def name(self) -> str:
        """The name of the bounds, for people."""

    @property
    def asked(self) -> tuple[Property, ...]:
        """The properties that are asked."""

    def every(self, length: int) -> Iterator[Workload]:
        """All workloads of ``length`` operations, each once, always in the same order."""

    def drawn(self, length: int, seed: int) -> Iterator[Workload]:
        """Different workloads of ``length`` operations, in an order that ``seed`` draws, as long as there are more."""


@dataclass(frozen=True, slots=True)
class Part:
    """Which workloads are tried: those of shard ``shard`` of ``shards`` (from 1); with a ``sample``, so many for each
    shard, drawn by ``seed``, all of the greatest length."""

    shard: int = 1
    shards: int = 1
    sample: int | None = None
    seed: int = 1

    def of(self, space: Space, length: int) -> tuple[Workload, ...]:
        """The workloads of up to ``length`` operations that belong to it, the shorter ones first."""
        if self.sample is None:
            return tuple(self._mine(chain(*(space.every(number) for number in range(1, length + 1)))))
        return tuple(islice(self._mine(space.drawn(length, self.seed)), self.sample))

    def _mine(self, workloads: Iterable[Workload]) -> Iterator[Workload]:
        return islice(workloads, self.shard - 1, None, self.shards)


ALL = Part()


def probes(space: Space, length: int, part: Part = ALL, lacks: Sequence[str] = ()) -> tuple[Probe, ...]:
    """What is asked in ``space``, each with the workloads of up to ``length`` operations that ask for it; and that all
    else is as it was. The file system ``lacks`` operations: workloads go without them.

    Raises UsageError where no workload asks for anything: nothing would be tried.
    """
    made = _possible(part.of(space, length), lacks, space.asked)
    if not made:
        raise UsageError(
            f"no workload within {space.name} that is to be tried asks for what its calls promise",
            hint="--count tells how many there are; a --shard of many may have none",
        )
    asking = {one.name: tuple(workload for workload in made if is_asked((one,), workload)) for one in space.asked}
    found = [one for one in space.asked if asking[one.name]]
    return (
        *(Probe(row, one, asking[one.name]) for row, one in enumerate(found, start=1)),
        _beside(len(found) + 1, made),
    )


def probes_of_property(
    space: Space, length: int, prop: Property, part: Part = ALL, lacks: Sequence[str] = ()
) -> tuple[Probe, ...]:
    """``prop`` with the workloads of up to ``length`` operations that ask for it, as by :func:`probes`.

    Raises UsageError where none asks for it.
    """
    made = _possible(part.of(space, length), lacks, (prop,))
    if not made:
        raise UsageError(
            f"no workload of {length} operations within {space.name} asks for {prop.name}",
            hint="an order takes two operations (--ops 2), append-rename-any three; --bounds says which there are",
        )
    return Probe(1, prop, made), _beside(2, made)


def is_possible(workload: Workload) -> bool:
    """Whether a file system would take all its operations."""
    try:
        simulate(workload)
    except RefusedError:
        return False
    return True


def is_asked(asked: Sequence[Property], workload: Workload) -> bool:
    """Whether ``workload`` asks for one of the properties ``asked``."""
    history = simulate(workload)[0]
    return any(questions(one, history) for one in asked)


def _possible(workloads: Iterable[Workload], lacks: Sequence[str], asked: Sequence[Property]) -> tuple[Workload, ...]:
    """``workloads``, each once, as they are where a file system ``lacks`` operations: those that still ask for it."""
    kept: dict[object, Workload] = {}
    for workload in workloads:
        if (possible := without(workload, lacks)) is not None and (not lacks or is_asked(asked, possible)):
            kept.setdefault((possible.operations, possible.finish.name), possible)
    return tuple(kept.values())


def _beside(row: int, made: tuple[Workload, ...]) -> Probe:
    [beside] = shipped_probes((BESIDE,))
    return Probe(row, beside.property, made)
