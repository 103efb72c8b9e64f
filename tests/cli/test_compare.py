"""``bob compare``: its exit codes, its files, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from inline_snapshot import snapshot

from bob.answer.document import to_json
from bob.answer.result import Result
from bob.claim.verdict import Verdict
from bob.errors import UsageError
from bob.progress import Progress
from wording import line_with, text_with

from .stand_in import Bob, Work, result
from .test_results import put


def put_with(folder: str, **verdicts: Verdict) -> None:
    """A run in ``folder`` with these verdicts (``append_any=Verdict.HOLDS``), else as the stand-in has them."""
    put(Path(folder))
    made = result(unknown=False)
    (column,) = made.subjects
    cells = tuple(
        replace(cell, verdict=verdicts.get(cell.name.replace("-", "_"), cell.verdict)) for cell in column.answers
    )
    changed = replace(made, subjects=(replace(column, answers=cells),))
    (Path(folder) / "result.json").write_text(json.dumps(to_json(changed)))


HOLDS, FAILS, UNKNOWN, SKIPPED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNKNOWN, Verdict.SKIPPED


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ({}, {}, 0),
        ({}, {"overwrite_any": FAILS}, 1),
        ({}, {"append_any": HOLDS}, 1),
        ({}, {"append_any": UNKNOWN}, 3),
        ({"append_any": UNKNOWN}, {"append_any": UNKNOWN}, 3),
        ({}, {"append_any": SKIPPED}, 3),
        ({"append_any": SKIPPED}, {"append_any": SKIPPED}, 0),
        ({}, {"append_any": UNKNOWN, "overwrite_any": FAILS}, 1),
    ],
)
def test_exit_codes(bob: Bob, old: dict[str, Verdict], new: dict[str, Verdict], code: int) -> None:
    put_with("a", **old)
    put_with("b", **new)
    assert bob("compare", "a", "b").code == code
    assert bob("compare", "a/result.json", "b").code == code
    assert bob("compare", "b", "a", "--json", "-").code == code
    assert bob("compare", "b", "a", "--markdown", "-").code == code


def test_two_configurations_of_other_names(bob: Bob) -> None:
    put_with("a")
    put_with("b", overwrite_any=FAILS)
    document = json.loads(Path("b/result.json").read_text())
    document["subjects"][0]["name"] = "ext4 -O quota data=journal"
    Path("b/result.json").write_text(json.dumps(document))
    refused = bob("compare", "a", "b")
    assert refused.code == 2 and "with --as 'ext4-ordered=ext4 -O quota data=journal'" in refused.err
    pair = "ext4-ordered=ext4 -O quota data=journal"
    assert bob("compare", "--as", pair, "a", "b").code == 1
    assert bob("compare", "--as", "ext4-ordered=ext4-ordered", "a", "a").code == 0
    for wrong in ("ext4-ordered", "ext4-order=ext4 -O quota data=journal", "="):
        assert bob("compare", "--as", wrong, "a", "b").code == 2
    assert bob("compare", "--as", pair, "a", "b", "--html", "page.html").code == 1
    assert "ext4-ordered → ext4 -O quota data=journal" in Path("page.html").read_text()
    assert bob("compare", "--as", pair, "a", "b", "--html", "-", "--json", "-").code == 2


def test_strict(bob: Bob) -> None:
    put(Path("a"))  # has a cell more
    put_with("b")
    assert bob("compare", "a", "b").code == 0
    assert bob("compare", "a", "b", "--strict").code == 1


def test_the_published_table(bob: Bob) -> None:
    put_with("run")
    ended = bob("compare", "osdi14", "run")
    assert ended.code == 1
    assert "  -× overwrite-any, ext4-ordered\n" in ended.out
    assert line_with(ended.out, "ext2", "ext2-sync") == snapshot(
        "not compared, only in A: ext2, ext2-sync, ext3-writeback, ext3-ordered,"
    )
    assert line_with(ended.out, 2, 1, 11) == snapshot(
        "2 cells compared: 1 no longer fails, 1 the same; not compared: 11 only in A"
    )
    back = bob("compare", "run", "osdi14")
    assert back.code == 1
    assert "  +× overwrite-any, ext4-ordered\n" in back.out
    assert bob("compare", "osdi14", "osdi14").code == 0


def test_files(bob: Bob) -> None:
    put_with("run")
    ended = bob("compare", "osdi14", "run", "--json", "c.json", "--markdown", "c.md")
    assert ended.out.startswith("A  osdi14  ")
    document = json.loads(Path("c.json").read_text())
    assert (document["schema"], document["differs"]) == ("bob.comparison/1", True)
    assert text_with(Path("c.md").read_text().splitlines()[0], 1) == snapshot(
        "# Table 1 of 2014 and Linux 6.1.0-31-amd64, compared"
    )
    assert "`bob replay run/witnesses/append-any.json`" not in Path("c.md").read_text()  # it does not differ


def test_stdout_is_for_one_thing(bob: Bob) -> None:
    put_with("a")
    assert json.loads(bob("compare", "a", "a", "--json", "-").out)["differs"] is False
    assert bob("compare", "a", "a", "--markdown", "-").out.splitlines()[0] == snapshot("# a and a, compared")
    ended = bob("compare", "a", "a", "--json", "-", "--markdown", "-")
    assert (ended.code, ended.out) == (2, "")


def test_a_page_that_cannot_be_written(bob: Bob) -> None:
    put_with("a")
    Path("folder").mkdir()
    ended = bob("compare", "a", "a", "--markdown", "folder")
    assert ended.code == 2
    assert re.fullmatch(r"bob: --markdown: folder is a directory\nhint: .*\n", ended.err)


def test_nothing_in_common(bob: Bob) -> None:
    put(Path("a"), "ext4-ordered")
    put(Path("b"), "btrfs")
    ended = bob("compare", "a", "b")
    assert (ended.code, ended.out) == (2, "")
    assert text_with(ended.err, "ext4-ordered", "--as", "ext4-ordered=btrfs") == snapshot("""\
