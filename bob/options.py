"""Options as data, declared once for the command line and for Python (:mod:`bob.cli.options`, :mod:`bob.python.calls`).

A function declares options as defaults: ``seed: int = option("--seed N", "Chooses the random crash states.")``. A
*group* (:func:`group`) is a class that declares options as its fields. A function that has a parameter of this class
has all options of the group.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from inspect import Parameter as Declared
from inspect import signature
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, TypeVar, Union, dataclass_transform, get_args, get_origin, get_type_hints

T = TypeVar("T")
REQUIRED = Declared.empty  # the default of an option that must be given


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from ``least`` to ``most`` (None: no limit)."""

    least: float
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExistingPath:
    file: bool = True
    folder: bool = True


@dataclass(frozen=True, slots=True)
class Words:
    """The possible values of an option. The function ``read`` takes what the user gave (a word or a path) and the name
    of the option. It returns the value, or raises UsageError. The function ``offered`` takes the options that the user
    gave so far, and returns the words that a shell may offer as completions. If no word fits, and ``files`` is "file"
    or "dir", the shell offers paths of this kind. In help texts, ``name`` stands for the value."""

    read: Callable[[Any, str], Any]
    offered: Callable[[Mapping[str, Any]], Iterable[str]] = lambda _given: ()
    files: str = ""
    name: str = "name"


Values = Range | Choice | ExistingPath | Words


@dataclass(frozen=True, slots=True)
class Option:
    """An option, such as ``--seed N``, or an argument, such as ``RUN``. ``values`` limits the possible values. If help
    cannot show bob's default as a value, ``words`` is the text that help shows for the default. A user may set another
    default in bob.toml under the key ``setting``; if ``setting`` is empty, there is no such key. ``alone`` is the value
    if the user gives the flag without a value, as in ``--recovery-crashes``. ``python`` is the help text for users of
    the Python interface, if it is not the same as ``help``. A ``renewable`` option may be given anew with --resume,
    which continues an earlier run."""

    flag: str
    metavar: str
    help: str
    values: Values | None
    words: str
    setting: str
    alone: Any
    python: str
    renewable: bool
    default: Any


def option(
    flag: str,
    help: str = "",
    values: Values | None = None,
    default: Any = MISSING,
    *,
    words: str = "",
    setting: str = "",
    alone: Any = None,
    python: str = "",
    renewable: bool = False,
) -> Any:
    """Return the declaration of an :class:`Option`. In a function's signature, it takes the place of a parameter's
    default. If ``default`` is not given, the default is None if the value may be None, () if the option takes several
    values, and False for a flag. Any other option without ``default`` is required. The arguments are the fields of
    :class:`Option`."""
    name, _space, metavar = flag.partition(" ")
    name, metavar = (name, metavar) if name.startswith("-") else ("", flag)
    return Option(name, metavar, help, values, words, setting, alone, python, renewable, default)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def group(made: type[T]) -> type[T]:
    """Turn the class ``made``, whose fields declare options, into a frozen dataclass."""
    kinds = get_type_hints(made)
    for name, one in [(name, one) for name, one in vars(made).items() if isinstance(one, Option)]:
        setattr(made, name, field(default=_parameter(name, kinds[name], one).default, metadata={Option: one}))
    return dataclass(frozen=True, slots=True, kw_only=True)(made)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that declares an option. Its value is an object of the type ``kind``, or a tuple of such objects if
    ``several`` is true. If ``optional`` is true, the value may also be None."""

    name: str
    option: Option
    kind: type
    several: bool
    optional: bool
    default: Any

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that the user can give: those of a :class:`Choice`, or the values of an enum. For any other
        parameter, ()."""
        if isinstance(self.option.values, Choice):
            return self.option.values.words
        return tuple(str(one.value) for one in self.kind) if issubclass(self.kind, Enum) else ()


@cache
def parameters(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Return all parameters that declare options in the signature of ``function``. If ``function`` is a group, its
    fields are the parameters. If a parameter has a group as its type, return the parameters of that group in its
    place."""
    found: list[Parameter] = []
    for name, (kind, declared) in _declarations(function).items():
        if declared is not None:
            found.append(_parameter(name, kind, declared))
        elif _is_group(kind):
            found += parameters(kind)
    return tuple(found)


def arguments(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for a call of ``function``. ``values`` maps the name of each parameter in
    ``parameters(function)`` to its value. If ``function`` has a parameter whose type is a group, the values for the
    fields of the group are put into one object of this type."""
    made = {}
    for name, (kind, declared) in _declarations(function).items():
        if declared is None and _is_group(kind):
            made[name] = kind(**arguments(kind, values))
        elif name in values:
            made[name] = values[name]
    return made


@cache
def _declarations(function: Callable[..., Any]) -> dict[str, tuple[Any, Option | None]]:
    asked = signature(function).parameters
    # without the return type, which may be imported for mypy alone
    bare = SimpleNamespace(__annotations__={name: one.annotation for name, one in asked.items()})
    kinds = get_type_hints(bare, globalns=vars(sys.modules[function.__module__]))
    declared = {name: one.default for name, one in asked.items()}
    if is_dataclass(function):
        declared = {one.name: one.metadata.get(Option) for one in fields(function)}
    return {name: (kinds[name], one if isinstance(one, Option) else None) for name, one in declared.items()}


def _parameter(name: str, plain: Any, option: Option) -> Parameter:
    kinds = get_args(plain) if get_origin(plain) in (Union, UnionType) else (plain,)
    optional = NoneType in kinds
    [kind] = [one for one in kinds if one is not NoneType]
    several = get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis
    kind = get_args(kind)[0] if several else kind
    default = option.default
    if several and default not in (MISSING, REQUIRED) and not isinstance(default, tuple):
        default = (default,) if default else ()
    elif default is MISSING:
        default = None if optional else False if kind is bool else () if several and option.flag else REQUIRED
    return Parameter(name, option, get_origin(kind) or kind, several, optional, default)


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and is_dataclass(kind) and any(parameters(kind))
