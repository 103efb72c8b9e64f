"""The dependencies between the micro-operations of a workload, as a graph. A micro-operation is a change of one name,
size, attribute or piece of a file, which persists as a whole or not at all. A node of the graph stands for something
that persists or happens. The first nodes are the micro-operations, by index. Then come the returns of operations. The
last nodes are helpers; each stands for "some of" or "all of" a group of micro-operations, which are its *parts*. An
edge names clauses (promises of a model). It says that one node needs another in a model that promises these clauses."""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from bob.apm import clauses, micro
from bob.apm.clauses import Clause
from bob.apm.micro import AttributeCell, DataCell, Growth, MicroOperation, NameCell, SizeCell, Workings, block_of
from bob.claim.property.calls import call_of
from bob.claim.property.subjects import BLOCK_BYTES
from bob.claim.property.vocabulary import Call, Unit, What
from bob.workload import operations as ops
from bob.workload.history import HistoryStep
from bob.workload.kinds import ChangeKind, OperationChange, relation
from bob.workload.operations import Operation, Workload
from bob.workload.simulation import simulate


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge of the graph. In a model that promises all of ``clauses``, the node ``node`` persists only if the node
    ``needs`` does. ``synced`` says that the edge stands for an order of two changes, and that some call syncs the file
    or directory of the later change. Such an edge does not hold in a model that promises the order only with the
    exception ``unless_synced``."""

    node: int
    needs: int
    clauses: frozenset[Clause] = frozenset()
    synced: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """All dependencies of a workload. ``nodes`` is the number of nodes. ``returns[k]`` is the node for the return of
    operation k. The node ``returns[0]`` stands for the start of the workload. The operations of the workload's finish
    (how it ends), such as a last sync, are numbered, too."""

    workings: Workings
    nodes: int
    returns: tuple[int, ...]
    edges: tuple[Edge, ...]

    def is_shown(self, node: int) -> bool:
        """Return whether a node is a micro-operation or a return. Otherwise it is a helper node."""
        return node <= self.returns[-1]

    def operation(self, node: int) -> int:
        operations = self.workings.operations
        return operations[node].number if node < len(operations) else self.returns.index(node)

    @property
    def clauses(self) -> frozenset[Clause]:
        """The clauses that the graph's workload tests: if a model promises such a clause, it forbids some crash states
        of the workload."""
        kinds = {change.kind for change in self.workings.changes}
        alone: set[Clause] = {clauses.Intact(part) for part in clauses.TreePart}
        alone |= {never for never in clauses.NEVERS if never.kind in kinds}
        return frozenset(alone).union(*(edge.clauses for edge in self.edges))

    def needs(self, promised: Set[Clause]) -> list[list[int]]:
        """Return, for each node, the list of nodes that it needs in a model that promises exactly the clauses
        ``promised``."""
        needed: list[list[int]] = [[] for _ in range(self.nodes)]
        unless_synced = frozenset(map(clauses.without_exception, promised))
        for edge in self.edges:
            if edge.clauses <= (promised if edge.synced else unless_synced):
                needed[edge.node].append(edge.needs)
        return needed


def inverted(needs: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return, for each node, the list of nodes that need it. ``needs`` has, for each node, the nodes that it needs."""
    needed_by: list[list[int]] = [[] for _ in needs]
    for node, others in enumerate(needs):
        for other in others:
            needed_by[other].append(node)
    return needed_by


@dataclass(frozen=True, slots=True)
class SyncCall:
    """Operation number ``number`` of a workload, which syncs something. ``call`` says how it does that, for example by
    fsync(2). ``thing`` is the number of the file or directory that the operation syncs (None: it syncs everything).
    ``parents`` are the directories that contain a name of this file or directory. ``is_write`` says that the operation
    is a synchronous write."""

    number: int
    call: Call
    thing: int | None = None
    parents: frozenset[int] = frozenset()
    is_write: bool = False


def graph(workload: Workload, taken: Workings) -> Graph:
    return GraphBuilder(workload, taken).graph()


def graph_of_workload(workload: Workload) -> Graph:
    """Simulate ``workload``, and return its graph. Raises UsageError if an operation of the workload fails, or if
    models cannot describe it."""
    return graph(workload, micro.workings(simulate(workload)[0], workload.finish.operations))


