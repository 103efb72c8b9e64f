"""Options as data: what may be asked is declared once, for the command line and for Python.

A function declares at each of its parameters what may be given there, for example
``seed: Annotated[int, Option("--seed", "Chooses the random crash states.")] = 1``. A frozen dataclass whose fields
declare the same is a group: a function with a parameter of that class has all of them. :mod:`bob.cli.options` makes
click's options from the declarations, :mod:`bob.python.calls` makes the functions that Python calls.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import cache
from inspect import Parameter as Declared
from inspect import signature
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

REQUIRED = Declared.empty
"""In place of a default: a value has to be given."""


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from ``least`` to ``most``; None is no bound."""

    least: float
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these words."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Existing:
    """A path that exists: a file, a folder, or either."""

    file: bool = True
    folder: bool = True


def _nothing(_given: Mapping[str, Any]) -> Iterable[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Words:
    """What ``read`` makes of a word, or of a path. It is handed the name of the option, too, and raises UsageError.

    ``offered`` lists the words that bob knows, by the options that were given; ``files`` ("file" or "dir") is what may
    stand in their place. ``name`` is what help calls a value.
    """

    read: Callable[[Any, str], Any]
    offered: Callable[[Mapping[str, Any]], Iterable[str]] = _nothing
    files: str = ""
    name: str = "name"


Values = Range | Choice | Existing | Words


@dataclass(frozen=True, slots=True)
class Option:
    """An option: its ``flag`` on the command line, and what it is for.

    ``values`` says more than the type which values there are, ``metavar`` what the command line's help calls one.
    ``default`` says in words what is done without the option, ``setting`` is the key of bob.toml that says it first.
    ``alone`` is the value of a flag that stands alone. ``python`` is the help for Python, if it differs. An option that
    is ``renewable`` may be given when a run is resumed.
    """

    flag: str
    help: str
    values: Values | None = None
    metavar: str = ""
    default: str = ""
    setting: str = ""
    alone: Any = None
    python: str = ""
    renewable: bool = False


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument: its ``metavar`` in the command line's help; ``python`` says what it is."""

    metavar: str
    values: Values | None = None
    python: str = ""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A declared parameter. A value is of ``kind``; with ``several``, a tuple of such values; with ``optional``, None,
    too."""

    name: str
    declared: Option | Argument
    kind: type
    several: bool
    optional: bool
    default: Any

    @property
    def is_option(self) -> bool:
        """Whether it is an option, and no argument."""
        return isinstance(self.declared, Option)

    @property
    def is_required(self) -> bool:
        """Whether a value has to be given."""
        return self.default is REQUIRED

    @property
    def choices(self) -> tuple[str, ...]:
        """The words for its values, if these are a few: those of a Choice, or of an enum."""
        if isinstance(self.declared.values, Choice):
            return self.declared.values.words
        return tuple(str(one.value) for one in self.kind) if issubclass(self.kind, Enum) else ()


@cache
def parameters(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Return what ``function``, or a group, declares, groups taken apart. Parameters without a declaration are its
    own business."""
    found: list[Parameter] = []
    for name, (declared, plain, default) in _declarations(function).items():
        if declared is not None:
            kind, several, optional = _shape(plain)
            found.append(Parameter(name, declared, kind, several, optional, default))
        elif _is_group(plain):
            found += parameters(plain)
    return tuple(found)


def arguments(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``values``, by the names of :func:`parameters`, as the arguments of ``function``: groups put together."""
    made = {}
    for name, (declared, plain, _default) in _declarations(function).items():
        if declared is None and _is_group(plain):
            made[name] = plain(**arguments(plain, values))
        elif name in values:
            made[name] = values[name]
    return made


@cache
def _declarations(function: Callable[..., Any]) -> dict[str, tuple[Option | Argument | None, Any, Any]]:
    """What each parameter declares, its type without that, and its default."""
    asked = signature(function).parameters
    annotations = {name: one.annotation for name, one in asked.items()}
    names = vars(sys.modules[function.__module__])
    bare = SimpleNamespace(__annotations__=annotations)  # not what it returns: that may be known to mypy alone
    whole = get_type_hints(bare, globalns=names, include_extras=True)
    plain = get_type_hints(bare, globalns=names)
    return {name: (_declared(whole[name]), plain[name], one.default) for name, one in asked.items()}


def _declared(hint: Any) -> Option | Argument | None:
    """The declaration in a type, wherever in it: in that of one value, or of one of several."""
    if get_origin(hint) is Annotated:
        return next((one for one in get_args(hint)[1:] if isinstance(one, Option | Argument)), None)
    return next((found for one in get_args(hint) if (found := _declared(one)) is not None), None)


def _shape(plain: Any) -> tuple[type, bool, bool]:
    """The type of one value; whether there may be several of them; whether there may be none."""
    kinds = get_args(plain) if get_origin(plain) in (Union, UnionType) else (plain,)
    [kind] = [one for one in kinds if one is not NoneType]
    several = get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis
    kind = get_args(kind)[0] if several else kind
    return get_origin(kind) or kind, several, NoneType in kinds


def _is_group(plain: Any) -> bool:
    return isinstance(plain, type) and is_dataclass(plain) and any(parameters(plain))
