"""What is read from documents has the types that it should have: any text would be taken for a truth."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
ValueTest = Callable[[Any], bool]


def typed(made: T) -> T:
    """``made``, a dataclass that was filled from a document. Raises TypeError where a field is of another type."""
    kind: Any = type(made)
    for name, (test, wanted) in _tests(kind).items():
        if not test(value := getattr(made, name)):
            raise TypeError(f"{name} is {value!r}, not of the type {wanted}")
    return made


def array(value: Any) -> tuple[Any, ...]:
    """The values of an array in a document. Raises TypeError for anything else: text would be an array of letters."""
    if not isinstance(value, list | tuple):
        raise TypeError(f"{value!r} is no array")
    return tuple(value)


@cache
def _tests(kind: Hashable) -> dict[str, tuple[ValueTest, str]]:
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return {name: (_test(hints[name]), _words(hints[name])) for name in names}


def _words(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)


def _test(hint: Any) -> ValueTest:
    """Whether a value is of the type that an annotation names; of what is no plain data, nothing is asked."""
    if hint is Any:
        return lambda _value: True
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        tests = [_test(one) for one in inner]
        return lambda value: any(test(value) for test in tests)
    if hint is None or hint is NoneType:
        return lambda value: value is None
    if hint is int:
        return lambda value: isinstance(value, int) and not isinstance(value, bool)
    if hint is float:
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    if origin is tuple and len(inner) == 2 and inner[1] is Ellipsis:
        return _each(tuple, _test(inner[0]))
    if origin is tuple:
        places = [_test(one) for one in inner]
        return lambda value: (
            isinstance(value, tuple)
            and len(value) == len(places)
            and all(test(one) for test, one in zip(places, value, strict=True))
        )
    if isinstance(origin, type) and issubclass(origin, Mapping):
        of_key, of_value = map(_test, inner)
        return lambda value: (
            isinstance(value, Mapping) and all(of_key(key) and of_value(one) for key, one in value.items())
        )
    if isinstance(origin, type) and issubclass(origin, Sequence | frozenset):
        return _each(origin, _test(inner[0]))
    if isinstance(hint, type):
        return lambda value: isinstance(value, hint)
    return lambda _value: True


def _each(kind: type[Collection[Any]], test: ValueTest) -> ValueTest:
    return lambda value: isinstance(value, kind) and not isinstance(value, str) and all(map(test, value))
