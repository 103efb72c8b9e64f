"""What cannot be asked is refused in two lines, with exit code 2, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from .stand_in import Bob, Work

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
        (["probe", "--fs", "ext5"], "unknown file system 'ext5'", "did you mean 'ext4'?"),
        (["probe", "--fs", "minix"], "unknown file system 'minix'", "bob knows: btrfs, exfat, ext2, ext3, ext4, "),
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
            "bob has defaults, modern, osdi14; or name a TOML file",
        ),
        (["matrix", "--set", "file"], "file: 'configurations' is missing", "see docs/formats.md"),
        (["matrix", "--resume", "nowhere"], "invalid value for '--resume': Directory 'nowhere' does", "bob matrix"),
        (["judge"], "missing argument 'RUN'", "bob judge --help"),
        (["judge", "nowhere"], "invalid value for 'RUN': Directory 'nowhere' does not exist", "bob judge --help"),
        (["show"], "missing argument 'RUN...'", "bob show --help"),
        (["show", "nowhere"], "invalid value for 'RUN...': Path 'nowhere' does not exist", "bob show --help"),
        (["replay", "nowhere"], "invalid value for 'WITNESS...': Path 'nowhere' does not exist", "bob replay --help"),
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


def test_the_default_run_directory_must_be_writable(bob: Bob, work: Work, tmp_path: Path) -> None:
    (tmp_path / "bob-runs").touch()

    ended = bob(*PROBE)

    assert ended.code == 2
    assert ended.err.startswith("bob: --out: cannot write to ")
    assert work.asked == []


@pytest.mark.parametrize("arguments", [[], ["image"], ["trace"]])
def test_a_group_alone_shows_its_help(bob: Bob, arguments: list[str]) -> None:
    ended = bob(*arguments)

    assert ended.code == 2
    assert ended.err.startswith(" ".join(["Usage: bob", *arguments]))
