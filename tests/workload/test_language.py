"""The one-line language: whatever is written reads back the same, and every mistake is quoted."""

from __future__ import annotations

import string
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.agent.inside import look
from bob.errors import PointedError, UsageError
from bob.workload import language
from bob.workload import operations as ops
from bob.workload.language import GRAMMAR, parse, parse_one, write_one
from bob.workload.operations import How, Operation

NAME = st.text(string.ascii_letters + string.digits + " .;#'\"\\$-_é\t", min_size=1, max_size=6).filter(
    lambda name: name not in (".", "..", *language.UNOBSERVED) and not name.startswith(language.UNOBSERVED_PREFIX)
)
PATH = st.lists(NAME, max_size=3).map(lambda names: "/" + "/".join(names))
HANDLE = st.from_regex(r"[A-Za-z]\w{0,4}", fullmatch=True).filter(
    lambda word: word.isascii() and word not in ("later", "directory")
)
FILE = st.one_of(PATH, PATH, HANDLE)
TIME = st.integers(language.EARLIEST // 2, language.LATEST // 2).map(lambda half: 2 * half)
BYTES = st.integers(0, 2**40)
LENGTH = st.integers(1, 2**40)
WORD = st.text(string.printable, max_size=8)
OPERATIONS: st.SearchStrategy[Operation] = st.one_of(
    st.builds(ops.Create, PATH),
    st.builds(ops.Mknod, PATH, st.sampled_from(ops.Special)),
    st.builds(ops.Open, PATH, HANDLE),
    st.builds(ops.Unnamed, PATH, HANDLE),
    st.builds(ops.Close, HANDLE),
    st.builds(ops.Write, FILE, BYTES, LENGTH, st.sampled_from([h for h in How if h is not How.TRUNC])),
    st.builds(ops.Write, FILE, st.none(), LENGTH, st.sampled_from([h for h in How if h is not How.MMAP])),
    st.builds(ops.CopyRange, FILE, FILE, BYTES, LENGTH),
    st.builds(ops.Reflink, FILE, FILE),
    st.builds(ops.Truncate, FILE, BYTES),
    st.builds(ops.Fallocate, FILE, BYTES, LENGTH, st.sampled_from(ops.Allocation)),
    st.builds(ops.Chmod, FILE, st.integers(0, 0o777)),
    st.builds(ops.Chown, FILE, st.integers(0, 99999), st.integers(0, 99999)),
    st.builds(ops.Utimes, FILE, TIME),
    st.builds(ops.Rename, PATH, PATH, st.sampled_from(ops.Replacing)),
    st.builds(ops.Link, FILE, PATH),
    st.builds(ops.Symlink, WORD, PATH),
    st.builds(ops.Unlink, PATH),
    st.builds(ops.Mkdir, PATH),
    st.builds(ops.Rmdir, PATH),
    st.builds(ops.Setxattr, FILE, WORD, LENGTH),
    st.builds(ops.Removexattr, FILE, WORD),
    st.builds(ops.Fsync, FILE, st.booleans()),
    st.builds(ops.SyncFileRange, FILE, BYTES, LENGTH),
    st.builds(ops.Msync, FILE),
    st.builds(ops.Sync, st.booleans()),
    st.builds(ops.Sleep, st.floats(0, 1e6)),
    st.builds(ops.Acknowledge, WORD),
)


@given(OPERATIONS)
def test_what_is_written_reads_back_the_same(operation: Operation) -> None:
    assert parse_one(write_one(operation)) == operation


@given(st.lists(OPERATIONS, max_size=5), st.sampled_from([";", " ; ", "\n", "  # why\n", ";;", "\n#;\n"]))
def test_several_read_back_the_same(operations: list[Operation], between: str) -> None:
    assert parse(between.join(map(write_one, operations))) == tuple(operations)


def test_comments_begin_words() -> None:
    assert parse("create /a#1 # the first\n# none; create /b\ncreate /c;create '/d;#'") == (
        ops.Create("/a#1"),
        ops.Create("/c"),
        ops.Create("/d;#"),
    )


def test_every_operation_is_tried_here() -> None:
    verbs = {write_one(example).split()[0] for example in EXAMPLES}
    assert verbs == set(GRAMMAR)
    assert {type(example) for example in EXAMPLES} == set(get_args(Operation))


EXAMPLES = [parse_one(text) for text in (
    "create /a", "write /a 0 4K mmap", "append /a 1M trunc", "truncate /a 0", "fallocate /a 0 1", "rename /a /b",
    "link /a /b", "symlink ../x /a", "unlink /a", "mkdir /a", "rmdir /a", "setxattr /a user.x 5",
    "removexattr /a user.x", "fsync /", "fdatasync /a", "sync_file_range /a 0 1", "msync /a", "sync", "syncfs",
    "sleep 2.5", "acknowledge done", "fallocate /a 0 1 punch", "chmod /a 064", "chown /a 1:0",
    "rename /a /b exchange", "mknod /a fifo", "open /a as f", "tmpfile / as f", "close f", "write f 0 10",
    "writeback /a", "writeback_metadata", "commit", "copy_file_range /a f 0 10", "reflink /a /b", "utimes f 1000000000", "fallocate f 0 4096 collapse",
)]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "crate /a",
        "create",
        "create /a /b",
        "create a",
        "create /a/",
        "create //a",
        "create /d/../a",
        "create /./a",
        "create /lost+found/a",
        "create /.nilfs",
        "create /.bob-clock",
        "write /a 0",
        "write /a 0 0",
        "write /a -1 5",
        "write /a 0 4k",
        "write /a 0 4096 trunc",
        "create f",
        "link /a f",
        "open f as g",
        "open /a to f",
        "open /a as /f",
        "open /a as 4",
        "close /a",
        "fsync later",
        "tmpfile f as g",
        "mknod /a pipe",
        "reflink /a",
        "utimes /a 999999999",
        "utimes /a 2",
        "utimes /a 1700000000",
        "write /a 0 4096 plain",
        "append /a 4096 mmap",
        "append /a K",
        "fallocate /a 0 0",
        "fallocate /a 0 1 grow",
        "chmod /a 0644",
        "rename /a /b replace",
        "rename /a /b noreplace exchange",
        "chmod /a 8",
        "chmod /a u+x",
        "chown /a 1",
        "chown /a root:root",
        "fallocate /a 0 1 punch keep",
        "sleep -1",
        "sleep nan",
        "sleep inf",
        "sleep soon",
        "create '/a",
        "",
    ],
)
def test_mistakes_are_quoted(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_one(text)
    assert repr(text) in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint


def test_names_that_nobody_observes_are_those_that_the_agent_leaves_out() -> None:
    assert language.UNOBSERVED == look.HIDDEN_NAMES
    assert language.UNOBSERVED_PREFIX == look.HIDDEN_PREFIX
    assert parse_one("create /d/lost+found") == ops.Create("/d/lost+found")


@pytest.mark.parametrize(
    ("text", "wrong", "place"),
    [
        ("create /a; fsnc /a", "fsnc /a", "column 12"),
        ("create /a\n  write /a 0  # how long?\nfsync /a", "write /a 0", "line 2, column 3"),
        ("create /a\nfsnc /a", "fsnc /a", "line 2, column 1"),
        ("write /a\n", "write /a", "column 1"),
        ("fsync /a; fsync 'a", "fsync 'a", "column 11"),
    ],
)
def test_the_operation_that_is_wrong_is_pointed_at(text: str, wrong: str, place: str) -> None:
    with pytest.raises(PointedError) as caught:
        parse(text)
    assert text[caught.value.start : caught.value.stop] == wrong
    assert (caught.value.place, caught.value.text) == (place, text)
