"""The parser of expectations (conditions on the tree after a crash), such as ``exists /a implies content /a = new``
(docs/try.md). The operators, from the tightest binding to the loosest, are ``not``, ``and``, ``or`` and ``implies``.
``a implies b implies c`` means ``a implies (b implies c)``. A path with spaces, brackets or signs such as ``=`` is
written in quotes, as in a shell."""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial, reduce
from typing import NoReturn

from bob.claim.expectation.syntax import (
    Absent,
    And,
    Attribute,
    ByteRange,
    Content,
    Exists,
    Expectation,
    Formula,
    KeptContents,
    Mounts,
    NamedPath,
    Not,
    Or,
    Same,
    SizeRelation,
    Source,
    StatField,
    StatIs,
    TextSpan,
)
from bob.errors import PointedError
from bob.workload.language import bytes_in, owner_in, path_in, permissions_in, time_in

FORMS = {
    "exists": "exists PATH",
    "absent": "absent PATH",
    "size": "size PATH =|!=|<|<=|>|>= BYTES",
    "content": "content PATH[FROM:TO] = old|new|opN|zeros|empty, or: content PATH prefix old|new|opN",
    "same": "same PATH PATH",
    "links": "links PATH =|!=|<|<=|>|>= NUMBER",
    "mode": "mode PATH = BITS",
    "owner": "owner PATH = UID:GID",
    "time": "time PATH = SECONDS",
    "target": "target PATH = PATH",
    "attribute": "attribute PATH NAME = old|new|opN",
    "mounts": "mounts",
}
_COMPARED = {StatField.SIZE: "sizes", StatField.LINKS: "numbers of names"}
JOINTS = ("and", "or", "implies")
DEEPEST = 50  # nested brackets and ``not``
MOST_TESTS = 200  # tests in one expectation

PLAIN = re.compile(r"""[^\s()\[\]=<>!'"\\]+""")  # a word that needs no quotes
_TOKEN = re.compile(
    rf"""(?P<symbol> [()] | [<>!]= | [=<>] )
       | (?P<range> \[ [^\[\]]* \] )
       | (?P<word> (?: \\. | '[^']*' | "(?: \\. | [^"\\] )*" | {PLAIN.pattern} )+ )""",
    re.VERBOSE | re.DOTALL,
)


class _TokenKind(Enum):
    SYMBOL = "symbol"
    RANGE = "range"
    WORD = "word"
    QUOTED = "quoted"
    END = "end"


@dataclass(frozen=True, slots=True)
class _Token:
    """A token without its quotes. ``at`` is its place in the text, with the quotes."""

    kind: _TokenKind
    text: str
    at: TextSpan


def parse(text: str) -> Expectation:
    """Return the expectation in ``text``. Raise PointedError if ``text`` has a mistake; the error has the place of the
    mistake."""
    return Expectation(text, _Parser(text).whole())


