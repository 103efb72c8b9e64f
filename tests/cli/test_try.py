"""bob try: what it asks for, what it tells, and how it ends; a mistake is pointed at before anything starts."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from bob.catalogue.request import ProbeRequest
from bob.claim.expectation.language import parse as expectation
from bob.crash.caches import CACHES
from bob.documents import opened
from bob.errors import GuestError
from bob.judge.question import Trial
from bob.run.option_table import GuestOptions
from bob.subject import FileSystem, configuration
from bob.trace.recording import Completion
from bob.workload.language import parse
from bob.workload.operations import At, Finish, Workload
from wording import line_with, sentence_with, text_with

from .stand_in import Bob, Work

DOCS = Path(__file__).parents[2] / "docs"
TRY = ("try", "--fs", "ext4", "write /a 0 4096; fsync /a", "--expect", "content /a = new")


def test_defaults(bob: Bob, work: Work) -> None:
    assert bob(*TRY).code == 0

    finishes = Finish("natural", natural=True), Finish("fsync /", parse("fsync /"))
    workloads = tuple(Workload("try", (), parse("write /a 0 4096; fsync /a"), finish, At.END) for finish in finishes)
    request = ProbeRequest(configuration("ext4"))
    assert work.asked == [(Trial(request, workloads, (expectation("content /a = new"),), 5), None)]


@pytest.mark.parametrize(
    ("operations", "finishes"),
    [
        ("write /a 0 4096", ["natural", "fsync /"]),
        ("sync; sleep 1; fsync /d", ["natural", "fsync /"]),
        ("write /d/a 0 4096; rename /d/a /e/a; fsync /e/a", ["natural", "fsync /d; fsync /e", "fsync /"]),
        ("create /e/a; create /d/b", ["natural", "fsync /d; fsync /e", "fsync /"]),
        ("create /d/b; create /e/a; create /a", ["natural", "fsync /e; fsync /d", "fsync /"]),
        ("unlink /d/f; rmdir /d", ["natural", "fsync /"]),
        ("mkdir /e/g; create /e/g/h; rename /e /i", ["natural", "fsync /"]),
        ("symlink /e/nowhere /d/s", ["natural", "fsync /d", "fsync /"]),
    ],
)
def test_the_finishes_where_none_is_named(bob: Bob, work: Work, operations: str, finishes: list[str]) -> None:
    bob("try", "--fs", "ext4", "--setup", "mkdir /d; mkdir /e; create /d/f", operations, "--expect", "exists /d")
    [(trial, _out)] = work.asked
    assert [workload.finish.name for workload in trial.workloads] == finishes


def test_each_finish_that_is_named_replaces_the_default(bob: Bob, work: Work) -> None:
    bob(*TRY, "--finish", "sync", "--finish", "natural 2.5", "--finish", "sync")
    [(trial, _out)] = work.asked
    assert [workload.finish for workload in trial.workloads] == [
        Finish("sync", parse("sync")),
        Finish("natural 2.5", natural=True, phase=2.5),
    ]


def test_everything_that_can_be_asked(bob: Bob, work: Work) -> None:
    options = {
        "--mount-opts": "data=journal",
        "--mkfs-opts": "-O ^dir_index",
        "--device": "64M",
        "--setup": "mkdir /d; create /d/b",
        "--expect": "exists /d/b",
        "--at": "any",
        "--finish": "fsync /d",
        "--witnesses": 2,
        "--image": "debian-bookworm",
        "--connect": "qemu:///session",
        "--budget": 12,
        "--audit": 0.5,
        "--seed": -3,
        "--write-cache": "none",
        "--atomic-write": 4096,
        "--completion": "oldest-first",
        "--out": "here",
    }
    ended = bob(*TRY, *(part for option in options.items() for part in option), "--quiet")

    assert (ended.code, ended.err) == (0, "")
    [(trial, out)] = work.asked
    request = trial.request
    assert out == Path("here")
    assert request.configuration == configuration("ext4", "-O ^dir_index", "data=journal", 64 * 1024 * 1024)
    assert (request.budget, request.audit, request.seed, request.host.connect) == (12, 0.5, -3, "qemu:///session")
    assert (request.model.write_cache, request.model.atomic_write_bytes) == (CACHES["none"], 4096)
    assert request.model.completion is Completion.OLDEST_FIRST
    [workload] = trial.workloads
    assert workload.setup == parse("mkdir /d; create /d/b")
    assert workload.finish == Finish("fsync /d", parse("fsync /d"))
    assert [one.text for one in trial.expectations] == ["content /a = new", "exists /d/b"]
    assert (workload.at, trial.most_witnesses) == (At.ANY, 2)


def test_no_setup_is_lost(bob: Bob, work: Work) -> None:
    bob(*TRY, "--setup", "mkdir /d # first", "--setup", "create /d/b")
    [(trial, _out)] = work.asked
    assert trial.workloads[0].setup == parse("mkdir /d; create /d/b")


def test_operations_from_standard_input(bob: Bob, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("create /a  # the first\nfsync /a\n"))
    bob("try", "--fs", "xfs", "-", "--expect", "exists /a")
    [(trial, _out)] = work.asked
    assert trial.workloads[0].operations == parse("create /a; fsync /a")


def test_what_breaks(bob: Bob, work: Work) -> None:
    work.breaks = 3
    ended = bob(*TRY, "--expect", "exists   /a", "--quiet")

    assert ended.code == 1
    assert ended.out.splitlines() == snapshot(
        [
            "ext4   mounted rw,relatime",
            "  op1  write /a 0 4096",
            "  op2  fsync /a",
            "",
            "content /a = new",
            "× can break in 3 ways, in 7 crash states",
            "  finish natural: breaks in 7; finish fsync /: holds",
            "    /a is wrong in way 0   in 1 crash state, finish natural",
            "    bob replay bob-runs/made-up/witnesses/expectation-1-1.json",
            "    /a is wrong in way 1   in 2 crash states, finish natural",
            "    bob replay bob-runs/made-up/witnesses/expectation-1-2.json",
            "    and 1 more way in 4 crash states: --witnesses N shows more of them",
            "",
            "exists /a",
            "holds in all explored legal crash states that can be mounted: some of 4,096",
            "whole states; 3 do not mount",
            "",
            "! 3 crash states could not be mounted; the answers above do not count them",
            "    Structure needs cleaning",
            "    bob replay bob-runs/made-up/witnesses/unmountable.json",
            "",
            "note: a note",
            "the crash comes after the last operation has returned",
            "finish natural: some of 4,096 whole states; 3 do not mount, by 17 mounts",
            "finish fsync /: some of 4,096 whole states; 3 do not mount, by 17 mounts",
            "kernel 6.1.0-31-amd64, volatile write cache, writes of 512 bytes are atomic,",
            "done late, youngest first",
            "run bob-runs/made-up",
            "holds: no explored crash state breaks it. This is not a proof.",
        ]
    )


def test_one_finish_is_told_without_its_name(bob: Bob, work: Work) -> None:
    work.breaks = 1
    shown = bob(*TRY, "--finish", "sync", "--quiet").out.splitlines()
    assert line_with(shown, "/a", 0, 1, "crash") == snapshot("/a is wrong in way 0   in 1 crash state")
    assert [line for line in shown if "finish" in line] == snapshot(
        ["finish sync: some of 4,096 whole states; 3 do not mount, by 17 mounts"]
    )


def test_states_that_do_not_mount_count_where_that_is_asked(bob: Bob, work: Work) -> None:
    shown = bob(*TRY, "--expect", "mounts", "--quiet").out
    assert line_with(shown, 3, "!") == snapshot(
        "! 3 crash states could not be mounted; only expectations with `mounts` count"
    )
    [names, mounts] = [line for line in shown.splitlines() if line.startswith("holds in")]
    assert ("can be mounted" in names, "can be mounted" in mounts) == (True, False)


def test_what_breaks_where_nothing_is_lost(bob: Bob, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    work.breaks, work.needs_no_crash = 1, True
    shown = " ".join(bob(*TRY, "--quiet").out.split())
    assert sentence_with(shown, "every write") == snapshot("holds the state with every write breaks it, too:")


@pytest.mark.parametrize("breaks", [0, 3])
@pytest.mark.parametrize("finishes", [(), ("--finish", "sync")])
def test_answers_are_read_again(bob: Bob, work: Work, breaks: int, finishes: tuple[str, ...]) -> None:
    work.breaks = breaks
    shown = bob(*TRY, *finishes, "--expect", "exists /a", "--quiet").out
    document = opened(bob(*TRY, *finishes, "--expect", "exists /a", "--json", "-", "--quiet").out.encode())
    run = Path("bob-runs/made-up")
    run.mkdir(parents=True)
    (run / "result.json").write_text(json.dumps(document))
    again = bob("show", run)
    assert (again.code, again.err, again.out) == (0, "", shown)
    assert opened(bob("show", run, "--json", "-").out.encode()) == document
    ended = bob("show", run, "--format", "csv")
    assert (ended.code, ended.err.splitlines()[0]) == (
        2,
        snapshot("bob: cannot write bob-runs/made-up as csv: a quick question has answers, not a table"),
    )


def test_answers_become_a_page(bob: Bob, work: Work) -> None:
    """While they are printed, and of the run again; or several pages."""
    work.breaks = 3
    asked = (*TRY, "--expect", "exists /a", "--quiet")
    printed = bob(*asked)
    ended = bob(*asked, "--output", "answers.html")
    assert (ended.code, ended.out) == (printed.code, printed.out)
    page = Path("answers.html").read_text()
    assert line_with(page, "/a", 2, "wrong") == snapshot("<h4>/a is wrong in way 2</h4>") and page.startswith(
        "<!DOCTYPE html>"
    )
    run = Path("bob-runs/made-up")
    run.mkdir(parents=True)
    (run / "result.json").write_text(bob(*asked, "--json", "-").out)
    assert bob("show", run, "--output", "again.html").code == 0
    assert Path("again.html").read_text() == page
    assert bob("show", run, "--output", "pages/").code == 0
    assert Path("pages/index.html").read_text() == page, "its witnesses are not there"
    assert bob("show", run, "--output", "answers.txt").code == 0
    assert Path("answers.txt").read_text() == printed.out


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (
            "answers.csv",
            snapshot("""\
