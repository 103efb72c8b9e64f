"""Put calls into the order of their effects, which may differ from the order of their returns. Between the effect of a
call and its return, the kernel may run another process. For example, process A removes a lock file, and process B waits
until the file is gone. B may create the file again before the call in A that removed it has returned."""

from collections.abc import Sequence
from dataclasses import replace

from bob.program.strace import SystemCall, name_of

_REMOVING = (
    "unlink",
    "unlinkat",
    "rmdir",
    "rename",
    "renameat",
    "renameat2",
)  # these remove their first name
_OPENING = ("open", "openat", "openat2")
_MAKING = ("mkdir", "mkdirat", "link", "linkat", "symlink", "symlinkat", "mknod", "mknodat")
"""Calls that fail if the last name among their arguments exists."""


def in_effect_order(calls: Sequence[SystemCall]) -> tuple[SystemCall, ...]:
    """Return ``calls`` in the order of their effects. The calls are given in the order of their returns. A close takes
    effect when it begins, because the kernel may reuse the closed descriptor at once. If another call creates a name
    while a call that removes the same name is still running, the removal comes first."""
    placed = []
    for place, call in enumerate(calls):
        line = _effect(place, calls)
        placed.append((line, call if line >= call.done else replace(call, done=int(line))))
    return tuple(call for _line, call in sorted(placed, key=lambda one: one[0]))


def _effect(place: int, calls: Sequence[SystemCall]) -> float:
    """Return when the call with index ``place`` had its effect, as the number of a line of strace's output. The result
    n - 0.5 means that the effect was just before line n."""
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
    """Return the last component of the name that a call created; None if it did not create a name."""
    is_new = call.name in _MAKING or (call.name in _OPENING and any("O_EXCL" in flag for flag in call.arguments[1:]))
    is_new = is_new or (call.name == "renameat2" and "RENAME_NOREPLACE" in call.arguments[-1])
    names = _names(call) if is_new and call.result is not None else []
    return names[-1] if names else None


def _names(call: SystemCall) -> list[str]:
    strings = [argument for argument in call.arguments if argument.startswith('"')]
    return [name_of(one).rstrip("/").rpartition("/")[2] for one in strings if not one.endswith("...")]