class _Parser:
    """A recursive-descent parser: one method for each precedence, and one for each form of test."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0
        self._depth = self._tests = 0
        self._atoms: dict[str, Callable[[], Formula]] = {
            "mounts": Mounts,
            "exists": lambda: Exists(self._name()),
            "absent": lambda: Absent(self._name()),
            "same": lambda: Same(self._name(), self._name()),
            "content": self._content,
            "attribute": self._attribute,
            **{field.value: partial(self._stat, field) for field in StatField},
        }

    def whole(self) -> Formula:
        test = self._implies()
        if self._token.kind is not _TokenKind.END:
            self._fail(f"unexpected {self._shown} after a test", hint=f"join tests with {', '.join(JOINTS)}")
        return test

    def _implies(self) -> Formula:
        tests = [self._or()]
        while self._takes("implies"):
            tests.append(self._or())
        return reduce(lambda right, left: Or(Not(left), right), reversed(tests))

    def _or(self) -> Formula:
        test = self._and()
        while self._takes("or"):
            test = Or(test, self._and())
        return test

    def _and(self) -> Formula:
        test = self._not()
        while self._takes("and"):
            test = And(test, self._not())
        return test

    def _not(self) -> Formula:
        negated, opened = self._takes("not"), False
        if not negated:
            opened = self._takes("(", _TokenKind.SYMBOL)
        if not negated and not opened:
            return self._atom()
        self._depth += 1
        if self._depth > DEEPEST:
            self._fail(f"more than {DEEPEST} nested brackets and 'not'")
        inner = self._not() if negated else self._implies()
        self._depth -= 1
        if opened and not self._takes(")", _TokenKind.SYMBOL):
            self._fail(f"unexpected {self._shown}; expected ')'", hint="each '(' needs its ')'")
        return Not(inner) if negated else inner

    def _atom(self) -> Formula:
        token = self._token
        read = self._atoms.get(token.text) if token.kind is _TokenKind.WORD else None
        if read is None:
            self._fail(f"unexpected {self._shown}; expected a test", hint=f"tests: {', '.join(FORMS)}; also not and (")
        self._tests += 1
        if self._tests > MOST_TESTS:
            self._fail(f"more than {MOST_TESTS} tests", hint="split them into several --expect options")
        self._next += 1
        return read()

    def _stat(self, field: StatField) -> Formula:
        name, relation = self._name(), SizeRelation.EQUAL
        if field in _COMPARED:
            relation = self._relation(field)
        else:
            self._equal(field)
        value = self._text_of("a target") if field is StatField.TARGET else self._value(*_VALUES[field])
        return StatIs(name, field, value, relation)

    def _content(self) -> Formula:
        name, within = self._name(), self._range()
        prefix = self._takes("prefix")
        if not prefix and not self._takes("=", _TokenKind.SYMBOL):
            self._fail(f"unexpected {self._shown}; expected = or prefix", hint=_written("content"))
        source = self._source()
        if prefix and within is not None:
            self._fail("prefix is about the whole file, not a range", hint=_written("content"), at=within.at)
        if prefix and source.what in (KeptContents.ZEROS, KeptContents.EMPTY):
            self._fail(f"prefix does not go with {source.what!s}", hint=_written("content"), at=source.at)
        if within is not None and source.what is KeptContents.EMPTY:
            self._fail("only a whole file can be empty", hint=_written("content"), at=source.at)
        return Content(name, source, within, prefix)

    def _attribute(self) -> Formula:
        name, attribute = self._name(), self._text_of("the name of an attribute")
        self._equal("attribute")
        source = self._source()
        if source.what in (KeptContents.ZEROS, KeptContents.EMPTY):
            self._fail(f"an attribute cannot be {source.what!s}", hint=_written("attribute"), at=source.at)
        return Attribute(name, attribute, source)

    def _equal(self, test: str) -> None:
        if not self._takes("=", _TokenKind.SYMBOL):
            self._fail(f"unexpected {self._shown}; expected =", hint=_written(test))

    def _relation(self, test: StatField) -> SizeRelation:
        token = self._token
        if token.kind is not _TokenKind.SYMBOL or token.text in "()":
            self._fail(f"unexpected {self._shown}; expected a comparison of {_COMPARED[test]}", hint=_written(test))
        self._next += 1
        return SizeRelation(token.text)

    def _text_of(self, what: str, hint: str = "quote it if it has brackets or signs") -> str:
        token = self._token
        if token.kind not in (_TokenKind.WORD, _TokenKind.QUOTED):
            self._fail(f"unexpected {self._shown}; expected {what}", hint=hint)
        self._next += 1
        return token.text

    def _value(self, read: Callable[[str], int | tuple[int, int]], what: str, hint: str) -> int | tuple[int, int]:
        token = self._token
        try:
            value = read(token.text) if token.kind is _TokenKind.WORD else None
        except ValueError:
            value = None
        if value is None:
            self._fail(f"unexpected {self._shown}; expected {what}", hint=hint)
        self._next += 1
        return value

    def _name(self) -> NamedPath:
        at = self._token.at
        text = self._text_of("a path", "for example /d/a; quote a path with brackets or signs")
        try:
            return NamedPath(path_in(text), at)
        except ValueError as error:
            self._fail(str(error), hint="paths begin at the root of the tested file system: /d/a", at=at)

    def _range(self) -> ByteRange | None:
        token = self._token
        if token.kind is not _TokenKind.RANGE:
            return None
        try:
            start, stop = (bytes_in(word.strip()) for word in token.text[1:-1].split(":"))
        except ValueError:
            self._fail(f"invalid range {token.text!r}; expected [FROM:TO]", hint="for example [0:4096] or [4K:8K]")
        if start >= stop:
            self._fail(f"the range {token.text} is empty", hint="TO is not in the range: [0:1] is one byte")
        self._next += 1
        return ByteRange(start, stop, token.at)

    def _source(self) -> Source:
        token = self._token
        number = re.fullmatch(r"op([1-9][0-9]{0,8})", token.text)
        if token.kind is not _TokenKind.WORD or not (number or token.text in list(KeptContents)):
            self._fail(
                f"unexpected {self._shown}; expected the source of the bytes",
                hint="old, new, zeros, empty, or the number of an operation: op1 is the first",
            )
        self._next += 1
        return Source(int(number[1]) if number else KeptContents(token.text), token.at)

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    @property
    def _shown(self) -> str:
        return "end" if self._token.kind is _TokenKind.END else repr(self._token.text)

    def _takes(self, text: str, kind: _TokenKind = _TokenKind.WORD) -> bool:
        taken = (self._token.kind, self._token.text) == (kind, text)
        self._next += taken
        return taken

    def _split(self) -> list[_Token]:
        tokens, position = [], 0
        while position < len(self._text):
            if self._text[position].isspace():
                position += 1
                continue
            found = _TOKEN.match(self._text, position)
            if found is None:
                letter = self._text[position]
                what = "is never closed" if letter in "'\"[" else "has no meaning here"
                self._fail(f"{letter!r} {what}", hint="quote a path that has such letters", at=(position, position + 1))
            at, position = found.span(), found.end()
            if found["word"] and not PLAIN.fullmatch(found["word"]):
                tokens.append(_Token(_TokenKind.QUOTED, "".join(shlex.split(found["word"])), at))
            else:
                kind = _TokenKind.SYMBOL if found["symbol"] else _TokenKind.RANGE if found["range"] else _TokenKind.WORD
                tokens.append(_Token(kind, found[0], at))
        return [*tokens, _Token(_TokenKind.END, "", (len(self._text), len(self._text)))]

    def _fail(self, message: str, *, hint: str | None = None, at: TextSpan | None = None) -> NoReturn:
        start, stop = at or self._token.at
        raise PointedError(message, self._text, start, stop, hint=hint)


def _number_in(word: str) -> int:
    if not (word.isascii() and word.isdigit()):
        raise ValueError(word)
    return int(word)


_VALUES: dict[StatField, tuple[Callable[[str], int | tuple[int, int]], str, str]] = {
    StatField.SIZE: (bytes_in, "a number of bytes", "for example 512, 4K or 2M"),
    StatField.LINKS: (_number_in, "a number of names", "for example 2"),
    StatField.MODE: (permissions_in, "permission bits", "for example 640"),
    StatField.OWNER: (owner_in, "an owner UID:GID", "for example 1000:100"),
    StatField.TIME: (time_in, "a time", "an even number of seconds, for example 1000000000"),
}
"""For each field: the reader of its value, a name of such values for messages, and a hint."""


def _written(test: str) -> str:
    return f"the form is: {FORMS[test]}"
