"""The script for ``git bisect run`` in docs/compare.md, run: on a history made up, with bob's own comparison."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bob.result import PropertyResult, Verdict, to_json

from .stand_in import result

PAGE = Path(__file__).parents[2] / "docs" / "compare.md"
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

# What a probe makes of a commit: its exit code, and the verdict that it leaves in a result (or none).
GOOD, BAD, LOST, UNKNOWN, NO_BUILD, USAGE = "0 holds", "0 fails", "6 none", "3 unknown", "build", "2 none"

FAKE_BOB = """\
#!/bin/sh
# bob, but that a probe says what is written in the commit, if it has the kernel that was built of it.
case "$1" in
    compare) exec {python} -m bob "$@" ;;
    image) [ "$*" = "image rm debian-bookworm+6.16.0-$(cat commit)" ] && touch removed; exit ;;
esac
while [ $# != 0 ]; do
    case "$1" in
        --out) out=$2 ;;
        --kernel) kernel=$2 ;;
        --modules) modules=$2 ;;
    esac
    shift
done
cmp -s "$kernel" commit && cmp -s "$modules/built" commit || exit 70
read -r code verdict < commit
mkdir -p "$out"
[ "$verdict" = none ] || cp "$RESULTS/$verdict.json" "$out/result.json"
exit "$code"
"""

FAKE_MAKE = """\
#!/bin/sh
# make, but that a kernel is the commit that it was built of.
read -r what < commit
for word; do
    case "$word" in
        kernelrelease) echo "6.16.0-$(cat commit)" ;;
        olddefconfig) exit 0 ;;
        INSTALL_MOD_PATH=*) cp commit "${word#*=}/built" ;;
    esac
done
mkdir -p arch/x86/boot && cp commit arch/x86/boot/bzImage
[ "$what" != build ]
"""


def script() -> str:
    [marked] = re.findall(r"<!-- bisect -->\n```sh\n(.*?)```\n<!-- /bisect -->", PAGE.read_text(), flags=re.S)
    return str(marked)


class Tree:
    """A repository with a commit for each word in ``history``, and bob's stand-in on the path."""

    def __init__(self, folder: Path, history: list[str]) -> None:
        self.folder = folder / "tree"
        programs, self.results, self.temporary = folder / "bin", folder / "results", folder / "tmp"
        for made in (self.folder, programs, self.results, self.temporary):
            made.mkdir()
        for verdict in (Verdict.HOLDS, Verdict.FAILS, Verdict.UNKNOWN):
            self._result(verdict)
        self.environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "RESULTS": str(self.results),
            "TMPDIR": str(self.temporary),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            **{f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }
        for path, text in (
            (programs / "bob", FAKE_BOB.format(python=sys.executable)),
            (programs / "make", FAKE_MAKE),
            (self.folder / "bisect-step", script()),
        ):
            path.write_text(text)
            path.chmod(0o755)
        self.git("init", "-q")
        for place, what in enumerate(history):
            (self.folder / "commit").write_text(f"{what}\n")
            self.git("add", "commit")
            self.git("commit", "-q", "--allow-empty", "-m", f"commit {place}")

    def _result(self, verdict: Verdict) -> None:
        made = result(unknown=False)
        (column,) = made.configurations
        asked = column.properties[0]
        cell = PropertyResult(asked.name, asked.family, verdict, asked.states)
        document = to_json(made)
        document["configurations"][0]["properties"] = [
            found for found in document["configurations"][0]["properties"] if found["name"] == asked.name
        ]
        document["configurations"][0]["properties"][0] |= {"verdict": cell.verdict.value, "witness": None}
        (self.results / f"{verdict.value}.json").write_text(json.dumps(document))

    def git(self, *arguments: str, code: int | None = 0) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def step(self, reference: str = "holds") -> int:
        """The exit code of the script for the last commit."""
        return subprocess.run(
            ["./bisect-step", str(self.results / f"{reference}.json")],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            check=False,
        ).returncode


@pytest.mark.parametrize(
    ("commit", "reference", "code"),
    [
        (GOOD, "holds", 0),
        (BAD, "holds", 1),
        (BAD, "fails", 0),
        (GOOD, "fails", 1),
        (UNKNOWN, "holds", 125),
        (UNKNOWN, "unknown", 125),
        (GOOD, "unknown", 125),
        (LOST, "holds", 125),
        (NO_BUILD, "holds", 125),
        (USAGE, "holds", 128),
        (GOOD, "there is none", 128),
    ],
)
def test_a_step(tmp_path: Path, commit: str, reference: str, code: int) -> None:
    tree = Tree(tmp_path, [commit])
    assert tree.step(reference) == code
    assert list(tree.temporary.iterdir()) == []
    assert (tree.folder / "removed").exists() is (commit is not NO_BUILD), "the image of the step's kernel"


def test_a_bisection_goes_around_what_cannot_be_tested(tmp_path: Path) -> None:
    """Lost guests, unknown cells and trees that do not build are skipped; the first bad commit is found."""
    tree = Tree(tmp_path, [GOOD, LOST, GOOD, UNKNOWN, GOOD, BAD, NO_BUILD, BAD, UNKNOWN, BAD])
    tree.git("bisect", "start", "HEAD", "HEAD~9")
    said = tree.git("bisect", "run", "./bisect-step", str(tree.results / "holds.json"))
    assert tree.git("log", "-1", "--format=%s", "refs/bisect/bad").strip() == "commit 5"
    assert "is the first bad commit" in said


def test_a_bisection_for_what_was_mended(tmp_path: Path) -> None:
    tree = Tree(tmp_path, [BAD, BAD, BAD, LOST, GOOD, GOOD])
    tree.git("bisect", "start", "--term-old", "broken", "--term-new", "mended")
    tree.git("bisect", "mended", "HEAD")
    tree.git("bisect", "broken", "HEAD~5")
    tree.git("bisect", "run", "./bisect-step", str(tree.results / "fails.json"), code=None)
    skipped_or_found = tree.git("bisect", "log")
    assert "commit 4" in skipped_or_found
    assert tree.git("log", "-1", "--format=%s", "refs/bisect/mended").strip() == "commit 4"


def test_a_bisection_ends_where_every_step_would_fail(tmp_path: Path) -> None:
    tree = Tree(tmp_path, [GOOD, GOOD, USAGE, USAGE, BAD])
    tree.git("bisect", "start", "HEAD", "HEAD~4")
    said = tree.git("bisect", "run", "./bisect-step", str(tree.results / "holds.json"), code=None)
    assert "is the first bad commit" not in said
    assert "128" in said
