"""The file for ALICE, loaded beside a stand-in of ALICE: the same dependencies, and the same trees after a crash."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from inline_snapshot import snapshot

from bob.apm.circumstances import RARE_CLAUSES
from bob.apm.clauses import (
    OWN_FIRST,
    Clause,
    Durable,
    Fill,
    Intact,
    InTurn,
    Never,
    Ordered,
    Whole,
    clause_of,
    every_clause,
    saying_more,
)
from bob.apm.dependencies import Graph
from bob.apm.export.alice import alice_module, not_sayable
from bob.apm.model_states import allowed_trees, dependencies
from bob.claim.property.vocabulary import Call, Unit
from bob.workload import operations as ops
from bob.workload.history import History
from bob.workload.kinds import ChangeKind, Relation
from bob.workload.operations import How, Workload
from bob.workload.simulation import simulate
from tests.apm.alice_stand_in import Left, Struct, counterparts, disk_operations, load, replay
from tests.apm.cases import EVERYTHING, NOTHING, graph_of_workload, model, without_order, workload
from tests.workload.generators import random_workload
from wording import line_with, sentence_with

WORKLOADS = {
    "replace by rename": (
        "create /new; write /new 0 5000; fsync /new; rename /new /a; fsync /; acknowledge done; unlink /b",
        "write /a 0 3000; write /b 0 10",
    ),
    "a log and its data": (
        "append /log 700; fdatasync /log; write /a 100 5000; append /log 700; sync; write /log 100 600; append /a 100",
        "create /log; write /a 0 6000",
    ),
    "links and directories": (
        "mkdir /d; create /d/x; link /d/x /y; fsync /d; append /y 300; fsync /y; unlink /d/x; create /x; rename /y /z;"
        " rmdir /d",
        "",
    ),
    "sizes up and down": (
        "write /a 512 9000; truncate /a 100; append /a 5000; truncate /a 9000; fallocate /a 0 12000; fsync /a;"
        " fdatasync /d; mkdir /e",
        "write /a 0 3000; mkdir /d; create /d/x",
    ),
    "synced writes": (
        "append /a 600 sync; write /b 100 600 dsync; write /b 6000 100; rename /a /c; acknowledge done; symlink x /s;"
        " append /c 30 sync; link /b /a",
        "write /a 0 100; write /b 0 300",
    ),
}


def random_models() -> Iterator[frozenset[Clause]]:
    rng = Random(7)
    for share in (0.3, 0.7, 0.95):
        yield frozenset(clause for clause in every_clause() if clause not in RARE_CLAUSES and rng.random() < share)


SAFE_RENAME = frozenset(
    {
        Ordered(ChangeKind.APPEND, ChangeKind.RENAME_OVER, Relation.SAME_FILE),
        Whole(ChangeKind.RENAME_OVER, Unit.WHOLE),
        clause_of("durable fsync-file data"),
        clause_of("durable fsync-file size"),
    }
)
PARENT = frozenset({clause_of("durable fsync-file parent")})
ORDERED = frozenset(clause for clause in every_clause() if isinstance(clause, Ordered))
DURABLE = frozenset(clause for clause in every_clause() if isinstance(clause, Durable))
NOT_SAID = frozenset(
    clause
    for clause in every_clause()
    if isinstance(clause, InTurn) or (saying_more(clause) and not isinstance(clause, Intact))
)
MODELS = [
    one - NOT_SAID | {OWN_FIRST}
    for one in (EVERYTHING, NOTHING, without_order(), ORDERED, DURABLE, SAFE_RENAME, PARENT, *random_models())
]


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("promised", MODELS)
def test_the_class_gives_the_dependencies_of_bobs_states(name: str, promised: frozenset[Clause]) -> None:
    compare(workload(*WORKLOADS[name]), promised)


def test_so_it_does_for_random_workloads_and_models() -> None:
    for seed in range(80):
        rng = Random(seed)
        share = rng.choice([0.2, 0.5, 0.9])
        promised = frozenset(clause for clause in every_clause() if rng.random() < share) - NOT_SAID | {OWN_FIRST}
        compare(sayable(random_workload(rng, shifting=False)), promised)


def compare(asked: Workload, promised: frozenset[Clause]) -> None:
    module, graph = load(alice_module(model(alike(promised)))), graph_of_workload(asked)
    found = disk_operations(module.FileSystem("aligned", 512), asked, graph.workings.history)
    of = counterparts(graph, found)
    assert set(of) == {at for at, op in enumerate(found) if op.op != "stdout" and op.hidden_part != "stale"}
    given = module.clauses(found).needed(len(found))
    assert {at: given[at] & set(of) for at in of} == images(dependencies(graph, alike(promised)), of)
    module.FileSystem("aligned", 512).get_deps(found)
    assert all(needed <= op.hidden_dependencies for needed, op in zip(given, found, strict=True))


def test_a_directory_that_is_opened_as_a_dot_is_the_same() -> None:
    """ALICE's parser gives «/d/.» for an fsync of «.» in /d."""
    asked = workload("create /d/a; fsync /d; rename /d/a /d/b; fsync /d; acknowledge done", "mkdir /d")
    module = load(alice_module(model(frozenset({clause_of("durable fsync-directory entries")}))))

    class Dotted(module.FileSystem):  # type: ignore[misc, name-defined]
        def get_disk_ops(self, line: Any) -> None:
            if line.op == "fsync":
                line.name += "/."
            super().get_disk_ops(line)

    found, dotted = (
        disk_operations(system("aligned", 512), asked, graph_of_workload(asked).workings.history)
        for system in (module.FileSystem, Dotted)
    )
    module.FileSystem().get_deps(found)
    module.FileSystem().get_deps(dotted)
    assert any(op.hidden_dependencies for op in found if op.op == "stdout")
    assert [op.hidden_dependencies for op in dotted] == [op.hidden_dependencies for op in found]


