"""The agent's smaller pieces, as far as they run without a guest: the packed file, frames, the block log, mounts; the
trace is read to its end, and not before, here from a pipe that stands in for the kernel's.

The agent runs on the Python of the oldest guest (3.9, bullseye's), which is not the one that runs these tests. Its
syntax is checked by the compiler, and what is known to have come later by name. ruff too checks the agent as 3.9
(pyproject.toml); a guest of debian-bullseye is the proof.
"""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

import bob.agent.inside
from bob.agent.client import agent_file
from bob.agent.inside import scratch
from bob.agent.inside.frames import PREFIX, Denial, Reply, encode, serve
from bob.agent.inside.recorded_disks import read_log
from bob.agent.inside.ring_buffer import PAGE_BYTES, Pipe, drained
from bob.agent.inside.scratch import MOST_EMPTY_READS, SectorCounts, counts
from bob.trace.log import LogReader
from bob.trace.log_format import EntryFlags
from bob.trace.log_writer import NewEntry, write_log
from wording import text_with

IMPORT = (
    "import sys; sys.path.insert(0, sys.argv[1]); import bob.agent.inside.main as m; print(m.__file__, m.__cached__)"
)
OLDEST = (3, 9)
MODULES = sorted(Path(bob.agent.inside.__path__[0]).glob("*.py"))
LATER_ARGUMENTS = {"zip": "strict", "dataclass": "slots", "field": "kw_only"}
LATER_NAMES = {"pairwise", "TypeAlias", "ParamSpec", "bit_count", "aiter", "anext", "StrEnum", "Self", "batched", "UTC"}
LATER_MODULES = {"tomllib", "wsgiref.types", "asyncio.taskgroups"}


def test_the_packed_agent_runs_on_the_standard_library_alone(tmp_path: Path) -> None:
    packed = tmp_path / "agent.pyz"
    packed.write_bytes(agent_file())
    done = subprocess.run(
        [sys.executable, "-S", "-I", "-c", IMPORT, packed], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == f"{packed}/bob/agent/inside/main.pyc"


def test_another_python_takes_the_sources(tmp_path: Path) -> None:
    packed = tmp_path / "agent.pyz"
    with zipfile.ZipFile(io.BytesIO(agent_file())) as archive, zipfile.ZipFile(packed, "w") as other:
        for name in archive.namelist():
            data = archive.read(name)
            other.writestr(name, b"\0\0\r\n" + data[4:] if name.endswith(".pyc") else data)
    done = subprocess.run(
        [sys.executable, "-S", "-I", "-c", IMPORT, packed], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == f"{packed}/bob/agent/inside/main.py"


def test_packing_twice_gives_the_same_file_names() -> None:
    with zipfile.ZipFile(io.BytesIO(agent_file())) as archive:
        names = archive.namelist()
    assert len(names) == len(set(names))
    assert "bob/agent/inside/observer.py" in names
    assert "bob/agent/inside/observer.pyc" in names


def answers(*requests: bytes) -> list[tuple[dict[str, object], bytes]]:
    """What an agent of two requests answers."""

    def greet(blob: bytes, name: str) -> Reply:
        if name == "nobody":
            raise Denial("nobody is there")
        return {"greeting": f"hello {name}"}, blob[::-1]

    replies = io.BytesIO()
    serve(io.BytesIO(b"".join(requests)), replies, {"greet": greet})
    replies.seek(0)
    found = []
    while prefix := replies.read(PREFIX.size):
        header, blob = PREFIX.unpack(prefix)
        found.append((json.loads(replies.read(header)), replies.read(blob)))
    return found


def test_requests_are_answered_in_order_and_failures_end_nothing() -> None:
    assert answers(
        encode({"do": "greet", "name": "bob"}, b"abc"),
        encode({"do": "greet", "name": "nobody"}),
        encode({"do": "greet"}),
        encode({"do": "nothing"}),
        encode({"do": "greet", "name": "bob"}),
    ) == [
        ({"ok": True, "greeting": "hello bob"}, b"cba"),
        ({"ok": False, "error": "nobody is there"}, b""),
        (
            {
                "ok": False,
                "error": "TypeError: answers.<locals>.greet() missing 1 required positional argument: 'name'",
                "broken": True,
            },
            b"",
        ),
        ({"ok": False, "error": "KeyError: 'nothing'", "broken": True}, b""),
        ({"ok": True, "greeting": "hello bob"}, b""),
    ]


def test_a_request_that_is_cut_off_is_not_answered() -> None:
    assert answers(encode({"do": "greet", "name": "bob"}, b"abc")[:-1]) == []


END = NewEntry(EntryFlags.MARK, mark="dm-log-writes-end")


def log(path: Path, *entries: NewEntry, sectorsize: int = 512) -> bytes:
    """Write a log device of these entries, and return the part of it that was written."""
    with path.open("w+b") as file:
        write_log(file, entries, sectorsize=sectorsize)
        file.seek(0, io.SEEK_END)
        file.truncate(file.tell() + 10**6)
    return path.read_bytes()[: -(10**6)]


@pytest.mark.parametrize("sectorsize", [512, 4096])
def test_a_log_is_read_up_to_its_last_entry(tmp_path: Path, sectorsize: int) -> None:
    write, fua = NewEntry(data=b"x" * 2 * sectorsize), NewEntry(EntryFlags.FUA, data=b"y" * sectorsize)
    entries = [write, NewEntry(EntryFlags.FLUSH), NewEntry(EntryFlags.DISCARD, nr_sectors=100), fua, END]
    written = log(tmp_path / "log", *entries, sectorsize=sectorsize)
    whole = read_log(str(tmp_path / "log"))
    assert len(whole) % sectorsize == 0
    assert whole.rstrip(b"\0") == written.rstrip(b"\0")
    assert [entry.flags for entry in LogReader(io.BytesIO(whole))] == [entry.flags for entry in entries]


WRITE = NewEntry(data=bytes(1024))


@pytest.mark.parametrize("entries", [[], [WRITE], [END, WRITE], [NewEntry(EntryFlags.MARK, mark="other")]])
def test_a_log_without_its_end_is_refused(tmp_path: Path, entries: list[NewEntry]) -> None:
    log(tmp_path / "log", *entries)
    with pytest.raises(Denial) as refused:
        read_log(str(tmp_path / "log"))
    assert str(refused.value) == snapshot("the log device is full: writes are missing from the log")


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(bytes(4096))
    with pytest.raises(Denial) as refused:
        read_log(str(path))
    assert text_with(str(refused.value), "dm-log-writes") == snapshot(
        "the log device does not contain a log of dm-log-writes"
    )


def later_things(source: str) -> list[str]:
    """What in ``source`` Python 3.9 does not have."""
    try:
        tree = ast.parse(source, feature_version=OLDEST)
    except SyntaxError as error:
        return [f"line {error.lineno}: {error.msg}"]
    return [f"line {line}: {what}" for line, what in _later(tree)]


def _later(node: ast.AST) -> Iterator[tuple[int, str]]:
    match node:
        case ast.Call(func=ast.Name(id=name), keywords=keywords):
            if any(keyword.arg == LATER_ARGUMENTS.get(name, "") for keyword in keywords):
                yield node.lineno, f"{name}({LATER_ARGUMENTS[name]}=)"
        case (
            ast.BinOp(op=ast.BitOr(), right=ast.Constant(value=None))
            | ast.BinOp(op=ast.BitOr(), left=ast.Constant(value=None))
        ):
            yield node.lineno, "a union with None"
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name) if name in LATER_NAMES:
            yield node.lineno, name
        case ast.Import(names=names) if any(one.name in LATER_MODULES for one in names):
            yield node.lineno, "an import"
        case ast.ImportFrom(module=str(module)) if module in LATER_MODULES:
            yield node.lineno, module
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):  # never evaluated: each module postpones them
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _later(child)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_agent_needs_nothing_later(module: Path) -> None:
    source = module.read_text()
    assert later_things(source) == []
    assert "def " not in source or "from __future__ import annotations" in source


