"""The source lines behind the frames of calls, where a program's own binary has them.

strace tells of a frame the file, the symbol, and the offset in the file of what runs next there. Of a caller that is
the instruction after its call, so the byte before it belongs to the line that called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bob.program.binary import MAGIC, Binary
from bob.program.program import Program
from bob.program.strace import SystemCall

_PLACE = re.compile(r"(?P<file>[^()]*)\(.*\) \[0x(?P<offset>[0-9a-f]+)\]")


def located(calls: Sequence[SystemCall], program: Program, home: str) -> tuple[SystemCall, ...]:
    """The ``calls``, with the source line behind each frame that is in a binary of the ``program``, whose files were
    below ``home`` (a path of the guest) as it ran. A binary without line numbers changes nothing."""
    binaries = {file.path: Binary(file.data) for file in program.files if file.data.startswith(MAGIC)}
    if not binaries:
        return tuple(calls)
    return tuple(replace(call, stack=tuple(_with_line(one, binaries, home) for one in call.stack)) for call in calls)


def _with_line(frame: str, binaries: Mapping[str, Binary], home: str) -> str:
    found = _PLACE.fullmatch(frame)
    if found is None:
        return frame
    binary = binaries.get(found["file"].partition(f"{home}/")[2])
    place = binary.line(int(found["offset"], 16) - 1) if binary else ""
    return f"{frame} {place}" if place else frame
