"""The end of the program bob: an error, a hint and an exit code, but never a traceback."""

import errno
import os
import platform
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO

import click

from bob.cli.called import as_called
from bob.cli.github import Level, annotate
from bob.errors import BobError, Exit, PointedError, missing_package
from bob.run.interrupts import Interrupts
from bob.text import printable
from bob.version import __version__

_BESIDE = 36  # letters of a text that bob shows before a mistake, and from the mistake on
_SHOW_CURSOR = "\r\x1b[?25h\n"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
_INTEGER_RANGE = "is not a valid integer range", "is not a whole number"  # click's words, and better words for the same
_NO_ARGUMENTS = getattr(click.exceptions, "NoArgsIsHelpError", ())  # click 8.2 and later


class Interrupted(BobError):
    exit_code = Exit.INTERRUPTED

    def __init__(self, hint: str | None = None) -> None:
        super().__init__("interrupted", hint=hint)


def catch_signals() -> None:
    """Make SIGTERM and SIGHUP end bob as Ctrl-C does. Call this once, in the main thread.

    Signals within a second of the first signal count as one, since a terminal and `timeout` may both send one. A later
    signal kills bob at once. In that case another process, the reaper (bob/guest/root.py), ends all processes that bob
    started. A signal that was ignored when bob started (as under nohup) stays ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _INTERRUPTS)
    threading.excepthook = lambda failed: None if failed.exc_value is None else _internal(failed.exc_value)


def ignore_signals() -> None:
    """Ignore signals from now on, so that they do not change the exit code. Without this, Python restores the default
    action of signals when it exits, and a late signal would kill the process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is _INTERRUPTS:
            signal.signal(number, signal.SIG_IGN)


def exit_code(command: Callable[[], object]) -> int:
    """Run ``command``, and return the exit code. If it raises an error, print the error on stderr."""
    try:
        code = command()
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            drop(sys.stdout)
    except BrokenPipeError:
        drop(sys.stdout)  # the reader of stdout has gone
        return Exit.DONE
    except (Exception, KeyboardInterrupt) as error:
        told = _tell(KeyboardInterrupt() if is_interrupt(error) else error)
        _give_up_full_output()
        return told
    return code if isinstance(code, int) else Exit.DONE


def is_interrupt(error: BaseException) -> bool:
    """Return whether a signal caused ``error``. Code in C may turn KeyboardInterrupt into another error, as numpy does
    in a comparison."""
    foreseen = isinstance(error, (BobError, click.ClickException))
    return isinstance(error, KeyboardInterrupt) or (_INTERRUPTS.since is not None and not foreseen)


def _tell(error: BaseException) -> Exit:
    if os.environ.get("BOB_DEBUG") == "1" and not isinstance(error, Interrupted):
        traceback.print_exception(error)
    return _tell_in_a_line(error)


def _tell_in_a_line(error: BaseException) -> Exit:
    match error:
        case KeyboardInterrupt() | click.Abort():
            return _tell_in_a_line(Interrupted())
        case BobError():
            if error.exit_code is Exit.INTERRUPTED and sys.stderr.isatty():
                click.echo(err=True)  # an empty line after the ^C that the terminal shows
            excerpt = pointed(error) if isinstance(error, PointedError) else ()
            _say(error.message, error.hint, excerpt, is_wrong=error.exit_code is not Exit.INTERRUPTED)
            return error.exit_code
        case click.UsageError():
            return _usage(error)
        case click.ClickException():
            _say(error.format_message())
            return Exit.USAGE
        case OSError() if error.errno in _FULL:
            where = f" ({error.filename})" if error.filename else ""
            _say(f"{error.strerror}{where}", "free some space, or choose another folder with --out or XDG_CACHE_HOME")
            return Exit.STORE
        case ModuleNotFoundError() if missing := missing_package(error):
            return _tell_in_a_line(missing)
    return _internal(error)


def _usage(error: click.UsageError) -> Exit:
    if isinstance(error, _NO_ARGUMENTS):
        click.echo(error.format_message(), err=True)  # for a group without a command, click gives the help of the group
        return Exit.USAGE
    message = error.format_message().rstrip(".").replace(*_INTEGER_RANGE)
    command = error.ctx.command_path if error.ctx else "bob"
    _say(message[:1].lower() + message[1:], f"{command} --help")
    return Exit.USAGE


def _internal(error: BaseException) -> Exit:
    """Write the traceback of an unforeseen error into a file, and return the exit code."""
    message = f"internal error: {type(error).__name__}: {error}"
    try:
        with tempfile.NamedTemporaryFile("w", prefix="bob-error-", suffix=".txt", delete=False) as file:
            print(f"bob {__version__}, Python {platform.python_version()}, {platform.platform()}", file=file)
            print(*sys.argv, end="\n\n", file=file)
            traceback.print_exception(error, file=file)
    except OSError:
        _say(message, "BOB_DEBUG=1 shows the traceback")
    else:
        _say(f"{message} (traceback: {file.name})", "please report this error, with that file")
    return Exit.INTERNAL


def pointed(error: PointedError) -> tuple[str, str]:
    """Return two lines about a mistake in the text that a user wrote. The first is the wrong line of the text, cut to
    the part around the mistake. The second has ``^`` below each wrong letter."""
    from rich.cells import cell_len  # imported only now, since it takes a while to load

    line, wrong = error.text.split("\n")[error.line - 1], error.column - 1
    first = max(0, min(wrong - _BESIDE, len(line) - 2 * _BESIDE))
    shown = "".join(letter if letter.isprintable() else " " for letter in line[first : wrong + _BESIDE])
    start = wrong - first
    marked = shown[start : start + error.stop - error.start]
    return f"  {shown}".rstrip(), " " * (2 + cell_len(shown[:start])) + "^" * max(1, cell_len(marked))


def _say(message: str, hint: str | None = None, excerpt: Sequence[str] = (), *, is_wrong: bool = True) -> None:
    """Print the message and the hint, each in one line. If the message is about an error (``is_wrong``), also make it
    an annotation on GitHub. Otherwise the page of the CI there would show only the exit code."""
    with suppress(OSError):
        if is_wrong:
            annotate(Level.ERROR, "bob", " ".join(f"{message}. {hint or ''}".split()))
        click.echo(f"bob: {printable(as_called(' '.join(message.split())))}", err=True)
        for line in excerpt if any(excerpt[:1]) else ():
            click.echo(line, err=True)
        if hint:
            click.echo(f"hint: {printable(as_called(' '.join(hint.split())))}", err=True)


def _give_up_full_output() -> None:
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        drop(sys.stdout)


def drop(stream: IO[str]) -> None:
    """Discard all further output to ``stream``, which takes no more, for example because its reader has gone. Otherwise
    Python, when it exits, would fail to flush the stream, complain, and set another exit code."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _end_at_once() -> None:
    with suppress(OSError):
        # Shows the cursor again, which a progress bar may have hidden.
        cursor = _SHOW_CURSOR if sys.stderr.isatty() else ""
        os.write(2, f"{cursor}bob: interrupted again, and stopped at once; finished work is kept\n".encode())
    os._exit(Exit.INTERRUPTED)  # after this no thread does anything, so each file is whole or missing


_INTERRUPTS = Interrupts(_end_at_once)