@pytest.mark.parametrize(
    "source",
    [
        "match x:\n    case 1: pass",
        "zip(a, b, strict=True)",
        "Outcome = tuple[str | None, int]",
        "from itertools import pairwise",
        "import tomllib",
        "@dataclass(frozen=True, slots=True)\nclass A: pass",
    ],
)
def test_later_things_are_seen(source: str) -> None:
    assert later_things(source)


def test_annotations_may_be_newer() -> None:
    assert later_things("def f(a: int | None) -> str | None:\n    b: int | None = a\n    return b") == []


NO_MORE = None
"""What stands for EAGAIN: the kernel has nothing more to give."""


def page(text: bytes) -> bytes:
    """A page of the buffer that has ``text``, whose length is a multiple of 4, for events."""
    return (bytes(8) + len(text).to_bytes(8, "little") + text).ljust(PAGE_BYTES, b"\0")


def pipe(*answers: bytes | None) -> Pipe:
    """A pipe that gives these answers, one for each read, and the last one for ever."""
    left = list(answers)

    def read() -> bytes:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if answer is NO_MORE:
            raise BlockingIOError
        return answer

    return read


def texts(pages: bytes) -> bytes:
    """The texts of pages that travel, without their headers of 16 bytes."""
    found, position = b"", 0
    while position < len(pages):
        length = int.from_bytes(pages[position + 8 : position + 16], "little")
        found += pages[position + 16 : position + 16 + length]
        position += 16 + length
    return found


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch.time, "sleep", lambda _seconds: None)


@given(st.lists(st.sampled_from([b"", b"abcd", b"efghijkl"])))
def test_an_empty_read_is_no_end(answers: list[bytes]) -> None:
    """``tracing_buffers_read`` gives 0 bytes when an event came between its look for a page and that for an end."""
    read = pipe(*(page(answer) if answer else b"" for answer in answers), NO_MORE)
    assert texts(drained(scratch.patient(read, lambda: True))) == b"".join(answers)


def test_what_is_empty_for_ever_is_an_error_where_there_are_events() -> None:
    with pytest.raises(RuntimeError) as refused:
        drained(scratch.patient(pipe(page(b"abcd"), b""), lambda: True))
    assert str(refused.value) == snapshot("cannot read the kernel's trace to its end")
    answers = [b""] * (MOST_EMPTY_READS - 1)
    assert texts(drained(scratch.patient(pipe(*answers, page(b"abcd"), *answers, NO_MORE), lambda: True))) == b"abcd"


def test_what_is_empty_for_ever_is_the_end_where_all_is_read() -> None:
    """What was thrown away, as it does not pass a filter, may be left in the buffer as room that nothing is in."""
    assert texts(drained(scratch.patient(pipe(page(b"abcd"), b""), lambda: False))) == b"abcd"


def test_a_count_waits_for_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = iter(["9 0 80 0 5 0 40 0 2 0 0", "9 0 88 0 5 0 40 0 1 0 0", "9 0 88 0 6 0 48 0 0 0 0 0 0 0 0 0 0"])
    assert counts(lambda: next(fields).encode()) == SectorCounts(88, 48)
    monkeypatch.setattr(scratch, "UNDER_WAY_SECONDS", 0.01)
    with pytest.raises(RuntimeError) as refused:
        counts(lambda: b"9 0 80 0 5 0 40 0 2 0 0")
    assert text_with(str(refused.value), 2) == snapshot("2 requests of the scratch device are still under way")
