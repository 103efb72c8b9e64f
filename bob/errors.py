"""The one exception that bob raises on purpose, and the exit codes that go with it.

Everything a user or a machine can do wrong is a :class:`BobError`: one line that says what is wrong, one hint
that says what to do. ``bob.cli`` prints both and exits with the code; nothing else in bob calls ``sys.exit``.
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every verb (docs/design.md, section 5)."""

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
    INTERNAL = 70
    INTERRUPTED = 130


class BobError(Exception):
    """Something the user or the machine did wrong, in one line.

    ``hint`` is the next thing to try, also one line; ``exit_code`` is what the process ends with.
    """

    exit_code: Exit = Exit.INTERNAL

    def __init__(self, message: str, *, hint: str | None = None, exit_code: Exit | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if exit_code is not None:
            self.exit_code = exit_code


class UsageError(BobError):
    """The command line, a probe file or a configuration asks for something that cannot be."""

    exit_code = Exit.USAGE


class PointedError(UsageError):
    """A mistake in a ``text`` that the user wrote: its characters ``start`` up to, not including, ``stop``, from 0.

    Where the text ends too early, both are its length. ``column`` counts from 1, as people do.
    """

    def __init__(self, message: str, text: str, start: int, stop: int, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.text, self.start, self.stop = text, start, stop

    @property
    def column(self) -> int:
        """Where the mistake begins."""
        return self.start + 1


class MissingProgramError(BobError):
    """A program or library that bob needs is not installed; the hint names the package."""

    exit_code = Exit.MISSING_PROGRAM


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