bob: cannot write the result as csv: a quick question has answers, not a table
hint: use --json FILE, or --output with FILE.txt, FILE.html, DIR/ for pages, or FILE.xml for a CI
"""),
        ),
        (
            "answers.pdf",
            snapshot("""\
bob: --output: cannot write .pdf
hint: it writes .txt, .md, .tex, .csv, .json, .html, .xml, .ktap; with --format, FILE may have any ending
"""),
        ),
        (
            "-",
            snapshot("""\
bob: --output -: bob prints the answers anyway
hint: for example --output answers.html
"""),
        ),
        (
            "nowhere/answers.html",
            snapshot("""\
bob: --output: the directory nowhere does not exist
hint: mkdir -p nowhere
"""),
        ),
    ],
)
def test_what_the_answers_do_not_become_is_said_before_anything_is_asked(
    bob: Bob, work: Work, output: str, said: str
) -> None:
    ended = bob(*TRY, "--output", output)
    assert ended.code == 2 and ended.err == said, ended.err
    assert work.asked == []


def test_answers_of_an_earlier_bob_are_shown(bob: Bob, work: Work) -> None:
    """They have no finishes: there was one."""
    document = json.loads((DOCS.parent / "tests" / "answer" / "try-1.json").read_text())["one finish"]
    del document["finishes"]
    for answer in document["expectations"]:
        del answer["by_finish"]
        for way in answer["ways"]:
            del way["finish"], way["by_finish"]
    Path("answers.json").write_text(json.dumps(document))
    ended = bob("show", "answers.json")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == snapshot("""\
