"""The program ``bob``. It loads the module of a command when that is used."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click
from click.shell_completion import shell_complete

from bob.cli.commands import LazyCommands
from bob.cli.ending import catch_signals, exit_code, ignore_signals
from bob.errors import BobError, Exit
from bob.memory import give_back_what_is_freed
from bob.settings import forget
from bob.version import __version__

COMMANDS = {
    "probe": "Find out which persistence properties a file system has.",
    "try": "Ask a quick question: what may a crash leave of these operations?",
    "app": "Ask whether a program survives a crash: its own checker looks at what is left.",
    "search": "Search for workloads after which something is lost that was made durable.",
    "matrix": "Probe a set of configurations, and print the table.",
    "judge": "Judge a finished run again, without a guest.",
    "show": "Print the table of a run again.",
    "compare": "Compare two runs, or a run and the published table, cell by cell.",
    "merge": "Put runs that were made apart, as shards of one, together.",
    "reproduce": "Do a published experiment again, and print it beside what was published.",
    "witness": "Tell the story of a violation: what the disk was sent, and what the crash made of it.",
    "replay": "Show on a real kernel that a witness does violate its property.",
    "apm": "Derive models of what an application can rely on, and check them.",
    "runs": "List run directories, and remove them.",
    "image": "List, build and remove guest images.",
    "trace": "Look into a block log, as dm-log-writes makes it.",
    "doctor": "Check everything that a probe needs.",
    "site": "Build the documentation and the results as one static site.",
    "man": "Write the manual pages.",
}

_COMPLETE = "_BOB_COMPLETE"

EPILOG = """
\b
Examples:
  bob doctor
  bob probe --fs ext4 --mount-opts data=ordered
  bob try --fs ext4 'write /a 0 4096; fsync /a' --expect 'content /a = new'
  bob matrix --set osdi14
  bob show bob-runs/20261121T230021-1f2e3d

\b
Exit codes:
  0  done                                 6    a guest did not start or was lost
  1  a difference, a broken expectation   7    a recording failed its check
  2  usage                                8    a file is malformed
  3  done, but some cell is unknown       9    a run directory is unusable
  4  a program or library is missing      10   a model forbids what was seen
  5  a guest image could not be built     70   an internal error
                                          130  interrupted

\b
Environment:
  XDG_CACHE_HOME   guest images and saved guests are in $XDG_CACHE_HOME/bob
  XDG_CONFIG_HOME  bob.toml is in $XDG_CONFIG_HOME/bob, unless there is one in the current directory
  GITHUB_ACTIONS   true: annotate what fails, as GitHub Actions shows it
  BOB_ACCELERATOR  kvm or tcg, where bob would otherwise try which one works
  BOB_MIRROR       the Debian mirror that guest images are built from
  BOB_DEBUG=1      show tracebacks on the terminal
  NO_COLOR=1       no colours

\b
Settings: bob.toml may have image, jobs, budget and cache; `bob doctor` says which file is read.

\b
Shell completion: put one of these into your shell's start-up file.
  eval "$(_BOB_COMPLETE=bash_source bob)"
  eval "$(_BOB_COMPLETE=zsh_source bob)"
  _BOB_COMPLETE=fish_source bob | source
"""


@click.group(
    cls=LazyCommands,
    lazy=COMMANDS,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(__version__, prog_name="bob", message="%(prog)s %(version)s")
def cli() -> None:
    """bob, the Block Order Breaker: which persistence properties does a file system have?

    bob runs small workloads on a real kernel in a QEMU guest, records what reaches the disk, makes the states that a
    crash may leave, lets the kernel mount them, and looks at what is there. It finds operations that do not survive a
    crash whole (atomicity), and operations that reach the disk before earlier ones (ordering).
    """


def run(arguments: Sequence[str]) -> int:
    """Run the command in ``arguments`` (without the program's name). Return the exit code."""
    return exit_code(lambda: _run(list(arguments)))


def _run(arguments: list[str]) -> object:
    forget()
    asked = os.environ.get(_COMPLETE)
    if asked:
        with suppress(BobError):  # the command itself will say what is wrong
            return shell_complete(cli, {}, "bob", _COMPLETE, asked)
        return Exit.DONE
    try:
        with cli.make_context("bob", arguments) as context:
            return cli.invoke(context)
    except click.exceptions.Exit as done:  # --help, --version
        return done.exit_code
    except click.UsageError as wrong:
        wrong.ctx = wrong.ctx or _context_of(arguments)
        raise


def _context_of(arguments: Sequence[str]) -> click.Context:
    """Return the context of the command in ``arguments``: click's parser leaves it out of some errors."""
    found = click.Context(cli, info_name="bob")
    for name in arguments:
        group = found.command
        command = group.get_command(found, name) if isinstance(group, click.Group) else None
        if command is None:
            break
        found = click.Context(command, info_name=name, parent=found)
    return found


def main() -> None:
    catch_signals()
    give_back_what_is_freed()
    code = run(sys.argv[1:])
    ignore_signals()
    sys.exit(code)


if __name__ == "__main__":
    main()
