"""Parse the output of ``strace -f -y -ttt -xx``, where all strings and paths are hexadecimal escapes::

1234 1700000000.000001 write(1<\\x70...>, "\\x61\\x0a", 2) = 2
1234 1700000000.000002 fsync(3<\\x2f...> <unfinished ...>
1235 1700000000.000003 +++ exited with 0 +++
1234 1700000000.000004 <... fsync resumed>) = 0
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bob.errors import MalformedError, RecordingError

FORKS = ("clone", "clone3", "fork", "vfork")  # these create a process or a thread
EXECUTES = ("execve", "execveat")  # these replace the program of a process
WRITES = ("write", "writev", "pwrite64", "pwritev", "pwritev2")
READS = ("read", "readv", "preadv2")  # these may advance the offset; strace writes their arguments as numbers
PASSING = (*READS, "close", "close_range")  # these change nothing, but show the file of a descriptor, and the offset

_LINE = re.compile(r"(?P<pid>\d+)\s+(?P<seconds>\d+\.\d+) (?P<rest>.*)")
_WHOLE = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\)\s+= (?P<result>.*)")
_BEGUN = re.compile(r"(?P<name>\w+)\((?P<arguments>.*?)(?:, )? ?<unfinished \.\.\.>")
_MOVED = re.compile(r"(?P<name>\w+)\((?P<arguments>.*?)(?:, )? ?<pid changed to (?P<pid>\d+) \.\.\.>")
"""A line about a thread that has executed a program, and that goes on as the first thread of its process."""
_RESUMED = re.compile(r"<\.\.\. (?P<name>\w+) resumed>(?P<more>.*)\)\s+= (?P<result>.*)")
_FD = re.compile(r"(?P<fd>-?\w+)<(?P<path>(?:\\x[0-9a-f]{2})*)>(?:\(deleted\))?")
_MARKS = re.compile(r"[(\[{)\]},]")
_FRAME = " > "
_BASE = re.compile(r'iov_base="((?:\\x[0-9a-f]{2})*)"')


@dataclass(frozen=True, slots=True)
class SystemCall:
    """A system call that has returned. ``arguments`` are as strace writes them. ``result`` is the number that the call
    returned (None: the call failed, or does not return a value). If the call returned a descriptor, ``opened`` is the
    path of its file. ``seconds`` is the time by the guest's clock when the call began. ``stack`` has the frames,
    innermost first. The call began at line ``begun`` of strace's output, and had taken effect by line ``done``; other
    calls may have returned between these lines."""

    pid: int
    seconds: float
    name: str
    arguments: tuple[str, ...]
    result: int | None
    opened: str = ""
    stack: tuple[str, ...] = ()
    begun: int = 0
    done: int = 0

    def path(self, place: int) -> str:
        """Return the path of the open file whose descriptor is the argument at index ``place``. For a file without a
        path, return the name that strace gives, such as ``pipe:[123]``. Return "" if the argument is not a
        descriptor."""
        found = _FD.fullmatch(self.arguments[place]) if place < len(self.arguments) else None
        return "" if found is None else unescaped(found["path"]).decode(errors="surrogateescape")

    @property
    def written(self) -> bytes:
        """The bytes that the call wrote. Raises RecordingError if strace has cut the bytes off."""
        if self.result is None:
            return b""
        if any(argument.endswith("...") for argument in self.arguments):
            raise RecordingError(
                f"process {self.pid} wrote more in one call than strace recorded", hint="print in smaller pieces"
            )
        if self.name in ("writev", "pwritev", "pwritev2"):
            data = b"".join(unescaped(one) for one in _BASE.findall(", ".join(self.arguments[1:])))
        else:
            data = unescaped(self.arguments[1].strip('"'))
        return data[: self.result]


def parse(text: str) -> tuple[SystemCall, ...]:
    """Return the calls in ``text``, in the order of their returns. Raises MalformedError if the text is not from
    strace."""
    return tuple(_calls(text))


def _calls(text: str) -> Iterator[SystemCall]:
    """Yield each call with the frames below its line. Frames below the line of a signal belong to no call, and are
    dropped."""
    last: SystemCall | None = None
    frames: list[str] = []
    for found in _lines(text):
        if isinstance(found, str):
            frames.append(found)
            continue
        if last is not None:
            yield replace(last, stack=tuple(frames)) if frames else last
        last, frames = found, []
    if last is not None:
        yield replace(last, stack=tuple(frames)) if frames else last


def _lines(text: str) -> Iterator[SystemCall | str | None]:
    begun: dict[int, tuple[int, float, str, str]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith(_FRAME):
            yield line.removeprefix(_FRAME)
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            if line.startswith("["):
                yield None
                continue
            raise MalformedError(f"line {number} of the calls is not from strace: {line[:80]!r}")
        pid, seconds, rest = int(found["pid"]), float(found["seconds"]), found["rest"]
        if rest.startswith(("---", "+++", "[ ")):  # a signal, the end of a process, a change of its mode
            yield None
            continue
        if resumed := _RESUMED.fullmatch(rest):
            first, since, name, arguments = begun.pop(pid, (number, seconds, resumed["name"], ""))
            whole = ", ".join(part for part in (arguments, resumed["more"].lstrip(", ")) if part)
            yield SystemCall(pid, since, name, _split(whole), *_result(resumed["result"]), (), first, number)
        elif rest.endswith(" ...>") and (moved := _MOVED.fullmatch(rest)):  # cheap test first: data may be long
            begun[int(moved["pid"])] = number, seconds, moved["name"], moved["arguments"]
            yield None
        elif rest.endswith(" ...>") and (unfinished := _BEGUN.fullmatch(rest)):
            begun[pid] = number, seconds, unfinished["name"], unfinished["arguments"]
            yield None
        elif complete := _WHOLE.fullmatch(rest):
            split = _split(complete["arguments"])
            yield SystemCall(pid, seconds, complete["name"], split, *_result(complete["result"]), (), number, number)
        else:
            raise MalformedError(f"line {number} of the calls is not from strace: {rest[:80]!r}")


def _split(arguments: str) -> tuple[str, ...]:
    """Return the arguments of a call one by one. Strings and paths are escaped, so they never contain a bracket or a
    comma."""
    found, depth, start = [], 0, 0
    for mark in _MARKS.finditer(arguments):
        if mark[0] in "([{":
            depth += 1
        elif mark[0] in ")]}":
            depth -= 1
        elif not depth:
            found.append(arguments[start : mark.start()].strip())
            start = mark.end()
    rest = arguments[start:].strip()
    return (*found, rest) if rest else tuple(found)


def _result(text: str) -> tuple[int | None, str]:
    if found := _FD.match(text):
        return int(found["fd"]), unescaped(found["path"]).decode(errors="surrogateescape")
    number = re.match(r"0x[0-9a-f]+|-?\d+", text)
    value = -1 if number is None else int(number[0], 0 if number[0].startswith("0x") else 10)
    return (value if value >= 0 else None), ""


def name_of(argument: str) -> str:
    """Return the name of a file, or the target of a link, that ``argument`` encodes. Bytes that are not UTF-8 become
    surrogates."""
    return unescaped(argument.strip('"')).decode(errors="surrogateescape")


def unescaped(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))