ext4-ordered   mounted rw,data=ordered
  op1  write /a 0 512
  op2  create /n

exists /n implies content /a = new
× breaks, in 1 crash state
    /n is empty; /a has initial data (4,096 B)   in 1 crash state
    bob replay witnesses/expectation-1-1.json

size /a = 4095
× can break in 2 ways, in 3 crash states
  the state with every write breaks it, too: either you expected something else,
  or the file system loses it even if the disk loses nothing
    /a has initial data (4,096 B)   in 2 crash states
    bob replay witnesses/expectation-2-1.json
    /a has operation 1 (512 B), initial data (3,584 B)   in 1 crash state
    bob replay witnesses/expectation-2-2.json

note: 4,096-byte blocks, as mkfs.ext4 makes them on a disk of ordinary size
the crash comes anywhere after the first operation was called
finish natural: 3 of 14 whole states, < 0.1 % of the torn ones, by 4 mounts
kernel 6.1.0-56-amd64, volatile write cache, writes of 512 bytes are atomic,
done late, youngest first
run .
""")


def test_damaged_answers_are_told(bob: Bob, work: Work) -> None:
    Path("answers.json").write_text('{"schema": "bob.try/1"}')
    ended = bob("show", "answers.json")
    assert (ended.code, ended.err.splitlines()[0][:42]) == (8, snapshot("bob: answers.json: the result document is "))


def test_a_kernel_of_ones_own(bob: Bob, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """--kernel makes an image over that of --image, as it does for a probe."""

    def asked_images(
        images: Sequence[str], guests: GuestOptions, fs: Sequence[FileSystem], **more: Any
    ) -> tuple[str, ...]:
        assert [one.name for one in fs] == ["ext4"]
        assert (images, guests.kernel, guests.modules) == (("debian-trixie",), Path("bzImage"), Path("modules"))
        return ("debian-trixie+6.16.0-mine",)

    monkeypatch.setattr("bob.cli.try_.asked_images", asked_images)
    Path("bzImage").touch()
    Path("modules").mkdir()
    assert bob(*TRY, "--image", "debian-trixie", "--kernel", "bzImage", "--modules", "modules").code == 0
    [(trial, _out)] = work.asked
    assert trial.request.image == "debian-trixie+6.16.0-mine"


def test_a_kernel_needs_its_modules(bob: Bob, work: Work) -> None:
    Path("bzImage").touch()
    ended = bob(*TRY, "--kernel", "bzImage")
    assert (ended.code, work.asked) == (2, [])
    assert text_with(ended.err, "--kernel", "--modules") == snapshot("""\
