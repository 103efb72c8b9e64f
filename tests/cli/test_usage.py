"""What cannot be asked is refused in two lines, with exit code 2, before anything starts."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from inline_snapshot import snapshot

from bob.cli.help_page import contexts
from bob.documents import opened
from bob.report.drawing import svg
from bob.report.witness_page import to_html
from bob.witness.document import Size, read
from report.witnesses import documents
from wording import line_with, text_with

from .stand_in import Bob, Ended, Work

PROBE = ("probe", "--fs", "ext4")


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["prob"], "there is no command 'bob prob'", "did you mean 'probe'?"),
        (
            ["xyzzy"],
            "there is no command 'bob xyzzy'",
            "bob knows: probe, try, app, search, matrix, judge, show, compare",
        ),
        (["image", "lst"], "there is no command 'bob image lst'", "did you mean 'list'?"),
        (["probe"], "missing option '--fs'", "bob probe --help"),
        ([*PROBE, "--json"], "option '--json' requires an argument", "bob probe --help"),
        (["apm", "show", "--json"], "option '--json' requires an argument", "bob apm show --help"),
        (["--jsn"], "no such option '--jsn'", "bob --help"),
        (["probe", "--fs", "ext5"], "unknown file system 'ext5'", "did you mean 'ext4'?"),
        (["probe", "--fs", "minix"], "unknown file system 'minix'", "bob knows: btrfs, exfat, ext2, ext3, ext4, "),
        (
            ["app", "git", "--model", "ext4-o"],
            "there is no program 'git'",
            "did you mean one of git-commit, git-commit-fsync?",
        ),
        (["app", "v"], "there is no program 'v'", "did you mean 'vim-save'?"),
        (["app", "nothing"], "there is no program 'nothing'", "bob ships: berkeleydb-btree, "),
        (["probe", "--fs", "EXT4"], "unknown file system 'EXT4'", "did you mean 'ext4'?"),
        (["probe", "--fs", "./minix.toml"], "cannot read ./minix.toml: No such file", "is this the file that declares"),
        (["try", "--fs", "no.toml", "create /a", "--expect", "exists /a"], "cannot read no.toml: No such", "is this"),
        (["app", "replace-rename", "--fs", "./file"], "file.toml: 'package' is missing", "see docs/formats.md"),
        (["search", "--fs", "./nowhere/ext4"], "cannot read ./nowhere/ext4: No such file", "is this the file that"),
        ([*PROBE, "extra"], "there is no command 'bob probe extra'", "bob knows: new"),
        ([*PROBE, "--budget", "0"], "invalid value for '--budget': 0 is not", "bob probe --help"),
        ([*PROBE, "--budget", "-5"], "invalid value for '--budget': -5 is not", "bob probe --help"),
        (
            [*PROBE, "--budget", "many"],
            "invalid value for '--budget': 'many' is not a whole",
            "bob probe --help",
        ),
        ([*PROBE, "--seed", "x"], "invalid value for '--seed': 'x' is not", "bob probe --help"),
        ([*PROBE, "--property", "append-al"], "unknown property 'append-al'", "did you mean 'append-any'?"),
        ([*PROBE, "--property", "xyzzy"], "unknown property 'xyzzy'", "bob knows: single-sector-overwrite, "),
        ([*PROBE, "--property", "sync.data"], "unknown property 'sync.data'", "bob knows: single-sector-overwrite, "),
        (
            [*PROBE, "--rows", "durability", "--property", "sync.dta"],
            "unknown property 'sync.dta'",
            "did you mean 'sync.",
        ),
        ([*PROBE, "--rows", "all"], "invalid value for '--rows': 'all' is not", "bob probe --help"),
        ([*PROBE, "--probe", "nowhere.toml"], "nowhere.toml: No such file or directory", "is this the probe file?"),
        ([*PROBE, "--probe", "file"], "file: 'name' is missing", "see docs/write-a-probe.md"),
        ([*PROBE, "new", "mine"], "--fs says nothing to 'bob probe new'", "bob probe new NAME"),
        (["probe", "new"], "missing argument 'NAME'", "bob probe new --help"),
        (["probe", "new", "../mine"], "'../mine' is no name of a property", "for example bob probe new "),
        (["probe", "new", "append-any"], "'append-any' is a shipped property", "choose another name, e.g. 'my-app"),
        ([*PROBE, "--image", "debian-bookwurm"], "unknown guest image 'debian-bookwurm'", "did you mean 'debian-"),
        ([*PROBE, "--device", "big"], "--device: 'big' is no size", "for example 64M or 1G"),
        ([*PROBE, "--device", "0"], "--device: '0' is no size", "for example 64M or 1G"),
        ([*PROBE, "--device", "3K"], "a device of 3072 bytes is not a whole number of MiB", "for example"),
        ([*PROBE, "--device", "2M"], "a device of 2 MiB is too small for ext4: below 8 MiB", "--device 8M or more"),
        ([*PROBE, "--device", "100G"], "a device of 102,400 MiB is too large", "--device 800M or less; 32M where"),
        (
            ["try", "--fs", "xfs", "--device", "8M", "create /a", "--expect", "exists /a"],
            "a device of 8 MiB is too small for xfs: below 300 MiB",
            "--device 300M or more",
        ),
        ([*PROBE, "--write-cache", "some"], "invalid value for '--write-cache': 'some' is not", "bob probe --help"),
        ([*PROBE, "--atomic-write", "100"], "invalid value for '--atomic-write': '100' is not", "bob probe --help"),
        (
            [*PROBE, "--mkfs-opts", "-L 'a"],
            'mkfs options "-L \'a": No closing quotation',
            "they are split as a shell does",
        ),
        ([*PROBE, "--out", "full"], "--out: full is not empty", "every run has a directory of its own"),
        ([*PROBE, "--out", "file"], "--out: file is not a directory", "name another one"),
        ([*PROBE, "--out", "file/run"], "--out: cannot write to ", "name another directory"),
        ([*PROBE, "--out", "/proc/run"], "--out: cannot write to /proc: ", "name another directory"),
        ([*PROBE, "--json", "no/r.json"], "--json: there is no directory no", "mkdir -p no"),
        ([*PROBE, "--json", "full"], "--json: full is a directory", "for example full/result.json"),
        ([*PROBE, "--json", "/proc/r.json"], "--json: cannot write /proc/r.json: ", "name another file"),
        (["matrix"], "missing option '--set'", "bob matrix --help"),
        (
            ["matrix", "--set", "osdi41"],
            "there is no set 'osdi41'",
            "bob has defaults, modern, osdi14, plain; or name a TOML file",
        ),
        (["matrix", "--set", "file"], "file: 'configurations' is missing", "see docs/formats.md"),
        (["matrix", "--resume", "nowhere"], "invalid value for '--resume': Directory 'nowhere' does", "bob matrix"),
        (["judge"], "missing argument 'RUN'", "bob judge --help"),
        (["judge", "nowhere"], "invalid value for 'RUN': Directory 'nowhere' does not exist", "bob judge --help"),
        (["show"], "missing argument 'RUN...'", "bob show --help"),
        (["show", "nowhere"], "invalid value for 'RUN...': Path 'nowhere' does not exist", "bob show --help"),
        (["replay", "nowhere"], "WITNESS...: there is no witness nowhere", "name a file, or a witness in a bundle"),
        (["replay", "file", "--times", "0"], "invalid value for '--times': 0 is not", "bob replay --help"),
        (["replay", "file", "--image", "x"], "unknown guest image 'x'", "bob knows: debian-bookworm"),
        (["witness", "export", "file"], "say what is to be written", "--probe FILE"),
        (["witness", "export", "file", "--dm-log", "-"], "--dm-log: it cannot go to stdout", "name a file"),
        (["witness", "export", "file", "--dm-log", "no/l"], "--dm-log: there is no directory no", "mkdir -p no"),
        (["witness", "export", "file", "--dm-log", "l", "--base", "./l"], "the witness and what is made of it", "name"),
        (["witness", "export", "file", "--dm-log", "file"], "the witness and what is made of it cannot be one", "name"),
        (["image", "build", "x"], "unknown guest image 'x'", "bob knows: debian-bookworm"),
        (["image", "rm"], "missing argument 'NAME...'", "bob image rm --help"),
        (["image", "rm", "x"], "there is no guest image 'x' to remove", "built: none"),
        (["doctor", "--json", "no/r.json"], "--json: there is no directory no", "mkdir -p no"),
    ],
)
def test_what_cannot_be_asked(
    bob: Bob, work: Work, tmp_path: Path, arguments: list[str], message: str, hint: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").touch()
    before = sorted(tmp_path.rglob("*"))

    ended = bob(*arguments)

    first, second = ended.err.splitlines()
    assert ended.code == 2
    assert ended.out == ""
    assert first.startswith(f"bob: {message}")
    assert second.startswith(f"hint: {hint}")
    assert work.asked == []
    assert sorted(tmp_path.rglob("*")) == before


SINGLE = [
    (context, option)
    for context in contexts()
    for option in context.command.params
    if isinstance(option, click.Option) and not (option.multiple or option.is_flag or option.count)
]


@pytest.mark.parametrize(
    ("context", "option"), SINGLE, ids=[f"{context.command_path} {option.opts[0]}" for context, option in SINGLE]
)
def test_two_values_where_one_is_taken_are_refused(
    bob: Bob, work: Work, context: click.Context, option: click.Option
) -> None:
    for name in option.opts:
        ended = bob(*context.command_path.split()[1:], name, "1", f"{option.opts[0]}=2" if "--" in name else name, "2")

        first, second = ended.err.splitlines()
        assert ended.code == 2
        assert first.startswith(f"bob: {option.opts[-1]} takes one value")
        assert second.startswith("hint: ")
        assert work.asked == []


def test_a_flag_may_be_said_twice(bob: Bob, work: Work) -> None:
    assert bob(*PROBE, "--quiet", "--quiet").err == ""
    assert len(work.asked) == 1


def test_the_default_run_directory_must_be_writable(bob: Bob, work: Work, tmp_path: Path) -> None:
    (tmp_path / "bob-runs").touch()

    ended = bob(*PROBE)

    assert ended.code == 2
    assert text_with(ended.err.replace(str(tmp_path), "TMP"), "--out") == snapshot("""\