class GraphBuilder:
    """A builder of the graph for one workload. It adds nodes and edges clause by clause. ``taken`` has the
    micro-operations of the workload."""

    def __init__(self, workload: Workload, taken: Workings) -> None:
        self._taken = taken
        self._performed: tuple[Operation, ...] = (*workload.operations, *workload.finish.operations)
        self._nodes = len(taken.operations)
        self._edges: list[Edge] = []
        self._returns = tuple(self._node() for _ in range(len(self._performed) + 1))
        self._of_change: dict[int, list[int]] = defaultdict(list)
        for at, operation in enumerate(taken.operations):
            self._of_change[operation.change].append(at)

    def graph(self) -> Graph:
        self._in_time()
        later, earlier = {}, {}
        for index, parts in self._of_change.items():
            some, every = self._group(parts)
            self._at_once(index, some, every)
            later[index], earlier[index] = self._but_in_place(index, parts, some, every)
        self._orders(later, earlier)
        self._journaled()
        self._sizes_synced()
        self._durable()
        return Graph(self._taken, self._nodes, self._returns, tuple(self._edges))

    def _but_in_place(self, index: int, parts: Sequence[int], some: int, every: int) -> tuple[int, int]:
        """Return two nodes for a change. The first stands for "some of its parts", the second for "all of its parts".
        Both are meant for the order between this change and others. So they leave out a part that the kernel may write
        at any time, because no order binds such a part.

        There are two cases. After a cut (truncation), the kernel writes zeros behind the new end in the last block. And
        an append may write data into the place of data that was cut off. The kernel may write the zeros and this data
        at any time. If the file on the disk still has its old size, the zeros and the data show in the file, whatever
        else has persisted. So "some of its parts" leaves out both. "All of its parts" leaves out only the zeros. If the
        new size has persisted, the zeros lie behind it, and do not show until the file grows again
        (ext4_block_truncate_page)."""
        grown, is_cut = self._taken.grown.get(index), self._taken.changes[index].kind is ChangeKind.TRUNCATE_DOWN
        waiting = self._but_rest(parts) if is_cut else parts
        if grown is not None:
            waiting = [part for part in parts if not grown.is_in_place(self._taken.operations[part])]
        if len(waiting) == len(parts):
            return some, every
        later, earlier = self._group(waiting)
        return later, earlier if is_cut else every

    def _orders(self, later: Mapping[int, int], every: Mapping[int, int]) -> None:
        """Add an edge from each change to every earlier change, with the clause for their order. Both ``later`` and
        ``every`` map the index of each change to a node. The edge begins at the node of the later change in ``later``,
        and ends at the node of the earlier change in ``every``."""
        for after, change in enumerate(self._taken.changes):
            is_synced = self._is_synced(change)
            for before in range(after):
                if before in every and after in later:
                    earlier = self._taken.changes[before]
                    order = clauses.Ordered(earlier.kind, change.kind, relation(earlier, change))
                    given = (order, clauses.OWN_FIRST) if self._taken.is_of_a_log(order, after) else (order,)
                    self._edges.append(Edge(later[after], every[before], frozenset(given), is_synced))
                    in_turn = clauses.InTurn(clauses.means_of(earlier.kind), self._taken.means(after))
                    if in_turn in clauses.IN_TURN and after not in self._taken.asked:
                        self._edge(later[after], every[before], in_turn)

    def _may_be_promised(self, _clause: Clause) -> bool:
        return True

    def _journaled(self) -> None:
        last: int | None = None
        for index in range(len(self._taken.changes) if self._may_be_promised(clauses.JOURNALED) else 0):
            parts = self._cells_of(index, NameCell, SizeCell)
            for part in parts:
                self._after_all(part, last, clauses.JOURNALED)
            last = self._all_of(parts, last) if parts else last

    def _sizes_synced(self) -> None:
        lasts: list[int | None] = [None]
        waiting = deque(enumerate(self._taken.changes))
        for number in range(1, len(self._returns) if self._may_be_promised(clauses.SYNCED) else 0):
            own, last = list[int](), lasts[-1]
            while waiting and waiting[0][1].number <= number:
                own += self._cells_of(waiting.popleft()[0], SizeCell)
            lasts.append(self._all_of(own, last) if own else last)
            if self._sync(number) is not None:
                for node in (lasts[self._begun(number)], *own):
                    self._after_all(self._returns[number], node, clauses.SYNCED)

    def _cells_of(self, index: int, *kinds: type) -> list[int]:
        return [at for at in self._of_change.get(index, ()) if isinstance(self._taken.operations[at].cell, kinds)]

    def _after_all(self, node: int, last: int | None, clause: Clause) -> None:
        if last is not None:
            self._edge(node, last, clause)

    def _node(self) -> int:
        self._nodes += 1
        return self._nodes - 1

    def _edge(self, node: int, needs: int, *given: Clause) -> None:
        self._edges.append(Edge(node, needs, frozenset(given)))

    def _group(self, parts: Iterable[int]) -> tuple[int, int]:
        some, every = self._node(), self._node()
        for part in parts:
            self._edge(part, some)
            self._edge(every, part)
        return some, every

    def _in_time(self) -> None:
        for number in range(1, len(self._returns)):
            self._edge(self._returns[number], self._returns[number - 1])
        for at, operation in enumerate(self._taken.operations):
            self._edge(at, self._returns[operation.number - 1])

    def _at_once(self, index: int, some: int, every: int) -> None:
        """Add edges that make parts (micro-operations) of one change persist together, and edges from sizes to the data
        that they cover. ``some`` and ``every`` are the change's nodes for "some of its parts" and "all of its
        parts"."""
        kind, parts = self._taken.changes[index].kind, self._of_change[index]
        self._edge(some, every, clauses.Whole(kind, Unit.WHOLE))
        if kind is ChangeKind.TRUNCATE_DOWN:
            self._edge(*self._group(self._but_rest(parts)), clauses.Whole(ChangeKind.TRUNCATE_DOWN, Unit.BLOCK))
        if kind not in clauses.DATA_KINDS:
            return
        blocks: dict[int, list[int]] = defaultdict(list)
        for part in parts:
            blocks[self._block(part)].append(part)
        for inside in blocks.values():
            self._edge(*self._group(inside), clauses.Whole(kind, Unit.BLOCK))
        if kind is ChangeKind.APPEND:
            self._appended(self._taken.grown[index], blocks)

    def _but_rest(self, parts: Iterable[int]) -> list[int]:
        """Return the ``parts`` of a cut (truncation) without those in the block where the file ends afterwards."""
        operations = {part: self._taken.operations[part] for part in parts}
        size = next(int(one.value or 0) for one in operations.values() if isinstance(one.cell, SizeCell))
        ending = block_of(size) if size % BLOCK_BYTES else None
        return [at for at, one in operations.items() if isinstance(one.cell, SizeCell) or one.block != ending]

    def _appended(self, growth: Growth, blocks: Mapping[int, list[int]]) -> None:
        """Add edges for an append. While the file grows, it has several sizes; each size needs the data below it.
        Separate clauses promise this for separate blocks of the append, such as the block where the file ended before,
        so they get separate edges (:class:`bob.apm.clauses.AppendPart`)."""
        covered: int | None = None
        begun: int | None = None
        tail: int | None = None
        for block, inside in sorted(blocks.items()):
            data = [part for part in inside if isinstance(self._taken.operations[part].cell, DataCell)]
            sizes = [part for part in inside if part not in data]
            covered = self._all_of(data, covered)
            self._shown_with(sizes, covered, clauses.AppendPart.ANYWHERE)
            if growth.begins(block):
                self._shown_with(sizes, self._all_of(data, None), clauses.AppendPart.LAST)
                if begun is not None and not growth.is_asked_in_part:
                    self._shown_with(sizes, begun, clauses.AppendPart.EARLIER)
                begun = self._all_of(data, begun)
            else:
                tail = self._all_of(data, None)
            if tail is not None and not growth.is_asked_in_part:
                self._shown_with(sizes, tail, clauses.AppendPart.TAIL)

    def _all_of(self, parts: Iterable[int], before: int | None) -> int:
        node = self._node()
        for part in (*parts, *(() if before is None else (before,))):
            self._edge(node, part)
        return node

    def _shown_with(self, sizes: Iterable[int], data: int, where: clauses.AppendPart) -> None:
        for size in sizes:
            self._edge(size, data, *(clauses.Never(ChangeKind.APPEND, fill, where) for fill in clauses.Fill))

    def _block(self, part: int) -> int:
        block = self._taken.operations[part].block
        assert block is not None  # the micro-operations of contents have a block
        return block

    @cached_property
    def _synced(self) -> tuple[Mapping[int, int], Mapping[int, int]]:
        """Two mappings from a file or directory to the number of an operation. In the first, this is the last operation
        that syncs the file or directory. In the second, it is the last operation that syncs something below the
        directory."""
        itself: dict[int, int] = {}
        below: dict[int, int] = {}
        for number, operation in enumerate(self._performed, start=1):
            match operation:
                case ops.Fsync(path) | ops.Msync(path) | ops.Write(path, how=ops.How.SYNC | ops.How.DSYNC):
                    step = self._step(number)
                    itself[step.thing(path)] = number
                    below.update(dict.fromkeys(_above(step, step.thing(path)), number))
        return itself, below

    def _step(self, number: int) -> HistoryStep:
        return self._taken.history.after(number)

    def _is_synced(self, change: OperationChange) -> bool:
        """Return whether a sync may have persisted this change without other changes. This is so if the file or
        directory that changes is synced, by the operation that makes the change or by a later operation. For a change
        that makes a directory, a sync of something below the directory counts, too. The result is also True for a crash
        that comes before that sync, although the sync cannot matter then. So the model allows a few states more than
        necessary."""
        of = change.things | (change.directories if change.kind in clauses.DIRECTORY_KINDS else frozenset())
        itself, below = self._synced
        last = [*(itself.get(thing, 0) for thing in of), *(below.get(thing, 0) for thing in change.things)]
        return max(last, default=0) >= change.number

    def _durable(self) -> None:
        for number in range(1, len(self._returns)):
            sync, begun = self._sync(number), self._begun(number)
            for at, earlier in enumerate(self._taken.operations):
                if earlier.number > number:
                    break
                if earlier.number == number:
                    self._edge(self._returns[number], at, clauses.Durable(Call.RETURNED, self._what(earlier)))
                if sync is not None and (earlier.number <= begun or earlier.number == number):
                    self._edge(self._returns[number], at, clauses.Durable(sync.call, self._what(earlier, sync)))

    def _begun(self, number: int) -> int:
        """Return the number of the last operation that had returned when operation ``number`` began. This matters
        because an fsync(2) writes only what is dirty when it begins."""
        return self._taken.history.begun.get(number, number - 1)

    def _sync(self, number: int) -> SyncCall | None:
        operation, step = self._performed[number - 1], self._step(number)
        call = call_of(operation, self._taken.history, step)
        if call is None or call not in clauses.SYNCS:
            return None
        match operation:
            case ops.Fsync(path) | ops.Msync(path) | ops.Write(path):
                thing = step.thing(path)
                return SyncCall(number, call, thing, step.parents(thing), isinstance(operation, ops.Write))
        return SyncCall(number, call)

    def _what(self, operation: MicroOperation, sync: SyncCall | None = None) -> What:
        if sync is not None and sync.is_write and operation.number < sync.number and operation.block is not None:
            # A synchronous write syncs only its own range (generic_write_sync, include/linux/fs.h).
            return self._else(operation)
        thing = None if sync is None else sync.thing
        match operation.cell:
            case DataCell(of) if thing in (None, of):
                return What.DATA
            case SizeCell(of) if thing in (None, of):
                return What.SIZE
            case AttributeCell(of) if thing in (None, of):
                return What.ATTRIBUTES
            case NameCell(place):
                change = self._taken.changes[operation.change]
                if thing is None or thing in change.things:
                    return What.ENTRY if change.kind in _MAKING else What.NAMES
                if place[0] == thing:
                    return What.ENTRIES
                if sync is not None and change.things & sync.parents:
                    return What.PARENT
        return self._else(operation)

    def _else(self, operation: MicroOperation) -> What:
        kind = self._taken.changes[operation.change].kind
        if kind is ChangeKind.SETXATTR:
            return What.OTHER_ATTRIBUTES
        if kind is ChangeKind.OVERWRITE:
            return What.OTHER_OVERWRITES
        return What.OTHER_NAMES if operation.block is None else What.OTHER_APPENDS


_MAKING = (ChangeKind.CREATE, ChangeKind.MKDIR, ChangeKind.SYMLINK)


def _above(step: HistoryStep, thing: int) -> frozenset[int]:
    found: set[int] = set()
    waiting = [thing]
    while waiting:
        new = step.parents(waiting.pop()) - found
        found |= new
        waiting += new
    return frozenset(found)
