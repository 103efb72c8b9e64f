"""The arguments of bob's Python functions are what their annotations say, or a UsageError says which one is not.

Python checks no annotation. A wrong type would end somewhere inside bob, in an error of Python's own, or in a run that
cannot be read afterwards. Pydantic checks them strictly: it refuses a text or True for a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import cache
from inspect import BoundArguments, formatannotation, signature
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from bob.errors import UsageError
from bob.text import printable

_MOST_SHOWN = 40
"""So many characters of a wrong value stand in the message."""


def bound(function: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]) -> BoundArguments:
    """Return the arguments of ``function``. Numbers and arrays of numpy and pandas become Python's own, sets lists.

    Raise UsageError if one is not of its type, and TypeError, as Python does, if the function has no such argument.
    """
    asked = signature(function)
    arguments = asked.bind(*given, **named)
    for name, value in arguments.arguments.items():
        kind = asked.parameters[name].annotation
        try:
            arguments.arguments[name] = _check(kind).validate_python(_plain(value))
        except ValidationError:
            shown = printable(repr(value))
            shown = shown if len(shown) <= _MOST_SHOWN else f"{shown[: _MOST_SHOWN - 3]}..."
            hint = f"help(bob.{function.__name__}) says what each argument is"
            raise UsageError(f"invalid {name} {shown}; expected {formatannotation(kind)}", hint=hint) from None
    return arguments


def _plain(value: Any) -> Any:
    if isinstance(value, Set):
        return list(value)
    return value.tolist() if hasattr(value, "tolist") else value


@cache
def _check(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind, config=ConfigDict(strict=True, arbitrary_types_allowed=True))
