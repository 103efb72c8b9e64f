"""A space of workloads that a search could try, and the part of it that a search does try."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from random import Random

from bob.catalogue.probe_files import Probe, shipped_probes
from bob.claim.property.rules import Property, questions
from bob.workload.lacking import lacked, without
from bob.workload.operations import Workload
from bob.workload.simulation import simulate

BESIDE = "collateral"  # every workload tests this property: all that no operation changes stays unchanged

MOST_PASSED = 2_000  # if so many workloads in a row do not test a property, bob assumes that none does


class Space(ABC):
    name: str  # the name of the bounds
    asked: tuple[Property, ...]  # each workload tests at least one of them
    notes: tuple[str, ...] = ()  # lines about all workloads, for the user, once every() is through
    most_misses = 300  # if so many draws in a row give no new workload, bob stops drawing

    @abstractmethod
    def every(self, length: int) -> Iterator[Workload]:
        """Yield all workloads of ``length`` operations, each once, always in the same order."""

    def drawn(self, length: int, seed: int) -> Iterator[Workload]:
        """Yield workloads of ``length`` operations that bob draws at random; ``seed`` decides the draws. Yield each
        workload once. Stop when many draws in a row have given no new workload."""
        random, seen, misses = Random(seed), set[Hashable](), 0
        while misses < self.most_misses:
            misses += 1
            if (found := self.draw(length, random, seen)) is not None:
                seen.add(found[0])
                misses = 0
                yield found[1]

    @abstractmethod
    def draw(self, length: int, random: Random, seen: set[Hashable]) -> tuple[Hashable, Workload] | None:
        """Draw a workload, and return it with a key that equal workloads share. Return None if its key is in ``seen``,
        or if the drawn operations do not make a workload of this space."""


@dataclass(frozen=True, slots=True)
class Part:
    """The part of the workloads that a search tries. Several searches may share the workloads: each tries one of
    ``shards`` parts, and ``shard`` (from 1) says which. If ``sample`` is a number, each search tries only so many
    workloads, all of the greatest length. bob draws them at random, and ``seed`` starts the random numbers."""

    shard: int = 1
    shards: int = 1
    sample: int | None = None
    seed: int = 1

    def of(self, space: Space, length: int, *, is_drawn: bool = False) -> Iterator[Workload]:
        """Return the workloads of this part of ``space`` with up to ``length`` operations, shorter ones first. If
        ``is_drawn`` is true or ``sample`` is a number, draw the workloads, each with ``length`` operations."""
        if self.sample is None and not is_drawn:
            return self._mine(chain(*(space.every(number) for number in range(1, length + 1))))
        return islice(self._mine(space.drawn(length, self.seed)), self.sample)

    def _mine(self, workloads: Iterable[Workload]) -> Iterator[Workload]:
        return islice(workloads, self.shard - 1, None, self.shards)


ALL = Part()


def possible(
    workloads: Iterable[Workload], space: Space, lacks: Sequence[str], skipped: Counter[str] | None = None
) -> Iterator[Workload]:
    """Yield ``workloads`` without the operations in ``lacks``, which the file system does not support. If workloads
    become equal, yield only one. Leave out a workload that no longer tests anything. ``skipped`` counts, for each
    operation in ``lacks``, the workloads that were changed or left out because of it."""
    seen: set[object] = set()
    for workload in workloads:
        made = without(workload, lacks)
        if skipped is not None:
            # A workload that remains, and loses only operations of its setup, does not count.
            skipped.update(lacked(workload.operations if made else (*workload.setup, *workload.operations), lacks))
        if made is None or (lacks and not is_asked(space.asked, made)):
            continue
        key = made.operations, made.finish.name
        if key not in seen:
            seen.add(key)
            yield made


def still_asking(workloads: Iterable[Workload], asked: Sequence[Property]) -> Iterator[Workload]:
    """Yield workloads that test the properties in ``asked``, and skip all other workloads. bob takes the properties in
    turn, so that each gets the same number of workloads. If :data:`MOST_PASSED` workloads in a row do not test the
    property whose turn it is, bob looks for no more workloads for this property."""
    waiting, passed = list(asked), 0
    for workload in workloads:
        if not waiting:
            return
        if is_asked(waiting[:1], workload):
            waiting.append(waiting.pop(0))
            passed = 0
            yield workload
        elif (passed := passed + 1) == MOST_PASSED:
            waiting.pop(0)
            passed = 0


def probes(space: Space, workloads: Sequence[Workload]) -> tuple[Probe, ...]:
    """Return the rows of the result table, one for each property that some of ``workloads`` test. The last row is the
    property :data:`BESIDE`: a file stays the same if no operation changes it. All workloads test this property."""
    asking = {one.name: tuple(workload for workload in workloads if is_asked((one,), workload)) for one in space.asked}
    found = [one for one in space.asked if asking[one.name]]
    [beside] = shipped_probes((BESIDE,))
    return (
        *(Probe(row, one, asking[one.name]) for row, one in enumerate(found, start=1)),
        Probe(len(found) + 1, beside.property, tuple(workloads)),
    )


def is_asked(asked: Sequence[Property], workload: Workload) -> bool:
    history = simulate(workload)[0]
    return any(questions(one, history) for one in asked)