bob: --out: cannot write to TMP/bob-runs: Not a directory
hint: name another directory
""")
    assert work.asked == []


@pytest.mark.parametrize("arguments", [[], ["image"], ["trace"]])
def test_a_group_alone_shows_its_help(bob: Bob, arguments: list[str]) -> None:
    ended = bob(*arguments)

    assert ended.code == 2
    assert ended.err.startswith(" ".join(["Usage: bob", *arguments]))


# bob witness show: the story in the terminal, as a picture and as a page

PATH = Path("a witness.json")


@pytest.fixture
def found(bob: Bob) -> Path:
    """The file of a witness, in the directory where bob is run."""
    PATH.write_text(json.dumps(documents()["overwrite-any"]))
    return PATH


def test_the_story(bob: Bob, found: Path) -> None:
    ended = bob("witness", "show", found)

    assert (ended.code, ended.err) == (0, "")
    assert "overwrite-any on ext4-ordered (data=ordered)\n" in ended.out
    assert line_with(ended.out, 1, "/a", 0, 512, 2, "before") == snapshot(
        "1 write /a 0 512 <- must come before operation 2"
    )
    assert line_with(ended.out, 2, "/n", "early") == snapshot("2 create /n <- is there too early")
    assert text_with(ended.out.splitlines()[-1], "a witness.json") == snapshot("bob replay 'a witness.json'")


def test_the_picture_and_the_page(bob: Bob, found: Path) -> None:
    told = bob("witness", "show", found)

    assert bob("witness", "show", found, "--svg", "a.svg", "--html", "a.html") == told

    witness = read(found)
    drawn = svg(witness.timeline, witness.workload.operations, witness.claim.role, witness.evidence)
    assert Path("a.svg").read_text() == drawn + "\n"
    page = Path("a.html").read_text()
    begins, ends = 'href="data:application/json;base64,', '" download="ext4-ordered-overwrite-any.json"'
    [offered] = re.findall(f'{re.escape(begins)}([^"]*){re.escape(ends)}', page)
    assert opened(base64.b64decode(offered)) == opened(found.read_bytes())
    assert page == to_html(witness, found, download=f"data:application/json;base64,{offered}")
    assert "bob replay &#39;a witness.json&#39;" in Path("a.html").read_text()


def test_the_witness_itself(bob: Bob, found: Path) -> None:
    ended = bob("witness", "show", found, "--json", "-")

    assert (ended.code, ended.err) == (0, "")
    assert opened(ended.out.encode()) == opened(found.read_bytes())


def test_a_property_of_the_users_own_is_told_from_the_witness_alone(bob: Bob, found: Path) -> None:
    document = documents()["overwrite-any"]
    declared = {**document["probe"], "name": "mine", "meaning": "Mine asks for it"}
    found.write_text(json.dumps({**document, "property": "mine", "probe": declared}))

    ended = bob("witness", "show", found, "--html", "a.html")

    assert (ended.code, ended.err) == (0, "")
    assert line_with(ended.out, "Mine") == snapshot("Mine asks for it")
    assert line_with(Path("a.html").read_text(), "Mine") == snapshot("<p>Mine asks for it.</p>")


def test_a_property_that_bob_does_not_ship(bob: Bob, found: Path) -> None:
    found.write_text(json.dumps({**documents()["overwrite-any"], "property": "mine", "probe": None}))

    assert bob("witness", "show", found, "--html", "a.html").code == 0


def test_what_cannot_be(bob: Bob, found: Path) -> None:
    assert bob("witness", "show", found, "--html", "gone/a.html") == Ended(
        2,
        "",
        snapshot("""\
