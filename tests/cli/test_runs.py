"""bob runs: what is listed, and what is removed, refused and left alone."""

from __future__ import annotations

import fcntl
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from bob.result import to_json
from bob.store.kept_runs import Kind, State, disk_use, kept_run, remove, runs_in

from .stand_in import Bob, result

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
        found={"expectations": [{"verdict": "fails"}]},
    )
    put("bob-runs/e", program={"name": "sqlite"}, found={"configurations": [{"safety": "safe"}, {"safety": "unknown"}]})
    put("bob-runs/f/debian-bookworm", request={"name": "btrfs"}, **DONE)
    put("bob-runs/f/debian-trixie", request={"name": "btrfs"})


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
        ("bob-runs/d", "try", "xfs", "stopped", {"fails": 1}),
        ("bob-runs/e", "app", "sqlite", "stopped", {"safe": 1, "unknown": 1}),
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
    assert bob("runs").out == "there are no runs in bob-runs\n"
    Path("empty").mkdir()
    assert bob("runs", "--in", "empty").out == "there are no runs in empty\n"
    assert json.loads(bob("runs", "--json", "-").out)["runs"] == []
    ended = bob("runs", "--in", "nowhere")
    assert (ended.code, ended.err.splitlines()[0]) == (
        2,
        "bob: invalid value for '--in': Directory 'nowhere' does not exist",
    )


def test_one_that_is_being_written_is_running_and_stays(bob: Bob) -> None:
    folder, other = put("bob-runs/a"), put("bob-runs/b")
    handle = locked(folder)
    assert kept_run(folder).state is State.RUNNING
    ended = bob("runs", "remove", "--yes", "bob-runs/a", "bob-runs/b")
    assert ended.code == 9
    assert ended.err == (
        "bob: another bob (process 4711) is writing bob-runs/a\nhint: wait until it is done, or end it\n"
    )
    assert (folder / "workloads" / "000-w" / "log").exists()
    assert not other.exists()
    os.close(handle)
    assert kept_run(folder).state is State.STOPPED
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
    assert kept_run(folder).state is State.STOPPED
    os.close(locked(folder))  # it would wait for ever if somebody held it


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "bob-runs/x is no run directory"),
        ("{", "bob-runs/x/run.json is damaged: "),
        ("[]", "bob-runs/x/run.json is damaged: "),
        ("{}", "bob-runs/x is no run directory"),
        ('{"id": "1", "started": "x"}', "bob-runs/x is no run directory"),
        ('{"id": 1, "bob": 2}', "bob-runs/x is no run directory"),
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
    assert run.state is (State.NO_RUN if content is None else State.DAMAGED)
    assert run.state.value in bob("runs").out
    ended = bob("runs", "remove", "--yes", "bob-runs/x")
    said, hint = ended.err.splitlines()
    assert (ended.code, ended.out) == (9, "")
    assert said.startswith(f"bob: {message}") and hint.startswith("hint: ")
    assert (folder / "workloads").is_dir()


def test_a_result_that_is_damaged_is_listed_without_verdicts(bob: Bob) -> None:
    for number, text in enumerate(("{", "[]", '{"configurations": 3}', '{"configurations": [{"properties": [1]}]}')):
        folder = put(f"bob-runs/{number}", **DONE)
        (folder / "result.json").write_text(text)
    assert [(run.state, run.verdicts) for run in runs_in(Path("bob-runs"))] == [(State.DONE, {})] * 4
    assert bob("runs").code == 0


def test_a_run_of_another_version_is_listed(bob: Bob) -> None:
    for number, about in enumerate(({}, {"request": 3}, {"columns": []}, {"program": {}}, {"expectations": []})):
        put(f"bob-runs/{number}", **about)
    assert [run.kind for run in runs_in(Path("bob-runs"))] == [
        Kind.PROBE, Kind.PROBE, Kind.MATRIX, Kind.APP, Kind.TRY
    ]  # fmt: skip
    assert bob("runs").code == 0


@pytest.mark.parametrize(
    ("path", "message", "hint"),
    [
        ("nowhere", "there is no nowhere", "bob runs lists"),
        ("bob-runs", "bob-runs is no run directory", "it has some: a, b, c, d, e"),
        ("bob-runs/f", "bob-runs/f is no run directory", "it has some: debian-bookworm, debian-trixie"),
        ("bob-runs/a/run.json", "bob-runs/a/run.json is no run directory", "it has no run.json"),
        ("link", "link is a link, not a run directory", "bob runs remove "),
    ],
)
def test_what_cannot_be_removed(bob: Bob, path: str, message: str, hint: str) -> None:
    every_kind()
    Path("link").symlink_to("bob-runs/a")
    before = sorted(Path().rglob("*"))
    ended = bob("runs", "remove", "--yes", path)
    said, told = ended.err.splitlines()
    assert ended.code == 9
    assert said == f"bob: {message}" and told.startswith(f"hint: {hint}")
    assert sorted(Path().rglob("*")) == before


def test_several_are_removed_and_each_once(bob: Bob) -> None:
    every_kind()
    Path("bob-runs/searched.json").write_text("{}")
    taken = disk_use(Path("bob-runs/a"))
    ended = bob("runs", "remove", "--yes", "bob-runs/a", "bob-runs/b", "bob-runs/a", "bob-runs/searched.json")
    assert ended.code == 9  # searched.json is no run, and stays
    assert [line.split()[:2] for line in ended.out.splitlines()] == [
        ["removed", "bob-runs/a"],
        ["removed", "bob-runs/b"],
    ]
    assert taken >= 10_000
    assert sorted(path.name for path in Path("bob-runs").iterdir()) == ["c", "d", "e", "f", "searched.json"]
    assert bob("runs", "remove", "--yes", "bob-runs/f/debian-trixie").code == 0


def test_bob_asks_first(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put("bob-runs/a")
    ended = bob("runs", "remove", "bob-runs/a")
    assert (ended.code, folder.exists()) == (2, True)
    assert ended.err == (
        "bob: there is nobody to ask whether they may go\nhint: --yes removes them without a question\n"
    )
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    answers = iter(["n", "y"])
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _text: next(answers))
    assert (bob("runs", "remove", "bob-runs/a").code, folder.exists()) == (2, True)
    assert (bob("runs", "remove", "bob-runs/a").code, folder.exists()) == (0, False)


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
    assert ended.err.startswith(f"bob: cannot remove {folder.resolve()}: Permission denied\n")
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