bob: --kernel and --modules need each other
hint: --kernel arch/x86/boot/bzImage --modules DIR; or --kernel-tree DIR for a build tree
""")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("create /a; link /a /b",),
            (
                "bob: OPERATIONS, column 12: vfat does not support 'link'",
                "  create /a; link /a /b",
                "             ^^^^^^^^^^",
            ),
        ),
        (
            ("create /a", "--setup", "symlink /x /s"),
            ("bob: --setup, column 1: vfat does not support 'symlink'", "  symlink /x /s", "  ^^^^^^^^^^^^^"),
        ),
    ],
)
def test_what_a_file_system_lacks_is_said_before_anything_starts(
    bob: Bob, work: Work, arguments: tuple[str, ...], said: tuple[str, ...]
) -> None:
    ended = bob("try", "--fs", "vfat", *arguments, "--expect", "exists /a")
    assert (ended.code, ended.out, work.asked) == (2, "", [])
    assert ended.err.splitlines()[:3] == list(said)
    assert ended.err.splitlines()[3] == snapshot(
        "hint: the kernel says: Operation not permitted; vfat lacks link, symlink, setxattr, chmod, punch, zero, mknod, tmpfile, reflink, collapse"
    )


def test_what_is_not_known(bob: Bob, work: Work) -> None:
    ended = bob(*TRY, "--expect", "not content /a = zeros")
    assert ended.code == 3
    assert line_with(ended.out, "guest") == snapshot("? the guest was lost: it hung")
    work.breaks = 1
    assert bob(*TRY, "--expect", "not content /a = zeros").code == 1


def test_json(bob: Bob, work: Work) -> None:
    work.breaks = 3
    ended = bob(*TRY, "--json", "-", "--quiet")
    document = json.loads(ended.out)
    assert (document["schema"], document["workload"]["at"]) == ("bob.result/2", "end")
    [answer] = document["subjects"][0]["answers"]
    assert answer["states"]["legal_sectors"] == str(2**88)
    assert (answer["claim"], answer["verdict"]) == ({"kind": "expectation", "name": "content /a = new"}, "fails")
    assert sum(way["states"] for way in answer["ways"]) == 7
    assert [way.get("witness") for way in answer["ways"]] == [
        "witnesses/expectation-1-1.json",
        "witnesses/expectation-1-2.json",
        None,
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("create /a", "--expect", "exists /a adn absent /a"),
            (
                "bob: --expect, column 11: unexpected 'adn' after a test",
                "  exists /a adn absent /a",
                "            ^^^",
                "hint: join tests with and, or, implies",
            ),
        ),
        (
            ("create /a", "--expect", "exists /b"),
            (
                "bob: --expect, column 8: neither the setup nor the operations make /b",
                "  exists /b",
                "         ^^",
                "hint: names: /a",
            ),
        ),
        (
            ("create /a", "--expect", "exists\n '/世界"),
            (
                'bob: --expect, line 2, column 2: "\'" is never closed',
                "   '/世界",
                "   ^",
                "hint: quote a path that has such letters",
            ),
        ),
        (
            ("create /a; fsnc /a", "--expect", "exists /a"),
            (
                "bob: OPERATIONS, column 12: unknown operation 'fsnc' in 'fsnc /a'",
                "  create /a; fsnc /a",
                "             ^^^^^^^",
                "hint: did you mean 'fsync'?",
            ),
        ),
        (
            ("create /a\nfsync /b\nfsync /a", "--expect", "exists /a"),
            (
                "bob: OPERATIONS, line 2, column 1: /b does not exist",
                "  fsync /b",
                "  ^^^^^^^^",
                "hint: the tree of --setup is there",
            ),
        ),
        (
            ("create /b", "--setup", "create /a; create /a", "--expect", "exists /a"),
            (
                "bob: --setup, column 12: /a exists already",
                "  create /a; create /a",
                "             ^^^^^^^^^",
                "hint: the tree of --setup is there",
            ),
        ),
        (
            ("write /a 0 999999M", "--expect", "exists /a"),  # no hint at --setup, which has nothing to do with it
            (
                "bob: OPERATIONS, column 1: a file of 1,048,574,951,424 bytes is too large",
                "  write /a 0 999999M",
                "  ^^^^^^^^^^^^^^^^^^",
            ),
        ),
        (
            ("create /a", "--finish", "fsync /b", "--expect", "exists /a"),
            ("bob: --finish: /b does not exist", "hint: the tree of --setup is there"),
        ),
        (
            ("sync", "--expect", "exists /a"),
            ("bob: --expect, column 8", "  exists /a", "         ^^", "hint: names: none"),
        ),
        (
            ("create /a", "--expect", ""),
            ("bob: --expect, column 1: unexpected end; expected a test", "hint: tests: exists"),
        ),
        (("", "--expect", "exists /"), ("bob: the operations are missing", "hint: for example")),
        (("create /a",), ("bob: missing option '--expect'", "hint: bob try --help")),
        (
            ("create /a", "--expect", "exists /a", "--image", "debian-bookworm", "--image", "debian-trixie"),
            ("bob: --image takes one value, but is given 2 times", "hint: run the command once for each"),
        ),
        (("--expect", "exists /a"), ("bob: missing argument 'OPERATIONS'", "hint: bob try --help")),
        (
            ("create", "/a", "--expect", "exists /a"),
            ("bob: expected all operations in one argument, got 2", "hint: quote"),
        ),
        (("create /a", "--expect", "exists /a", "--at", "start"), ("bob: invalid value for '--at'", "hint: bob try")),
        (
            ("create /a", "--expect", "exists /a", "--finish", "never"),
            ("bob: --finish, column 1: unknown operation 'never'", "  never", "  ^", "h"),
        ),
        (
            ("create /a", "--expect", "exists /a", "--finish", "natural x"),
            ("bob: invalid finish 'natural x'", "hint: expected natural"),
        ),
    ],
)
def test_what_cannot_be_asked(bob: Bob, work: Work, arguments: tuple[str, ...], said: tuple[str, ...]) -> None:
    ended = bob("try", "--fs", "ext4", *arguments)
    assert (ended.code, ended.out, work.asked) == (2, "", [])
    lines = ended.err.splitlines()
    assert len(lines) == len(said)
    assert [line[: len(begin)] for line, begin in zip(lines, said, strict=True)] == list(said)


def test_a_mistake_far_into_a_long_text_is_in_sight(bob: Bob) -> None:
    text = " and ".join(["exists /a"] * 20) + " and exsts /a" + " and exists /a" * 20
    excerpt, mark = bob("try", "--fs", "ext4", "create /a", "--expect", text).err.splitlines()[1:3]
    assert len(excerpt) <= 80
    assert excerpt[mark.index("^") :].startswith("exsts /a") and mark.count("^") == 5


def test_a_lost_guest_ends_it(bob: Bob, work: Work) -> None:
    work.raises = GuestError("the guest vanished")
    ended = bob(*TRY)
    assert (ended.code, ended.out) == (6, "")
    assert ended.err == snapshot("""\