bob: --html: there is no directory gone
hint: mkdir -p gone
"""),
    )
    found.write_text("{}")
    assert bob("witness", "show", found, "--html", "a.html").code == 8
    assert not Path("a.html").exists()


def test_where_a_smaller_witness_goes(bob: Bob, found: Path) -> None:
    either = "bob: say where the smaller witness goes\nhint: either --output FILE or --in-place\n"
    assert bob("witness", "shrink", found) == Ended(2, "", either)
    assert bob("witness", "shrink", found, "--in-place", "--output", "b.json") == Ended(2, "", either)
    one = "bob: --output is for one witness\nhint: name the file of one, or use --in-place\n"
    assert bob("witness", "shrink", found, found, "--output", "b.json") == Ended(2, "", one)


def test_what_became_smaller_as_json(bob: Bob, found: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two one does not show any more; with the witness on stdout, nothing else is there."""
    before, after = Size(5, 2, 9), Size(2, 1, 1)
    made = {found: documents()["single-sector-overwrite"], Path("other.json"): None}

    def shrink(files: Sequence[Path], **_more: object) -> Iterator[SimpleNamespace]:
        yield from (SimpleNamespace(path=path, document=made[path], before=before, after=after) for path in files)

    module = SimpleNamespace(shrink=shrink, tell_results=lambda _path: None)
    monkeypatch.setitem(sys.modules, "bob.run.shrink", module)
    Path("other.json").write_text(found.read_text())

    ended = bob("witness", "shrink", "--in-place", found, "other.json", "--quiet", "--json", "-")

    assert (ended.code, ended.err) == (1, "")
    assert json.loads(ended.out)["witnesses"] == [
        {"witness": str(path), "shows": shows, "before": asdict(before), "after": asdict(after)}
        for path, shows in ((found, True), (Path("other.json"), False))
    ]
    found.write_text(json.dumps(documents()["overwrite-any"]))
    assert opened(bob("witness", "shrink", found, "--output", "-", "--quiet").out.encode()) == made[found]
    ended = bob("witness", "shrink", found, "--output", "-", "--json", "-")
    assert (ended.code, ended.err.splitlines()[0]) == (2, snapshot("bob: two documents cannot both go to stdout"))
