"""bob try: what it asks for, what it tells, and how it ends; a mistake is pointed at before anything starts."""

from __future__ import annotations

import io
import json
import re
import shlex
from pathlib import Path

import pytest

from bob.config import configuration
from bob.errors import GuestError
from bob.expect.document import Trial
from bob.expect.language import parse as expectation
from bob.request import ProbeRequest
from bob.workload.language import parse
from bob.workload.operations import At, Finish, Workload

from .stand_in import Bob, Work

DOCS = Path(__file__).parents[2] / "docs"
TRY = ("try", "--fs", "ext4", "write /a 0 4096; fsync /a", "--expect", "content /a = new")


def test_defaults(bob: Bob, work: Work) -> None:
    assert bob(*TRY).code == 0

    workload = Workload("try", (), parse("write /a 0 4096; fsync /a"), Finish("natural", natural=True))
    request = ProbeRequest(configuration("ext4"))
    assert work.asked == [(Trial(request, workload, (expectation("content /a = new"),), At.END, 5), None)]


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
        "--out": "here",
    }
    ended = bob(*TRY, *(part for option in options.items() for part in option), "--quiet")

    assert (ended.code, ended.err) == (0, "")
    [(trial, out)] = work.asked
    request = trial.request
    assert out == Path("here")
    assert request.configuration == configuration("ext4", "-O ^dir_index", "data=journal", 64 * 1024 * 1024)
    assert (request.budget, request.audit, request.seed, request.host.connect) == (12, 0.5, -3, "qemu:///session")
    assert (request.write_cache, request.atomic_write_bytes) == ("none", 4096)
    assert trial.workload.setup == parse("mkdir /d; create /d/b")
    assert trial.workload.finish == Finish("fsync /d", parse("fsync /d"))
    assert [one.text for one in trial.expectations] == ["content /a = new", "exists /d/b"]
    assert (trial.at, trial.most_witnesses) == (At.ANY, 2)


def test_no_setup_is_lost(bob: Bob, work: Work) -> None:
    bob(*TRY, "--setup", "mkdir /d # first", "--setup", "create /d/b")
    [(trial, _out)] = work.asked
    assert trial.workload.setup == parse("mkdir /d; create /d/b")


def test_operations_from_standard_input(bob: Bob, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("create /a  # the first\nfsync /a\n"))
    bob("try", "--fs", "xfs", "-", "--expect", "exists /a")
    [(trial, _out)] = work.asked
    assert trial.workload.operations == parse("create /a; fsync /a")


def test_what_breaks(bob: Bob, work: Work) -> None:
    work.breaks = 3
    ended = bob(*TRY, "--expect", "exists   /a", "--quiet")

    assert ended.code == 1
    assert ended.out.splitlines() == [
        "ext4   mounted rw,relatime",
        "  op1  write /a 0 4096",
        "  op2  fsync /a",
        "",
        "content /a = new",
        "× breaks in 7 crash states, in 3 ways",
        "    /a is wrong in way 0   in 1 crash state",
        "    bob replay bob-runs/made-up/witnesses/expectation-1-1.json",
        "    /a is wrong in way 1   in 2 crash states",
        "    bob replay bob-runs/made-up/witnesses/expectation-1-2.json",
        "    and 1 more way in 4 crash states: --witnesses N shows more of them",
        "",
        "exists /a",
        "holds in all explored legal crash states that can be mounted: some of 4,096",
        "whole states",
        "",
        "! 3 crash states could not be mounted, and count for nothing above",
        "    Structure needs cleaning",
        "    bob replay bob-runs/made-up/witnesses/unmountable.json",
        "",
        "note: a note",
        "the crash comes after the last operation has returned; finish natural",
        "explored: some of 4,096 whole states, by 17 mounts",
        "kernel 6.1.0-31-amd64, volatile write cache, writes of 512 bytes are atomic",
        "run bob-runs/made-up",
        "holds: no explored crash state breaks it. It is no proof.",
    ]


def test_what_is_not_known(bob: Bob, work: Work) -> None:
    ended = bob(*TRY, "--expect", "not content /a = zeros")
    assert ended.code == 3
    assert "? the guest was lost: it hung" in ended.out
    work.breaks = 1
    assert bob(*TRY, "--expect", "not content /a = zeros").code == 1


def test_json(bob: Bob, work: Work) -> None:
    work.breaks = 3
    ended = bob(*TRY, "--json", "-", "--quiet")
    document = json.loads(ended.out)
    assert (document["schema"], document["at"]) == ("bob.try/1", "end")
    assert document["states"]["legal_sectors"] == str(2**88)
    [answer] = document["expectations"]
    assert (answer["expectation"], answer["verdict"], answer["violations"]) == ("content /a = new", "fails", 7)
    assert [way["witness"] for way in answer["ways"]] == [
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
                "bob: --expect, column 11: 'adn' where a test is over",
                "  exists /a adn absent /a",
                "            ^^^",
                "hint: tests are joined by and, or, implies",
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
                "hint: quote a path with such letters",
            ),
        ),
        (
            ("create /a; fsnc /a", "--expect", "exists /a"),
            (
                "bob: OPERATIONS, column 12: no operation 'fsnc' in 'fsnc /a'",
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
                "hint: what --setup makes is there",
            ),
        ),
        (
            ("create /b", "--setup", "create /a; create /a", "--expect", "exists /a"),
            (
                "bob: --setup, column 12: /a exists already",
                "  create /a; create /a",
                "             ^^^^^^^^^",
                "hint: what --setup makes is there",
            ),
        ),
        (
            ("create /a", "--finish", "fsync /b", "--expect", "exists /a"),
            ("bob: --finish: /b does not exist", "hint: what --setup makes is there"),
        ),
        (
            ("sync", "--expect", "exists /a"),
            ("bob: --expect, column 8", "  exists /a", "         ^^", "hint: names: none"),
        ),
        (
            ("create /a", "--expect", ""),
            ("bob: --expect, column 1: the end where a test begins", "hint: tests: exists"),
        ),
        (("", "--expect", "exists /"), ("bob: there are no operations to be tried", "hint: such as")),
        (("create /a",), ("bob: missing option '--expect'", "hint: bob try --help")),
        (
            ("create /a", "--expect", "exists /a", "--image", "debian-bookworm", "--image", "debian-trixie"),
            ("bob: a question is asked on one --image", "hint: ask it once for each"),
        ),
        (("--expect", "exists /a"), ("bob: missing argument 'OPERATIONS'", "hint: bob try --help")),
        (
            ("create", "/a", "--expect", "exists /a"),
            ("bob: the operations are one argument, here are 2", "hint: quote"),
        ),
        (("create /a", "--expect", "exists /a", "--at", "start"), ("bob: invalid value for '--at'", "hint: bob try")),
        (
            ("create /a", "--expect", "exists /a", "--finish", "never"),
            ("bob: --finish, column 1: no operation 'never'", "  never", "  ^", "h"),
        ),
        (
            ("create /a", "--expect", "exists /a", "--finish", "natural x"),
            ("bob: 'natural x' is no way to", "hint: nat"),
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
    assert "bob: the guest vanished" in ended.err


def commands() -> list[tuple[list[str], str]]:
    """Every `bob try` in the documentation and in the help, with what it reads from standard input."""
    texts = [(DOCS / "try.md").read_text(), (DOCS.parent / "README.md").read_text()]
    texts.append((DOCS / "cli.md").read_text().replace("\\\n", ""))
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