def images(needed: Sequence[frozenset[int]], of: Sequence[int]) -> dict[int, set[int]]:
    """What disk operations need where each has all that its micro-operations do: of one sector there may be several."""
    found: dict[int, set[int]] = {at: set() for at in of}
    for micro, others in enumerate(needed):
        found[of[micro]] |= {of[other] for other in others}
    while grown := [at for at, others in found.items() if not set().union(*(found[o] for o in others)) <= others]:
        for at in grown:
            found[at] |= set().union(*(found[other] for other in found[at]))
    return {at: others - {at} for at, others in found.items()}


def alike(promised: frozenset[Clause]) -> frozenset[Clause]:
    """``promised``, where O_SYNC and O_DSYNC promise the same: ALICE does not tell them apart."""
    both = {
        clause: {Durable(call, clause.what) for call in (Call.O_SYNC, Call.O_DSYNC)}
        for clause in promised
        if isinstance(clause, Durable) and clause.call in (Call.O_SYNC, Call.O_DSYNC)
    }
    return frozenset(clause for clause in promised if both.get(clause, set()) <= promised)


def sayable(asked: Workload) -> Workload:
    """A workload without what ALICE does not know, and with a call of its own for each O_CREAT and O_TRUNC."""
    said: list[ops.Operation] = []
    history, _setup, _performed = simulate(asked)
    for number, operation in enumerate(asked.operations, start=1):
        names, size = history.steps[number - 1].names, 0
        match operation:
            case ops.Setxattr() | ops.Removexattr() | ops.Chmod() | ops.Chown() | ops.Utimes():
                continue
            case ops.Open() | ops.Unnamed() | ops.Close() | ops.Mknod() | ops.CopyRange() | ops.Reflink():
                break
            case ops.Fallocate(mode=mode) if mode is not ops.Allocation.GROW:
                continue
            case ops.Rename(replacing=ops.Replacing.EXCHANGE):
                break
            case ops.Rename(old) if history.things[names[old]].kind == "directory":
                break
            case ops.Write(path, _offset, length, how):
                if path not in names:
                    said.append(ops.Create(path))
                else:
                    size = len(history.steps[number - 1].inodes[names[path]].content)
                if how is How.TRUNC:
                    said += [ops.Truncate(path, 0)] if size else []
                    operation = ops.Write(path, None, length)
        said.append(operation)
    changed = [one for one in said if not isinstance(one, ops.Fsync) or any(is_told(one.path, other) for other in said)]
    return Workload("case", asked.setup, tuple(changed))


