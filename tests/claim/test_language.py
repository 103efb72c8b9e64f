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
        ("", 1, snapshot("the end where a test begins")),
        ("exists", 7, snapshot("the end where a path comes")),
        ("exist /a", 1, snapshot("'exist' where a test begins")),
        ("'exists' /a", 1, snapshot("'exists' where a test begins")),
        ("exists a", 8, snapshot("'a' is not an absolute path such as /d/a")),
        ("exists /d/../a", 8, snapshot("the path '/d/../a' must not contain ..")),
        ("exists /lost+found/a", 8, snapshot("bob does not observe the contents of /lost+found")),
        ("exists /a exists /b", 11, snapshot("'exists' where a test is over")),
        ("exists /a and", 14, snapshot("the end where a test begins")),
        ("exists /a )", 11, snapshot("')' where a test is over")),
        ("(exists /a", 11, snapshot("the end where ')' is missing")),
        ("exists '/a", 8, snapshot('"\'" is never closed')),
        ("exists /a & exists /b", 11, snapshot("'&' where a test is over")),
        ("size /a 4096", 9, snapshot("'4096' where sizes are compared")),
        ("size /a = many", 11, snapshot("'many' where a number of bytes comes")),
        ("size /a = '4K'", 11, snapshot("'4K' where a number of bytes comes")),
        ("links /a 2", 10, snapshot("'2' where numbers of names are compared")),
        ("links /a = 4K", 12, snapshot("'4K' where a number of names comes")),
        ("mode /a > 600", 9, snapshot("'>' where = comes")),
        ("time /a = 3", 11, snapshot("'3' where a time comes")),
        ("mode /a = 0600", 11, snapshot("'0600' where permission bits comes")),
        ("owner /a = root", 12, snapshot("'root' where an owner and a group comes")),
        ("target /a =", 12, snapshot("the end where a target comes")),
        ("attribute /a = new", 14, snapshot("'=' where the name of an attribute comes")),
        ("attribute /a user.x new", 21, snapshot("'new' where = comes")),
        ("attribute /a user.x = zeros", 23, snapshot("an attribute is not zeros")),
        ("content /a new", 12, snapshot("'new' where = or prefix comes")),
        ("content /a = op0", 14, snapshot("'op0' where it says whose bytes they are")),
        ("content /a = 'new'", 14, snapshot("'new' where it says whose bytes they are")),
        ("content /a[0] = new", 11, snapshot("'[0]' is no range of bytes")),
        ("content /a[4:4] = new", 11, snapshot("no byte is in the range [4:4]")),
        ("content /a[0:4] = empty", 19, snapshot("only a whole file is empty")),
        ("content /a[0:4] prefix new", 11, snapshot("a prefix is of the whole file")),
        ("content /a prefix zeros", 19, snapshot("there is no prefix of zeros")),
        (
            "not " * (DEEPEST + 1) + "exists /a",
            4 * DEEPEST + 5,
            snapshot("more than 50 brackets and 'not' within each other"),
        ),
        ("exists /a and " * MOST_TESTS + "exists /a", 14 * MOST_TESTS + 1, snapshot("more than 200 tests")),
    ],
)
def test_mistakes_are_pointed_at(text: str, column: int, message: str) -> None:
    with pytest.raises(PointedError) as caught:
        parse(text)
    assert (caught.value.column, caught.value.text) == (column, text)
    assert caught.value.message == message
