"""The language of expectations: what is written reads back, and every mistake is pointed at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.claim.expectation.language import DEEPEST, MOST_TESTS, parse
from bob.claim.expectation.syntax import (
    Absent,
    And,
    Attribute,
    ByteRange,
    Content,
    Exists,
    Formula,
    KeptContents,
    NamedPath,
    Not,
    Or,
    Same,
    SizeRelation,
    Source,
    StatField,
    StatIs,
    atoms,
)
from bob.errors import PointedError

from .generators import NAMES, anything_about
from .written import write

TESTS = anything_about(NAMES)
SOME = """exists absent size content same links mode owner time target attribute not and or implies prefix = != < <=
> >= ( ) /a /d/b '/a b' [0:512] [4K:8K] [:] old new zeros empty op1 op0 op user.x 640 1:2 12 4K 1T ' " [ ] ! \\ ; # é"""
WORDS = st.sampled_from([*SOME.split(), "\n", "\t"])


@given(TESTS)
def test_what_is_written_reads_back(test: Formula) -> None:
    assert parse(write(test)).test == test


@given(TESTS)
def test_every_name_knows_where_it_stands(test: Formula) -> None:
    text = f"  {write(test)} "
    for atom in atoms(parse(text).test):
        if isinstance(atom, Exists):
            start, stop = atom.name.at
            assert parse(f"exists {text[start:stop]}").test == atom


@given(st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=12).map(" ".join), st.lists(WORDS).map("".join)))
def test_whatever_is_written_reads_or_is_pointed_at(text: str) -> None:
    try:
        test = parse(text).test
    except PointedError as error:
        assert error.start <= error.stop <= len(text)
        assert error.start < error.stop or error.start == len(text)
        assert text.split("\n")[error.line - 1][error.column - 1 :].startswith(text[error.start :].partition("\n")[0])
    else:
        assert parse(write(test)).test == test


A, B, C = (Exists(NamedPath(path)) for path in ("/a", "/b", "/c"))


