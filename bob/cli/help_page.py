"""The page docs/cli.md: ``python -m bob.cli.help_page > docs/cli.md`` writes the ``--help`` of every command."""

from collections.abc import Iterator

import click

from bob.cli.main import cli

WIDTH = 100

_HEAD = """\
# The command line

The output of `bob COMMAND --help`, for every command. A program writes this page. After a change to a command, run
`python -m bob.cli.help_page > docs/cli.md`.
"""


def page() -> str:
    parts = [_HEAD]
    for context in contexts():
        path = context.command_path
        heading = "#" * (1 + len(path.split()))
        parts.append(f"{heading} {path}\n\n```text\n{context.get_help().rstrip()}\n```\n")
    return "\n".join(parts)


def contexts() -> Iterator[click.Context]:
    """Yield a click context for every command, groups first."""
    yield from _from(click.Context(cli, info_name="bob", terminal_width=WIDTH, **cli.context_settings))


def below(context: click.Context) -> Iterator[click.Context]:
    """Yield the contexts of all commands in a group. Yield nothing if the command is not a group."""
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            if command := context.command.get_command(context, name):
                yield click.Context(command, parent=context, info_name=name)


def _from(context: click.Context) -> Iterator[click.Context]:
    yield context
    for inner in below(context):
        yield from _from(inner)


if __name__ == "__main__":
    click.echo(page(), nl=False)
