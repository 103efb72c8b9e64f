"""Make the functions that users of Python call. bob's functions declare the options that they take. From these
declarations, this module makes a function's signature and its help, and checks its arguments."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from enum import Enum
from functools import cache, wraps
from inspect import BoundArguments, Signature, cleandoc, formatannotation, signature
from inspect import Parameter as Argument
from pathlib import Path
from textwrap import fill
from typing import Any, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from bob.errors import UsageError, meant
from bob.options import Parameter, Words, arguments, parameters
from bob.progress import Progress
from bob.settings import forget, settings
from bob.text import printable, shortened

R = TypeVar("R")
_NAMES = {"Progress": Progress, "Sequence": Sequence, "StrPath": str | os.PathLike[str]}  # names that annotations use


def for_python(function: Callable[..., R]) -> Callable[..., R]:
    """Return a function for users of Python that calls ``function``. Its arguments are all options that ``function``
    declares, and it checks their values. Each call reads bob.toml again."""
    declared = parameters(function)

    @wraps(function)
    def called(*given: Any, **named: Any) -> R:
        forget()
        values = bound(called, given, named).arguments
        return function(**arguments(function, {one.name: _value(one, values) for one in declared}))

    own = signature(function)
    places = {name: one.kind for name, one in own.parameters.items()}
    made = [
        Argument(
            one.name,
            places.get(one.name, Argument.KEYWORD_ONLY),
            default=default_of(one),
            annotation=_type(annotation_of(one)),
        )
        for one in declared
    ]
    vars(called)["__signature__"] = Signature(made, return_annotation=own.return_annotation)
    called.__doc__ = "\n".join([cleandoc(function.__doc__ or ""), "", *map(_help, declared)])
    called.__module__ = "bob"
    return called


def annotation_of(one: Parameter, *, of_choices: bool = False) -> str:
    """Return the type annotation of an argument in Python, as text. The annotation is StrPath if the argument may be a
    path, and str if the argument is an enum. With ``of_choices``, it is a Literal of the words that may be given. If
    the option takes several values, a sequence of such values is allowed, too. If the argument may be left out, None is
    allowed. ``one`` is the parameter that declares the option."""
    kind = one.kind.__name__
    if issubclass(one.kind, Path) or _may_be_path(one):
        kind = "StrPath"
    elif issubclass(one.kind, Enum):
        kind = "str"
    if of_choices and one.choices and kind == "str":
        kind = f"Literal[{', '.join(json.dumps(word) for word in one.choices)}]"
    kind = f"{kind} | Sequence[{kind}]" if one.several else kind
    return f"{kind} | None" if one.optional or one.option.setting else kind


def default_of(one: Parameter) -> Any:
    """Return the default of an argument in Python, or None if bob.toml may set the default. ``one`` is the parameter
    that declares the option."""
    return None if one.option.setting else one.default.value if isinstance(one.default, Enum) else one.default


def _may_be_path(one: Parameter) -> bool:
    return isinstance(words := one.option.values, Words) and words.files != ""


def _value(one: Parameter, values: Mapping[str, Any]) -> Any:
    value = values.get(one.name)
    if value is None and one.option.setting:
        value = getattr(settings(), one.option.setting)
    if value is None:
        return one.default
    if not one.several:
        return _read(one, value)
    return tuple(_read(one, each) for each in ([value] if isinstance(value, str | os.PathLike) else value))


def _read(one: Parameter, value: Any) -> Any:
    is_word = isinstance(value, str | os.PathLike)
    if is_word and isinstance(one.option.values, Words):
        return one.option.values.read(os.fspath(value), one.name)
    if issubclass(one.kind, Enum):
        if value not in one.choices:
            expected = f"expected one of {', '.join(one.choices)}"
            raise UsageError(f"invalid {one.name} {value!r}; {expected}", hint=meant(value, one.choices))
        return one.kind(value)
    return Path(value) if issubclass(one.kind, Path) else value


@cache
def _type(annotation: str) -> Any:
    return eval(annotation, dict(_NAMES))  # bob wrote this text, not a user


def words_of(one: Parameter) -> str:
    """Return the help of an argument, with its choices and its default. ``one`` is the parameter that declares the
    option."""
    return " ".join(_sentences(one))


def _help(one: Parameter) -> str:
    return fill(f":param {one.name}: {words_of(one)}", 116, subsequent_indent="    ")


def _sentences(one: Parameter) -> Iterator[str]:
    option = one.option
    yield option.python or option.help
    if option.python:
        return
    if one.choices:
        yield f"One of {', '.join(one.choices)}."
    words = option.words or (str(one.default) if option.setting else "")
    if option.setting:
        yield f"Default: from bob.toml, else {words}."
    elif words:
        yield f"Default: {words}."


def bound(function: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]) -> BoundArguments:
    """Return the checked arguments of ``function``. Values of numpy and pandas become Python's own, and sets become
    lists. ``given`` has the positional arguments of a call, and ``named`` its keyword arguments. Raise UsageError for a
    wrong type, and TypeError, as Python does, for an unknown argument."""
    asked = signature(function)
    arguments = asked.bind(*given, **named)
    for name, value in arguments.arguments.items():
        kind = asked.parameters[name].annotation
        try:
            arguments.arguments[name] = _check(kind).validate_python(_plain(value))
        except ValidationError:
            shown = shortened(printable(repr(value)), 40)
            hint = f"help(bob.{function.__name__}) explains each argument"
            raise UsageError(f"invalid {name} {shown}; expected {formatannotation(kind)}", hint=hint) from None
    return arguments


def _plain(value: Any) -> Any:
    if isinstance(value, Set):
        return list(value)
    return value.tolist() if hasattr(value, "tolist") else value


@cache
def _check(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind, config=ConfigDict(strict=True, arbitrary_types_allowed=True))
