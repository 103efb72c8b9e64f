"""The checker of a program without one, held against what the kernel showed at each moment of its run."""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.observe.observation import Node
from bob.program.program import ProgramFile
from bob.protocol.moments import MOST_ENTRIES, RunMoment, moment_files, moments
from tests.protocol.test_protocol import again, copies_onto_itself, performed, steps


def put(root: Path, tree: dict[str, Node]) -> None:
    """Make the tree, with its hard links."""
    first: dict[int, Path] = {}
    for path, node in sorted(tree.items()):
        target = root / path.lstrip("/")
        if node.kind == "directory":
            target.mkdir(exist_ok=True)
        elif node.inode in first:
            os.link(first[node.inode], target)
        else:
            target.write_bytes(node.content)
            first[node.inode] = target


def alike(tree: dict[str, Node]) -> dict[str, tuple[str, bytes, frozenset[str]]]:
    """What the checker compares."""
    files = {path: node for path, node in tree.items() if node.kind == "file"}
    same = {path: frozenset(p for p in files if files[p].inode == node.inode) for path, node in files.items()}
    return {path: (node.kind, node.content, same.get(path, frozenset())) for path, node in tree.items() if path != "/"}


def checked(files: tuple[ProgramFile, ...], root: Path, told: bytes) -> int:
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            (Path(folder) / file.path).write_bytes(file.data)
        (Path(folder) / "told").write_bytes(told)
        script, before = f"{folder}/check", sys.argv
        sys.argv = [script, str(root), f"{folder}/told"]
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as ended:
            return int(str(ended.code))
        finally:
            sys.argv = before
    raise AssertionError("it did not end")


@settings(deadline=None, max_examples=60)
@given(st.lists(steps, max_size=8), st.data())
def test_a_tree_is_accepted_where_it_is_as_at_a_moment_not_before_the_output(
    script: list[tuple[object, ...]], data: st.DataObject
) -> None:
    done = performed(script)
    assume(done.calls)
    tellings = dict.fromkeys(sorted(data.draw(st.sets(st.sampled_from(range(len(done.calls)))))), b"x\n")
    replay = again(done, tellings)
    assume(not copies_onto_itself(replay.effects))
    files = moment_files(moments(replay))
    told_at = [sum(2 for call in tellings if call < number) for number in range(len(done.trees))]
    at = [0, *(call + 1 for call in tellings), len(done.trees) - 1]
    place = data.draw(st.sampled_from(range(len(done.trees))))
    told = data.draw(st.sampled_from(sorted({0, *told_at})))
    like = [number for number in at if alike(done.trees[number]) == alike(done.trees[place])]
    code = 14 if not like else 0 if any(told_at[number] >= told for number in like) else 10
    with tempfile.TemporaryDirectory() as root:
        put(Path(root), done.trees[place])
        (Path(root) / "lost+found").mkdir()
        assert checked(files, Path(root), b"." * told) == code


FILE = ("file", 4, "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "/f")  # sha256 of "test"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({}, snapshot("/f is missing (else as at the end)\n")),
        ({"f": b"te"}, snapshot("/f has 2 of 4 bytes (else as at the end)\n")),
        ({"f": bytes(4)}, snapshot("/f has zeros (else as at the end)\n")),
        ({"f": b"abcd"}, snapshot("/f has other contents (else as at the end)\n")),
        ({"f": b"test", "g": b"1"}, snapshot("/g is there with 1 bytes (else as at the end)\n")),
        (
            {"1": b"", "2": b"", "3": b"", "4": b"", "f": b"test"},
            snapshot("/1 is there with 0 bytes; /2 is there with 0 bytes; /3 is there with 0 bytes; and 1 more (else as at the end)\n"),
        ),
    ],
)  # fmt: skip
def test_it_says_what_differs_from_the_nearest_moment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], made: dict[str, bytes], said: str
) -> None:
    for name, content in made.items():
        (tmp_path / name).write_bytes(content)
    more = {f"/{number}": FILE for number in range(20)}
    files = moment_files([RunMoment("at the start", 0, more), RunMoment("at the end", 0, {"/f": FILE})])
    assert checked(files, tmp_path, b"") == 14
    assert capsys.readouterr().out == said


def test_too_many_names_are_refused() -> None:
    tree = dict.fromkeys(map(str, range(1000)), FILE)
    with pytest.raises(ValueError, match="too many files"):
        moment_files(RunMoment(str(number), number, tree) for number in range(MOST_ENTRIES // 1000 + 1))
