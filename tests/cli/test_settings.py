"""bob.toml: which file is read, what it changes, and that a mistake in it is told in one line."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from bob import settings
from bob.guest.paths import cache_folder
from bob.image import images_folder

from .stand_in import Bob, Work

PROBE = ("probe", "--fs", "ext4", "--quiet")
PAGE = Path(__file__).parents[2] / "docs" / "ci.md"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's own bob.toml."""
    settings.forget()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "bob").mkdir(parents=True)
    return tmp_path / "config" / "bob"


def test_it_has_defaults_and_the_command_line_wins(bob: Bob, work: Work) -> None:
    Path("bob.toml").write_text('image = "debian-trixie"\njobs = 3\nbudget = 7\n')
    bob(*PROBE)
    bob(*PROBE, "--budget", 9, "--image", "debian-bookworm", "--jobs", 1, "--out", "b")
    bob("matrix", "--set", "osdi14", "--quiet", "--out", "c")
    bob("search", "--fs", "ext4", "--quiet", "--out", "d")
    bob("try", "--fs", "ext4", "create /a", "--expect", "exists /a", "--quiet", "--out", "e")
    bob("app", "replace-mv", "--fs", "ext4", "--quiet", "--out", "f")
    bob("app", "check", "replace-mv", "--fs", "ext4", "--quiet")
    first, second, matrix, search, trial, app, check = work.asked
    requests = [first[0], second[0], matrix[1], search[1], trial[0].request, app[1][0], check[1][0]]
    found = [(request.image, request.budget, request.host.jobs) for request in requests]
    mine = ("debian-trixie", 7, 3)
    assert found == [mine, ("debian-bookworm", 9, 1), mine, mine, ("debian-trixie", 7, None), mine, mine]


def test_a_run_that_is_gone_on_with_takes_the_jobs_alone(bob: Bob, work: Work) -> None:
    """What it was asked it knows itself, and none of it is refused as a change."""
    Path("bob.toml").write_text('image = "debian-trixie"\njobs = 3\nbudget = 7\n')
    Path("run").mkdir()
    assert bob("probe", "--resume", "run", "--quiet").code == 3
    [(_run, host)] = work.asked
    assert host.jobs == 3


def test_a_replay_takes_the_image_of_its_witness(bob: Bob, work: Work, tmp_path: Path) -> None:
    Path("bob.toml").write_text('image = "debian-trixie"\n')
    Path("w.json").write_text("{}")
    bob("replay", "w.json", "--quiet")
    [(_witnesses, more)] = work.asked
    assert more["image"] is None


def test_that_of_the_directory_is_read_and_no_other(bob: Bob, work: Work, home: Path) -> None:
    (home / "bob.toml").write_text("budget = 5\njobs = 2\n")
    bob(*PROBE)
    Path("bob.toml").write_text("budget = 6\n")
    bob(*PROBE, "--out", "b")
    found = [(request.budget, request.host.jobs) for request, _out in work.asked]
    assert found == [(5, 2), (6, None)]


