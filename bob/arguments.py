"""The arguments of bob's functions are what their annotations say, or a UsageError says which one is not.

Python checks no annotation. A wrong type would end somewhere inside bob, in an error of Python's own, or in a run that
cannot be read afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from os import PathLike
from typing import Any, ParamSpec, TypeVar

from bob.errors import UsageError

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_path(value: Any) -> bool:
    return isinstance(value, str | PathLike)


def _watches(value: Any) -> bool:
    return all(callable(getattr(value, name, None)) for name in ("step", "planned", "expected", "observed", "judged"))


def _several(one: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def are(value: Any) -> bool:
        return one(value) or (isinstance(value, Collection) and not isinstance(value, bytes) and all(map(one, value)))

    return are


KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "str": (_is_text, "a text"),
    "int": (_is_whole, "a whole number"),
    "float": (_is_number, "a number"),
    "StrPath": (_is_path, "a path"),
    "Progress": (_watches, "a Progress"),
    "str | Sequence[str]": (_several(_is_text), "a text, or a list of texts"),
    "StrPath | Sequence[StrPath]": (_several(_is_path), "a path, or a list of paths"),
}
"""By annotation: what tells a value of that type, and what it is called."""
_PLAIN: dict[str, Callable[[Any], Any]] = {"int": int, "float": float}
_OR_NONE = " | None"
_MOST_SHOWN = 40
"""So many characters of a wrong value stand in the message."""


def as_annotated(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """``function``, which raises UsageError for an argument that is not of its type. Each annotation is one of
    :data:`KINDS`, with or without None."""
    kinds = {one.name: one.annotation for one in signature(function).parameters.values()}

    @wraps(function)
    def asked(*given: Given.args, **named: Given.kwargs) -> Answer:
        bound = signature(function).bind(*given, **named)
        for name, value in bound.arguments.items():
            if value is None and kinds[name].endswith(_OR_NONE):
                continue
            is_one, said = KINDS[kind := kinds[name].removesuffix(_OR_NONE)]
            if not is_one(value):
                shown = repr(value)
                shown = shown if len(shown) <= _MOST_SHOWN else f"{shown[: _MOST_SHOWN - 3]}..."
                raise UsageError(
                    f"{name} is {shown}, not {said}", hint=f"help(bob.{function.__name__}) says what each argument is"
                )
            if kind in _PLAIN and type(value) not in _PLAIN.values():  # a number of numpy's is none of JSON's
                bound.arguments[name] = _PLAIN[kind](value)
        return function(*bound.args, **bound.kwargs)

    return asked
