"""bob, the Block Order Breaker, finds out which persistence properties a file system has. Each step of its work has a
subpackage: bob records the writes of a workload, enumerates crash states (``crash``), observes and judges these states,
and reports the result. From the result it derives an abstract persistence model (``apm``), which is a list of promises
to applications. See docs/design.md, section 1.

The function :func:`probe` finds out which properties a file system has. With :func:`try_` you check what you expect of
a few operations. With :func:`app` you find out whether a program survives a crash. The function :func:`resume`
continues a stopped probe, and :func:`load` reads the result of a run (docs/results.md, docs/notebook.ipynb).

All errors are :class:`bob.errors.BobError`, with a ``hint``. bob raises UsageError if a request is wrong or impossible,
mostly before a guest starts. If a text that the user wrote (such as a workload) has a mistake, bob raises PointedError,
a kind of UsageError that says where the mistake is. MissingProgramError, ImageError, GuestError and StoreError are
faults of the machine. The first Ctrl-C raises KeyboardInterrupt after the guests have ended. A second Ctrl-C ends the
guests at once."""

from typing import Any

from bob.version import __version__ as __version__

__all__ = ["app", "load", "probe", "resume", "try_"]


def __getattr__(name: str) -> Any:
    """Return a function of :mod:`bob.python.functions`. That module takes a while to load, so it is loaded at the first
    use of a function."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bob.python import functions

    return getattr(functions, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