bob: a and b share no cell
hint: A has ext4-ordered; B has btrfs; compare two of them with --as ext4-ordered=btrfs
""")


def test_other_properties(bob: Bob) -> None:
    made = result()
    (column,) = made.subjects
    for name, cells in (("a", column.answers[:1]), ("b", column.answers[1:])):
        changed = replace(made, subjects=(replace(column, answers=cells),))
        Path(f"{name}.json").write_text(json.dumps(to_json(changed)))
    ended = bob("compare", "a.json", "b.json")
    assert ended.code == 2
    assert ended.err == snapshot("""\
bob: a.json and b.json share no cell
hint: they are about different properties
""")


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (
            None,
            9,
            snapshot("""\
bob: b.json does not exist
hint: name a run directory, a result that --json wrote, osdi14 or explode
"""),
        ),
        (
            "{",
            8,
            snapshot("""\
bob: b.json is not a result: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)
hint: was it truncated?
"""),
        ),
        (
            '{"schema": "bob.comparison/1"}',
            8,
            snapshot("""\
bob: b.json: schema 'bob.comparison/1' is not 'bob.result/2'
hint: is it a result document?
"""),
        ),
    ],
)
def test_what_is_no_result(bob: Bob, content: str | None, code: int, message: str) -> None:
    if content is not None:
        Path("b.json").write_text(content)
    put_with("a")
    for arguments in (("a", "b.json"), ("b.json", "a"), ("osdi14", "b.json")):
        ended = bob("compare", *arguments)
        assert (ended.code, ended.out) == (code, "")
        assert ended.err == message


def test_a_run_without_a_result(bob: Bob) -> None:
    Path("stopped").mkdir()
    ended = bob("compare", "osdi14", "stopped")
    assert (ended.code, ended.out) == (9, "")
    assert ended.err == snapshot("""\
bob: stopped lacks a result.json
hint: name a run directory, or a result that --json wrote
""")
    Path("stopped/run.json").write_text("{}")
    assert bob("compare", "osdi14", "stopped").err == snapshot("""\
bob: stopped lacks a result.json
hint: was it stopped? bob judge stopped judges what is finished
""")


def test_a_configuration_that_is_there_twice(bob: Bob) -> None:
    made = result()
    twice = replace(made, subjects=made.subjects * 2)
    Path("twice.json").write_text(json.dumps(to_json(twice)))
    ended = bob("compare", "twice.json", "osdi14")
    assert (ended.code, ended.out) == (8, "")
    assert text_with(ended.err, "twice.json", "ext4-ordered") == snapshot("""\
