"""Documents by the types of their fields: what bob writes and reads is made, checked and described by one library
(msgspec).

A type of bob's own whose fields are those of its document needs nothing more: a dataclass, a named tuple (an array), an
enum. Where document and type differ, a :class:`Document` says what the document is like. A field that a document has
and its type does not know is passed over: a later bob may have added it.

The bytes of a file are :mod:`bob.documents`' matter.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import EnumType
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import field

from bob import counts
from bob.errors import BobError, UsageError

__all__ = [
    "Amount",
    "Declaration",
    "Document",
    "NonEmpty",
    "Number",
    "OneLine",
    "OneWord",
    "ShapeError",
    "adapt",
    "as_text",
    "declared",
    "decode",
    "described",
    "encode",
    "field",
    "mistakes_in",
    "older",
    "toml",
]

T = TypeVar("T")


class Document(msgspec.Struct, frozen=True, omit_defaults=True):
    """A table as a document has it. A field that has its default is not written."""


class Declaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table that people write. A field that is not known is a slip, and refused."""


class ShapeError(ValueError):
    """A document has not got the shape that it should have: a line that names the field."""


Number = int | float
"""A number that is written again as it was read: 2 and 2.0 are two texts."""
Amount = Annotated[int, msgspec.Meta(ge=0, lt=2**40)] | Annotated[float, msgspec.Meta(ge=0, lt=2**40)]
"""A number from 0 on."""
_LINE, _NAME = r"\A[^\n]*\S[^\n]*\Z", r"\A\S+\Z"
OneLine = Annotated[str, msgspec.Meta(pattern=_LINE)]
"""A line of text with something in it."""
OneWord = Annotated[str, msgspec.Meta(pattern=_NAME)]
"""A text without blanks."""
NonEmpty = Annotated[str, msgspec.Meta(min_length=1)]
"""A text that is not empty."""


def adapt(kind: Callable[..., T], value: Any, **changed: Any) -> T:
    """Return a ``kind`` that has each field of ``value`` that it knows, but for the ``changed`` ones."""
    names = kind.__struct_fields__ if hasattr(kind, "__struct_fields__") else kind.__dataclass_fields__  # type: ignore[attr-defined]
    same = {name: getattr(value, name) for name in names if name not in changed and hasattr(value, name)}
    return kind(**same, **changed)


def older(value: T) -> Callable[[], T]:
    """The factory of a default for documents of older versions, which lack the field; it is always written."""
    return lambda: value


class _Text(NamedTuple):
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]
    described: dict[str, Any]


_TEXTS: dict[type, _Text] = {}


def as_text(kind: type[T], read: Callable[[Any], T], write: Callable[[T], Any], **described: Any) -> None:
    """Have documents write each ``kind`` by ``write``, and ``read`` it again. ``described`` is its JSON Schema.

    ``kind`` is a class that is no dataclass. ``read`` raises ValueError or TypeError for what is none.
    """
    _TEXTS[kind] = _Text(read, write, {"type": "string", **described})


as_text(
    counts.Count,
    lambda text: counts.Count(text if type(text) is int else counts.read(text)),
    counts.written,
    type=["integer", "string"],
    description="a count: an integer, the text of its digits, or of a sum of powers of two",
)


def decode(kind: type[T], plain: Any) -> T:
    """Return the ``kind`` in plain JSON. Raises ShapeError where it has another shape."""
    try:
        return msgspec.convert(plain, kind, dec_hook=_read)
    except msgspec.ValidationError as error:
        raise ShapeError(_in_words(str(error), kind, plain)) from None


def encode(value: Any) -> Any:
    """Return ``value`` as plain JSON, in which arrays are tuples."""
    plain = msgspec.to_builtins(value, enc_hook=_write)
    exact = _exact(type(value))  # type: ignore[arg-type]
    return plain if exact is None else exact(value, plain)


def toml(path: Path, hint: str) -> str:
    """Return the text of a declaration. Raises UsageError, with this ``hint``, where the file cannot be read."""
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint=hint) from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path.name}: {error}", hint=hint) from None


def declared(kind: type[T], text: str) -> T:
    """Return what the TOML ``text`` declares. Raises ValueError where it is none, or has another shape."""
    return decode(kind, tomllib.loads(text))


@contextmanager
def mistakes_in(file: str, hint: str | None, kind: type[BobError] = UsageError) -> Iterator[None]:
    """Make whatever is wrong with a declaration an error of this ``kind``, of one line that names ``file``."""
    try:
        yield
    except ValueError as error:  # TOML's errors are ValueErrors, too
        raise kind(f"{file}: {error}", hint=hint) from None
    except UsageError as error:
        raise kind(f"{file}: {error.message}", hint=error.hint) from None


