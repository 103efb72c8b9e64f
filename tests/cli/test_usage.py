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
from bob.witness.document import WitnessSize, read
from report.witnesses import documents
from wording import line_with, text_with

from .stand_in import Bob, Ended, Work

PROBE = ("probe", "--fs", "ext4")


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["prob"], snapshot("bob: unknown command 'bob prob'"), snapshot("hint: did you mean 'probe'?")),
        (
            ["xyzzy"],
            snapshot("bob: unknown command 'bob xyzzy'"),
            snapshot(
                "hint: bob knows: probe, try, app, cluster, search, matrix, judge, show, compare, merge, reproduce, witness, replay, apm, runs, image, trace, doctor, site, man"
            ),
        ),
        (
            ["image", "lst"],
            snapshot("bob: unknown command 'bob image lst'"),
            snapshot("hint: did you mean 'list'?"),
        ),
        (["probe"], snapshot("bob: missing option '--fs'"), snapshot("hint: bob probe --help")),
        ([*PROBE, "--json"], snapshot("bob: option '--json' requires an argument"), snapshot("hint: bob probe --help")),
        (
            ["apm", "show", "--json"],
            snapshot("bob: option '--json' requires an argument"),
            snapshot("hint: bob apm show --help"),
        ),
        (["--jsn"], snapshot("bob: no such option '--jsn'"), snapshot("hint: bob --help")),
        (
            ["probe", "--fs", "ext5"],
            snapshot("bob: unknown file system 'ext5'"),
            snapshot("hint: did you mean 'ext4'?"),
        ),
        (
            ["probe", "--fs", "zfs"],
            snapshot("bob: unknown file system 'zfs'"),
            snapshot(
                "hint: bob knows: btrfs, exfat, ext2, ext3, ext4, ext4-nojournal, f2fs, hfs, hfsplus, jfs, minix3, msdos, nilfs2, reiserfs, udf, vfat, xfs"
            ),
        ),
        (
            ["probe", "--fs", "bcachefs"],
            snapshot("bob: unknown file system 'bcachefs'"),
            snapshot(
                "hint: bob knows: btrfs, exfat, ext2, ext3, ext4, ext4-nojournal, f2fs, hfs, hfsplus, jfs, minix3, msdos, nilfs2, reiserfs, udf, vfat, xfs"
            ),
        ),
        (
            ["app", "git", "--model", "ext4-o"],
            snapshot("bob: unknown program 'git'"),
            snapshot("hint: did you mean one of git-commit, git-commit-fsync?"),
        ),
        (
            ["app", "replace-rename", "--fs", "ext4", "--shard", "4/4"],  # ext4 has three paces
            snapshot("bob: --shard 4/4 is empty: there are 3 pairs of a file system and a pace"),
            snapshot("hint: use 3 shards at most"),
        ),
        (["app", "v"], snapshot("bob: unknown program 'v'"), snapshot("hint: did you mean 'vim-save'?")),
        (
            ["app", "nothing"],
            snapshot("bob: unknown program 'nothing'"),
            snapshot(
                "hint: bob ships: berkeleydb-btree, berkeleydb-hash, dbm-dumb, dpkg-install, gdbm, git-commit, git-commit-fsync, hg-commit, hsqldb, leveldb, lmdb, nano-save, postgresql, redis, redis-everysec, replace-cp, replace-fsync-rename, replace-fsync-rename-fsync, replace-install, replace-mv, replace-rename, replace-sed, replace-truncate, shelve, sqlite-persist, sqlite-rollback, sqlite-rollback-extra, sqlite-rollback-normal, sqlite-rollback-off, sqlite-truncate, sqlite-wal, sqlite-wal-normal, vim-save, zookeeper"
            ),
        ),
        (
            ["probe", "--fs", "EXT4"],
            snapshot("bob: unknown file system 'EXT4'"),
            snapshot("hint: did you mean 'ext4'?"),
        ),
        (
            ["probe", "--fs", "./minix.toml"],
            snapshot("bob: cannot read minix.toml: No such file or directory"),
            snapshot("hint: is this the file that declares the file system? See docs/extend.md"),
        ),
        (
            ["try", "--fs", "no.toml", "create /a", "--expect", "exists /a"],
            snapshot("bob: cannot read no.toml: No such file or directory"),
            snapshot("hint: is this the file that declares the file system? See docs/extend.md"),
        ),
        (
            ["app", "replace-rename", "--fs", "./file"],
            snapshot("bob: file.toml: 'package' is missing"),
            snapshot("hint: see docs/formats.md"),
        ),
        (
            ["search", "--fs", "./nowhere/ext4"],
            snapshot("bob: cannot read nowhere/ext4: No such file or directory"),
            snapshot("hint: is this the file that declares the file system? See docs/extend.md"),
        ),
        ([*PROBE, "extra"], snapshot("bob: unknown command 'bob probe extra'"), snapshot("hint: bob knows: new")),
        (
            [*PROBE, "--budget", "0"],
            snapshot("bob: invalid value for '--budget': 0 is not in the range x>=1"),
            snapshot("hint: bob probe --help"),
        ),
        (
            [*PROBE, "--budget", "-5"],
            snapshot("bob: invalid value for '--budget': -5 is not in the range x>=1"),
            snapshot("hint: bob probe --help"),
        ),
        (
            [*PROBE, "--budget", "many"],
            snapshot("bob: invalid value for '--budget': 'many' is not a whole number"),
            snapshot("hint: bob probe --help"),
        ),
        (
            [*PROBE, "--seed", "x"],
            snapshot("bob: invalid value for '--seed': 'x' is not a valid integer"),
            snapshot("hint: bob probe --help"),
        ),
        (
            [*PROBE, "--property", "append-al"],
            snapshot("bob: unknown property 'append-al'"),
            snapshot("hint: did you mean 'append-any'?"),
        ),
        (
            [*PROBE, "--property", "xyzzy"],
            snapshot("bob: unknown property 'xyzzy'"),
            snapshot(
                "hint: bob knows: single-sector-overwrite, single-sector-append, single-block-overwrite, single-block-append, multi-block-append, multi-block-prefix-append, directory-op, overwrite-any, append-rename-any, trunc-append-any, append-append-same-file, append-any, directory-op-any, collateral, all"
            ),
        ),
        (
            [*PROBE, "--property", "sync.data"],
            snapshot("bob: unknown property 'sync.data'"),
            snapshot(
                "hint: bob knows: single-sector-overwrite, single-sector-append, single-block-overwrite, single-block-append, multi-block-append, multi-block-prefix-append, directory-op, overwrite-any, append-rename-any, trunc-append-any, append-append-same-file, append-any, directory-op-any, collateral, all"
            ),
        ),
        (
            [*PROBE, "--rows", "durability", "--property", "sync.dta"],
            snapshot("bob: unknown property 'sync.dta'"),
            snapshot("hint: did you mean 'sync.data'?"),
        ),
        (
            [*PROBE, "--rows", "all"],
            snapshot("bob: invalid value for '--rows': 'all' is not one of 'table1', 'pairs', 'durability', 'units'"),
            snapshot("hint: bob probe --help"),
        ),
        (
            [*PROBE, "--probe", "nowhere.toml"],
            snapshot("bob: cannot read nowhere.toml: No such file or directory"),
            snapshot("hint: is this the probe file?"),
        ),
        (
            [*PROBE, "--probe", "file"],
            snapshot("bob: file: 'name' is missing"),
            snapshot("hint: see docs/extend.md"),
        ),
        (
            [*PROBE, "new", "mine"],
            snapshot("bob: --fs does not apply to 'bob probe new'"),
            snapshot("hint: bob probe new NAME"),
        ),
        (["probe", "new"], snapshot("bob: missing argument 'NAME'"), snapshot("hint: bob probe new --help")),
        (
            ["probe", "new", "../mine"],
            snapshot("bob: invalid property name '../mine'; expected letters, digits, '-' and '_', at most 80"),
            snapshot("hint: for example bob probe new log-then-rename"),
        ),
        (
            ["probe", "new", "append-any"],
            snapshot("bob: 'append-any' is a shipped property"),
            snapshot("hint: choose another name, e.g. 'my-append-any'"),
        ),
        (
            [*PROBE, "--image", "debian-bookwurm"],
            snapshot("bob: unknown guest image 'debian-bookwurm'"),
            snapshot("hint: did you mean 'debian-bookworm'?"),
        ),
        (
            [*PROBE, "--device", "big"],
            snapshot("bob: --device: 'big' is not a size"),
            snapshot("hint: for example 64M or 1G"),
        ),
        (
            [*PROBE, "--device", "0"],
            snapshot("bob: --device: '0' is not a size"),
            snapshot("hint: for example 64M or 1G"),
        ),
        (
            [*PROBE, "--device", "3K"],
            snapshot("bob: a device of 3072 bytes is not a whole number of MiB"),
            snapshot("hint: for example --device 64M"),
        ),
        (
            [*PROBE, "--device", "2M"],
            snapshot(
                "bob: a device of 2 MiB is too small for ext4: below 8 MiB its mkfs refuses, or makes an unusual file system"
            ),
            snapshot("hint: --device 8M or more; the default is 32M"),
        ),
        (
            [*PROBE, "--stack", "linear,raid7"],
            snapshot("bob: unknown layer 'raid7'"),
            snapshot("hint: did you mean 'raid6'?"),
        ),
        (
            [*PROBE, "--stack", "raid1,ext4-journal"],
            snapshot("bob: the layer ext4-journal cannot be below the layer raid1"),
            snapshot("hint: it has to be the first in --stack: it hands its devices to ext4"),
        ),
        (
            ["probe", "--fs", "xfs", "--stack", "ext4-journal"],
            snapshot("bob: the layer ext4-journal is for ext4, not for xfs"),
            snapshot("hint: --fs ext4"),
        ),
        (
            [*PROBE, "--stack", "raid1", "--lose-disk", "2"],
            snapshot("bob: there is no disk 2 to lose"),
            snapshot("hint: this stack has the disks 0 to 1"),
        ),
        (
            [*PROBE, "--stack", "raid5", "--lose-disk", "0", "--without-disk", "3"],
            snapshot("bob: there is no disk 3 to lose"),
            snapshot("hint: this stack has the disks 0 to 2"),
        ),
        (
            [*PROBE, "--stack", "raid1", "--lose-disk", "0", "--without-disk", "1"],
            snapshot("bob: all 2 disks of this stack would be lost"),
            snapshot("hint: one has to stay"),
        ),
        (
            [*PROBE, "--lose-disk", "0"],
            snapshot("bob: only a disk below layers can be lost"),
            snapshot("hint: name the layers with --stack"),
        ),
        (
            [*PROBE, "--stack", "raid5,raid5"],
            snapshot("bob: the stack raid5,raid5 takes 9 disks; a guest has 8 at most"),
            snapshot("hint: each layer is there once for each device of the layer above it"),
        ),
        (
            [*PROBE, "--stack", "linear", "--write-cache", "ordered"],
            snapshot("bob: the write cache 'ordered' is for one disk, and this stack has 2"),
            snapshot("hint: use volatile, none"),
        ),
        (
            [*PROBE, "--stack", "raid1", "--device", "8M"],
            snapshot(
                "bob: a device of 7 MiB is too small for ext4: below 8 MiB its mkfs refuses, or makes an unusual file system"
            ),
            snapshot("hint: --device is the size of each disk, and the layers take a part of it"),
        ),
        (
            [*PROBE, "--device", "100G"],
            snapshot("bob: a device of 102,400 MiB is too large: a guest holds it in memory, at most 800 MiB"),
            snapshot("hint: --device 800M or less; the default is 32M"),
        ),
        (
            ["try", "--fs", "xfs", "--device", "8M", "create /a", "--expect", "exists /a"],
            snapshot(
                "bob: a device of 8 MiB is too small for xfs: below 300 MiB its mkfs refuses, or makes an unusual file system"
            ),
            snapshot("hint: --device 300M or more; the default is 300M"),
        ),
        (
            [*PROBE, "--write-cache", "some"],
            snapshot("bob: invalid value for '--write-cache': 'some' is not one of 'volatile', 'none', 'ordered'"),
            snapshot("hint: bob probe --help"),
        ),
        (
            [*PROBE, "--atomic-write", "100"],
            snapshot("bob: invalid value for '--atomic-write': '100' is not one of '8', '512', '4096', '16384'"),
            snapshot("hint: bob probe --help"),
        ),
        (
            [*PROBE, "--mkfs-opts", "-L 'a"],
            snapshot('bob: mkfs options "-L \'a": No closing quotation'),
            snapshot("hint: bob splits them as a shell does"),
        ),
        (
            [*PROBE, "--out", "full"],
            snapshot("bob: --out: full is not empty"),
            snapshot("hint: name a new directory: each run has its own"),
        ),
        (
            [*PROBE, "--out", "file"],
            snapshot("bob: --out: file is not a directory"),
            snapshot("hint: name another directory"),
        ),
        (
            [*PROBE, "--out", "file/run"],
            snapshot("bob: --out: cannot write to TMP/file: Not a directory"),
            snapshot("hint: name another directory"),
        ),
        (
            [*PROBE, "--out", "/proc/run"],
            snapshot("bob: --out: cannot write to /proc: No such file or directory"),
            snapshot("hint: name another directory"),
        ),
        (
            [*PROBE, "--json", "no/r.json"],
            snapshot("bob: --json: the directory no does not exist"),
            snapshot("hint: mkdir -p no"),
        ),
        (
            [*PROBE, "--json", "full"],
            snapshot("bob: --json: full is a directory"),
            snapshot("hint: for example full/result.json"),
        ),
        (
            [*PROBE, "--json", "/proc/r.json"],
            snapshot("bob: --json: cannot write /proc/r.json: No such file or directory"),
            snapshot("hint: name another file"),
        ),
        (["matrix"], snapshot("bob: missing option '--set'"), snapshot("hint: bob matrix --help")),
        (
            ["matrix", "--set", "osdi41"],
            snapshot("bob: unknown set 'osdi41'"),
            snapshot("hint: bob has defaults, modern, osdi14, plain, stacks, sync-table; or name a TOML file"),
        ),
        (
            ["matrix", "--set", "file"],
            snapshot("bob: file: 'configurations' is missing"),
            snapshot("hint: see docs/formats.md"),
        ),
        (
            ["matrix", "--resume", "nowhere"],
            snapshot("bob: invalid value for '--resume': Directory 'nowhere' does not exist"),
            snapshot("hint: bob matrix --help"),
        ),
        (["judge"], snapshot("bob: missing argument 'RUN'"), snapshot("hint: bob judge --help")),
        (
            ["judge", "nowhere"],
            snapshot("bob: invalid value for 'RUN': Directory 'nowhere' does not exist"),
            snapshot("hint: bob judge --help"),
        ),
        (["show"], snapshot("bob: missing argument 'RUN...'"), snapshot("hint: bob show --help")),
        (
            ["show", "nowhere"],
            snapshot("bob: invalid value for 'RUN...': Path 'nowhere' does not exist"),
            snapshot("hint: bob show --help"),
        ),
        (
            ["replay", "nowhere"],
            snapshot("bob: WITNESS...: the witness nowhere does not exist"),
            snapshot("hint: name a file, or a witness in a bundle"),
        ),
        (
            ["replay", "file", "--times", "0"],
            snapshot("bob: invalid value for '--times': 0 is not in the range x>=1"),
            snapshot("hint: bob replay --help"),
        ),
        (
            ["replay", "file", "--image", "x"],
            snapshot("bob: unknown guest image 'x'"),
            snapshot(
                "hint: bob knows: debian-bookworm, debian-bookworm-more, debian-bullseye, debian-trixie, debian-trixie-backports"
            ),
        ),
        (
            ["witness", "export", "file"],
            snapshot("bob: nothing to export"),
            snapshot("hint: give --probe FILE, --xfstests FILE or --dm-log FILE"),
        ),
        (
            ["witness", "export", "file", "--dm-log", "-"],
            snapshot("bob: --dm-log: cannot write to stdout"),
            snapshot("hint: name a file"),
        ),
        (
            ["witness", "export", "file", "--dm-log", "no/l"],
            snapshot("bob: --dm-log: the directory no does not exist"),
            snapshot("hint: mkdir -p no"),
        ),
        (
            ["witness", "export", "file", "--dm-log", "l", "--base", "./l"],
            snapshot("bob: the witness and the exported files must differ"),
            snapshot("hint: name another file"),
        ),
        (
            ["witness", "export", "file", "--dm-log", "file"],
            snapshot("bob: the witness and the exported files must differ"),
            snapshot("hint: name another file"),
        ),
        (
            ["image", "build", "x"],
            snapshot("bob: unknown guest image 'x'"),
            snapshot(
                "hint: bob knows: debian-bookworm, debian-bookworm-more, debian-bullseye, debian-trixie, debian-trixie-backports"
            ),
        ),
        (["image", "rm"], snapshot("bob: missing argument 'NAME...'"), snapshot("hint: bob image rm --help")),
        (["image", "rm", "x"], snapshot("bob: the guest image 'x' is not built"), snapshot("hint: built: none")),
        (
            ["doctor", "--json", "no/r.json"],
            snapshot("bob: --json: the directory no does not exist"),
            snapshot("hint: mkdir -p no"),
        ),
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
    assert first.replace(str(tmp_path), "TMP") == message
    assert second == hint
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
        assert text_with(first, option.opts[-1]).replace(option.opts[-1], "OPTION") == snapshot(
            "bob: OPTION takes one value, but is given 2 times"
        )
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
bob: --html: the directory gone does not exist
hint: mkdir -p gone
"""),
    )
    found.write_text("{}")
    assert bob("witness", "show", found, "--html", "a.html").code == 8
    assert not Path("a.html").exists()


def test_where_a_smaller_witness_goes(bob: Bob, found: Path) -> None:
    either = "bob: expected either --output FILE or --in-place\nhint: --in-place replaces the witness\n"
    assert bob("witness", "shrink", found) == Ended(2, "", either)
    assert bob("witness", "shrink", found, "--in-place", "--output", "b.json") == Ended(2, "", either)
    one = "bob: --output is for one witness\nhint: name one witness, or use --in-place\n"
    assert bob("witness", "shrink", found, found, "--output", "b.json") == Ended(2, "", one)


def test_what_became_smaller_as_json(bob: Bob, found: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two one does not show any more; with the witness on stdout, nothing else is there."""
    before, after = WitnessSize(5, 2, 9), WitnessSize(2, 1, 1)
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