@pytest.mark.parametrize(
    ("text", "test"),
    [
        ("exists /a and exists /b or exists /c", Or(And(A, B), C)),
        ("exists /a or exists /b and exists /c", Or(A, And(B, C))),
        ("not exists /a and exists /b", And(Not(A), B)),
        ("not (exists /a and exists /b)", Not(And(A, B))),
        ("not not exists /a", Not(Not(A))),
        ("exists /a implies exists /b implies exists /c", Or(Not(A), Or(Not(B), C))),
        ("(exists /a implies exists /b) implies exists /c", Or(Not(Or(Not(A), B)), C)),
        ("exists /a or exists /b implies exists /c", Or(Not(Or(A, B)), C)),
        ("exists /a and exists /b and exists /c", And(And(A, B), C)),
        ("\texists\n/a ", A),
        ("exists '/a b'", Exists(NamedPath("/a b"))),
        ('exists "/a b"', Exists(NamedPath("/a b"))),
        (r"exists /a\ b", Exists(NamedPath("/a b"))),
        ("absent /a", Absent(NamedPath("/a"))),
        ("same /a /b", Same(NamedPath("/a"), NamedPath("/b"))),
        ("size /a=4K", StatIs(NamedPath("/a"), StatField.SIZE, 4096)),
        ("size /a >= 2M", StatIs(NamedPath("/a"), StatField.SIZE, 2 * 1024 * 1024, SizeRelation.AT_LEAST)),
        ("content /a = new", Content(NamedPath("/a"), Source(KeptContents.NEW))),
        ("content /a[0:4K]=op12", Content(NamedPath("/a"), Source(12), ByteRange(0, 4096))),
        ("links /a != 2", StatIs(NamedPath("/a"), StatField.LINKS, 2, SizeRelation.DIFFERENT)),
        ("mode /a = 064", StatIs(NamedPath("/a"), StatField.MODE, 0o064)),
        ("time /a = 1000000000", StatIs(NamedPath("/a"), StatField.TIME, 1_000_000_000)),
        ("owner /a = 1000:0", StatIs(NamedPath("/a"), StatField.OWNER, (1000, 0))),
        ("target /a = '../b c'", StatIs(NamedPath("/a"), StatField.TARGET, "../b c")),
        ("attribute /a user.x = op3", Attribute(NamedPath("/a"), "user.x", Source(3))),
        ("content /a prefix old", Content(NamedPath("/a"), Source(KeptContents.OLD), prefix=True)),
        ("exists /and and exists /or", And(Exists(NamedPath("/and")), Exists(NamedPath("/or")))),
    ],
)
def test_how_it_is_understood(text: str, test: Formula) -> None:
    assert parse(text).test == test


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, snapshot("unexpected end; expected a test")),
        ("exists", 7, snapshot("unexpected end; expected a path")),
        ("exist /a", 1, snapshot("unexpected 'exist'; expected a test")),
        ("'exists' /a", 1, snapshot("unexpected 'exists'; expected a test")),
        ("exists a", 8, snapshot("'a' is not an absolute path such as /d/a")),
        ("exists /d/../a", 8, snapshot("the path '/d/../a' must not contain ..")),
        ("exists /lost+found/a", 8, snapshot("bob does not observe the contents of /lost+found")),
        ("exists /a exists /b", 11, snapshot("unexpected 'exists' after a test")),
        ("exists /a and", 14, snapshot("unexpected end; expected a test")),
        ("exists /a )", 11, snapshot("unexpected ')' after a test")),
        ("(exists /a", 11, snapshot("unexpected end; expected ')'")),
        ("exists '/a", 8, snapshot('"\'" is never closed')),
        ("exists /a & exists /b", 11, snapshot("unexpected '&' after a test")),
        ("size /a 4096", 9, snapshot("unexpected '4096'; expected a comparison of sizes")),
        ("size /a = many", 11, snapshot("unexpected 'many'; expected a number of bytes")),
        ("size /a = '4K'", 11, snapshot("unexpected '4K'; expected a number of bytes")),
        ("links /a 2", 10, snapshot("unexpected '2'; expected a comparison of numbers of names")),
        ("links /a = 4K", 12, snapshot("unexpected '4K'; expected a number of names")),
        ("mode /a > 600", 9, snapshot("unexpected '>'; expected =")),
        ("time /a = 3", 11, snapshot("unexpected '3'; expected a time")),
        ("mode /a = 0600", 11, snapshot("unexpected '0600'; expected permission bits")),
        ("owner /a = root", 12, snapshot("unexpected 'root'; expected an owner UID:GID")),
        ("target /a =", 12, snapshot("unexpected end; expected a target")),
        ("attribute /a = new", 14, snapshot("unexpected '='; expected the name of an attribute")),
        ("attribute /a user.x new", 21, snapshot("unexpected 'new'; expected =")),
        ("attribute /a user.x = zeros", 23, snapshot("an attribute cannot be zeros")),
        ("content /a new", 12, snapshot("unexpected 'new'; expected = or prefix")),
        ("content /a = op0", 14, snapshot("unexpected 'op0'; expected the source of the bytes")),
        ("content /a = 'new'", 14, snapshot("unexpected 'new'; expected the source of the bytes")),
        ("content /a[0] = new", 11, snapshot("invalid range '[0]'; expected [FROM:TO]")),
        ("content /a[4:4] = new", 11, snapshot("the range [4:4] is empty")),
        ("content /a[0:4] = empty", 19, snapshot("only a whole file can be empty")),
        ("content /a[0:4] prefix new", 11, snapshot("prefix is about the whole file, not a range")),
        ("content /a prefix zeros", 19, snapshot("prefix does not go with zeros")),
        (
            "not " * (DEEPEST + 1) + "exists /a",
            4 * DEEPEST + 5,
            snapshot("more than 50 nested brackets and 'not'"),
        ),
        ("exists /a and " * MOST_TESTS + "exists /a", 14 * MOST_TESTS + 1, snapshot("more than 200 tests")),
    ],
)
def test_mistakes_are_pointed_at(text: str, column: int, message: str) -> None:
    with pytest.raises(PointedError) as caught:
        parse(text)
    assert (caught.value.column, caught.value.text) == (column, text)
    assert caught.value.message == message
