"""The arguments of bob's functions are what their annotations say, or a UsageError says which one is not.

Python checks no annotation. A wrong type would end somewhere inside bob, in an error of Python's own, or in a run that
cannot be read afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import BoundArguments, signature
from numbers import Integral, Real
from os import PathLike
from typing import Any

from bob.errors import UsageError
from bob.progress import Silent


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_path(value: Any) -> bool:
    return isinstance(value, str | PathLike)


def _watches(value: Any) -> bool:
    """Whether it has all that a Progress is told."""
    return all(callable(getattr(value, name, None)) for name in vars(Silent) if not name.startswith("_"))


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


def bound(function: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]) -> BoundArguments:
    """The arguments of ``function``, whose annotations are of :data:`KINDS`, with or without None. Raises UsageError
    for one that is not of its type, and TypeError, as Python does, for one that there is not."""
    asked = signature(function)
    arguments = asked.bind(*given, **named)
    for name, value in arguments.arguments.items():
        annotation: str = asked.parameters[name].annotation
        if value is None and annotation.endswith(_OR_NONE):
            continue
        is_one, said = KINDS[kind := annotation.removesuffix(_OR_NONE)]
        if not is_one(value):
            shown = repr(value)
            shown = shown if len(shown) <= _MOST_SHOWN else f"{shown[: _MOST_SHOWN - 3]}..."
            hint = f"help(bob.{function.__name__}) says what each argument is"
            raise UsageError(f"{name} is {shown}, not {said}", hint=hint)
        if kind in _PLAIN and type(value) not in _PLAIN.values():  # a number of numpy's is none of JSON's
            arguments.arguments[name] = _PLAIN[kind](value)
    return arguments
