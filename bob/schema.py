"""JSON and TOML documents. msgspec reads and writes them, and takes the names and types of their fields from Python
types. Another module, :mod:`bob.documents`, turns the JSON into the bytes of a file.

The type of a document is a dataclass, a named tuple (a JSON array) or an enum. Often this is a type that other modules
of bob use, too. If the document needs other fields than that type has, a :class:`Document` describes them. Unknown
fields are ignored, as a later bob may have added them. All fields of a dataclass are written, so a document must have
all of these fields, except those marked by :func:`older`."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from enum import EnumType
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import field as field

from bob import counts
from bob.errors import BobError, UsageError
from bob.text import shortened

T = TypeVar("T")


class Document(msgspec.Struct, frozen=True, omit_defaults=True):
    """A JSON object in a document. A field whose value is the field's default is left out of the JSON."""


class Declaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A TOML table that people write. bob refuses unknown fields, which are probably typing mistakes."""


class ShapeError(ValueError):
    """A document lacks a field, or a field has a wrong type. The message is one line, and names the field."""


Number = int | float  # bob writes it as it read it: 2 or 2.0
Amount = Annotated[int, msgspec.Meta(ge=0, lt=2**40)] | Annotated[float, msgspec.Meta(ge=0, lt=2**40)]
_LINE, _NAME = r"\A[^\n]*\S[^\n]*\Z", r"\A\S+\Z"
OneLine = Annotated[str, msgspec.Meta(pattern=_LINE)]  # not blank
OneWord = Annotated[str, msgspec.Meta(pattern=_NAME)]  # without blanks
NonEmpty = Annotated[str, msgspec.Meta(min_length=1)]


def adapt(kind: Callable[..., T], value: Any, **changed: Any) -> T:
    """Return an object of the type ``kind``. Each field has the value of the field with the same name in ``value``,
    except the fields in ``changed``, which have the values given there."""
    names = kind.__struct_fields__ if hasattr(kind, "__struct_fields__") else kind.__dataclass_fields__  # type: ignore[attr-defined]
    same = {name: getattr(value, name) for name in names if name not in changed and hasattr(value, name)}
    return kind(**same, **changed)


LATER = "a later bob wrote it; use that bob, or a later one"  # a hint


def is_later(found: object, known: str) -> bool:
    """Return whether ``found`` is a later version of the schema ``known``, such as "bob.witness/2" of
    "bob.witness/1"."""
    name, _, version = known.partition("/")
    said, _, number = str(found).partition("/")
    return said == name and number.isdecimal() and int(number) > int(version)


@dataclass(frozen=True)
class _Older(Generic[T]):
    value: T

    def __call__(self) -> T:
        return self.value


def older(value: T) -> Callable[[], T]:
    """Return a default factory for a new field of a dataclass. Documents of older versions of bob lack the field, and
    it then has the value ``value``. This bob always writes the field."""
    return _Older(value)


_COUNT = {
    "type": ["integer", "string"],
    "description": "a count: an integer, or its digits or a sum of powers of two in a string",
}


def decode(kind: type[T], plain: Any, *, lean: bool = False) -> T:
    """Return the object of type ``kind`` that the JSON value ``plain`` describes. Raise ShapeError if a field is wrong
    or missing. A dataclass needs all its fields, except those marked by :func:`older`. With ``lean``, all fields that
    have a default may be missing."""
    try:
        value = msgspec.convert(plain, kind, dec_hook=_read)
        if not lean and (whole := _visit(kind, _whole)):  # type: ignore[arg-type]
            whole(value, plain)
    except msgspec.ValidationError as error:
        raise ShapeError(_in_words(str(error), kind, plain)) from None
    except _GapError as gap:
        place = (_place(plain, gap.table) or "").lstrip(".")
        raise ShapeError(f"{place}{place and ': '}{gap.name!r} is missing") from None
    return value


def encode(value: Any) -> Any:
    """Return ``value`` as plain JSON values, with tuples as arrays."""
    plain = msgspec.to_builtins(value, enc_hook=_write)
    exact = _visit(type(value), _exact)  # type: ignore[arg-type]
    return plain if exact is None else exact(value, plain)


def toml(path: Path, hint: str) -> str:
    """Return the text of the TOML file ``path``. Raise UsageError with ``hint`` if bob cannot read it."""
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint=hint) from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path.name}: {error}", hint=hint) from None


def declared(kind: type[T], text: str) -> T:
    """Return the object of type ``kind`` that the TOML ``text`` describes. Raise ValueError if the text is not TOML, or
    a field is wrong."""
    return decode(kind, tomllib.loads(text), lean=True)


@contextmanager
def mistakes_in(file: str, hint: str | None, kind: type[BobError] = UsageError) -> Iterator[None]:
    """Turn each ValueError and UsageError of the code in the with block into an error of the type ``kind``. The new
    message begins with the name ``file``."""
    try:
        yield
    except ValueError as error:  # TOML's errors are ValueErrors, too
        raise kind(f"{file}: {error}", hint=hint) from None
    except UsageError as error:
        raise kind(f"{file}: {error.message}", hint=error.hint) from None


def described(kind: type, *, lean: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of the type ``kind``. The schema requires the same fields as :func:`decode`."""
    schema = msgspec.json.schema(kind, schema_hook=lambda _count: _COUNT)
    inside: set[Any] = set()
    _visit(kind, inside.add)
    for one in () if lean else filter(_wanted, inside):
        schema["$defs"][one.__name__]["required"] = _wanted(one)
    return schema


