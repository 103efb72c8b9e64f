"""Expectations held against observations: trees that crashes can leave, and some made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.claim.expectation.evaluate import LONGEST_WORDS, check, evidence, holds
from bob.claim.expectation.language import parse
from bob.claim.expectation.syntax import And, Formula, Mounts, NamedPath, Not, Or, atoms
from bob.errors import PointedError
from bob.observe.observation import Node, Observation
from bob.workload.language import parse as operations
from bob.workload.operations import Workload
from bob.workload.pattern import contents
from bob.workload.simulation import simulate
from claim.worlds import World
from wording import text_with

from .generators import anything_about
from .written import write

SETUP = "mkdir /d; write /f 0 8192; create /d/e; symlink /f /s"
DONE = "write /f 0 512; append /f 1000; fsync /f; write /d/n 0 4096; link /f /d/l; rename /d/n /f; append /d/e 100"
EVERY = (1, 2, 3, 4, 5, 6, 7)


def world(done: str = DONE, setup: str = SETUP) -> World:
    return World.of(Workload("try", operations(setup), operations(done)))


def ask(text: str, observation: Observation, found: World) -> bool | None:
    expectation = parse(text)
    check(expectation, found.history)
    answer = holds(expectation.test, observation, found.history)
    assert holds(Not(expectation.test), observation, found.history) is not answer
    assert evidence(expectation.test, observation, found.history)
    return answer


@pytest.mark.parametrize(
    ("there", "text", "is_so"),
    [
        ((), "exists /f and exists /d/e and exists /d", True),
        ((), "exists /d/n", False),
        ((), "absent /d/n and absent /d/l", True),
        (EVERY, "absent /d/n and exists /d/l", True),
        ((), "content /f = old", True),
        ((), "content /f = new", False),
        (EVERY, "content /f = new", True),
        (EVERY, "content /f = old", False),
        (EVERY, "content /f = op4", True),
        ((1,), "content /f = op1", True),
        ((), "content /f = op1", False),
        ((2,), "content /f = op2 and not content /f = op1", True),
        ((1,), "content /f[0:512] = op1", True),
        ((1,), "content /f[16:32] = op1", True),
        ((1,), "content /f[512:4K] = old", True),
        ((1,), "content /f[0:4K] = old", False),
        ((1,), "content /f = old or content /f = new", False),
        ((), "content /d/e = empty", True),
        (EVERY, "content /d/e = empty", False),
        ((), "content /d/e prefix op7", True),
        ((), "content /d/e prefix new and content /d/e prefix old", True),
        (EVERY, "content /d/e prefix new", True),
        (EVERY, "content /d/e prefix old", False),
        ((), "content /d/e = zeros", False),
        ((), "size /f = 8K", True),
        ((2,), "size /f = 9192 and size /f > 8K and size /f != 8K and size /f >= 9192", True),
        ((2,), "size /f < 9192 or size /f <= 9191", False),
        ((), "size /d/n = 0", False),
        ((), "size /d/n != 0", False),
        ((), "size /d = 0 or size /s > 0", False),
        ((), "content /d/n = new or content /d/n = zeros", None),
        ((5,), "same /f /d/l", True),
        ((4, 5, 6), "same /f /d/l", False),
        ((), "same /f /d/l", False),
        ((), "same /f /f", True),
        ((), "exists /d/l implies same /f /d/l", True),
        ((5,), "exists /d/l implies content /d/l = new", False),
        ((), "exists /", True),
        ((), "absent /", False),
    ],
)  # fmt: skip
def test_what_holds_where_some_operations_are_there(there: Iterable[int], text: str, is_so: bool | None) -> None:
    found = world()
    if is_so is None:
        with pytest.raises(PointedError) as refused:
            ask(text, found.crash(there), found)
        assert text_with(str(refused.value), "/d/n") == snapshot("/d/n is not a file after the last operation")
    else:
        assert ask(text, found.crash(there), found) is is_so


def seen(**nodes: Node) -> Observation:
    return Observation(True, None, {f"/{name.replace('_', '/')}": node for name, node in nodes.items()})


def file(content: bytes, inode: int = 11, size: int | None = None, fault: str | None = None) -> Node:
    return Node("file", inode, 1, len(content) if size is None else size, content, fault=fault)


SMALL = world("append /a 4096; append /a 100", "create /a; mkdir /d; create /d/b")
FOLDER = Node("directory", 12)


@pytest.mark.parametrize(
    ("content", "text", "is_so"),
    [
        (bytes(4096), "content /a = zeros", True),
        (bytes(4095) + b"x", "content /a = zeros", False),
        (bytes(512) + b"x", "content /a[0:512] = zeros", True),
        (bytes(511), "content /a[0:512] = zeros", False),
        (bytes(4096), "content /a prefix new", False),
        (contents(1, 0, 700), "content /a prefix new and content /a prefix op1", True),
        (contents(1, 0, 700), "content /a = op1", False),
        (contents(1, 0, 700) + bytes(1), "content /a prefix new", False),
        (contents(1, 0, 4096), "content /a = op1 and content /a prefix op2", True),
        (contents(1, 0, 4096) + contents(2, 4096, 100), "content /a = new and content /a = op2", True),
        (contents(1, 0, 4096) + contents(2, 4096, 100), "content /a prefix op1", False),
        (contents(1, 0, 4096) + contents(2, 4096, 101), "content /a prefix new", False),
        (contents(1, 0, 4096) + bytes(100), "content /a = op2 or content /a prefix op2", False),
        (contents(2, 0, 4096), "content /a = op1", False),
        (b"", "content /a = old and content /a = empty and content /a prefix op2", True),
    ],
)
def test_contents(content: bytes, text: str, is_so: bool) -> None:
    assert ask(text, seen(a=file(content)), SMALL) is is_so


def test_a_file_of_which_not_all_can_be_read_has_no_content() -> None:
    damaged = seen(a=file(b"", size=4096, fault="Input/output error"))
    assert ask("exists /a and size /a = 4096", damaged, SMALL)
    assert not ask("content /a = old or content /a = empty or content /a prefix new", damaged, SMALL)
    told = evidence(parse("content /a = old").test, damaged, SMALL.history)
    assert text_with(told, "/a", "4,096", 0, "Input/output") == snapshot(
        "/a has 4,096 B, of which 0 can be read (Input/output error)"
    )


def test_a_fault_of_something_else_than_its_data_leaves_its_content() -> None:
    assert ask("content /a = old", seen(a=file(b"", fault="attributes: Input/output error")), SMALL)


@pytest.mark.parametrize(
    ("tree", "hidden"),
    [
        (seen(a=file(b""), d=replace(FOLDER, fault="cannot be listed: Structure needs cleaning")), True),
        (seen(a=file(b""), d=FOLDER), False),
        (seen(a=file(b"")), False),
        (seen(a=file(b""), d=replace(FOLDER, fault="attributes"), d_c=file(b"", 13)), False),
        (Observation(True, None, {"/": replace(FOLDER, fault="cannot be listed: Input/output error")}), True),
    ],
)
def test_what_cannot_be_seen_neither_exists_nor_is_absent(tree: Observation, hidden: bool) -> None:
    assert not ask("exists /d/b", tree, SMALL)
    assert ask("absent /d/b", tree, SMALL) is not hidden
    assert ("cannot be seen" in evidence(parse("exists /d/b").test, tree, SMALL.history)) is hidden


def test_names_that_cannot_be_looked_at_are_no_one_inode() -> None:
    unreadable = Node("unreadable", fault="Input/output error")
    tree = seen(a=unreadable, d=FOLDER, d_b=unreadable)
    assert ask("exists /a and exists /d/b", tree, SMALL)
    assert not ask("same /a /d/b or size /a = 0 or content /a = empty", tree, SMALL)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("exists /a implies content /a = old", snapshot("/a has operation 1 (512 B), zeros (3,584 B)")),
        ("content /a = old or absent /d/b", snapshot("/a has operation 1 (512 B), zeros (3,584 B); /d/b is empty")),
        ("exists /d/b and absent /a", snapshot("/a has operation 1 (512 B), zeros (3,584 B)")),
        ("not exists /d/b", "/d/b is empty"),
        ("exists /d implies size /d = 4096", "/d: directory"),
        (
            "same /a /d/b",
            snapshot("/a has operation 1 (512 B), zeros (3,584 B); /d/b is empty; /a and /d/b are inodes 11 and 14"),
        ),
        ("not same /a /a", snapshot("/a has operation 1 (512 B), zeros (3,584 B); /a and /a are one inode")),
    ],
)
def test_the_evidence_tells_what_decides(text: str, told: str) -> None:
    tree = seen(a=file(contents(1, 0, 512) + bytes(3584)), d=FOLDER, d_b=file(b"", 14))
    assert not ask(text, tree, SMALL)
    assert evidence(parse(text).test, tree, SMALL.history) == told


def test_the_evidence_is_never_long() -> None:
    torn = b"".join(contents(1, at, 256) + bytes(256) for at in range(0, 32768, 512))
    told = evidence(parse("content /a = old").test, seen(a=file(torn)), SMALL.history)
    assert told.endswith(", ...") and len(told) < LONGEST_WORDS + 20


@pytest.mark.parametrize(
    ("text", "wrong", "message"),
    [
        ("exists /d/x", "/d/x", snapshot("neither the setup nor the operations make /d/x")),
        ("exists /x/b", "/x/b", snapshot("neither the setup nor the operations make /x/b")),
        ("same /a /d/c", "/d/c", snapshot("neither the setup nor the operations make /d/c")),
        ("content /a = op3", "op3", snapshot("operation 3 does not exist")),
        ("content /d = old", "old", snapshot("/d is not a file before the operations")),
        ("content /d/a = new", "new", snapshot("/d/a is not a file after the last operation")),
        ("content /a[0:1] = old", "[0:1]", snapshot("/a has 0 bytes before the operations")),
        ("content /a[4K:8K] = new", "[4K:8K]", snapshot("/a has 4,196 bytes after the last operation")),
        ("content /a[4K:8K] = op2", "[4K:8K]", snapshot("op2 did not write all of these bytes")),
        ("content /a[0:1] = op2", "[0:1]", snapshot("op2 did not write all of these bytes")),
    ],
)
def test_what_cannot_be_asked_of_a_workload_is_pointed_at(text: str, wrong: str, message: str) -> None:
    with pytest.raises(PointedError) as caught:
        check(parse(text), SMALL.history)
    assert text[caught.value.start : caught.value.stop] == wrong
    assert caught.value.message == message
    assert caught.value.place == f"column {text.index(wrong) + 1}"
    assert caught.value.hint


def test_operations_that_write_nothing_have_no_data() -> None:
    with pytest.raises(PointedError) as refused:
        check(parse("content /f = op3"), world().history)
    assert text_with(str(refused.value), 3, "/f") == snapshot("operation 3 (fsync /f) does not write data")


def test_a_name_that_a_crash_may_leave_in_another_directory_can_be_asked_for() -> None:
    found = world("rename /d /e; create /e/b", "mkdir /d")
    check(parse("absent /d/b"), found.history)  # the create, without the rename


KNOWN = st.sampled_from(["/", "/f", "/d", "/d/e", "/d/n", "/d/l", "/s", "/n"]).map(NamedPath)


@given(anything_about(KNOWN), st.sets(st.sampled_from(EVERY)))
def test_any_expectation_holds_or_not_and_tells_why(test: Formula, there: set[int]) -> None:
    """Whatever may be asked of the workload is answered, and what is written the same way has the same answer."""
    found = world()
    try:
        check(parse(write(test)), found.history)
    except PointedError as error:
        assert 1 <= error.column <= len(write(test))
        return
    tree = found.crash(there)
    answer = holds(test, tree, found.history)
    assert holds(Not(test), tree, found.history) is (None if answer is None else not answer)
    assert evidence(test, tree, found.history)


REFUSED = Observation(False, "Structure needs cleaning", {"/f": Node("file", 11)}, repaired=True)


def truth(test: Formula, others: Iterator[bool]) -> bool:
    """Whether ``test`` holds where nothing mounts, if each of its other tests holds or not as ``others`` says."""
    match test:
        case Not(inner):
            return not truth(inner, others)
        case And(left, right):
            return all([truth(left, others), truth(right, others)])
        case Or(left, right):
            return any([truth(left, others), truth(right, others)])
        case Mounts():
            return False
    return next(others)


@given(anything_about(KNOWN).filter(lambda test: sum(1 for _atom in atoms(test)) <= 8))
def test_where_nothing_mounts_only_that_can_be_told_which_no_name_could_change(test: Formula) -> None:
    """By brute force: whatever the names in it might be, had it mounted."""
    unknown = sum(not isinstance(atom, Mounts) for atom in atoms(test))
    answers = {truth(test, iter(guess)) for guess in product((False, True), repeat=unknown)}
    found = holds(test, REFUSED, world().history)
    assert found is (answers.pop() if len(answers) == 1 else None)


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("mounts", False),
        ("mounts and exists /f", False),
        ("exists /f", None),
        ("exists /f and absent /f", None),
        ("mounts implies exists /f", True),
        ("exists /f implies mounts", None),
        ("not mounts", True),
    ],
)
def test_a_state_that_does_not_mount(text: str, is_so: bool | None) -> None:
    assert holds(parse(text).test, REFUSED, world().history) is is_so


def test_the_evidence_has_the_words_of_the_kernel() -> None:
    told = evidence(parse("mounts and exists /f").test, REFUSED, world().history)
    assert told == snapshot("the file system does not mount: Structure needs cleaning")
    assert evidence(parse("not mounts").test, world().crash(EVERY), world().history) == snapshot(
        "the file system mounts"
    )


@given(st.sets(st.sampled_from(EVERY)))
def test_old_and_new_are_the_ends_of_the_history(there: set[int]) -> None:
    found = world()
    tree = found.crash(there).tree or {}
    history = simulate(Workload("try", operations(SETUP), operations(DONE)))[0]
    for path, step, word in (("/f", 0, "old"), ("/f", -1, "new"), ("/d/e", -1, "new"), ("/d/l", -1, "new")):
        content = history.steps[step].inodes[history.steps[step].names[path]].content
        wanted = path in tree and tree[path].content == content
        assert ask(f"content {path} = {word}", Observation(True, None, tree), found) is wanted
