"""The program ``bob``. It loads the module of a command only when a user calls the command."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click
from click.shell_completion import shell_complete

from bob.cli.commands import LazyCommands
from bob.cli.ending import catch_signals, exit_code, ignore_signals
from bob.cli.verbs import COMMANDS
from bob.errors import BobError, Exit
from bob.memory import give_back_what_is_freed
from bob.settings import forget
from bob.version import __version__

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
  2  invalid usage                        8    a file is malformed
  3  done, but some result is unknown     9    a run directory is unusable
  4  a program or library is missing      10   a model forbids an observed state
  5  a guest image could not be built     70   an internal error
                                          130  interrupted

\b
Environment:
  XDG_CACHE_HOME   bob keeps guest images and saved guests in $XDG_CACHE_HOME/bob
  XDG_CONFIG_HOME  bob reads $XDG_CONFIG_HOME/bob/bob.toml if there is no ./bob.toml
  GITHUB_ACTIONS   true: report failures as annotations of GitHub Actions
  BOB_ACCELERATOR  kvm or tcg; if unset, bob tests whether KVM works
  BOB_MIRROR       the Debian mirror for building guest images
  BOB_DEBUG=1      show tracebacks on the terminal
  NO_COLOR=1       no colours

\b
Settings: bob.toml can set image, jobs, budget, checks and cache. `bob doctor` prints which file bob reads.

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
    """bob, the Block Order Breaker, finds out which persistence properties a file system has.

    bob runs small workloads on a real kernel in a QEMU guest and records the writes that reach the disk. It builds the
    crash states that these writes allow, lets the kernel mount them, and examines the files. So it finds operations
    that do not survive a crash whole (atomicity), and operations that reach the disk before earlier ones (ordering).
    """


def run(arguments: Sequence[str]) -> int:
    """Run the command in ``arguments``, which lack the program's name. Return the exit code."""
    return exit_code(lambda: _run(list(arguments)))


def _run(arguments: list[str]) -> object:
    forget()
    asked = os.environ.get(_COMPLETE)
    if asked:
        with suppress(BobError):  # the command itself will report the error
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
    """Return click's context of the command in ``arguments``. Some errors of click's parser lack a context, so the
    caller adds this context to them."""
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
