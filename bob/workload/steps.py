"""The steps of a recording, as the guest narrates them, in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bob.workload.language import write_one
from bob.workload.operations import Operation, Workload
from bob.workload.shades import FIRST_SETUP_NUMBER

_OPERATION = re.compile(r"op (\d+) (begin|end)")
_WORDS = {
    "mkfs": "in mkfs",
    "mount": "while it mounted the file system",
    "start": "before the first operation",
    "finish": "after the last operation",
    "end": "after the finish",
    "sync": "in the sync after the initial tree was made",
    "unmount": "while it unmounted the file system",
}


def place_of(step: str, workload: Workload) -> str:
    """Return the place of ``step`` in the recording of ``workload``, as in "in operation 1 (truncate /f 100)". It is
    empty for a step that is not known."""
    if match := _OPERATION.fullmatch(step):
        number, when = int(match[1]), "in" if match[2] == "begin" else "after"
        return f"{when} {_named(number, workload)}"
    return _WORDS.get(step, "")


def _named(number: int, workload: Workload) -> str:
    """The operation with the ``number`` under which the guest performs it; 0 is one of the finish."""
    if number == 0:
        return f"the finish ({'; '.join(map(write_one, workload.finish.operations))})"
    if number >= FIRST_SETUP_NUMBER:
        place = number - FIRST_SETUP_NUMBER
        return f"operation {place + 1} of the initial tree{_text(workload.setup, place)}"
    return f"operation {number}{_text(workload.operations, number - 1)}"


def _text(operations: Sequence[Operation], place: int) -> str:
    return f" ({write_one(operations[place])})" if 0 <= place < len(operations) else ""
