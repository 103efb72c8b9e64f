"""bob, the Block Order Breaker: which persistence properties does a file system have?

This package is laid out as its data goes: record, enumerate (crash), observe, judge, report, derive (apm). See
docs/design.md, section 1.

:func:`probe` asks a file system for its properties, :func:`try_` asks a quick question, and :func:`app` asks whether a
program survives a crash. Then :func:`resume` goes on with a probe, and :func:`load` reads the result of a run
(docs/results.md, docs/notebook.ipynb).

All errors are :class:`bob.errors.BobError`, with a ``hint``. UsageError comes before anything starts, as PointedError
for a mistake in a text. MissingProgramError, ImageError, GuestError and StoreError are faults of the machine. Ctrl-C
raises KeyboardInterrupt when no guest is left; pressed again, it ends the guests at once.
"""

from __future__ import annotations

from typing import Any

from bob.version import __version__ as __version__

__all__ = ["app", "load", "probe", "resume", "try_"]


def __getattr__(name: str) -> Any:
    """Return a function of :mod:`bob.python.functions`, which takes a while to load."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bob.python import functions

    return getattr(functions, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