bob: twice.json: the result has 'ext4-ordered' twice
hint: keep only one of them
""")


def test_a_comparison_waits_for_no_pandas() -> None:
    """It serves in scripts that compare again and again."""
    import subprocess
    import sys

    script = "import sys, bob.cli.compare; sys.exit(bool({'pandas', 'libvirt', 'jinja2'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


# The script for ``git bisect run`` in docs/results.md, run: on a history made up, with bob's own comparison

PAGE = Path(__file__).parents[2] / "docs" / "results.md"
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
        --kernel-tree) tree=$2 ;;
    esac
    shift
done
cmp -s "$tree/arch/x86/boot/bzImage" commit || exit 70
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
        (column,) = made.subjects
        cell = replace(column.answers[0], verdict=verdict, ways=())
        document = to_json(replace(made, subjects=(replace(column, answers=(cell,)),)))
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


# Several images: a run on each, the tables, and what changed between them

BOTH = ("--image", "debian-bookworm", "--image", "debian-trixie")


class Kernels(Work):
    """Another kernel, on which append-any holds."""

    def probe(self, request: Any, out: Path | None, progress: Progress) -> tuple[Result, Path]:
        self.result = of_kernel(request.image)
        return super().probe(request, out, progress)


def of_kernel(image: str) -> Result:
    made = result(unknown=False)
    if image == "debian-bookworm":
        return made
    column = made.subjects[0]
    cells = tuple(replace(cell, verdict=Verdict.HOLDS, ways=()) for cell in column.answers)
    environment = replace(made.environment, kernel="6.12.1-amd64", image=f"{image} (0123456789abcdef)")
    return replace(made, environment=environment, subjects=(replace(column, answers=cells),))


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch, work: Work) -> Work:
    import bob.run.prober
    import bob.store.run_directory

    kernels = Kernels()
    monkeypatch.setattr(bob.run.prober, "probe", kernels.probe)
    monkeypatch.setattr(bob.store.run_directory, "new_identity", lambda: "new")
    monkeypatch.setattr("bob.image.ensure", lambda name, _step: name)
    monkeypatch.setattr("bob.image.check_kernel", lambda _image: None)
    monkeypatch.setattr("bob.image.check_subject", lambda *_: None)
    return kernels


def test_a_run_on_each_and_what_changed(bob: Bob, work: Work) -> None:
    ended = bob("probe", "--fs", "ext4", *BOTH, "--out", "kernels", "--quiet")

    assert (ended.code, ended.err) == (0, "")
    assert [(request.image, out) for request, out in work.asked] == [
        ("debian-bookworm", Path("kernels/debian-bookworm")),
        ("debian-trixie", Path("kernels/debian-trixie")),
    ]
    lines = ended.out.splitlines()
    assert any("append-any" in line and "×" in line and "·" in line for line in lines), "side by side"
    assert "6.12.1-amd64: bob show kernels/debian-trixie" in lines
    assert any("no longer fails" in line for line in lines), "what changed"


def test_json_is_an_array(bob: Bob, work: Work) -> None:
    ended = bob("probe", "--fs", "ext4", *BOTH, "--json", "-", "--quiet")

    assert [one["environment"]["kernel"] for one in json.loads(ended.out)] == ["6.1.0-31-amd64", "6.12.1-amd64"]
    assert work.asked[0][1] == Path("bob-runs/new/debian-bookworm")


def test_one_kernel_without_the_file_system_stops_all(bob: Bob, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(image: str, modules: tuple[str, ...], _packages: tuple[str, ...]) -> None:
        if image == "debian-trixie":
            raise UsageError(
                f"the kernel of {image} lacks the module {modules[0]} (CONFIG_EXT4_FS)", hint="another one"
            )

    monkeypatch.setattr("bob.image.check_subject", check)
    ended = bob("probe", "--fs", "ext4", *BOTH)

    assert ended.code == 2 and "CONFIG_EXT4_FS" in ended.err
    assert work.asked == []


def test_the_same_image_twice_is_one(bob: Bob, work: Work) -> None:
    bob("probe", "--fs", "ext4", "--image", "debian-trixie", "--image", "debian-trixie", "--out", "here")

    assert [(request.image, out) for request, out in work.asked] == [("debian-trixie", Path("here"))]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--kernel", "bzImage"),
            snapshot("""\
bob: --kernel and --modules need each other
hint: --kernel arch/x86/boot/bzImage --modules DIR; or --kernel-tree DIR for a build tree
"""),
        ),
        (
            ("--modules", "."),
            snapshot("""\
bob: --kernel and --modules need each other
hint: --kernel arch/x86/boot/bzImage --modules DIR; or --kernel-tree DIR for a build tree
"""),
        ),
        (
            ("--kernel", "bzImage", "--modules", ".", *BOTH),
            snapshot("""\
bob: --kernel replaces the kernel of one shipped image
hint: for example --image debian-bookworm
"""),
        ),
        (
            ("--kernel", "bzImage", "--modules", "."),
            snapshot("""\
