"""bob, the Block Order Breaker: which persistence properties does a file system have?

The way of the data is the layout of this package (docs/design.md, section 1)::

    record -> enumerate (crash) -> observe -> judge -> report -> derive (apm)

From Python, :func:`probe` asks a file system for its properties, :func:`try_` asks a quick question, :func:`app` asks
whether a program survives a crash, :func:`resume` goes on with a probe, and :func:`load` reads what a run found
(docs/reports.md, docs/notebook.ipynb).

A question that cannot be asked raises :class:`bob.errors.UsageError` before anything starts; a mistake in a text raises
:class:`bob.errors.PointedError`, which is one, too. MissingProgramError, ImageError, GuestError and StoreError say what
the machine lacks or does not do. All of them are :class:`bob.errors.BobError`, with a ``hint``. Ctrl-C raises
KeyboardInterrupt when no guest is left; pressed again, it ends the guests at once.
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
