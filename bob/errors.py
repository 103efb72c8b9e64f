"""The one exception that bob raises on purpose, and the exit codes that go with it.

Everything a user or a machine can do wrong is a :class:`BobError`: one line that says what is wrong, one hint
that says what to do. ``bob.cli`` prints both and exits with the code; nothing else in bob calls ``sys.exit``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every verb (docs/ci.md)."""

    DONE = 0
    DIFFERENT = 1
    USAGE = 2
    UNKNOWN_CELLS = 3
    MISSING_PROGRAM = 4
    IMAGE = 5
    GUEST = 6
    RECORDING = 7
    MALFORMED = 8
    STORE = 9
    CONTRADICTED = 10
    INTERNAL = 70
    INTERRUPTED = 130


LONGEST = 1000
"""A message has at most so many characters: it may quote what a file says, and nobody reads a megabyte."""
_A_SLIP = 0.8
"""As alike as this (by difflib) are two words of which one is the other with a letter wrong."""


def meant(wrong: str, names: Iterable[str], all_are: str = "bob knows") -> str:
    """The hint for a name that is not among ``names``: the one that was meant, those that begin with it, or else all
    that there are."""
    names, said = list(names), wrong.casefold()
    close = [name for name in names if name.casefold() == said] or get_close_matches(wrong, names, n=1, cutoff=_A_SLIP)
    close = close or [name for name in names if said and name.casefold().startswith(said)]
    close = close or get_close_matches(wrong, names, n=1)
    if len(close) > 1:
        return f"did you mean one of {', '.join(close)}?"
    return f"did you mean {close[0]!r}?" if close else f"{all_are}: {', '.join(names) or 'none'}"


class BobError(Exception):
    """Something the user or the machine did wrong, in one line.

    ``hint`` is the next thing to try, also one line; ``exit_code`` is what the process ends with.
    """

    exit_code: Exit = Exit.INTERNAL

    def __init__(self, message: str, *, hint: str | None = None, exit_code: Exit | None = None) -> None:
        super().__init__(message)
        self.message = message if len(message) <= LONGEST else f"{message[: LONGEST - 4]} ..."
        self.hint = hint
        if exit_code is not None:
            self.exit_code = exit_code


class UsageError(BobError):
    """The command line, a probe file or a configuration asks for something that cannot be."""

    exit_code = Exit.USAGE


class OperationRefusedError(UsageError):
    """The file system of a guest refused an operation, in the words of its kernel."""


class PointedError(UsageError):
    """A mistake in a ``text`` that the user wrote: its characters ``start`` up to, not including, ``stop``, from 0.

    Where the text ends too early, both are its length. ``line`` and ``column`` count from 1, as people do.
    """

    def __init__(self, message: str, text: str, start: int, stop: int, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.text, self.start, self.stop = text, start, stop

    @property
    def line(self) -> int:
        """The line in which the mistake begins."""
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """Where the mistake begins in its line."""
        return self.start - self.text.rfind("\n", 0, self.start)

    @property
    def place(self) -> str:
        """Where the mistake begins: ``column 9``, or ``line 2, column 9`` in a text of several lines."""
        return f"line {self.line}, column {self.column}" if "\n" in self.text.strip() else f"column {self.column}"


class MissingProgramError(BobError):
    """A program or library that bob needs is not installed; the hint names the package."""

    exit_code = Exit.MISSING_PROGRAM


def missing_package(error: ModuleNotFoundError) -> MissingProgramError | None:
    """What to tell the user of an import that failed; None where a module of bob itself is not there."""
    package = (error.name or "bob").partition(".")[0]
    if package == "bob":
        return None
    return MissingProgramError(
        f"the Python package {package} is not installed for {sys.executable}",
        hint="./run in bob's folder installs what bob needs, and runs it",
    )


class ImageError(BobError):
    """A guest image could not be built or is damaged."""

    exit_code = Exit.IMAGE


class GuestError(BobError):
    """A guest could not be started, or was lost (panicked, hung, vanished) where that cannot be an outcome."""

    exit_code = Exit.GUEST


class RecordingError(BobError):
    """A recording failed its self-check and was refused."""

    exit_code = Exit.RECORDING


class MalformedError(BobError):
    """A file that bob was given does not have the format it should have."""

    exit_code = Exit.MALFORMED


class StoreError(BobError):
    """A run directory cannot be read or written."""

    exit_code = Exit.STORE