1 workload, at most 100 crash states to try
bob: the guest vanished
""")


def commands() -> list[tuple[list[str], str]]:
    """Every `bob try` in the documentation and in the help, with what it reads from standard input."""
    pages = DOCS / "try.md", DOCS.parent / "README.md", DOCS / "cli.md"
    texts = [page.read_text().replace("\\\n", "") for page in pages]
    found = [match for text in texts for match in re.finditer(r"^ *(?:\./run|bob) (try --fs .*)$", text, re.MULTILINE)]
    asked = []
    for match in found:
        line, _, end = match[1].partition(" <<")
        body = match.string[match.end() + 1 :].partition(f"\n{shlex.split(end)[0]}\n")[0] if end else ""
        asked.append((shlex.split(line.partition(" < ")[0]), body or "create /b; rename /b /a"))
    return asked


def test_every_example_can_be_asked(bob: Bob, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = commands()
    assert len(examples) >= 9
    for arguments, read in examples:
        monkeypatch.setattr("sys.stdin", io.StringIO(read))
        ended = bob(*arguments, "--quiet")
        assert (ended.code, ended.err) == (0, ""), arguments
    assert len(work.asked) == len(examples)


def test_on_a_machine_of_ones_own_it_says_so(bob: Bob, work: Work) -> None:
    assert "in real time" not in bob(*TRY).out
    there = replace(work.result.environment, image="ssh://me@box:2222 (0123)", accelerator="ssh", clock="real", qemu="")
    work.result = replace(work.result, environment=there)
    ended = bob(*TRY, "--guest", "ssh://me@box:2222")
    assert line_with(ended.out, "6.1.0-31-amd64", "ssh://me@box:2222") == snapshot(
        "kernel 6.1.0-31-amd64 of ssh://me@box:2222, in real time, volatile write cache,"
    )
    assert work.asked[-1][0].request.image == "ssh://me@box:2222"
