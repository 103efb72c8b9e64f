"""What a script leaves mounted is taken away; here, in a mount namespace of the host's, and without disks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROLOGUE = """
import json, os, subprocess, sys
from bob.agent.inside import let_go
from bob.agent.inside.frames import Denial

root, elsewhere = sys.argv[1], sys.argv[2]
let_go.ROOT, let_go.ROOTS = root, (root,)

def is_busy():
    raise OSError(16, "busy")

let_go.unmount = is_busy
run = lambda words: subprocess.run(words, shell=True, check=True, cwd="/")
clean = let_go.mounts()
run(f"mount -t tmpfs bob {root}")
before = let_go.mounts()
"""
EPILOGUE = """
try:
    let_go.unmount_after_scripts(before)
    said = [None, None]
except Denial as refused:
    said = [str(refused), refused.hint]
print(json.dumps([said, let_go.mounts() == clean]))
"""


def left(script: str, tmp_path: Path) -> tuple[list[str | None], bool]:
    """What is said after a ``script``, in Python, and whether all mounts are as they were."""
    for name in ("root", "else where"):
        (tmp_path / name).mkdir()
    words = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*words, "mount", "-t", "tmpfs", "x", tmp_path], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody have a mount namespace of his own")
    words += [sys.executable, "-c", PROLOGUE + script + EPILOGUE, str(tmp_path / "root"), str(tmp_path / "else where")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said, is_clean = json.loads(done.stdout)
    return said, is_clean


@pytest.mark.parametrize(
    "script",
    [
        "",
        "run(f'mkdir -p {root}/m/n; mount -t tmpfs a {root}/m; mkdir {root}/m/n; mount -t tmpfs b {root}/m/n')",
        "run(f'mount --bind {root} \"{elsewhere}\"')",
        "run(f'mount --bind {root} {root}; mount -t tmpfs c {root}; mkdir {root}/m; mount -t tmpfs d {root}/m')",
        'run(f\'mount -t tmpfs e "{elsewhere}"; mount --bind "{elsewhere}" {root}\')',
        'run(f\'mount --bind {root} "{elsewhere}"; umount {root}; mount --move "{elsewhere}" {root}\')',
        "run(f'mkdir {root}/m; mount -t tmpfs f {root}/m; mount --bind {root} {root}; mount -t tmpfs g {root}')",
    ],
    ids=["nothing", "in it", "elsewhere", "over it", "something else over it", "moved back", "in it, then over it"],
)
def test_what_is_mounted_is_taken_away(script: str, tmp_path: Path) -> None:
    assert left(script, tmp_path) == ([None, None], True)


def test_a_directory_that_a_script_has_unmounted_is_told(tmp_path: Path) -> None:
    (said, hint), is_clean = left("run(f'umount {root}')", tmp_path)
    assert said is not None and "unmounted" in said
    assert hint
    assert is_clean


def test_what_keeps_it_busy_is_told(tmp_path: Path) -> None:
    (said, hint), _is_clean = left("kept = open(root + '/kept', 'w')", tmp_path)
    assert said is not None and "busy" in said
    assert hint
