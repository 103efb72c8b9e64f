"""Say in words what a guest was doing. A guest that runs a workload prints each step, such as ``op 1 begin``."""

import re

from bob.workload.language import write_one
from bob.workload.operations import Workload
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
    """Return words that say what the guest was doing when it printed ``step``, as in "in operation 1 (truncate /f
    100)". Return an empty string for an unknown step."""
    if not (match := _OPERATION.fullmatch(step)):
        return _WORDS.get(step, "")
    number, when = int(match[1]), "in" if match[2] == "begin" else "after"
    if number == 0:
        return f"{when} the finish ({'; '.join(map(write_one, workload.finish.operations))})"
    is_setup = number >= FIRST_SETUP_NUMBER
    place, operations = (number - FIRST_SETUP_NUMBER, workload.setup) if is_setup else (number - 1, workload.operations)
    text = f" ({write_one(operations[place])})" if 0 <= place < len(operations) else ""
    return f"{when} operation {place + 1}{' of the initial tree' if is_setup else ''}{text}"
