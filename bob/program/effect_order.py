"""Calls in the order of their effects, if that differs from the order of their returns.

strace says when a call begins and when it has returned. The kernel may let another process run between the effect and
the return: a process that waits for a lock file makes it while the call that removes it has yet to return.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bob.program.strace import SystemCall, name_of

_REMOVING = ("unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2")
"""Calls that take the first name that they are given."""
_OPENING = ("open", "openat", "openat2")
_MAKING = ("mkdir", "mkdirat", "link", "linkat", "symlink", "symlinkat", "mknod", "mknodat")
"""Calls that fail if the last name that they are given exists."""


def in_effect_order(calls: Sequence[SystemCall]) -> tuple[SystemCall, ...]:
    """Return the ``calls``, which are in the order of their returns, in that of their effects.

    A close comes where it began, since the kernel gives its number to another call at once. The removal of a name comes
    before a call that made the name again meanwhile.
    """
    placed = []
    for place, call in enumerate(calls):
        line = _effect(place, calls)
        placed.append((line, call if line >= call.done else replace(call, done=int(line))))
    return tuple(call for _line, call in sorted(placed, key=lambda one: one[0]))


def _effect(place: int, calls: Sequence[SystemCall]) -> float:
    """Return the line by which the call at ``place`` had taken effect, between two lines if need be."""
    call = calls[place]
    if call.begun == call.done or call.result is None:
        return call.done
    if call.name in ("close", "close_range"):
        return call.begun
    if call.name in _REMOVING and (gone := _names(call)):
        made = None
        for at in range(place - 1, -1, -1):
            if (other := calls[at]).done <= call.begun:
                break
            if _makes(other) == gone[0]:
                made = other
        if made is not None:
            return made.done - 0.5
    return call.done


def _makes(call: SystemCall) -> str | None:
    """Return the last part of the name that a call has newly made; None if it makes none."""
    is_new = call.name in _MAKING or (call.name in _OPENING and any("O_EXCL" in flag for flag in call.arguments[1:]))
    is_new = is_new or (call.name == "renameat2" and "RENAME_NOREPLACE" in call.arguments[-1])
    names = _names(call) if is_new and call.result is not None else []
    return names[-1] if names else None


def _names(call: SystemCall) -> list[str]:
    strings = [argument for argument in call.arguments if argument.startswith('"')]
    return [name_of(one).rstrip("/").rpartition("/")[2] for one in strings if not one.endswith("...")]
