"""``bob man``: a manual page for each command, made from the command's help."""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import click

from bob.cli.commands import command
from bob.cli.help_page import below, contexts
from bob.cli.output import write_pages
from bob.errors import Exit
from bob.options import option
from bob.run.option_paths import FOLDER
from bob.store.new_folder import check_folder
from bob.version import __version__

_VERBATIM = "\b"
_HEADING = re.compile(r"^([A-Z][A-Za-z ]+):$")


@command()
def man(folder: Path = option("DIR", "", FOLDER)) -> Exit:
    """Write the manual pages into DIR/man1: bob.1, and one for each command, such as bob-probe.1.

    They have the text of --help. If DIR is in MANPATH, `man bob-probe` finds them.

    \b
    Examples:
      bob man ~/.local/share/man
      bob man /tmp/man && man -M /tmp/man bob-probe

    \b
    Exit codes:
      0   the pages were written
      2   DIR cannot be written
    """
    check_folder(folder, "DIR")
    pages = [(PurePosixPath("man1", f"{name_of(context)}.1"), page(context)) for context in contexts()]
    write_pages(folder, pages, "DIR")
    click.echo(f"wrote {len(pages)} pages into {folder / 'man1'}")
    return Exit.DONE


def name_of(context: click.Context) -> str:
    """Return the name of the manual page of a command: ``bob-probe-new``."""
    return context.command_path.replace(" ", "-")


def page(context: click.Context) -> str:
    """Return the manual page of a command, in the macros of man(7)."""
    command, name = context.command, name_of(context)
    words = (command.help or "").split("\f")[0].strip()
    first = words.partition("\n\n")[0].replace("\n", " ").rstrip(".:")
    lines = [
        f'.TH "{name.upper()}" "1" "" "bob {__version__}" "bob, the Block Order Breaker"',
        ".nh",  # switches hyphenation off, since options have hyphens
        ".ad l",
        ".SH NAME",
        f"{_text(name)} \\- {_text(first)}",
        ".SH SYNOPSIS",
        f".B {_text(context.command_path)}",
        _text(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        *_body(words),
        ".SH OPTIONS",
        *_options(context),
        *_commands(context),
        *_body((command.epilog or "").strip()),
        ".SH SEE ALSO",
        *_see_also(context),
    ]
    return "\n".join(lines) + "\n"


def _body(words: str) -> Iterator[str]:
    for paragraph in filter(None, (part.strip("\n") for part in re.split(r"\n[ \t]*\n", words))):
        lines = paragraph.split("\n")
        if lines[0].strip() != _VERBATIM:
            yield ".PP"
            yield _text(" ".join(line.strip() for line in lines))
            continue
        lines = lines[1:]
        if heading := _HEADING.match(lines[0].strip() if lines else ""):
            yield f".SH {_text(heading[1].upper())}"
            lines = lines[1:]
        else:
            yield ".PP"
        yield ".nf"
        yield from map(_text, lines)
        yield ".fi"


def _options(context: click.Context) -> Iterator[str]:
    for parameter in context.command.get_params(context):
        if record := parameter.get_help_record(context):
            yield ".TP"
            yield f"\\fB{_text(record[0])}\\fR"
            yield _text(" ".join(record[1].split()))


def _commands(context: click.Context) -> Iterator[str]:
    commands = list(below(context))
    yield from [".SH COMMANDS"] if commands else []
    for one in commands:
        yield ".TP"
        yield f"\\fB{_text(name_of(one))}\\fR(1)"
        yield _text(one.command.get_short_help_str(200))


def _see_also(context: click.Context) -> Iterator[str]:
    names = {"bob"} if context.parent is None else {"bob", name_of(context.parent)}
    yield ", ".join(f"\\fB{_text(name)}\\fR(1)" for name in sorted(names))


def _text(words: str) -> str:
    escaped = words.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    escaped = escaped.replace("^", "\\(ha").replace("~", "\\(ti")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
