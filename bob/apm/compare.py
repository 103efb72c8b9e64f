"""Compare two models: find what one of them allows and the other forbids, with the smallest workload that shows it. A
model is a set of clauses. A *clause* is one promise about crash states."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product

from bob.apm.clauses import Clause
from bob.apm.dependencies import graph_of_workload
from bob.apm.model import ClauseFinding, Model
from bob.apm.model_states import allowed_trees
from bob.apm.tree_digests import Shapes
from bob.apm.trees import ModelTree
from bob.errors import UsageError
from bob.workload.language import parse, write_one
from bob.workload.operations import Workload
from bob.workload.simulation import simulate

SETUP = (
    "mkdir /d; mkdir /e; write /d/a 0 8K; write /d/b 0 8K; write /e/c 0 8K; write /e/old 0 4K;"
    "mkdir /d/gone; mkdir /e/gone"
)  # the initial tree of the workloads that may tell models apart

_FIRST = (
    "write /d/a 0 512", "write /d/a 0 8K", "append /d/a 100", "append /d/a 8K", "truncate /d/a 100",
    "truncate /d/a 12K", "fallocate /d/a 8K 8K", "create /d/new", "link /d/a /d/linked", "symlink a /d/symlink",
    "unlink /d/a",
    "rename /d/a /d/moved", "rename /d/a /d/b", "mkdir /d/newdir", "rmdir /d/gone", "setxattr /d/a user.bob 8",
)  # fmt: skip
_LATER = (
    "write /d/a 4K 512", "append /d/a 200", "truncate /d/a 50", "truncate /d/a 16K", "fallocate /d/a 12K 8K",
    "link /d/a /d/other", "unlink /d/a", "rename /d/a /d/renamed", "rename /d/a /e/old", "setxattr /d/a user.more 8",
    "create /d/later", "symlink b /d/later", "mkdir /d/later", "rmdir /d/gone", "unlink /d/b", "rename /d/b /d/later",
    "write /d/b 0 512", "append /d/b 100", "truncate /d/b 50", "truncate /d/b 12K", "link /d/b /d/later",
    "rename /d/b /e/old", "setxattr /d/b user.bob 8",
    "create /e/later", "symlink c /e/later", "mkdir /e/later", "rmdir /e/gone", "unlink /e/c", "rename /e/c /e/later",
    "write /e/c 0 512", "append /e/c 100", "truncate /e/c 50", "truncate /e/c 12K", "link /e/c /e/later",
    "rename /e/c /e/old", "fallocate /e/c 8K 8K", "setxattr /e/c user.bob 8",
)  # fmt: skip
_SYNCS = ("fsync /d/a", "fdatasync /d/a", "fsync /d/new", "fsync /d", "fdatasync /d", "sync", "syncfs")
_OTHERS = ("write /e/c 0 512", "append /e/c 100", "create /e/other", "setxattr /e/c user.bob 8")
"""Changes that a sync of another file may also persist."""
_EARLIER = ("append /d/b 100", "append /e/c 100", "write /e/c 0 512", "create /e/other")
_OVERTAKING = ("append /d/a 100; fsync /d/a", "write /d/a 0 512; fsync /d/a", "create /d/new; fsync /d/new")
"""Changes with a sync of their own. They may overtake the changes of :data:`_EARLIER`."""
_MARK = "mkdir /e/done"  # if this persisted, the sync before it had returned

LIMIT = 3000


@dataclass(frozen=True, slots=True)
class Apart:
    """A clause that only the model ``stronger`` promises. If there is a ``workload``, it shows the difference: only the
    model ``weaker`` allows that a crash of the workload leaves ``tree``. ``before`` is the workload's initial tree."""

    clause: Clause
    stronger: Model
    weaker: Model
    workload: Workload | None
    tree: ModelTree | None
    before: ModelTree = ()

    @property
    def finding(self) -> ClauseFinding:
        return self.weaker.finding(self.clause)

    @property
    def operations(self) -> str:
        return "" if self.workload is None else "; ".join(map(write_one, self.workload.operations))


def differences(one: Model, other: Model) -> Iterator[Apart]:
    """Yield each clause that only one of two models promises, with the smallest workload that shows the difference.
    Leave out a clause if bob finds no such workload, and the weaker model records no crash state that refutes the
    clause. Most clauses that are left out follow from other clauses, or forbid what cannot happen."""
    for stronger, weaker in ((one, other), (other, one)):
        more = stronger.promised - weaker.promised
        for finding in stronger.findings:
            clause = finding.clause
            if clause in more:
                apart = _apart(clause, stronger, weaker)
                if apart.tree is not None or apart.finding.refutation is not None:
                    yield apart


def _apart(clause: Clause, stronger: Model, weaker: Model) -> Apart:
    for workload in _telling().get(clause, ()):
        asked = _graph(workload)
        allowed = allowed_trees(asked, weaker.promised, LIMIT)
        forbidding = allowed_trees(asked, stronger.promised, LIMIT)
        if not forbidding.complete:
            continue
        kept = frozenset(forbidding.trees)
        tree = next((tree for tree in allowed.trees if tree not in kept), None)
        if tree is not None:
            (before,) = Shapes(asked.workings, weaker.promised).trees(0)
            return Apart(clause, stronger, weaker, workload, tree, before)
    return Apart(clause, stronger, weaker, None, None)


def candidates() -> Iterator[Workload]:
    """Yield small workloads, smallest first. The first workloads have one operation, the next have two operations, and
    the next have an operation and a sync. The last workloads change two different files, and then sync only the second
    file."""
    for operations in (
        *_FIRST,
        *(f"{first}; {later}" for first, later in product(_FIRST, _LATER)),
        *(f"{first}; {sync}; {_MARK}" for first, sync in product(_FIRST, _SYNCS)),
        *(f"{first}; {sync}; {_MARK}" for first, sync in product(_OTHERS, _SYNCS)),
        *(f"{earlier}; {later}" for earlier, later in product(_EARLIER, _OVERTAKING)),
    ):
        workload = Workload(operations, parse(SETUP), parse(operations))
        try:
            simulate(workload)
        except UsageError:  # the first operation has removed what the second needs
            continue
        yield workload


@cache
def _telling() -> dict[Clause, list[Workload]]:
    telling: dict[Clause, list[Workload]] = {}
    for workload in candidates():
        asked = _graph(workload)
        for clause in asked.clauses:
            telling.setdefault(clause, []).append(workload)
    return telling


_graph = lru_cache(maxsize=2000)(graph_of_workload)
