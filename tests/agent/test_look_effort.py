"""A second look at a tree: it takes little Python, and finds what a first look would find. In an emulated guest Python
takes as long as all else of a look, and a look follows each mount."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bob.agent.inside.look import Look, describe

FEW = 150  # instructions for each name; 217 without what the last look has seen, 115 with it (Python 3.11)
NAMES = ("a", "b", "d", "d/a", "d/e", "d/e/b", ".bob-x", "lost+found")
EARLY = 1_600_000_000 * 10**9


def instructions(looking: Look) -> int:
    """How many instructions of Python's a look executes."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        looking.tree()
    finally:
        sys.settrace(before)
    return count


def test_what_is_as_before_takes_few_instructions(tmp_path: Path) -> None:
    for folder in ("d", "d/e", "f"):
        (tmp_path / folder).mkdir()
    for number in range(12):
        (tmp_path / ("d", "d/e", "f")[number % 3] / f"f{number}").write_bytes(b"%d" % number * 3000 * (number % 4))
    looking = Look(str(tmp_path))
    looking.tree()
    assert instructions(looking) <= FEW * 15


def change(root: Path, how: str, name: str, number: int) -> None:
    """Change something, if that is possible there, and set all times back, as states of one disk have them."""
    path = root / name
    with suppress(OSError):
        match how:
            case "write":
                path.write_bytes(b"%d" % number * 2000)
            case "cut":
                path.write_bytes(b"")
            case "mkdir":
                path.mkdir()
            case "remove":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            case "link":
                path.hardlink_to(root / NAMES[number])
            case "symlink":
                path.symlink_to(NAMES[number])
            case "rename":
                path.rename(root / NAMES[number])
            case "mode":
                (path.parent if path.is_symlink() else path).chmod(0o700 + number)
            case "attribute":
                os.setxattr(path, "user.a", b"%d" % number)
            case "no attribute":
                os.removexattr(path, "user.a")
    for one in (root, *root.rglob("*")):
        os.utime(one, ns=(EARLY, EARLY), follow_symlinks=False)


HOW = ("write", "cut", "mkdir", "remove", "link", "symlink", "rename", "mode", "attribute", "no attribute")
CHANGES = st.lists(st.tuples(st.sampled_from(HOW), st.sampled_from(NAMES), st.integers(0, 7)), max_size=30)


def found(looking: Look, chunks: list[bytes]) -> dict[str, dict[str, Any]]:
    """What a look finds, with contents in place of numbers; ``chunks`` grows."""
    tree = describe(looking.tree())
    chunks += looking.new_chunks[len(chunks) :]
    for said in tree.values():
        said["content"] = b"".join(chunks[number] for number in said["content"])
        said["xattrs"] = {name: chunks[number] for name, number in said.get("xattrs", {}).items()}
    return tree


@given(CHANGES)
@settings(max_examples=60, deadline=None)
def test_a_look_finds_what_a_first_look_finds(changes: list[tuple[str, str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, chunks = Path(folder), list[bytes]()
        looking = Look(folder)
        for how, name, number in [("mkdir", "d", 0), ("mkdir", "d/e", 0), ("write", "a", 1), *changes]:
            change(root, how, name, number)
            assert found(looking, chunks) == found(Look(folder), [])