def is_told(path: str, other: ops.Operation) -> bool:
    """Whether it can be seen from another operation what is at ``path``: a file, or a directory."""
    if isinstance(other, ops.Fsync):
        return False
    paths = [getattr(other, name) for name in ("path", "old", "new") if hasattr(other, name)]
    return any(one == path or (one.rsplit("/", 1)[0] or "/") == path for one in paths)


SMALL = {
    "replace by rename": ("create /new; write /new 0 300; rename /new /a", "write /a 0 100"),
    "append and sync": ("append /a 600; fsync /a; write /a 100 50; acknowledge done; mkdir /d", "write /a 0 300"),
    "two blocks": ("write /a 3800 700; link /a /b; unlink /a", "write /a 0 3000"),
    "cut": ("truncate /a 100; create /b; append /b 9; rename /b /c", "write /a 0 600"),
}
ZEROS_ONLY = frozenset(Never(kind, Fill.STALE) for kind in ChangeKind)
NO_HOLES = ZEROS_ONLY | {Never(ChangeKind.APPEND, Fill.ZEROS)}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("promised", [*(one | ZEROS_ONLY for one in MODELS), NO_HOLES, without_order() | NO_HOLES])
def test_the_replay_leaves_the_trees_of_bobs_states(name: str, promised: frozenset[Clause]) -> None:
    asked = workload(*SMALL[name])
    graph = graph_of_workload(asked)
    allowed = allowed_trees(graph, promised, 100_000)
    assert allowed.complete
    wanted = {tuple((path, entry.content) for path, entry in tree) for tree in allowed.trees}
    assert left(asked, graph, promised) == wanted


def test_garbage_is_found_only_where_the_model_allows_it() -> None:
    asked = workload("append /a 8", "create /a")
    graph = graph_of_workload(asked)
    stale_only = {Never(ChangeKind.APPEND, Fill.ZEROS)}
    found = [left(asked, graph, frozenset(one)) for one in ([], ZEROS_ONLY, stale_only, NO_HOLES)]
    assert [{dict(tree)["/a"][:4] for tree in trees} for trees in found] == [
        {b"", b"\0\0\0\0", b"????", b"[op0"},
        {b"", b"\0\0\0\0", b"[op0"},
        {b"", b"????", b"[op0"},
        {b"", b"[op0"},
    ]


def left(asked: Workload, graph: Graph, promised: frozenset[Clause]) -> set[Left]:
    """Every tree that ALICE's replay leaves of sets of disk operations which are closed under the dependencies."""
    history = graph.workings.history
    system = load(alice_module(model(promised))).FileSystem("aligned", 512)
    found = disk_operations(system, asked, history)
    system.get_deps(found)
    dump = {number: written(history, number) for number in range(1, len(history.steps))}
    return {replay(history, [found[at] for at in there], dump) for there in closed(found)}


def written(history: History, number: int) -> bytes:
    """The file that an operation wrote to, as it was then: what is at the same offset in ALICE's dump."""
    thing, _offset, _length = history.data.get(number, (0, 0, 0))
    return history.steps[number].inodes[thing].content


def closed(found: list[Struct]) -> Iterator[list[int]]:
    assert len(found) < 16
    for bits in range(1 << len(found)):
        there = {at for at in range(len(found)) if bits >> at & 1}
        if all(found[at].hidden_dependencies <= there for at in there):
            yield sorted(there)


@pytest.mark.parametrize("splits", [("count", 1), ("count", 3), ("aligned", 4096)])
def test_coarser_pieces_are_never_in_a_state_that_the_model_forbids(splits: tuple[str, int]) -> None:
    asked = workload("append /a 9000; fsync /a; write /a 100 5000; truncate /a 4000", "create /a")
    graph = graph_of_workload(asked)
    for promised in MODELS:
        module = load(alice_module(model(alike(promised))))
        found = disk_operations(module.FileSystem(*splits), asked, graph.workings.history)
        module.FileSystem(*splits).get_deps(found)
        of, needed = parts(graph, found), dependencies(graph, alike(promised))
        for at, op in enumerate(found):
            there = {micro for other in {at, *op.hidden_dependencies} for micro in of[other]}
            for micro in there:
                assert needed[micro] <= there, (splits, at)


def parts(graph: Graph, found: list[Struct]) -> list[set[int]]:
    """Of each disk operation bob's micro-operations that it is made of: sizes on the way count with the next one."""
    made: list[set[int]] = [set() for _ in found]
    for number, micro in enumerate(graph.workings.operations):
        made[next(at for at, op in enumerate(found) if covers(op, micro))].add(number)
    return made


