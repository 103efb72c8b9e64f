"""bob runs: what is listed, and what is removed, refused and left alone."""

from __future__ import annotations

import fcntl
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from bob import settings
from bob.answer.document import to_json
from bob.image import images_folder
from bob.settings import cache_folder
from bob.store.kept_runs import RunState, disk_use, kept_run, remove, runs_in
from bob.store.run_kind import RunKind, subject_of
from wording import line_with, text_with

from .stand_in import Bob, Work, result

ABOUT = {"id": "made-up", "started": "2026-11-21T23:00:21Z", "bob": "0.1.0"}
DONE = {"finished": "2026-11-21T23:04:33Z"}


def put(path: str, *, found: Any = None, **about: Any) -> Path:
    """A run directory with this run.json, beside what all of them have, and this result."""
    folder = Path(path)
    (folder / "workloads" / "000-w").mkdir(parents=True)
    (folder / "workloads" / "000-w" / "log").write_bytes(b"x" * 10_000)
    (folder / "run.json").write_text(json.dumps({**ABOUT, **about}))
    if found is not None:
        (folder / "result.json").write_text(json.dumps(found))
    return folder


def a_question() -> dict[str, Any]:
    """The result of ``bob try``, as an older version wrote it: both expectations fail."""
    path = Path(__file__).parents[1] / "answer" / "try-1.json"
    return dict(json.loads(path.read_text())["one finish"])


def a_program() -> dict[str, Any]:
    """The result of ``bob app`` for one program, as an older version wrote it: safe and unknown."""
    states = {"explored": 1, "legal_writes": 1, "legal_sectors": 1, "exhaustive": None, "mounted_states": 1}
    counts = {"windows": 1, "trees": 1, "checks": 1, "mounted": "", "vulnerabilities": [], "notes": []}
    answers = [
        {"name": name, "safety": safety, "reason": None, **states, **counts}
        for name, safety in (("ext4", "safe"), ("xfs", "unknown"))
    ]
    return {"schema": "bob.app/1", "program": {"name": "sqlite", "about": ""}, "configurations": answers}


def every_kind() -> None:
    """A run of each command, and one on two kernels."""
    put("bob-runs/a", request={"name": "ext4-ordered"}, found=to_json(result()), **DONE)
    matrix = put("bob-runs/b", set="osdi14", columns=["ext2", "ext4"], found=to_json(result(unknown=False)))
    put(f"{matrix}/ext2", request={"name": "ext2"})
    put("bob-runs/c", lots=[["lot-001", 3]], request={"name": "f2fs"})
    put(
        "bob-runs/d",
        expectations=["mounts"],
        configuration={"name": "xfs"},
        found=a_question(),
    )
    put("bob-runs/e", program={"name": "sqlite"}, found=a_program())
    put("bob-runs/f/debian-bookworm", request={"name": "btrfs"}, **DONE)
    put("bob-runs/f/debian-trixie", request={"name": "btrfs"})


def test_one_configuration_is_not_several() -> None:
    assert subject_of({"set": "small", "columns": ["ext2"]}) == "small (1 configuration)"
    assert subject_of({"set": "osdi14", "columns": ["ext2", "ext4"]}) == "osdi14 (2 configurations)"


def locked(folder: Path) -> int:
    """A handle that holds the lock of a run, as another bob would."""
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    os.write(handle, b"4711")
    return handle


def test_every_kind_is_listed(bob: Bob) -> None:
    every_kind()
    ended = bob("runs", "--json", "-")
    found = json.loads(ended.out)
    assert (ended.code, ended.err, found["schema"]) == (0, "", "bob.runs/1")
    rows = [(run["path"], run["kind"], run["of"], run["state"], run["verdicts"]) for run in found["runs"]]
    assert rows == [
        ("bob-runs/a", "probe", "ext4-ordered", "done", {"fails": 1, "holds": 1, "unknown": 1}),
        ("bob-runs/b", "matrix", "osdi14 (2 configurations)", "done", {"fails": 1, "holds": 1}),
        ("bob-runs/c", "search", "f2fs", "stopped", {}),
        ("bob-runs/d", "try", "xfs", "stopped", {"fails": 2}),
        ("bob-runs/e", "app", "sqlite", "stopped", {"holds": 1, "unknown": 1}),
        ("bob-runs/f/debian-bookworm", "probe", "btrfs", "done", {}),
        ("bob-runs/f/debian-trixie", "probe", "btrfs", "stopped", {}),
    ]
    assert all(run["bytes"] >= 10_000 for run in found["runs"])
    assert found["runs"][1]["bytes"] >= 20_000


