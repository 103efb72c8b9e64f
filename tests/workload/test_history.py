"""The history against a real file system, by the agent's own code; and workloads for one without links."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from random import Random

import pytest
from inline_snapshot import snapshot

from bob.agent.inside.operations import Operations
from bob.catalogue.probe_files import shipped_probes
from bob.errors import UsageError
from bob.record.encode import encode
from bob.workload import operations as ops
from bob.workload.history import FileKind, History, PerformedOperation
from bob.workload.lacking import LACKABLE, without
from bob.workload.language import parse, write_one
from bob.workload.operations import Create, Finish, Fsync, How, Operation, Workload
from bob.workload.pattern import FIRST_SETUP_NUMBER, contents
from bob.workload.simulation import RefusedError, simulate
from wording import text_with

from .generators import SMALL_TREE, any_operation

Tree = dict[str, tuple[object, ...]]


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    """A directory on a file system in memory, where there is one."""
    where = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(dir=where if where.is_dir() else None))
    yield path
    shutil.rmtree(path)


def perform(performer: Operations, performed: PerformedOperation) -> bool:
    """Have the host perform an operation; whether it did."""
    [[_number, verb, arguments, start, length]], blob = encode([performed])
    try:
        performer.perform(verb, *arguments, data=blob[start : start + length])
    except (OSError, ValueError):
        return False
    return True


def tree_on_disk(root: Path) -> Tree:
    tree: Tree = {}
    for folder, folders, files in os.walk(root):
        for name in [*folders, *files]:
            path = Path(folder, name)
            status = path.lstat()
            shown = f"/{path.relative_to(root)}"
            if stat.S_ISDIR(status.st_mode):
                tree[shown] = ("directory",)
            elif stat.S_ISLNK(status.st_mode):
                tree[shown] = ("symlink", str(path.readlink()))
            elif not stat.S_ISREG(status.st_mode):
                tree[shown] = ("other", f"{stat.S_IFMT(status.st_mode):o} {status.st_rdev}")
            else:
                tree[shown] = ("file", status.st_ino, status.st_nlink, path.read_bytes())
    return tree


def tree_in_history(history: History, step: int, inodes: dict[int, object]) -> Tree:
    tree: Tree = {}
    for path, identity in history.steps[step].names.items():
        thing, inode = history.things[identity], history.steps[step].inodes[identity]
        if thing.kind is FileKind.FILE:
            tree[path] = ("file", inodes[identity], inode.links, inode.content)
        elif path != "/":
            tree[path] = (thing.kind.value,) if thing.kind is FileKind.DIRECTORY else (thing.kind.value, thing.target)
    return tree


@pytest.mark.parametrize("seed", range(100))
def test_every_step_is_what_a_file_system_does(scratch: Path, seed: int) -> None:
    rng = Random(seed)
    root = Path(tempfile.mkdtemp(dir=scratch))
    with closing(Operations(str(root))) as performer:
        perform_some(rng, root, performer)
    shutil.rmtree(root)


def cannot_be_tried(operation: Operation) -> bool:
    """Whether not every host's file system takes it, or one in memory; the guests' do (tests/agent/test_record.py)."""
    match operation:
        case ops.Setxattr() | ops.Removexattr() | ops.Reflink():
            return True
        case ops.Fallocate(mode=mode):
            return mode not in (ops.Allocation.GROW, ops.Allocation.KEEP, ops.Allocation.PUNCH)
        case ops.Mknod(_path, special):  # the host waits at a FIFO, and a device may be one that it has
            return special is not ops.Special.SOCKET
    return False


def is_refused_by_bob_alone(operation: Operation) -> bool:
    """Whether only bob refuses it: what could not be seen, and a handle that is taken or is none."""
    handles = [getattr(operation, name, "/") for name in ("path", "old", "source", "handle")]
    return isinstance(operation, ops.CopyRange | ops.Utimes) or any("/" not in name for name in handles)


def perform_some(rng: Random, root: Path, performer: Operations) -> None:
    _history, setup, _ = simulate(Workload("setup", SMALL_TREE, ()))
    assert all(perform(performer, done) for done in setup)
    chosen: list[Operation] = []
    trees = [tree_on_disk(root)]
    for operation in [any_operation(rng, (How.PLAIN,)) for _ in range(20)]:
        if cannot_be_tried(operation):
            continue
        number = len(chosen) + 1
        try:
            _history, _, performed = simulate(Workload("random", SMALL_TREE, (*chosen, operation)))
        except UsageError as refusal:
            assert "\n" not in refusal.message
            if not goes_through_a_link(operation, trees[-1]) and not is_refused_by_bob_alone(operation):
                # a write that is refused for its range must not have made its file
                assert not perform(performer, refused(operation, number)), operation
                assert tree_on_disk(root) == trees[-1]
            continue
        assert perform(performer, performed[-1]), operation
        chosen.append(operation)
        trees.append(tree_on_disk(root))
    history = simulate(Workload("random", SMALL_TREE, tuple(chosen)))[0]
    inodes: dict[int, object] = {}
    for step, tree in enumerate(trees):
        for path, identity in history.steps[step].names.items():
            if history.things[identity].kind is FileKind.FILE:
                inodes.setdefault(identity, tree[path][1])  # a thing stays what it is, whatever its names are
        assert tree == tree_in_history(history, step, inodes)


def goes_through_a_link(operation: Operation, tree: Tree) -> bool:
    """Whether a path of the operation is a symbolic link: bob refuses to look where it leads, the host need not."""
    fields = [getattr(operation, name, None) for name in ("path", "old", "new")]
    return any(isinstance(path, str) and tree.get(path, ("",))[0] == "symlink" for path in fields)


def refused(operation: Operation, number: int) -> PerformedOperation:
    if isinstance(operation, ops.Write):
        offset = operation.offset or 0
        return PerformedOperation(operation, number, offset, contents(number, offset, operation.length))
    return PerformedOperation(operation, number)


@pytest.mark.parametrize(
    ("setup", "operations"),
    [
        ("create /a", "rename /a /b; rename /a /c"),
        ("mkdir /d", "rename /d /d/e"),
        ("create /a", "rename /a /b exchange"),
        ("create /a; create /b", "rename /a /b noreplace"),
        ("mkdir /d; create /d/a", "rename /d/a /d exchange"),
        ("mkdir /d; create /d/a", "rename /d /d/a exchange"),
        ("mkdir /d", "rename / /d/e"),
        ("mkdir /d; create /a", "rename /a /d"),
        ("mkdir /d; create /a", "rename /d /a"),
        ("mkdir /d; mkdir /e; create /e/a", "rename /d /e"),
        ("", "rmdir /"),
        ("", "unlink /"),
        ("create /a", "mkdir /a/b"),
        ("write /a 0 100", "write /a 50 51 mmap"),
        ("", "write /a 0 10 mmap"),
        ("create /a", "write /a 0 100 direct"),
        ("write /a 0 100", "append /a 512 direct"),
        ("create /a", "write /a 1024M 1"),
        ("create /a", "truncate /a 1024M"),
        ("create /a", "fallocate /a 1024M 1"),
        ("create /a", "fallocate /a 1024M 1 punch"),
        ("mkdir /d", "fallocate /d 0 1 keep"),
        ("symlink /a /l", "fsync /l"),
        ("create /a", "link /a /d/a"),
        ("create /a", "open /b as f"),
        ("create /a", "open /a as f; open /a as f"),
        ("create /a", "open /a as f; close f; write f 0 1"),
        ("create /a; open /a as f", "write f 0 1"),
        ("create /a", "open /a as f; append f 512 direct"),
        ("create /a", "open /a as f; append f 512 trunc"),
        ("create /a", "open /a as f; unlink /a; link f /b"),
        ("mknod /a fifo", "open /a as f"),
        ("mknod /a fifo", "fsync /a"),
        ("create /a", "tmpfile /a as f"),
        ("create /a", "mknod /a fifo"),
        ("", "tmpfile / as f; link f /a; unlink /a; link f /b"),
        ("write /a 0 10", "copy_file_range /a /a 0 10"),
        ("write /a 0 10", "copy_file_range /a /b 5 10"),
        ("write /a 0 10", "copy_file_range /a /b 0 10; copy_file_range /a /b 0 5"),
        ("create /a", "reflink /a /b"),
        ("write /a 0 10; write /b 0 20", "reflink /a /b"),
        ("utimes / 1000000000", "utimes / 1000000000"),
        ("write /a 0 8192", "fallocate /a 0 8192 collapse"),
        ("write /a 0 8192", "fallocate /a 0 512 collapse"),
        ("write /a 0 8192", "fallocate /a 8192 4096 insert"),
        ("write /a 0 8192", "fallocate /a 0 4096 insert; fallocate /a 4096 4096 collapse"),
    ],
)  # fmt: skip
def test_what_a_file_system_would_refuse(setup: str, operations: str) -> None:
    with pytest.raises(UsageError) as caught:
        simulate(Workload("one", parse(setup), parse(operations)))
    last = parse(operations)[-1]
    assert repr(write_one(last)) in caught.value.message
    assert "workload one" in caught.value.message


def test_the_finish_is_looked_at_too() -> None:
    with pytest.raises(UsageError) as refused:
        simulate(Workload("one", (), parse("create /a"), Finish("fsync /gone", parse("fsync /gone"))))
    assert text_with(str(refused.value), "/gone") == snapshot("workload one: 'fsync /gone': /gone does not exist")


def test_two_names_of_one_file_renamed_are_left_alone() -> None:
    history = simulate(Workload("one", parse("create /a; link /a /b"), parse("rename /a /b")))[0]
    assert set(history.steps[1].names) == {"/", "/a", "/b"}
    assert history.steps[0] == history.steps[1]


@pytest.mark.parametrize(
    ("operation", "blocks"),
    [
        ("fallocate /a 4096 8192 collapse", [1, 4]),
        ("fallocate /a 0 4096 collapse", [2, 3, 4]),
        ("fallocate /a 4096 8192 insert", [1, 0, 0, 2, 3, 4]),
    ],
)
def test_what_collapse_and_insert_leave(operation: str, blocks: list[int]) -> None:
    """As fallocate(2) has it; 1 to 4 are the blocks of before."""
    history = simulate(Workload("one", parse("write /a 0 16384"), parse(operation)))[0]
    before, after = (step.inodes[1].content for step in history.steps)
    pieces = [bytes(4096), *(before[at : at + 4096] for at in range(0, 16384, 4096))]
    assert after == b"".join(pieces[block] for block in blocks)


def test_what_a_copy_leaves() -> None:
    history = simulate(Workload("one", parse("write /a 0 100; write /b 0 20"), parse("copy_file_range /a /b 10 50")))[0]
    before, after = history.steps
    assert after.inodes[2].content == before.inodes[2].content[:10] + before.inodes[1].content[10:60]
    assert history.data == {1: (2, 10, 50)}


def test_a_time_lasts_until_something_is_changed() -> None:
    operations = "utimes /d 1000000000; chmod /d 700; create /d/a; utimes /d/a 1000000000; append /d/a 1"
    history = simulate(Workload("one", parse("mkdir /d"), parse(operations)))[0]
    assert [step.inodes[1].modified for step in history.steps] == [None, 10**9, 10**9, None, None, None]
    assert [step.inodes[2].modified for step in history.steps[3:]] == [None, 10**9, None]


@pytest.mark.parametrize(
    ("mode", "content"),
    [
        ("", b"x" * 10 + bytes(5)),
        ("keep", b"x" * 10),
        ("punch", b"x" * 4 + bytes(6)),
        ("zero", b"x" * 4 + bytes(11)),
        ("zero-keep", b"x" * 4 + bytes(6)),
    ],
)
def test_what_fallocate_leaves(mode: str, content: bytes) -> None:
    """As fallocate(2) has it; the bytes are compared by whether they are zero."""
    history = simulate(Workload("one", parse("write /a 0 10"), parse(f"fallocate /a 4 11 {mode}")))[0]
    found = history.steps[1].inodes[1].content
    assert bytes(byte and ord("x") for byte in found) == content
    assert history.data == ({} if mode in ("", "keep") else {1: (1, 4, 11)})


def test_too_many_operations() -> None:
    assert simulate(Workload("one", (), (Create("/a"), *[Fsync("/a")] * 9998)))
    with pytest.raises(UsageError) as refused:
        simulate(Workload("one", (), (Create("/a"), *[Fsync("/a")] * 9999)))
    assert str(refused.value) == snapshot("workload one has too many operations")
    assert simulate(Workload("one", (Create("/a"), *[Fsync("/a")] * 127), ()))
    with pytest.raises(UsageError) as refused:
        simulate(Workload("one", (Create("/a"), *[Fsync("/a")] * 128), ()))
    assert str(refused.value) == snapshot("workload one has too many operations")


def test_what_is_written_where() -> None:
    workload = Workload("one", parse("write /a 0 100"), parse("append /a 60; write /b 10 5; append /a 7 trunc; sync"))
    history, setup, performed = simulate(workload)
    assert [(done.number, done.offset, len(done.data)) for done in performed] == [
        (1, 100, 60),
        (2, 10, 5),
        (3, 0, 7),
        (4, 0, 0),
    ]
    assert [done.number for done in setup] == [FIRST_SETUP_NUMBER]
    assert history.data == {1: (1, 100, 60), 2: (2, 10, 5), 3: (1, 0, 7)}
    assert history.steps[1].inodes[1].content == contents(FIRST_SETUP_NUMBER, 0, 100) + contents(1, 100, 60)
    assert history.steps[2].inodes[2].content == bytes(10) + contents(2, 10, 5, 1)  # short: as no other write
    assert history.steps[4].inodes[1].content == contents(3, 0, 7, 2)


# Workloads for a file system without links


NO_LINKS = ("link", "symlink", "setxattr")


def workload(setup: str, operations: str, *finish: Operation) -> Workload:
    return Workload("w", tuple(parse(setup)), tuple(parse(operations)), Finish("f", finish))


def test_what_it_lacks_is_left_out() -> None:
    asked = workload("create /a; link /a /other", "append /a 10; link /a /b; symlink a /c; unlink /a")
    kept = without(asked, NO_LINKS)
    assert kept is not None
    assert [write_one(one) for one in (*kept.setup, *kept.operations)] == ["create /a", "append /a 10", "unlink /a"]
    assert without(asked, ()) == asked


def test_what_rests_on_it_is_left_out_too() -> None:
    assert without(workload("create /a", "link /a /b"), NO_LINKS) is None
    assert without(workload("create /a", "append /a 5; link /a /b; append /b 3"), NO_LINKS) is None
    assert without(workload("create /a; link /a /b", "rename /b /c"), NO_LINKS) is None
    assert without(workload("create /a", "append /a 5; link /a /b", Fsync("/b")), NO_LINKS) is None
    assert without(workload("create /a; link /a /b", "append /a 5"), NO_LINKS) is not None
    assert without(workload("mkdir /d; create /a", "link /a /d/b; rename /d /e; unlink /e/b"), NO_LINKS) is None
    assert without(workload("mkdir /d; create /a", "link /a /d/b; rename /d /e; unlink /a"), NO_LINKS) is not None


def test_a_file_that_only_it_opens_is_not_written_to() -> None:
    made = workload("create /a", "append /a 5; tmpfile / as t; append t 5; link t /b")
    assert without(made, ("tmpfile",)) is None
    assert without(workload("create /a", "append /a 5; tmpfile / as t; close t"), ("tmpfile",)) is None
    kept = without(
        workload("write /a 0 5", "append /a 5; mknod /p fifo; reflink /a /b; unlink /a"), ("mknod", "reflink")
    )
    assert kept is not None
    assert [write_one(one) for one in kept.operations] == ["append /a 5", "unlink /a"]


def test_every_property_is_still_asked() -> None:
    for probe in shipped_probes(()):
        kept = [one for workload in probe.workloads if (one := without(workload, NO_LINKS)) is not None]
        assert kept, probe.property.name
        done = [one for workload in kept for one in (*workload.setup, *workload.operations)]
        assert not any(LACKABLE[name](one) for name in NO_LINKS for one in done)


TWICE = "mkdir /d; write /d/f 0 8192; setxattr /d/f user.a 10"
OTHERS = (
    "write /d/f 0 4096; rename /d/f /e",
    "write /d/f 0 100; link /d/f /g; fallocate /d/f 0 4096 insert; unlink /d/f",
)


def test_workloads_of_one_setup_know_nothing_of_each_other() -> None:
    """The setup is performed once for all of them."""
    first = Workload("first", parse(TWICE), parse("append /d/f 16; write /d/f 10 16; setxattr /d/f user.a 10"))

    def told() -> tuple[object, ...]:
        history, setup, performed = simulate(first)
        return deepcopy((history.steps, history.things, setup, performed))

    alone = told()
    for other in OTHERS:
        simulate(Workload("other", parse(TWICE), parse(other)))
        assert told() == alone
    with pytest.raises(RefusedError) as refused:
        simulate(Workload("mine", parse("create /a; create /a"), ()))
    assert text_with(str(refused.value), "create /a", "/a") == snapshot("workload mine: 'create /a': /a exists already")