bob: bzImage is not a bzImage
hint: name arch/x86/boot/bzImage of a built kernel
"""),
        ),
        (
            ("--kernel-tree", ".", "--kernel", "bzImage"),
            snapshot("""\
bob: --kernel-tree cannot be used with --kernel or --modules
hint: leave out the other options
"""),
        ),
        (
            ("--kernel-tree", ".", *BOTH),
            snapshot("""\
bob: --kernel-tree replaces the kernel of one shipped image
hint: for example --image debian-bookworm
"""),
        ),
        (
            ("--guest", "testbox"),
            snapshot("""\
bob: invalid machine address 'testbox'
hint: expected --guest ssh://[USER@]HOST[:PORT], or libvirt:[USER@]DOMAIN
"""),
        ),
        (
            ("--image", "ssh://testbox"),
            snapshot("""\
bob: unknown guest image 'ssh://testbox'
hint: name a machine of your own with --guest
"""),
        ),
        (
            ("--guest", "ssh://testbox", "--kernel-tree", "."),
            snapshot("""\
bob: --kernel-tree cannot be used with --guest
hint: bob does not boot the machine of --guest
"""),
        ),
        (
            ("--guest", "ssh://testbox", "--connect", "qemu:///system"),
            snapshot("""\
bob: --connect cannot be used with --guest
hint: bob does not boot the machine of --guest
"""),
        ),
        (
            ("--guest", "libvirt:testbox", "--kernel-tree", "."),
            snapshot("""\
bob: --kernel-tree cannot be used with --guest
hint: bob does not boot the machine of --guest
"""),
        ),
        (
            ("--guest", "ssh://testbox", "--image", "debian-trixie"),
            snapshot("""\
bob: --image cannot be used with --guest
hint: bob uses the machine of --guest as it is
"""),
        ),
        (
            ("--guest", "ssh://testbox", "--jobs", "2"),
            snapshot("""\
bob: the machine of --guest counts as one guest
hint: leave out --jobs
"""),
        ),
        (
            ("--guest", "ssh://testbox", "--recovery-crashes", "2"),
            snapshot("""\
bob: bob crashes recoveries only in guests that it boots
hint: leave out --recovery-crashes
"""),
        ),
        (
            ("--kernel-tree", "."),
            snapshot("""\
bob: . is not the build tree of a kernel: include/config/auto.conf: No such file or directory
hint: run `make` there; after make O=DIR, name DIR
"""),
        ),
    ],
)
def test_what_is_no_kernel(bob: Bob, work: Work, options: tuple[str, ...], said: str) -> None:
    Path("bzImage").write_bytes(bytes(1024))
    ended = bob("probe", "--fs", "ext4", *options)

    assert ended.code == 2 and ended.err == said
    assert work.asked == []


def test_a_machine_stands_where_an_image_would(bob: Bob, work: Work) -> None:
    bob("probe", "--fs", "ext4", "--guest", "ssh://me@testbox:2222/", "--out", "here", "--quiet")
    assert [(request.image, out) for request, out in work.asked] == [("ssh://me@testbox:2222", Path("here"))]
    whose = ("--guest", "libvirt:testbox", "--connect", "qemu:///system")
    bob("probe", "--fs", "ext4", *whose, "--out", "there", "--quiet")
    request, _out = work.asked[1]
    assert (request.image, request.host.connect) == ("libvirt:testbox", "qemu:///system")


def test_each_kernel_is_held_against_what_is_expected(bob: Bob) -> None:
    """And one JUnit file has a suite for each, named after its image without the image's key."""
    put_with("table")
    ended = bob("probe", "--fs", "ext4", "--mount-opts", "data=ordered", *BOTH, "--expect", "table", "--junit", "r.xml")
    assert ended.code == 1
    assert [line for line in ended.out.splitlines() if "expected" in line] == snapshot(
        [
            "2 cells expected by table: 2 as expected",
            "better than expected: was expected to fail, but does not",
            "2 cells expected by table: 1 better, 1 as expected",
        ]
    )
    root = Xml.parse("r.xml").getroot()
    assert [suite.attrib["name"] for suite in root] == ["debian-bookworm: ext4-ordered", "debian-trixie: ext4-ordered"]
    assert [suite.attrib["failures"] for suite in root] == ["0", "1"]
    ended = bob("probe", "--fs", "ext4", "--mount-opts", "data=ordered", *BOTH, "--out", "b", "--junit", "r.xml")
    assert (ended.code, [suite.attrib["failures"] for suite in Xml.parse("r.xml").getroot()]) == (0, ["1", "0"])