def test_as_a_table(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    every_kind()
    monkeypatch.setenv("COLUMNS", "140")
    ended = bob("runs")
    lines = ended.out.splitlines()
    assert lines[0].split() == ["run", "of", "began", "found", "size"]
    assert lines[1].startswith("bob-runs/a ")
    assert "probe ext4-ordered" in lines[1] and "2026-11-21 23:00" in lines[1]
    assert "1 ×, 1 holds, 1 ?" in lines[1]
    assert lines[-1].startswith("7 runs, ")
    (Path("bob-runs") / "junk").mkdir()
    (Path("bob-runs") / "junk" / "file").touch()
    assert text_with(bob("runs").out.splitlines()[-1], 7, 1) == snapshot("7 runs and 1 other folder, 244 KiB")
    monkeypatch.setenv("COLUMNS", "80")
    assert all(len(line) <= 80 for line in bob("runs").out.splitlines())


def test_on_a_narrow_terminal_no_word_is_broken(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the long name that bob gives to a run; its date is in that name."""
    put("bob-runs/20261125T174901-2df272", set="osdi14", columns=["ext2", "ext4"], found=to_json(result(unknown=False)))
    monkeypatch.setenv("COLUMNS", "80")
    words = bob("runs").out.split()
    assert {"bob-runs/20261125T174901-2df272", "matrix", "osdi14", "configurations)", "holds"} < set(words)
    assert "began" not in words


def test_where_there_are_none(bob: Bob) -> None:
    assert text_with(bob("runs").out, "bob-runs") == snapshot("there are no runs in bob-runs\n")
    Path("empty").mkdir()
    assert bob("runs", "--in", "empty").out == snapshot("there are no runs in empty\n")
    assert json.loads(bob("runs", "--json", "-").out)["runs"] == []
    ended = bob("runs", "--in", "nowhere")
    assert (ended.code, ended.err.splitlines()[0]) == (
        2,
        snapshot("bob: invalid value for '--in': Directory 'nowhere' does not exist"),
    )


def test_one_that_is_being_written_is_running_and_stays(bob: Bob) -> None:
    folder, other = put("bob-runs/a"), put("bob-runs/b")
    handle = locked(folder)
    assert kept_run(folder).state is RunState.RUNNING
    ended = bob("runs", "remove", "--yes", "bob-runs/a", "bob-runs/b")
    assert ended.code == 9
    assert text_with(ended.err, 4711, "bob-runs/a") == snapshot("""\
bob: another bob (process 4711) is writing bob-runs/a
hint: wait until it is done, or stop it
""")
    assert (folder / "workloads" / "000-w" / "log").exists()
    assert not other.exists()
    os.close(handle)
    assert kept_run(folder).state is RunState.STOPPED
    assert bob("runs", "remove", "--yes", "bob-runs/a").code == 0
    assert not folder.exists()


def test_a_matrix_of_which_a_column_is_being_written_stays(bob: Bob) -> None:
    every_kind()
    handle = locked(Path("bob-runs/b/ext2"))
    ended = bob("runs", "remove", "--yes", "bob-runs/b")
    assert (ended.code, Path("bob-runs/b/run.json").exists()) == (9, True)
    assert "is writing bob-runs/b/ext2" in ended.err
    os.close(handle)


def test_looking_makes_no_lock_and_holds_none(bob: Bob) -> None:
    folder = put("bob-runs/a")
    bob("runs")
    assert not (folder / "lock").exists()
    os.close(locked(folder))
    assert kept_run(folder).state is RunState.STOPPED
    os.close(locked(folder))  # it would wait for ever if somebody held it


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            None,
            snapshot("""\
bob: bob-runs/x is not a run directory
hint: it lacks run.json; if bob was killed early, remove it by rm -r
"""),
        ),
        (
            "{",
            snapshot("""\
bob: bob-runs/x/run.json is damaged: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)
hint: restore the file, or probe again
"""),
        ),
        (
            "[]",
            snapshot("""\
bob: bob-runs/x/run.json is damaged: it is not a JSON object
hint: restore the file, or probe again
"""),
        ),
        (
            "{}",
            snapshot("""\
bob: bob-runs/x is not a run directory
hint: bob did not write its run.json
"""),
        ),
        (
            '{"id": "1", "started": "x"}',
            snapshot("""\
bob: bob-runs/x is not a run directory
hint: bob did not write its run.json
"""),
        ),
        (
            '{"id": 1, "bob": 2}',
            snapshot("""\
bob: bob-runs/x is not a run directory
hint: bob did not write its run.json
"""),
        ),
    ],
)
def test_what_is_no_run_is_told_of_and_stays(bob: Bob, content: str | None, message: str) -> None:
    """One that was being made when bob was killed, one whose run.json was cut, and that of another program."""
    folder = Path("bob-runs/x")
    for name in ("bases", "workloads", "witnesses"):
        (folder / name).mkdir(parents=True)
    if content is not None:
        (folder / "run.json").write_text(content)
    [run] = runs_in(Path("bob-runs"))
    assert run.state is (RunState.NO_RUN if content is None else RunState.DAMAGED)
    assert run.state.value in bob("runs").out
    ended = bob("runs", "remove", "--yes", "bob-runs/x")
    assert (ended.code, ended.out) == (9, "")
    assert text_with(ended.err, "bob-runs/x") == message
    assert [line.split()[0] for line in ended.err.splitlines()] == ["bob:", "hint:"]
    assert (folder / "workloads").is_dir()


def test_a_result_that_is_damaged_is_listed_without_verdicts(bob: Bob) -> None:
    for number, text in enumerate(("{", "[]", '{"configurations": 3}', '{"configurations": [{"properties": [1]}]}')):
        folder = put(f"bob-runs/{number}", **DONE)
        (folder / "result.json").write_text(text)
    assert [(run.state, run.verdicts) for run in runs_in(Path("bob-runs"))] == [(RunState.DONE, {})] * 4
    assert bob("runs").code == 0


def test_a_run_of_another_version_is_listed(bob: Bob) -> None:
    for number, about in enumerate(({}, {"request": 3}, {"columns": []}, {"program": {}}, {"expectations": []})):
        put(f"bob-runs/{number}", **about)
    assert [run.kind for run in runs_in(Path("bob-runs"))] == [
        RunKind.PROBE, RunKind.PROBE, RunKind.MATRIX, RunKind.APP, RunKind.TRY
    ]  # fmt: skip
    assert bob("runs").code == 0


@pytest.mark.parametrize(
    ("path", "message", "hint"),
    [
        ("nowhere", snapshot("bob: nowhere does not exist"), snapshot("hint: bob runs lists run directories")),
        (
            "bob-runs",
            snapshot("bob: bob-runs is not a run directory"),
            snapshot("hint: it contains run directories: a, b, c, d, e"),
        ),
        (
            "bob-runs/f",
            snapshot("bob: bob-runs/f is not a run directory"),
            snapshot("hint: it contains run directories: debian-bookworm, debian-trixie"),
        ),
        (
            "bob-runs/a/run.json",
            snapshot("bob: bob-runs/a/run.json is not a run directory"),
            snapshot("hint: it lacks run.json; if bob was killed early, remove it by rm -r"),
        ),
        (
            "link",
            snapshot("bob: link is a link, not a run directory"),
            snapshot("hint: bob runs remove TMP/bob-runs/a"),
        ),
    ],
)
def test_what_cannot_be_removed(bob: Bob, path: str, message: str, hint: str) -> None:
    every_kind()
    Path("link").symlink_to("bob-runs/a")
    before = sorted(Path().rglob("*"))
    ended = bob("runs", "remove", "--yes", path)
    said, told = ended.err.splitlines()
    assert ended.code == 9
    assert said == message and told.replace(str(Path.cwd()), "TMP") == hint
    assert sorted(Path().rglob("*")) == before


def test_several_are_removed_and_each_once(bob: Bob) -> None:
    every_kind()
    Path("bob-runs/notes.json").write_text("{}")
    taken = disk_use(Path("bob-runs/a"))
    ended = bob("runs", "remove", "--yes", "bob-runs/a", "bob-runs/b", "bob-runs/a", "bob-runs/notes.json")
    assert ended.code == 9  # notes.json is no run, and stays
    assert [line.split()[:2] for line in ended.out.splitlines()] == [
        ["removed", "bob-runs/a"],
        ["removed", "bob-runs/b"],
    ]
    assert taken >= 10_000
    assert sorted(path.name for path in Path("bob-runs").iterdir()) == ["c", "d", "e", "f", "notes.json"]
    assert bob("runs", "remove", "--yes", "bob-runs/f/debian-trixie").code == 0


def test_bob_asks_first(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put("bob-runs/a")
    ended = bob("runs", "remove", "bob-runs/a")
    assert (ended.code, folder.exists()) == (2, True)
    assert text_with(ended.err, "--yes") == snapshot("""\
bob: cannot ask before the removal: stdin is not a terminal
hint: --yes removes them without asking
""")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    answers = iter(["n", "y"])
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _text: next(answers))
    assert (bob("runs", "remove", "bob-runs/a").code, folder.exists()) == (2, True)
    assert (bob("runs", "remove", "bob-runs/a").code, folder.exists()) == (0, False)


def test_bob_does_not_ask_about_what_it_cannot_remove(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put("bob-runs/a")
    assert bob("runs", "remove", "nowhere").err == snapshot("""\
bob: nowhere does not exist
hint: bob runs lists run directories
""")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    asked: list[str] = []
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda text: asked.append(text) or "y")
    ended = bob("runs", "remove", "nowhere", "bob-runs/a")
    assert (ended.code, folder.exists()) == (9, False)
    assert "remove bob-runs/a?" in ended.err + "".join(asked) and "nowhere?" not in ended.err + "".join(asked)


def test_a_run_goes_by_its_name_too(bob: Bob) -> None:
    listed, here = put("bob-runs/a"), put("b")
    also = put("bob-runs/b")
    assert bob("runs", "remove", "--yes", "a", "bob-runs/a").out.startswith("removed bob-runs/a")
    assert not listed.exists()
    assert bob("runs", "remove", "--yes", "b").out.startswith("removed b ")
    assert not here.exists() and also.exists(), "a path comes first"
    assert bob("runs", "remove", "--yes", "c").code == 9


def test_options_of_the_list_do_not_go_with_remove(bob: Bob) -> None:
    put("bob-runs/a")
    ended = bob("runs", "--in", "bob-runs", "remove", "--yes", "bob-runs/a")
    assert (ended.code, Path("bob-runs/a").exists()) == (2, True)


def test_what_cannot_be_deleted_is_told(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put("bob-runs/a")

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("bob.store.kept_runs.rmtree", refuse)
    ended = bob("runs", "remove", "--yes", "bob-runs/a")
    assert ended.code == 9
    assert ended.err.splitlines()[0].replace(str(folder.resolve()), "FOLDER") == snapshot(
        "bob: cannot remove FOLDER: Permission denied"
    )
    assert folder.exists()


def test_who_is_in_it_can_remove_it(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put("bob-runs/a").resolve()
    monkeypatch.chdir(folder)
    assert bob("runs", "remove", "--yes", ".").code == 0
    monkeypatch.chdir(folder.parent)
    assert not folder.exists()


def test_what_it_took_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = put("bob-runs/a")
    (folder / "hole").touch()
    os.truncate(folder / "hole", 2**30)
    assert 10_000 <= disk_use(folder) < 2**20
    assert remove(folder) >= 10_000


# bob.toml: which file is read, what it changes, and that a mistake in it is told in one line

PROBE = ("probe", "--fs", "ext4", "--quiet")
PAGE = Path(__file__).parents[2] / "docs" / "results.md"


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
    assert found == [mine, ("debian-bookworm", 9, 1), mine, mine, mine, mine, mine]


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
    said = " ".join(bob("probe", "--help").out.split()).replace("debian- trixie", "debian-trixie")  # at a line's end
    assert "[default: 7; x>=1]" in said and "[default: debian-trixie]" in said
    assert "[default: 3; x>=1]" in said
    Path("bob.toml").write_text("budget = ")
    said = " ".join(bob("probe", "--help").out.split())
    assert "[default: 100; x>=1]" in said and "[default: one per processor" in said


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("imag = 'x'", "bob.toml: unknown key 'imag'", snapshot("hint: did you mean 'image'?")),
        (
            "[probe]\nfs = 1",
            "bob.toml: unknown key 'probe'",
            snapshot("hint: the known keys: image, jobs, budget, checks, cache"),
        ),
        (
            "jobs = 'many'",
            "bob.toml: invalid jobs 'many'; expected a whole number, 1 or more",
            snapshot("hint: for example jobs = 2"),
        ),
        (
            "jobs = true",
            "bob.toml: invalid jobs True; expected a whole number, 1 or more",
            snapshot("hint: for example jobs = 2"),
        ),
        (
            "budget = 0",
            "bob.toml: invalid budget 0; expected a whole number, 1 or more",
            snapshot("hint: for example budget = 100"),
        ),
        (
            "budget = 1.5",
            "bob.toml: invalid budget 1.5; expected a whole number",
            snapshot("hint: for example budget = 100"),
        ),
        (
            "image = 3",
            "bob.toml: invalid image 3; expected a name",
            snapshot('hint: for example image = "debian-bookworm"'),
        ),
        (
            "image = ['a', 'b']",
            "bob.toml: invalid image ['a', 'b']; expected a name",
            snapshot('hint: for example image = "debian-bookworm"'),
        ),
        (
            "image = ''",
            "bob.toml: invalid image ''; expected a name",
            snapshot('hint: for example image = "debian-bookworm"'),
        ),
        (
            "image = 'debian-trixi'",
            "bob.toml: unknown guest image 'debian-trixi'",
            snapshot("hint: did you mean 'debian-trixie'?"),
        ),
        (
            "cache = 3",
            "bob.toml: invalid cache 3; expected a folder",
            snapshot('hint: for example cache = "/big/disk/bob"'),
        ),
        (
            "cache = '~nobody-of-this-name/x'",
            "bob.toml: invalid cache '~nobody",
            snapshot('hint: for example cache = "/big/disk/bob"'),
        ),
        (
            'cache = "a\\u0000b"',
            "bob.toml: invalid cache 'a\\x00b'; expected a folder",
            snapshot('hint: for example cache = "/big/disk/bob"'),
        ),
        (
            f"image = ['{'x' * 200}']",
            "bob.toml: invalid image ['xxxxxxxxxxx",
            snapshot('hint: for example image = "debian-bookworm"'),
        ),
        ("jobs = ", "bob.toml: ", snapshot("hint: docs/results.md#settings lists the settings of bob.toml")),
        (
            "jobs = 1\njobs = 2",
            "bob.toml: ",
            snapshot("hint: docs/results.md#settings lists the settings of bob.toml"),
        ),
        (b"\xff", "bob.toml: ", snapshot("hint: docs/results.md#settings lists the settings of bob.toml")),
    ],
)
@pytest.mark.parametrize("command", [PROBE, ("app", "replace-mv", "--fs", "ext4"), ("doctor",)], ids=lambda it: it[0])
def test_a_mistake_is_told_in_one_line(
    bob: Bob, work: Work, command: tuple[str, ...], text: str | bytes, message: str, hint: str
) -> None:
    Path("bob.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    ended = bob(*command)
    if command == ("doctor",) and "unknown guest image" in message:
        assert line_with(ended.out, "debian-trixi") == snapshot("""\
missing settings                       bob.toml: unknown guest image 'debian-trixi'
hint                           known: debian-bookworm, debian-bookworm-more, debian-bullseye, debian-trixie, debian-trixie-backports
note    image debian-trixie            not built; a probe builds it first
hint                           bob image build debian-trixie
note    image debian-trixie-backports  not built; a probe builds it first
hint                           bob image build debian-trixie-backports\
""")
        assert ended.out.splitlines()[-1] == snapshot("a probe cannot run: settings")
        return
    said, told = ended.err.splitlines()
    assert (ended.code, ended.out, work.asked) == (2, "", [])
    assert said.startswith(f"bob: {message}") and len(said) < 150
    assert told.replace(str(Path.cwd()), "TMP") == hint


def test_one_that_cannot_be_read(bob: Bob, work: Work) -> None:
    Path("bob.toml").mkdir()
    ended = bob(*PROBE)
    assert (ended.code, work.asked) == (2, [])
    assert text_with(ended.err, "bob.toml") == snapshot("""\
bob: cannot read bob.toml: Is a directory
hint: fix its permissions, or move it
""")


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

    assert text_with(said(), home / "bob.toml").replace(str(home), "HOME") == snapshot(
        "bob's defaults; neither bob.toml nor HOME/bob.toml exists"
    )
    (home / "bob.toml").write_text("jobs = 2\n")
    assert said() == f"{home / 'bob.toml'} sets jobs 2"
    Path("bob.toml").touch()
    assert said() == "bob.toml sets nothing"


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


@pytest.mark.parametrize("columns", ["72", "80", "100"])
def test_a_list_breaks_names_only_where_there_is_no_room(
    bob: Bob, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    found = to_json(result())
    put("bob-runs/20261121T230021-1f2e3d", request={"name": "ext4-datajournal"}, found=found, **DONE)
    lines = bob("runs").out.splitlines()
    assert any("ext4-datajournal" in line for line in lines), lines
    assert all(word in " ".join(lines).split() for word in ("×,", "holds,", "?"))
    assert max(map(len, lines)) <= int(columns)
