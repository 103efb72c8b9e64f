"""Commands that refuse repeated options, and groups that load a command when a user calls it."""

from collections import Counter
from collections.abc import Callable, Mapping
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click

from bob.cli.options import takes_options
from bob.errors import UsageError, meant

_SEVERAL = {
    "--fs": "run the command once for each; `bob matrix` probes several configurations",
    "--image": "run the command once for each; `bob probe` and `bob matrix` take several",
}  # hints for options that take only one value


class Command(click.Command):
    """A command that refuses a second value of an option. click's own command silently takes the last value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and not ctx.resilient_parsing:
            _values, _left, order = self.make_parser(ctx).parse_args(list(args))
            given = Counter(parameter for parameter in order if _takes_one_value(parameter))
            for parameter, times in given.items():
                if times > 1:
                    name = max(parameter.opts, key=len)
                    hint = _SEVERAL.get(name, "give it once")
                    raise UsageError(f"{name} takes one value, but is given {times} times", hint=hint)
        return super().parse_args(ctx, args)


def _takes_one_value(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and not (parameter.multiple or parameter.is_flag or parameter.count)


def command(
    name: str | None = None, *, cls: type[click.Command] = Command
) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that turns a function into a command. The command gets the options that the function
    declares."""
    return lambda function: click.command(name, cls=cls)(takes_options(function))


class Commands(Command, click.Group):
    """A group that suggests a command if a user names an unknown one."""

    command_class = Command

    def command(  # type: ignore[override]
        self, *args: Any, **more: Any
    ) -> Callable[[Callable[..., Any]], click.Command]:
        """Return a decorator that turns a function into a command of this group, as click's own decorator does. In
        addition, the command gets the options that the function declares."""
        decorate = super().command(*args, **more)
        return lambda function: decorate(takes_options(function))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            path = f"{ctx.command_path} {name}"
            raise UsageError(f"unknown command {path!r}", hint=meant(name, self.list_commands(ctx)))
        return super().resolve_command(ctx, args)


class LazyCommands(Commands):
    """A group that loads a command only when a user calls it. The command NAME is the object NAME in the module
    ``bob.cli.NAME``. If NAME is a keyword of Python, both have the name ``NAME_``. ``lazy`` has one line of help for
    each command."""

    def __init__(self, *args: Any, lazy: Mapping[str, str], **more: Any) -> None:
        super().__init__(*args, **more)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return None
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command: click.Command = getattr(import_module(f"bob.cli.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._lazy.items()))