def test_help_shows_the_defaults_of_the_file(bob: Bob) -> None:
    Path("bob.toml").write_text('image = "debian-trixie"\nbudget = 7\njobs = 3\n')
    said = " ".join(bob("probe", "--help").out.split())
    assert "[default: 7; x>=1]" in said and "[default: debian-trixie]" in said
    assert "[default: 3] [x>=1]" in said
    Path("bob.toml").write_text("budget = ")
    said = " ".join(bob("probe", "--help").out.split())
    assert "[default: 100; x>=1]" in said and "[default: one per processor, as far as memory goes] [x>=1]" in said


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("imag = 'x'", "bob.toml: unknown key 'imag'", "did you mean 'image'?"),
        ("[probe]\nfs = 1", "bob.toml: unknown key 'probe'", "keys there: image, jobs, budget, cache"),
        ("jobs = 'many'", "bob.toml: 'jobs' is 'many', not a whole number from 1 on", "for example jobs = 2"),
        ("jobs = true", "bob.toml: 'jobs' is True, not a whole number from 1 on", "for example jobs = 2"),
        ("budget = 0", "bob.toml: 'budget' is 0, not a whole number from 1 on", "for example budget = 2"),
        ("budget = 1.5", "bob.toml: 'budget' is 1.5, not a whole number", "for example budget = 2"),
        ("image = 3", "bob.toml: 'image' is 3, not a text", "for example image = "),
        ("image = ['a', 'b']", "bob.toml: 'image' is ['a', 'b'], not a text", "for example image = "),
        ("image = ''", "bob.toml: 'image' is '', not a text", "for example image = "),
        ("image = 'debian-trixi'", "bob.toml: unknown guest image 'debian-trixi'", "did you mean 'debian-trixie'?"),
        ("cache = 3", "bob.toml: 'cache' is 3, not a folder", "for example cache = "),
        ("cache = '~nobody-of-this-name/x'", "bob.toml: 'cache' is '~nobody", "for example cache = "),
        ('cache = "a\\u0000b"', "bob.toml: 'cache' is 'a\\x00b', not a folder", "for example cache = "),
        (f"image = ['{'x' * 200}']", "bob.toml: 'image' is ['xxxxxxxxxxx", "for example image = "),
        ("jobs = ", "bob.toml: ", "see docs/ci.md#settings"),
        ("jobs = 1\njobs = 2", "bob.toml: ", "see docs/ci.md#settings"),
        (b"\xff", "bob.toml: ", "see docs/ci.md#settings"),
    ],
)
@pytest.mark.parametrize("command", [PROBE, ("app", "replace-mv", "--fs", "ext4"), ("doctor",)], ids=lambda it: it[0])
def test_a_mistake_is_told_in_one_line(
    bob: Bob, work: Work, command: tuple[str, ...], text: str | bytes, message: str, hint: str
) -> None:
    Path("bob.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    ended = bob(*command)
    if command == ("doctor",) and "unknown guest image" in message:
        assert "image debian-trixi" in ended.out
        return
    said, told = ended.err.splitlines()
    assert (ended.code, ended.out, work.asked) == (2, "", [])
    assert said.startswith(f"bob: {message}") and len(said) < 150
    assert told.startswith(f"hint: {hint}")


def test_one_that_cannot_be_read(bob: Bob, work: Work) -> None:
    Path("bob.toml").mkdir()
    ended = bob(*PROBE)
    assert (ended.code, work.asked) == (2, [])
    assert ended.err.startswith("bob: cannot read bob.toml: Is a directory\nhint: ")


def test_commands_that_take_nothing_of_it_do_not_mind(bob: Bob) -> None:
    Path("bob.toml").write_text("wrong")
    for command in (("runs",), ("compare", "osdi14", "osdi14"), ("--version",), ("image", "--help"), ("--help",)):
        assert bob(*command).code == 0, command
    assert bob("image", "list").code == 2  # which would list another cache


def test_the_doctor_says_which_file_is_read(bob: Bob, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bob.cli.checks._libvirt", lambda: iter(()))

    def said() -> str:
        [line] = [line for line in bob("doctor").out.splitlines() if line.startswith("ok      settings ")]
        return line.partition("settings")[2].strip()

    assert said() == f"those of bob: there is no bob.toml and no {home / 'bob.toml'}"
    (home / "bob.toml").write_text("jobs = 2\n")
    assert said() == f"{home / 'bob.toml'} says jobs 2"
    Path("bob.toml").touch()
    assert said() == "bob.toml says nothing"


def test_the_cache(bob: Bob, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In it are images and what guests leave; a path counts from the file's folder."""
    (home / "bob.toml").write_text("cache = 'mine'\n")
    assert bob("image", "list").out.splitlines()[-1] == f"in {home / 'mine' / 'images'}"
    assert cache_folder("saved") == home / "mine" / "saved"
    settings.forget()
    Path("bob.toml").write_text("cache = '~/of-home'\n")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert images_folder() == tmp_path / "me" / "of-home" / "images"
    settings.forget()
    Path("bob.toml").write_text("jobs = 1\n")
    assert images_folder() == tmp_path / "cache" / "bob" / "images"  # that of XDG_CACHE_HOME


def test_who_has_begun_does_not_change_its_mind(bob: Bob) -> None:
    Path("bob.toml").write_text("budget = 5\n")
    assert settings.settings().budget == 5
    Path("bob.toml").write_text("wrong")
    assert settings.settings().budget == 5
    assert bob(*PROBE).code == 2  # another command line


def test_the_example_of_the_page_is_whole(tmp_path: Path) -> None:
    [example] = re.findall(r"<!-- settings -->\n```toml\n(.*?)```", PAGE.read_text(), flags=re.S)
    found = settings.read(Path("bob.toml"), example.encode())
    assert set(found.said) == set(settings.KEYS)
    assert found.cache == Path("/var/cache/bob")


def test_the_users_folder_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert settings.places()[1] == Path.home() / ".config" / "bob" / "bob.toml"
    monkeypatch.setenv("XDG_CONFIG_HOME", os.devnull)
    assert settings.settings() == settings.Settings()