def _read(_count: type, plain: Any) -> Any:
    return counts.Count(plain if type(plain) is int else counts.read(plain))


def _write(value: Any) -> Any:
    if isinstance(value, counts.Count):
        return counts.written(value)
    raise TypeError(f"a document cannot contain a {type(value).__name__}")


Visit = Callable[[Any, Any], Any]  # takes a value and its plain JSON; returns the JSON to write instead, or raises
Leaf = Callable[[Any], Visit | None]  # takes a type; returns the Visit for values of this type, or None


@cache
def _visit(kind: Any, leaf: Leaf) -> Visit | None:
    """Return a function that replaces parts of a JSON document. It takes a value of type ``kind`` and the JSON of this
    value, and returns the changed JSON. ``leaf`` gets the type of each part, and returns the function that changes
    parts of this type. It returns None if such parts stay the same. Return None if nothing inside ``kind`` changes."""
    origin, inner, own = get_origin(kind), get_args(kind), leaf(kind)
    if origin in (Union, UnionType):
        several = {get_origin(one) or one: visit for one in inner if (visit := _visit(one, leaf))}
        return _visit_union(several) if several else None
    if isinstance(origin, type) and issubclass(origin, Mapping):
        of_value = _visit(inner[1], leaf)
        return of_value and (lambda value, plain: {name: of_value(value[name], one) for name, one in plain.items()})
    if isinstance(origin, type) and issubclass(origin, Sequence):
        each = _visit(inner[0], leaf)
        return each and (lambda value, plain: tuple(map(each, value, plain)))
    if not hasattr(kind, "__annotations__"):
        return own
    inside = {name: visit for name, hint in get_type_hints(kind).items() if (visit := _visit(hint, leaf))}
    return _visit_fields(inside, own) if inside else own


def _visit_union(several: Mapping[type, Visit]) -> Visit:
    def visit(value: Any, plain: Any) -> Any:
        return next((one(value, plain) for kind, one in several.items() if isinstance(value, kind)), plain)

    if counts.Count in several:
        return lambda value, plain: counts.written(value) if type(plain) is int else plain
    return visit


def _visit_fields(inside: Mapping[str, Visit], own: Visit | None) -> Visit:
    def visit(value: Any, plain: Any) -> Any:
        if isinstance(value, tuple):
            named = zip(value._fields, value, plain, strict=False)  # type: ignore[attr-defined]
            return tuple(inside[name](one, it) if name in inside else it for name, one, it in named)
        return plain | {name: one(getattr(value, name), plain[name]) for name, one in inside.items() if name in plain}

    return visit if own is None else lambda value, plain: visit(value, own(value, plain))


def _exact(kind: Any) -> Visit | None:
    return (lambda value, _plain: counts.written(value)) if kind is counts.Count else None


class _GapError(Exception):
    def __init__(self, table: Mapping[str, Any], name: str) -> None:
        self.table, self.name = table, name


def _wanted(kind: Any) -> list[str]:
    known = fields(kind) if is_dataclass(kind) else ()
    return [one.name for one in known if not isinstance(one.default_factory, _Older)]


def _whole(kind: Any) -> Visit | None:
    wanted = _wanted(kind)

    def visit(_value: Any, plain: Any) -> Any:
        for name in wanted:
            if name not in plain:
                raise _GapError(plain, name)
        return plain

    return visit if wanted else None


def _place(plain: Any, table: Mapping[str, Any]) -> str | None:
    """Return the path in the JSON ``plain`` that leads to the object ``table``, such as ".states[3]". ``table`` is that
    object itself, and not an equal copy. Return None if ``plain`` does not contain it."""
    if plain is table:
        return ""
    parts = plain.items() if isinstance(plain, Mapping) else enumerate(plain) if isinstance(plain, list | tuple) else ()
    found = ((step, place) for step, part in parts if (place := _place(part, table)) is not None)
    return next((f"{f'.{step}' if isinstance(step, str) else f'[{step}]'}{place}" for step, place in found), None)


_AT = re.compile(r"(?P<said>.*?) - at (?:`key` in )?`\$(?P<at>.*)`", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


def _in_words(said: str, kind: Any, plain: Any) -> str:
    """Return a complaint of msgspec in bob's words. ``said`` is the complaint. The returned text begins with the path
    in the document, such as "crash.state.point: expected int, got 'two'"."""
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
    value = (
        said.partition(", got ")[2].replace("`", "") if "[...]" in at else repr(plain)
    )  # msgspec hides the name of the key, so the value is unknown
    value = shortened(value, 60)
    words = [str(word) for one in kinds for word in _words(one)]
    if words and said.startswith(("Invalid enum value", "Expected")):
        return f"{place}invalid value {value}; expected one of {', '.join(words)}"
    if "regex" in said:
        return f"{place}{value} is not {'a string without spaces' if repr(_NAME)[1:-1] in said else 'one line of text'}"
    if said.startswith("Expected "):
        return f"{place}e{said.replace('`', '').partition(', got')[0][1:]}{value and f', got {value}'}"
    return place + said.replace("`", "")


def _inside(kind: Any, step: str | int) -> Iterator[Any]:
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
        by_place = list(hints.values())[step : step + 1] if type(step) is int else []
        yield from [hints[step]] if step in hints else by_place


def _words(kind: Any) -> Iterator[Any]:
    if isinstance(kind, EnumType):
        yield from (word.value for word in kind)  # type: ignore[var-annotated]
    for one in get_args(kind) if get_origin(kind) in (Union, UnionType) else ():
        yield from _words(one)