def covers(op: Struct, micro: Any) -> bool:
    if int(op.hidden_micro_op.hidden_full_line.split()[0]) != micro.number or op.op == "stdout":
        return False
    if op.op == "truncate":
        return isinstance(micro.value, int) and micro.value <= op.final_size
    if op.hidden_part == "stale" or not hasattr(micro.cell, "start"):
        return False
    return bool(op.offset <= micro.cell.start and micro.cell.stop <= op.offset + op.count)


def test_what_returned_is_durable_where_the_model_says_so() -> None:
    asked = workload("append /a 10; fsync /a; acknowledge done", "create /a")
    promised = frozenset({clause_of("durable fsync-file data")})
    system = load(alice_module(model(promised))).FileSystem()
    found = disk_operations(system, asked, graph_of_workload(asked).workings.history)
    system.get_deps(found)
    data = next(at for at, op in enumerate(found) if op.hidden_part == "data")
    assert [op.data for op in found if op.op == "stdout" and data in op.hidden_dependencies] == ["", "done"]


def test_the_driver_gives_the_class_to_alices_own_explorer(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "alicestruct.py").write_text("class Struct: pass\n")
    (tmp_path / "alicedefaultexplorer.py").write_text("defaultfs = None\n")
    (tmp_path / "bin" / "alice-check").write_text(
        "import sys, alicedefaultexplorer\n"
        "system = alicedefaultexplorer.defaultfs('count', 3)\n"
        "print(type(system).__name__, system.split_mode, system.splits, sys.argv[1:])\n"
    )
    file = tmp_path / "a model.py"
    file.write_text(alice_module(model(SAFE_RENAME)))
    command, home = [sys.executable, str(file), "--traces_dir=t"], {"ALICE_HOME": str(tmp_path)}
    done = subprocess.run(command, env=home, capture_output=True, text=True, check=True)
    assert done.stdout == "FileSystem count 3 ['--traces_dir=t']\n"


def test_the_file_is_ascii_that_python_2_reads_as_well() -> None:
    source = alice_module(model(SAFE_RENAME))
    source.encode("ascii")
    new = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Nonlocal, ast.YieldFrom, ast.Match, ast.Await)
    tree = ast.parse(source)
    assert not [node for node in ast.walk(tree) if isinstance(node, new)]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert functions and not [one for one in functions if one.args.kwonlyargs or one.returns]
    assert "import bob" not in source and "from bob" not in source


def test_the_file_says_where_it_is_from_and_what_it_cannot_say() -> None:
    weak, strong = model(SAFE_RENAME), model(EVERYTHING)
    said = " ".join(load(alice_module(weak)).__doc__.split())
    assert "model a-model" in said and "kernel: 6.1.0" in said and "a 'run' \\ of 'mine'" in said
    assert sentence_with(not_sayable(weak)[0], "durable fdatasync-file data") == snapshot(
        "it lacks «durable fdatasync-file data», «durable fdatasync-file size», «durable fsync-directory entries», «durable fdatasync-directory entries»."
    )
    assert line_with(not_sayable(strong)[0]) == snapshot(
        "ALICE's own «sync» orders what an fsync covers before everything that follows. A model that promises less cannot use it. This model promises that much. Still, this file turns the return of an fsync into another operation (a stdout without text), so that only the model's clauses order operations."
    )
    lesser = {clause_of("never-in append last-block stale"), clause_of("in-turn names appends")}
    assert not [sentence for sentence in not_sayable(weak) if "allows more" in sentence]
    (more,) = [sentence for sentence in not_sayable(model(lesser)) if "allows more than the model" in sentence]
    assert all(f"«{clause.name}»" in more for clause in lesser)
    logs = [sentence for sentence in not_sayable(weak) if "was synced before" in sentence]
    assert logs and not [sentence for sentence in not_sayable(strong) if "was synced before" in sentence]
    assert "same-file append: rename-over" not in alice_module(weak)
    assert "same-file append: rename-over" in alice_module(model(SAFE_RENAME | {OWN_FIRST}))
    for sentence in not_sayable(weak):
        assert sentence.replace("«", "'").replace("»", "'") in said
