"""Enumerate the crash states that a persistence model allows. A workload is split into *micro-operations*. Each
persists as a whole or not at all. A crash state is a set of micro-operations. The set is stored as a bit mask: bit i
stands for micro-operation i. A micro-operation *needs* another one if the model allows it to persist only when the
other has persisted, too. A set is *closed* if it has everything that its members need. First come the states that ALICE
tries (OSDI'14, section 4.3). These states are of three kinds. In the first kind, the first k calls of the program
persisted, and nothing else. In the second kind, a part of the next call persisted, too. In the third kind, one of the
first k calls did not persist. Then come all other states."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import accumulate, chain
from operator import or_

from bob.apm.clauses import Clause
from bob.apm.dependencies import Graph, inverted
from bob.apm.tree_digests import Shapes, bits, digest
from bob.apm.trees import ModelTree, nodes
from bob.observe.observation import Node


class CrashStage(StrEnum):
    """The reason why bob tries a crash. PREFIX: the first k calls of the program persisted, and nothing else. SPLIT:
    the first k calls persisted, and a part of the next call. WITHOUT: the first k calls persisted, except for one of
    them. LEAST: as little persisted as the model allows. FURTHER: any other set persisted."""

    PREFIX = "prefix"
    SPLIT = "split"
    WITHOUT = "without"
    LEAST = "least"
    FURTHER = "further"


@dataclass(frozen=True, slots=True)
class ModelCrash:
    """A crash between the returns of two operations. ``returned`` is the number of the last operation that had returned
    (0: none had). ``there`` is a bit mask, the set of micro-operations that had persisted. ``stage`` says why bob tries
    this crash."""

    there: int
    returned: int
    stage: CrashStage


class Lattice:
    """All closed sets of the micro-operations of a workload, under a model that promises ``promised``. (A set is closed
    if it has everything that its members need.)"""

    def __init__(self, graph: Graph, promised: Set[Clause]) -> None:
        operations = graph.workings.operations
        count = len(operations)
        needs = graph.needs(promised)
        kept = graph.returns[-1] + 1
        reached = _reach(needs, count, kept)
        self.needs = reached[:count]  # by micro-operation: itself, and all that it needs
        self.needed_by = _reach(inverted(needs), count, count)[
            :count
        ]  # by micro-operation: itself, and all that need it
        self.forced = [reached[node] for node in graph.returns]  # by operation: what its return makes durable
        self.number_of = [operation.number for operation in operations]  # by micro-operation: its operation
        self.of = [0] * len(graph.returns)  # by operation: its micro-operations
        for at, operation in enumerate(operations):
            self.of[operation.number] |= 1 << at
        self.upto = list(accumulate(self.of, or_))  # by operation: the micro-operations of all operations up to it

    def atoms(self, mask: int) -> list[int]:
        """Split the set ``mask`` into groups of micro-operations that can only persist together, and return the first
        micro-operation of each group."""
        found = []
        for at in bits(mask):
            together = self.needs[at] & self.needed_by[at]
            if together & -together == 1 << at:
                found.append(at)
        return found


@dataclass(frozen=True, slots=True)
class AllowedTrees:
    """The distinct trees that a model allows. ``complete`` says that the search found all of them before it reached its
    limit."""

    trees: tuple[ModelTree, ...]
    complete: bool


def allowed_trees(graph: Graph, promised: Set[Clause], limit: int) -> AllowedTrees:
    """Return the distinct trees that a model allows, from at most ``limit`` closed sets of micro-operations. A model
    may also allow garbage (names or contents that no operation made). Trees with such garbage are left out."""
    shapes, found = Shapes(graph.workings, promised), dict[ModelTree, None]()
    for count, there in enumerate(closed_sets(Lattice(graph, promised))):
        if count >= limit:
            return AllowedTrees(tuple(found), complete=False)
        found.update(dict.fromkeys(shapes.trees(there)))
    return AllowedTrees(tuple(found), complete=True)


def dependencies(graph: Graph, promised: Set[Clause]) -> tuple[frozenset[int], ...]:
    """Return, for each micro-operation, the indexes of the other micro-operations that it needs, directly or
    indirectly."""
    needs = Lattice(graph, promised).needs
    return tuple(frozenset(bits(needed & ~(1 << at))) for at, needed in enumerate(needs))


def closed_sets(lattice: Lattice) -> Iterator[int]:
    """Yield every closed set of micro-operations, the empty one first. A set is closed if it has everything that its
    members need."""
    stack = [(0, 0, 0)]
    while stack:
        at, there, lost = stack.pop()
        while (there | lost) >> at & 1:
            at += 1
        if at == len(lattice.needs):
            yield there
        else:
            stack.append((at + 1, there | lattice.needs[at], lost))
            stack.append((at + 1, there, lost | lattice.needed_by[at]))


def crashes(lattice: Lattice, outputs: Sequence[bytes], budget: int | None = None) -> Iterator[ModelCrash]:
    """Yield every crash state that the model allows, in bob's order of trials. Some states occur twice. ``outputs[k]``
    is all output that the program had written when operation k had returned.

    A *prefix* is a state that has exactly the first k operations. ``budget`` is the number of states that bob can try.
    Normally all prefixes come first. But they might take more than three quarters of the budget. In this case, only
    some prefixes come first, evenly spread over the workload, and take half of the budget. The other half alternates
    between two kinds of states. In a state of the first kind, the last operation has persisted only in part, or an
    earlier operation has not persisted. A state of the second kind loses as much as the model allows."""
    last = len(lattice.of) - 1
    numbers = range(last + 1)
    is_spread = budget is not None and len(numbers) > budget * 3 // 4
    first = (
        sorted({last * one // max(budget // 2, 1) for one in range(budget // 2 + 1)})
        if budget and is_spread
        else numbers
    )
    for returned in first:
        yield ModelCrash(lattice.upto[returned], returned, CrashStage.PREFIX)
    if is_spread:
        order = _spread(last)
        split = _in_turns(*(_split(lattice, returned) for returned in order))
        without = _in_turns(*(_without(lattice, returned) for returned in (last, *order)))
        yield from _in_turns(split, without, _least(lattice, outputs, order))
        yield from (ModelCrash(lattice.upto[returned], returned, CrashStage.PREFIX) for returned in numbers)
    else:
        split = chain.from_iterable(_split(lattice, returned) for returned in range(last))
        without = chain.from_iterable(_without(lattice, returned) for returned in reversed(numbers))
        yield from _in_turns(split, without)
    yield from _further(lattice, outputs)


def _least(lattice: Lattice, outputs: Sequence[bytes], order: Sequence[int]) -> Iterator[ModelCrash]:
    """Yield one state for each distinct output: the state that has only what is durable when the program has just
    written this output. The first state is for the last output. The others follow in the ``order`` of operations."""
    since = [0] * len(lattice.of)  # by operation: the operation that wrote the end of the output by then
    for number in range(1, len(since)):
        since[number] = since[number - 1] if outputs[number] == outputs[number - 1] else number
    for returned in dict.fromkeys(since[one] for one in (len(since) - 1, *order)):
        yield ModelCrash(lattice.forced[returned], returned, CrashStage.LEAST)


def _spread(count: int) -> list[int]:
    """Return the numbers below ``count``, sorted by their reversed bits. Therefore the first n numbers of the list, for
    any n, are spread evenly over the range."""
    width = count.bit_length()
    return sorted(range(count), key=lambda one: int(f"{one:0{width}b}"[::-1], 2))


def _in_turns(*works: Iterator[ModelCrash]) -> Iterator[ModelCrash]:
    left = list(works)
    while left:
        ended = set()
        for place, work in enumerate(left):
            crash = next(work, None)
            if crash is None:
                ended.add(place)
            else:
                yield crash
        left = [work for place, work in enumerate(left) if place not in ended]


def _without(lattice: Lattice, returned: int) -> Iterator[ModelCrash]:
    free = lattice.upto[returned] & ~lattice.forced[returned]  # a durable operation loses nothing
    for earlier in sorted({lattice.number_of[at] for at in bits(free)}, reverse=True):
        lost = 0
        for at in bits(lattice.of[earlier]):
            lost |= lattice.needed_by[at]
        if not lost & lattice.forced[returned]:
            yield ModelCrash(lattice.upto[returned] & ~lost, returned, CrashStage.WITHOUT)


def _split(lattice: Lattice, returned: int) -> Iterator[ModelCrash]:
    """Yield states that have all operations up to operation ``returned``, and a part of the next operation. Each of the
    first states has one more micro-operation of the next operation than the state before. Each of the later states
    either lacks one micro-operation of the next operation, or has only one."""
    crash = partial(ModelCrash, returned=returned, stage=CrashStage.SPLIT)
    before, own = lattice.upto[returned], lattice.of[returned + 1]
    parts = lattice.atoms(own)
    first = before
    for at in parts:
        first |= lattice.needs[at]
        yield crash(first)
    for at in parts:
        yield crash((before | own) & ~lattice.needed_by[at])
        yield crash(before | lattice.needs[at])


@dataclass(frozen=True, slots=True)
class CrashInterval:
    """All crash states between the return of operation ``returned`` and the next return. A crash state is the set of
    micro-operations that persisted. ``base``, ``free`` and ``must`` are sets of micro-operations, too (as bit masks). A
    crash state of this interval has all members of ``base``, but may lack members of ``free``. ``must`` is empty for
    the first interval, and if operation ``returned`` wrote output. Otherwise a crash state of this interval also has at
    least one member of ``must``. (Without one, it belongs to the interval before, which has the same output.)"""

    returned: int
    base: int
    free: int
    must: int


def places(lattice: Lattice, outputs: Sequence[bytes]) -> Iterator[CrashInterval]:
    """Yield the intervals between two returns of operations. Every crash state belongs to exactly one interval."""
    last = len(lattice.of) - 1
    for returned in range(last + 1):
        is_new = returned == 0 or outputs[returned] != outputs[returned - 1]
        base = lattice.upto[min(returned + 1, last)]
        if is_new or base != lattice.upto[returned]:
            # Sets without any of ``must`` are in the interval before: there less is durable, and the output is equal.
            must = 0 if is_new else lattice.of[returned + 1]
            yield CrashInterval(returned, base, base & ~lattice.forced[returned], must)


def _further(lattice: Lattice, outputs: Sequence[bytes]) -> Iterator[ModelCrash]:
    """Yield every closed set. First come the sets that lose nothing, then the sets that lose one micro-operation (and
    what needs it). Next come the sets that lose two micro-operations that do not need each other, and so on."""
    waiting, size = list(places(lattice, outputs)), 0
    while waiting:
        left = []
        for place in waiting:
            # Compute the atoms again for each size: those of all intervals together would take quadratic memory.
            atoms = lattice.atoms(place.free) if size else []
            is_any = False
            for lost in _antichains(lattice, atoms, size):
                is_any = True
                there = place.base & ~lost
                if not place.must or there & place.must:
                    yield ModelCrash(there, place.returned, CrashStage.FURTHER)
            if is_any:
                left.append(place)
        waiting, size = left, size + 1


def _antichains(lattice: Lattice, atoms: Sequence[int], size: int) -> Iterator[int]:
    """Make all choices of ``size`` micro-operations from ``atoms`` such that no chosen one needs another. For each
    choice, yield the set of micro-operations that are lost: the chosen ones, and all that need them."""

    def choose(start: int, left: int, chosen: int, lost: int) -> Iterator[int]:
        if not left:
            yield lost
            return
        for place in range(start, len(atoms) - left + 1):
            at = atoms[place]
            if not lost >> at & 1 and not lattice.needed_by[at] & chosen:
                yield from choose(place + 1, left - 1, chosen | 1 << at, lost | lattice.needed_by[at])

    yield from choose(0, size, 0, 0)


@dataclass(frozen=True, slots=True)
class ModelState:
    """A state that a workload may leave under a model. It differs from all states that bob has tried before. ``crash``
    is the first crash that leaves it. ``output`` is the program's output before that crash. A crash may leave several
    trees, because holes may be filled in several ways; ``variant`` is the number of this state's tree among them.
    ``digest`` covers the tree and the output."""

    crash: ModelCrash
    output: bytes
    variant: int
    digest: bytes


class ModelStates:
    """The distinct states that a workload may leave under a model. An iteration over this object computes them one by
    one. Only the digests of the states stay in memory. ``tried`` counts the crash states that bob has tried so far, and
    ``most`` is the limit of this number. ``is_all`` says whether bob has tried all crash states that the model allows.
    ``budget`` decides which states come first (:func:`crashes`)."""

    def __init__(
        self, graph: Graph, promised: Set[Clause], outputs: Sequence[bytes], most: int, budget: int | None = None
    ) -> None:
        self.tried, self.is_all = 0, False
        self._outputs, self._most, self._budget = outputs, most, budget
        self._shapes = Shapes(graph.workings, promised)
        self.lattice = Lattice(graph, promised)
        self._sets: set[bytes] = set()
        self._digests: set[bytes] = set()
        self.shapes: set[bytes] = set()  # the result of shape_of for each tree and its output
        self.prefixes: list[bytes | None] = [None] * len(self.lattice.of)  # digests, by number of operations

    def __iter__(self) -> Iterator[ModelState]:
        for crash in crashes(self.lattice, self._outputs, self._budget):
            output = self._outputs[crash.returned]
            key = digest(output, crash.there.to_bytes((crash.there.bit_length() + 7) // 8, "little"))
            if key in self._sets:
                if crash.stage is CrashStage.PREFIX:  # the last operation changed nothing
                    self.prefixes[crash.returned] = self._shapes.of(output, crash.there)[0][0]
                continue
            if self.tried >= self._most:
                return
            self._sets.add(key)
            self.tried += 1
            for variant, (of_tree, shape) in enumerate(self._shapes.of(output, crash.there)):
                if crash.stage is CrashStage.PREFIX and not variant:
                    self.prefixes[crash.returned] = of_tree
                if of_tree not in self._digests:
                    self._digests.add(of_tree)
                    self.shapes.add(shape)
                    yield ModelState(crash, output, variant, of_tree)
        self.is_all = True

    @property
    def shows_stale(self) -> bool:
        """True if some state so far may show stale data in holes (parts of files whose data is missing). In this case,
        bob has not tried all trees. It fills all holes of a tree in the same way, but the model also allows zeros in
        some holes and stale data in others."""
        return self._shapes.shows_stale

    def tree(self, state: ModelState) -> ModelTree:
        return self._shapes.tree(state.crash.there, state.variant)

    def nodes(self, state: ModelState) -> Mapping[str, Node]:
        return nodes(self.tree(state))


def _reach(needs: Sequence[Sequence[int]], micro: int, kept: int) -> list[int]:
    """Return, for each node, a mask of nodes that it needs, directly or indirectly, including itself. The mask has only
    the first ``micro`` nodes, the micro-operations. Only the first ``kept`` masks of the result are valid. The other
    masks, which belong to helper nodes, are replaced by 0 after their last use, to save memory. (The algorithm is
    Tarjan's for strongly connected components, 1972.)"""
    reached = [0] * len(needs)
    waiting = [0] * len(needs)
    for wanted in needs:
        for other in wanted:
            waiting[other] += 1
    number: list[int] = [-1] * len(needs)
    low = [0] * len(needs)
    is_open = [False] * len(needs)
    path: list[int] = []
    count = 0
    for start in range(len(needs)):
        if number[start] >= 0:
            continue
        work: list[tuple[int, Iterator[int]]] = [(start, iter(needs[start]))]
        number[start] = low[start] = count
        count += 1
        path.append(start)
        is_open[start] = True
        while work:
            node, others = work[-1]
            for other in others:
                if number[other] < 0:
                    number[other] = low[other] = count
                    count += 1
                    path.append(other)
                    is_open[other] = True
                    work.append((other, iter(needs[other])))
                    break
                if is_open[other]:
                    low[node] = min(low[node], number[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    group, mask = [path.pop()], 0
                    while group[-1] != node:
                        group.append(path.pop())
                    for one in group:
                        is_open[one] = False
                        mask |= 1 << one if one < micro else 0
                        for other in needs[one]:
                            mask |= reached[other]
                            waiting[other] -= 1
                            if not waiting[other] and other >= kept:
                                reached[other] = 0
                    for one in group:
                        reached[one] = mask if one < kept or waiting[one] else 0
    return reached
