"""Expectations, written in their language."""

from __future__ import annotations

import shlex

from bob.claim.expectation.language import PLAIN
from bob.claim.expectation.syntax import (
    Absent,
    And,
    Attribute,
    Content,
    Exists,
    Formula,
    Mounts,
    NamedPath,
    Not,
    Or,
    Same,
    Source,
    StatField,
    StatIs,
)


def write(test: Formula) -> str:
    """``test`` in the language, with no brackets but those that it needs; read again it is the same."""
    match test:
        case Mounts():
            return "mounts"
        case Exists(name):
            return f"exists {_quoted(name)}"
        case Absent(name):
            return f"absent {_quoted(name)}"
        case Same(one, other):
            return f"same {_quoted(one)} {_quoted(other)}"
        case StatIs(name, field, value, relation):
            return f"{field} {_quoted(name)} {relation} {_value(field, value)}"
        case Content(name, source, within, prefix):
            piece = f"[{within.start}:{within.stop}]" if within else ""
            return f"content {_quoted(name)}{piece} {'prefix' if prefix else '='} {_written(source)}"
        case Attribute(name, attribute, source):
            return f"attribute {_quoted(name)} {_in_quotes(attribute)} = {_written(source)}"
        case Not(inner):
            return f"not {_inside(inner, Not)}"
        case And(left, right):
            return f"{_inside(left, Not, And)} and {_inside(right, Not)}"
        case Or(Not(left), right):
            then = write(right) if _is_implication(right) else _inside(right, Not, And, Or)
            return f"{_inside(left, Not, And, Or)} implies {then}"
        case Or(left, right):
            return f"{_inside(left, Not, And, Or)} or {_inside(right, Not, And)}"


def _inside(test: Formula, *bare: type) -> str:
    """``test``, in brackets unless it is an atom or one of ``bare``."""
    is_bare = not isinstance(test, Not | And | Or) or (isinstance(test, bare) and not _is_implication(test))
    return write(test) if is_bare else f"({write(test)})"


def _is_implication(test: Formula) -> bool:
    return isinstance(test, Or) and isinstance(test.left, Not)


def _quoted(name: NamedPath) -> str:
    return _in_quotes(name.path)


def _in_quotes(word: str) -> str:
    if PLAIN.fullmatch(word):
        return word
    quoted = shlex.quote(word)
    return quoted if quoted != word else f"'{word}'"  # a shell takes = without quotes


def _written(source: Source) -> str:
    return f"op{source.what}" if isinstance(source.what, int) else source.what.value


def _value(field: StatField, value: int | tuple[int, int] | str) -> str:
    if isinstance(value, str):
        return _in_quotes(value)
    if isinstance(value, tuple):
        return f"{value[0]}:{value[1]}"
    return f"{value:03o}" if field is StatField.MODE else str(value)
