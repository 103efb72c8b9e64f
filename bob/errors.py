"""The errors that bob raises on purpose, and bob's exit codes. Only ``bob.cli`` prints these errors, and ends bob with
their exit code."""

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of all bob commands (docs/results.md)."""

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


LONGEST = 1000  # most characters of a message, which may quote a large file
_A_SLIP = 0.8  # least likeness (difflib's, 0 to 1) of a word to its correction


def meant(wrong: str, names: Iterable[str], all_are: str = "bob knows") -> str:
    """Return a hint for the unknown name ``wrong``. The hint suggests the most similar name of ``names``, or the names
    that begin with ``wrong``. If no name is similar, the hint lists all names. This list begins with the text
    ``all_are`` and a colon, as in "bob knows: ext4, xfs"."""
    names, said = list(names), wrong.casefold()
    close = [name for name in names if name.casefold() == said] or get_close_matches(wrong, names, n=1, cutoff=_A_SLIP)
    close = close or [name for name in names if said and name.casefold().startswith(said)]
    close = close or [name for name in get_close_matches(wrong, names, n=1) if name[:1] == wrong[:1]]  # not xfs for zfs
    if len(close) > 1:
        return f"did you mean one of {', '.join(close)}?"
    return f"did you mean {close[0]!r}?" if close else f"{all_are}: {', '.join(names) or 'none'}"


class BobError(Exception):
    """A mistake of the user or a fault of the machine. The ``hint`` says what to try next. Message and hint are one
    line each."""

    exit_code: Exit = Exit.INTERNAL

    def __init__(self, message: str, *, hint: str | None = None, exit_code: Exit | None = None) -> None:
        super().__init__(message)
        self.message = message if len(message) <= LONGEST else f"{message[: LONGEST - 4]} ..."
        self.hint = hint
        if exit_code is not None:
            self.exit_code = exit_code


class UsageError(BobError):
    """The command line, a configuration or a probe file (a property and workloads that test it) is invalid, or asks for
    something impossible."""

    exit_code = Exit.USAGE


class OperationRefusedError(UsageError):
    """The file system of a guest refused an operation. The message has the words of the guest's kernel."""


class PointedError(UsageError):
    """A mistake in a ``text`` of the user, at the characters from ``start`` to before ``stop`` (both count from 0). If
    the text ends too early, ``start`` and ``stop`` are the length of the text. ``line`` and ``column`` count from 1."""

    def __init__(self, message: str, text: str, start: int, stop: int, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.text, self.start, self.stop = text, start, stop

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        return self.start - self.text.rfind("\n", 0, self.start)

    @property
    def place(self) -> str:
        """The start of the mistake in words: ``column 9``, or ``line 2, column 9`` if the text has several lines."""
        return f"line {self.line}, column {self.column}" if "\n" in self.text.strip() else f"column {self.column}"


class MissingProgramError(BobError):
    """A program or library that bob needs is not installed; the hint names the package."""

    exit_code = Exit.MISSING_PROGRAM


def missing_package(error: ModuleNotFoundError) -> MissingProgramError | None:
    """Return the error that bob shows to the user after an import failed with ``error``. The returned error names the
    package that is missing. Return None if a module of bob itself is missing."""
    package = (error.name or "bob").partition(".")[0]
    if package == "bob":
        return None
    return MissingProgramError(
        f"the Python package {package} is not installed for {sys.executable}",
        hint="./run in bob's folder installs the packages that bob needs, and runs bob",
    )


class ImageError(BobError):
    exit_code = Exit.IMAGE


class GuestError(BobError):
    """A guest did not start, or was lost (it panicked, hung or vanished). If a loss is itself a result of the run, such
    as a panic of the kernel, bob does not raise this error."""

    exit_code = Exit.GUEST


class RecordingError(BobError):
    """A recording (the log of the block requests that a guest sent to its disks) is inconsistent. It failed one of
    bob's own checks, so bob does not use it."""

    exit_code = Exit.RECORDING


class MalformedError(BobError):
    exit_code = Exit.MALFORMED


class StoreError(BobError):
    """A run directory cannot be read or written."""

    exit_code = Exit.STORE
