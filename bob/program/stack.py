"""Stack frames of calls, as ``strace -k`` writes them below a call. They show which function of the program made the
call, and its source line.

strace (with libunwind) gives a frame the name of the nearest symbol before it. If a library keeps only exported names,
the frame of a static function thus gets the name of another function. :func:`without_wrong_names` takes such names
away."""

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from bob.program.binary import MAGIC, Binary
from bob.program.program import Program
from bob.program.strace import SystemCall

_FRAME = re.compile(r"(?P<file>[^()]*)\((?:(?P<symbol>.+)\+0x[0-9a-f]+)?\) \[0x[0-9a-f]+\](?: (?P<line>.+:\d+))?")
PLUMBING = re.compile(r"(libc|ld-linux|libpthread|libdl|linux-vdso|\[vdso\])\b")  # every program calls through these
INTERPRETERS = re.compile(r"(python3|libpython3|perl|dash|bash|sh|busybox)\b")
"""Programs whose functions say nothing about the script that they run."""
_TAIL = re.compile(r"( (const|volatile|noexcept|&&?|\[.*\]))*")  # may follow the parameters of a C++ function


def from_chosen(stack: Sequence[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the outer part of ``stack``. It begins with the innermost frame that matches one of the shell
    ``patterns``. If no frame matches, return all frames."""
    for place, frame in enumerate(stack):
        found = _FRAME.fullmatch(frame)
        names = filter(None, (found["symbol"], posixpath.basename(found["file"]))) if found else ()
        if any(fnmatchcase(name, pattern) for name in names for pattern in patterns):
            return tuple(stack[place:])
    return tuple(stack)


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a program's source. ``file`` is the name of the file, without directories, and ``function`` is the
    function that the line is in."""

    file: str
    line: int
    function: str = ""

    @property
    def words(self) -> str:
        return f"{self.file}:{self.line}"


def caller(stack: Sequence[str]) -> str:
    """Return the innermost function of ``stack`` that has a name and is not in a system library. The function comes
    with its source line, if known, and otherwise with its file. Return "" if no frame has such a function, or if an
    interpreter made the call."""
    found = _calling(stack)
    if found is None:
        return ""
    return f"{_without_parameters(found['symbol'])} in {found['line'] or posixpath.basename(found['file'])}"


def source_line(stack: Sequence[str]) -> SourceLine | None:
    """Return the source line of the frame that :func:`caller` names, or None if the line is not known."""
    found = _calling(stack)
    if found is None or not found["line"]:
        return None
    file, _, line = found["line"].rpartition(":")
    return SourceLine(file, int(line), _without_parameters(found["symbol"]))


def _calling(stack: Sequence[str]) -> re.Match[str] | None:
    for frame in stack:
        found = _FRAME.fullmatch(frame)
        if found is None:
            continue
        file = posixpath.basename(found["file"])
        if PLUMBING.match(file):
            continue
        if INTERPRETERS.match(file):
            return None
        if found["symbol"]:
            return found
    return None


def function_of(frame: str) -> tuple[str, str]:
    """Return the binary (a program or library) and the function of a frame. If the frame has no function name, return
    the text of the frame in place of the function."""
    found = _FRAME.fullmatch(frame)
    return (found["file"], found["symbol"] or frame) if found else ("", frame)


def without_line(frame: str) -> str:
    found = _FRAME.fullmatch(frame)
    return frame[: found.start("line")].rstrip() if found and found["line"] else frame


def _without_parameters(function: str) -> str:
    """Return the name of a function without its parameters: ``ns::save`` for ``ns::save(int) const`` of C++. The name
    of a Rust function, such as ``<Store<(u64, u8)> as Save>::save``, stays whole."""
    last, depth = function.rfind(")"), 0
    if not _TAIL.fullmatch(function[last + 1 :]):
        return function
    for place in range(last, 0, -1):
        depth += {")": 1, "(": -1}.get(function[place], 0)
        if not depth:
            return function[:place]
    return function


_NAMED = re.compile(r"^( > (?P<file>[^()\n]*)\().+\+0x(?P<distance>[0-9a-f]+)(\) \[0x(?P<offset>[0-9a-f]+)\])$", re.M)


def files_with_names(calls: str) -> list[str]:
    """Return the paths of the binaries whose frames in ``calls`` (strace's text) have names. System libraries and
    interpreters are left out."""
    found = dict.fromkeys(frame["file"] for frame in _NAMED.finditer(calls))
    return [path for path in found if not _is_passed_over(path)]


def without_wrong_names(calls: str, files: Mapping[str, bytes]) -> str:
    """Return ``calls`` (strace's text) without the wrong names of frames. If a frame has the name of a function that
    does not contain the frame's code, only the file and the offset remain. ``files`` has the content of the files that
    :func:`files_with_names` returns."""
    binaries = {path: Binary(data) for path, data in files.items()}
    known: dict[str, str] = {}

    def checked(frame: re.Match[str]) -> str:
        if frame[0] not in known:
            known[frame[0]] = frame[0] if _is_right(frame, binaries) else f"{frame[1]}{frame[4]}"
        return known[frame[0]]

    return _NAMED.sub(checked, calls)


def _is_right(frame: re.Match[str], binaries: Mapping[str, Binary]) -> bool:
    if _is_passed_over(frame["file"]):
        return True
    # Both numbers point to the byte after the call, maybe after the function's end. The byte before is the call's.
    offset, distance = int(frame["offset"], 16) - 1, int(frame["distance"], 16) - 1
    return distance >= 0 and frame["file"] in binaries and binaries[frame["file"]].is_in_function(offset, distance)


def _is_passed_over(path: str) -> bool:
    name = posixpath.basename(path)
    return bool(PLUMBING.match(name) or INTERPRETERS.match(name))


_PLACE = re.compile(r"(?P<file>[^()]*)\(.*\) \[0x(?P<offset>[0-9a-f]+)\]")


def located(calls: Sequence[SystemCall], program: Program, home: str) -> tuple[SystemCall, ...]:
    """Return ``calls`` with source lines added to the frames whose binaries are files of ``program`` itself. In the
    guest, these files were below the directory ``home``."""
    binaries = {file.path: Binary(file.data) for file in program.files if file.data.startswith(MAGIC)}
    if not binaries:
        return tuple(calls)
    return tuple(replace(call, stack=tuple(_with_line(one, binaries, home) for one in call.stack)) for call in calls)


def _with_line(frame: str, binaries: Mapping[str, Binary], home: str) -> str:
    found = _PLACE.fullmatch(frame)
    if found is None:
        return frame
    binary = binaries.get(found["file"].partition(f"{home}/")[2])
    # The offset points to the byte after the call. The byte before belongs to the line that makes the call.
    place = binary.line(int(found["offset"], 16) - 1) if binary else ""
    return f"{frame} {place}" if place else frame