def described(kind: type) -> dict[str, Any]:
    """Return the JSON Schema of ``kind``."""
    return msgspec.json.schema(kind, schema_hook=lambda one: _TEXTS[one].described)


def _read(kind: type, plain: Any) -> Any:
    return _TEXTS[kind].read(plain)


def _write(value: Any) -> Any:
    return next(_TEXTS[kind].write(value) for kind in type(value).__mro__ if kind in _TEXTS)


Exact = Callable[[Any, Any], Any]
"""From a value and its plain JSON to the JSON in which its counts are written as such: the value has integers."""


@cache
def _exact(kind: Any) -> Exact | None:
    """Return how counts in a ``kind`` are written; None where it has none."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is counts.Count:
        return lambda value, _plain: counts.written(value)
    if origin in (Union, UnionType):
        several = {get_origin(one) or one: exact for one in inner if (exact := _exact(one))}
        return _exact_in_union(several) if several else None
    if isinstance(origin, type) and issubclass(origin, Mapping):
        of_value = _exact(inner[1])
        return of_value and (lambda value, plain: {name: of_value(value[name], one) for name, one in plain.items()})
    if isinstance(origin, type) and issubclass(origin, Sequence):
        each = _exact(inner[0])
        return each and (lambda value, plain: tuple(map(each, value, plain)))
    if not hasattr(kind, "__annotations__"):
        return None
    fields = {name: exact for name, hint in get_type_hints(kind).items() if (exact := _exact(hint))}
    return _exact_in_fields(fields) if fields else None


def _exact_in_union(several: Mapping[type, Exact]) -> Exact:
    def exact(value: Any, plain: Any) -> Any:
        return next((one(value, plain) for kind, one in several.items() if isinstance(value, kind)), plain)

    if counts.Count in several:
        return lambda value, plain: counts.written(value) if type(plain) is int else plain
    return exact


def _exact_in_fields(fields: Mapping[str, Exact]) -> Exact:
    def exact(value: Any, plain: Any) -> Any:
        if isinstance(value, tuple):
            named = zip(value._fields, value, plain, strict=True)  # type: ignore[attr-defined]
            return tuple(fields[name](one, it) if name in fields else it for name, one, it in named)
        return plain | {name: one(getattr(value, name), plain[name]) for name, one in fields.items() if name in plain}

    return exact


_AT = re.compile(r"(?P<said>.*?) - at (?:`key` in )?`\$(?P<at>.*)`", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


def _in_words(said: str, kind: Any, plain: Any) -> str:
    """A complaint of msgspec's as bob says it, with the place first: "crash.state.point: expected int, got 'two'"."""
    found = _AT.fullmatch(said)
    said, at = (said, "") if found is None else (found["said"], found["at"])
    place = f"{at.lstrip('.')}: " if at else ""
    if missing := re.fullmatch(r"Object (missing required|contains unknown) field `(.*)`", said):
        name = missing[2]
        return place + (f"{name!r} is missing" if "missing" in missing[1] else f"unknown key {name!r}")
    kinds = [kind]
    for name, number in _STEP.findall(at):
        kinds = [inner for one in kinds for inner in _inside(one, name or int(number))]
        with suppress(LookupError, TypeError):
            plain = plain[name or int(number)]
    value = said.partition(", got ")[2].replace("`", "") if "[...]" in at else repr(plain)  # of which name it is unsaid
    value = value if len(value) <= 60 else f"{value[:57]}..."
    words = [str(word) for one in kinds for word in _words(one)]
    if words and said.startswith(("Invalid enum value", "Expected")):
        return f"{place}{value} is none of {', '.join(words)}"
    if "regex" in said:
        return f"{place}{value} is not {'a text without blanks' if repr(_NAME)[1:-1] in said else 'one line of text'}"
    if said.startswith("Expected "):
        return f"{place}e{said.replace('`', '').partition(', got')[0][1:]}{value and f', got {value}'}"
    return place + said.replace("`", "")


def _inside(kind: Any, step: str | int) -> Iterator[Any]:
    """What a part of a ``kind`` may be: that under a name, or at a place."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType, Annotated):
        for one in inner:
            yield from _inside(one, step)
    elif origin is tuple and Ellipsis not in inner:
        yield from inner[step : step + 1] if isinstance(step, int) else ()
    elif inner:
        yield inner[-1 if isinstance(step, str) else 0]
    elif hasattr(kind, "__annotations__"):
        hints = get_type_hints(kind)
        yield from (
            [hints[step]] if step in hints else list(hints.values())[step : step + 1] if type(step) is int else ()
        )


def _words(kind: Any) -> Iterator[Any]:
    """The words of the enums that ``kind`` may be."""
    if isinstance(kind, EnumType):
        yield from (word.value for word in kind)  # type: ignore[var-annotated]
    for one in get_args(kind) if get_origin(kind) in (Union, UnionType) else ():
        yield from _words(one)
