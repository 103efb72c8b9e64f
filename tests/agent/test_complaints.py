"""What is wrong with a state that mounts: the kernel's words, a checker's, and a tree that cannot be removed."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from bob.agent.inside import complaints
from bob.agent.inside.complaints import Complaints, remove_all, run_checker

DEVICE = re.compile(r"\b(?:loop|dm-)\d+")
ERROR = "EXT4-fs error (device dm-0): ext4_lookup:1827: inode #12: comm python3: deleted inode referenced: 15"
UNCHECKED = "EXT4-fs (dm-0): warning: mounting unchecked fs, running e2fsck is recommended"
CUT = "------------[ cut here ]------------"
WARN = "WARNING: CPU: 0 PID: 7 at fs/btrfs/block-rsv.c:437 btrfs_release_global_block_rsv+0xb1/0xc0"


def number(of: Complaints, *lines: str, read_only: bool = False, mounted: bool = True) -> int:
    return of.number(list(lines), read_only=read_only, mounted=mounted)


def test_what_the_kernel_says_has_a_number_and_its_words_travel_once() -> None:
    found = Complaints(["mounting unchecked fs"], DEVICE)
    assert [number(found), number(found, UNCHECKED), number(found, UNCHECKED, ERROR)] == [0, 0, 1]
    assert found.new == [("kernel-message", ERROR.replace("dm-0", "loop"))]
    assert number(found, "EXT4-fs mount: 224 callbacks suppressed") == 0
    found.new = []
    # Other numbers make no other complaint; other words do, and so does what came of it.
    assert number(found, ERROR.replace("#12", "#13").replace("dm-0", "loop7")) == 1
    assert number(found, "EXT4-fs error (device dm-0): bad block bitmap checksum") == 2
    assert number(found, ERROR, read_only=True) == 3
    assert number(found, read_only=True) == 4
    assert [kind for kind, _words in found.new] == ["kernel-message", "read-only", "read-only"]


def test_of_a_state_that_is_refused_only_a_warning_of_the_kernels_code_is_told() -> None:
    found = Complaints([], DEVICE)
    assert number(found, "EXT4-fs (dm-0): bad geometry", mounted=False) == 0
    assert number(found, CUT, WARN, mounted=False) == 1
    assert found.new == [("kernel-message", WARN)]


def test_what_is_warned_of_once_is_warned_of_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complaints, "CLEAR_WARN_ONCE", str(tmp_path / "once"))
    found = Complaints([], DEVICE)
    number(found, ERROR)
    assert not (tmp_path / "once").exists()
    number(found, CUT, WARN)
    assert (tmp_path / "once").read_text() == "1"


def test_a_checker_is_heard(tmp_path: Path) -> None:
    script = "echo; echo checking $0; echo bad >&2; exit 4"
    assert run_checker(["sh", "-c", script, "DEVICE"], "/dev/dm-0") == (4, "checking the device; bad")
    assert run_checker(["true", "DEVICE"], "/dev/dm-0") == (0, "")
    assert run_checker(["sh", "-c", "kill -9 $$", "DEVICE"], "/dev/dm-0") == (-9, "")


def test_all_is_removed_but_what_the_file_system_keeps(tmp_path: Path) -> None:
    for path in ("lost+found/x", "d/e/f", "d/lost+found/y", ".bob-clock", "a"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "kept").touch()
    (tmp_path / "d/s").symlink_to(outside)
    os.mkfifo(tmp_path / "d/p")
    assert remove_all(str(tmp_path)) is None
    assert [path.name for path in tmp_path.iterdir()] == ["lost+found"]
    assert (tmp_path / "lost+found/x").exists()
    assert (outside / "kept").exists()


@pytest.mark.parametrize(("call", "path"), [("unlink", "/d/f"), ("rmdir", "/d"), ("listdir", "/d")])
def test_what_cannot_be_removed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, path: str) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/f").touch()
    real = getattr(os, call)

    def fail(which: str, *arguments: Any) -> Any:
        if which == str(tmp_path) + path:
            raise OSError(117, "Structure needs cleaning")
        return real(which, *arguments)

    monkeypatch.setattr(complaints.os, call, fail)
    assert remove_all(str(tmp_path)) == f"{path}: Structure needs cleaning"


def test_a_tree_without_an_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complaints.os, "listdir", lambda _path: ["d"])
    assert "directories without an end" in (remove_all(str(tmp_path)) or "")


def test_what_the_kernel_says_of_a_slow_guest_is_no_finding() -> None:
    """Seen in a probe: it stood below the table as if ext4 had said it."""
    found = Complaints([], DEVICE)
    slow = ["hrtimer: interrupt took 11853084 ns", "clocksource: timekeeping watchdog on CPU0: wd-tsc-wd excessive"]
    assert found.number(slow, read_only=False, mounted=True) == 0
    assert found.number([*slow, "EXT4-fs error (device loop): bad"], read_only=False, mounted=True) == 1
    assert found.new == [("kernel-message", "EXT4-fs error (device loop): bad")]
