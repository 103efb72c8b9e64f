"""Count how many of the trees that a model allows were seen in runs that explored all legal crash states. Trees with
torn blocks (blocks that persisted only in some sectors) are not counted, because bob tries only a sample of the
possible torn blocks."""

from collections import defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from bob.apm.clauses import Clause, Intact, TreePart
from bob.apm.dependencies import Edge, Graph
from bob.apm.evidence import ObservedCase
from bob.apm.micro import DataCell
from bob.apm.model_states import allowed_trees
from bob.apm.trees import ModelTree, observed_tree
from bob.workload.language import write_one

COUNTED_OPERATIONS = 300  # micro-operations; a workload with more is left out


@dataclass(frozen=True, slots=True)
class TreeCounts:
    """Counts of trees for one list of operations. ``allowed`` counts the trees that a model allows if blocks are never
    torn. ``seen`` counts the allowed trees that the workloads in ``folders`` showed."""

    operations: tuple[str, ...]
    folders: tuple[str, ...]
    allowed: int
    seen: int


def count(promised: Set[Clause], workloads: Sequence[ObservedCase], limit: int) -> tuple[TreeCounts, ...]:
    """Count the allowed and the seen trees of workloads that were explored exhaustively. Workloads with the same list
    of operations are counted together. Leave out a list of operations if it has more than ``limit`` closed sets of
    micro-operations (sets that may persist without anything else). Return () if the model allows garbage in names,
    sizes or attributes, or in files that were never removed, replaced or cut. The number of trees is then unlimited."""
    if not all(Intact(part) in promised for part in TreePart if part is not TreePart.CONTENTS):
        return ()
    alike: dict[object, list[ObservedCase]] = defaultdict(list)
    for workload in workloads:
        alike[workload.workload.setup, workload.workload.operations].append(workload)
    counted = (_count(promised, together, limit) for together in alike.values())
    return tuple(one for one in counted if one is not None)


def _count(promised: Set[Clause], together: Sequence[ObservedCase], limit: int) -> TreeCounts | None:
    first = together[0].graph.workings
    if len(first.operations) > COUNTED_OPERATIONS or not all(one.exhaustive for one in together):
        return None
    allowed: dict[ModelTree, None] = {}
    for graph in {one.graph.edges: one.graph for one in together}.values():
        found = allowed_trees(in_blocks(graph), promised, limit)
        if not found.complete:
            return None
        allowed.update(dict.fromkeys(found.trees))
    shown = {observed_tree(one.observation(sight)) for one in together for sight in one.sights}
    seen = shown & allowed.keys()
    reused = set() if Intact(TreePart.CONTENTS) in promised else {_reused(tree, first.freed) for tree in allowed}
    where = {paths for paths, _tree in reused if paths}
    return TreeCounts(
        tuple(write_one(operation) for operation in first.history.operations),
        tuple(one.folder.name for one in together),
        len(allowed) + sum(bool(paths) for paths, _tree in reused),
        len(seen) + len({(paths, _without(tree, paths)) for tree in shown - seen for paths in where} & reused),
    )


def in_blocks(graph: Graph) -> Graph:
    """Return ``graph`` with more dependencies: if a change writes several sectors of one block, they persist only
    together. This is so on a disk that never tears a block."""
    blocks: dict[tuple[int, int | None], list[int]] = defaultdict(list)
    for at, operation in enumerate(graph.workings.operations):
        if isinstance(operation.cell, DataCell):
            blocks[operation.change, operation.block].append(at)
    tied = (
        Edge(one, other) for block in blocks.values() for one, other in zip(block, [*block[1:], block[0]], strict=True)
    )
    return replace(graph, edges=(*graph.edges, *tied))


def _reused(tree: ModelTree, freed: Set[int]) -> tuple[frozenset[str], ModelTree]:
    """Return the paths of the files in ``tree`` that an operation removed, replaced or cut. Then return ``tree`` with
    zeros as the contents of these files. (Another file may have got the blocks of such a file. A crash may then show
    the contents of that other file. bob does not enumerate these contents, but compares zeros instead.)"""
    paths = frozenset(path for path, entry in tree if entry.thing in freed and entry.content)
    return paths, _without(tree, paths)


def _without(tree: ModelTree, paths: Set[str]) -> ModelTree:
    return tuple(
        (path, replace(entry, content=bytes(len(entry.content))) if path in paths else entry) for path, entry in tree
    )
