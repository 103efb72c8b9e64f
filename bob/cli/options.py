"""click's options and arguments, made from declared options (:mod:`bob.options`)."""

import re
from collections.abc import Callable
from enum import Enum
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from bob.errors import UsageError
from bob.options import ExistingPath, Option, Parameter, Range, Words, arguments, parameters
from bob.settings import settings

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # click.ParamType takes no type argument before click 8.4

R = TypeVar("R")
_CONTEXT = "context"  # if a command has a parameter with this name, it gets click's context
_SENTENCE_END = re.compile(r"\.(?=$| [^a-z])")


def takes_options(command: Callable[..., R]) -> Callable[..., R]:
    """Return a function that click can call. It has the options and arguments that ``command`` declares, and calls
    ``command`` with their values."""
    declared = parameters(command)
    is_handed_context = _CONTEXT in signature(command).parameters

    @wraps(command)
    def called(**values: Any) -> R:
        given = arguments(command, {one.name: _typed(one, values[one.name]) for one in declared})
        if is_handed_context:
            given[_CONTEXT] = click.get_current_context()
        return command(**given)

    made: Callable[..., R] = called
    for one in reversed(declared):
        made = (_option(one) if one.option.flag else _argument(one))(made)
    return made


def _typed(one: Parameter, value: Any) -> Any:
    if not one.choices or value is None:
        return tuple(value) if one.several else value
    return tuple(map(one.kind, value)) if one.several else one.kind(value)


def _option(one: Parameter) -> Callable[[Callable[..., R]], Callable[..., R]]:
    option = one.option
    if one.kind is bool:
        return click.option(option.flag, one.name, cls=_ClickOption, declared=option, help=option.help, is_flag=True)
    more: dict[str, Any] = {} if option.alone is None else {"is_flag": False, "flag_value": option.alone}
    if not one.is_required and one.default not in (None, ()):
        more["default"] = one.default.value if isinstance(one.default, Enum) else one.default
    return click.option(
        option.flag,
        one.name,
        cls=_ClickOption,
        declared=option,
        type=_type(one),
        metavar=option.metavar or None,
        multiple=one.several,
        required=one.is_required,
        show_default=bool(one.default) or bool(option.setting),
        help=_SENTENCE_END.sub("; may be repeated.", option.help, count=1) if one.several else option.help,
        **more,
    )


def _argument(one: Parameter) -> Callable[[Callable[..., R]], Callable[..., R]]:
    more: dict[str, Any] = {"required": True} if one.is_required else {"default": one.default, "required": False}
    metavar, nargs = one.option.metavar, -1 if one.several else 1
    return click.argument(one.name, metavar=metavar, type=_type(one), nargs=nargs, **more)


def _type(one: Parameter) -> Any:
    match one.option.values:
        case Words() as words:
            return _WordType(words)
        case ExistingPath(file, folder):
            return click.Path(exists=True, file_okay=file, dir_okay=folder, path_type=one.kind)
        case Range(least, most) if one.kind is int:
            return click.IntRange(int(least), None if most is None else int(most))
        case Range(least, most):
            return click.FloatRange(least, most)
    return click.Choice(one.choices) if one.choices else one.kind


class _ClickOption(click.Option):
    """An option with a default that click's own options cannot have: a setting in bob.toml, or a text that only
    describes the default."""

    def __init__(self, *args: Any, declared: Option, **more: Any) -> None:
        super().__init__(*args, **more)
        self.declared = declared

    def get_default(self, ctx: click.Context, call: bool = True) -> Any:
        """Return the default. Raise UsageError if bob.toml is wrong, unless click asks for the default only to show the
        help."""
        said = self._setting(ctx)
        return super().get_default(ctx, call) if said is None else (said,) if self.multiple else said

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Process the value as click does. If the value comes from bob.toml, an error names that file."""
        try:
            return super().process_value(ctx, value)
        except UsageError as wrong:
            if is_given(ctx, self) or self._setting(ctx) is None:
                raise
            raise UsageError(f"{settings().path}: {wrong.message}", hint=wrong.hint) from None

    def get_help_extra(self, ctx: click.Context) -> Any:
        extra: Any = super().get_help_extra(ctx)
        if self.declared.words and (self.declared.setting == "" or "default" not in extra):
            extra["default"] = self.declared.words
        return extra

    def _setting(self, ctx: click.Context) -> Any:
        if not self.declared.setting:
            return None
        try:
            return getattr(settings(), self.declared.setting)
        except UsageError:
            if ctx.resilient_parsing:
                return None
            raise


def is_given(context: click.Context, parameter: click.Parameter) -> bool:
    """Return whether the user gave ``parameter`` on the command line."""
    return context.get_parameter_source(parameter.name or "") is click.core.ParameterSource.COMMANDLINE


class _WordType(ParamType):
    def __init__(self, words: Words) -> None:
        self.name = words.name
        self._words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        said_by = self.name if param is None else param.opts[0] if isinstance(param, click.Option) else param.metavar
        return self._words.read(value, said_by or self.name) if isinstance(value, str) else value

    def shell_complete(self, ctx: click.Context, param: Any, incomplete: str) -> list[CompletionItem]:
        return completed(self._words, ctx, incomplete)


def completed(words: Words, context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Return the words that begin with ``incomplete``. If no word does, let the shell offer files."""
    found = [CompletionItem(word) for word in words.offered(context.params) if word.startswith(incomplete)]
    return found or ([CompletionItem(incomplete, type=words.files)] if words.files else [])
