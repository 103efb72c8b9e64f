"""`bob app build`: the script of a folder in a sandbox, here with this machine's own root in place of a guest's."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from inline_snapshot import snapshot

from bob.errors import MissingProgramError, UsageError
from bob.program.folder import APP
from bob.progress import Silent
from bob.run import builds
from bob.run.builds import build_program
from wording import text_with


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "my app"
    made.mkdir()
    (made / "app.toml").write_text('packages = ["sqlite3"]\nbuild_packages = ["gcc"]\n')
    for name in ("workload", "check"):
        script(made, name, "exit 0")
    monkeypatch.setattr(builds, "ensure", lambda name, _progress: SimpleNamespace(name=name, root=Path("/disk")))
    monkeypatch.setattr(builds, "ensure_world", lambda _image, _packages, _progress: None)
    monkeypatch.setattr(builds, "unpacked", lambda _disk, _owner, _progress: Path("/"))
    return made


def script(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_what_the_script_made_is_in_the_folder(folder: Path) -> None:
    (folder / "kept").write_text("1")
    script(
        folder, "build", 'set -e; mkdir out; echo "$(id -u)" >out/user; cp build out/tool; echo 2 >"$TMPDIR/x"; rm kept'
    )
    assert build_program(folder, "debian-bookworm", Silent()) == ["out/tool", "out/user"]
    assert (folder / "out/user").read_text() == "0\n"
    assert (folder / "out/tool").stat().st_mode & 0o111 and (folder / "kept").read_text() == "1"
    script(folder, "build", "echo 3 >kept")
    assert build_program(folder, "debian-bookworm", Silent()) == ["kept"]


def test_the_script_reaches_nothing_else(folder: Path, tmp_path: Path) -> None:
    script(
        folder, "build", f'! touch {tmp_path}/outside && ! ls /sys/class/net/lo && test -z "$(ls /tmp | grep -v bob)"'
    )
    assert build_program(folder, "debian-bookworm", Silent()) == []
    assert not (tmp_path / "outside").exists()


def test_a_script_that_fails_leaves_the_folder(folder: Path) -> None:
    script(folder, "build", "echo 1 >made; exit 3")
    with pytest.raises(UsageError) as error:
        build_program(folder, "debian-bookworm", Silent())
    assert text_with(str(error.value).replace(str(folder), "FOLDER"), "build", 3) == snapshot("FOLDER/build failed (3)")
    assert "build_packages" in (error.value.hint or "") and not (folder / "made").exists()


def test_packages_for_the_build(folder: Path) -> None:
    with pytest.raises(UsageError) as error:
        APP.packages_to_build(folder)
    assert "build" in error.value.message
    script(folder, "build", "true")
    assert APP.packages_to_build(folder) == ("sqlite3", "gcc")
    (folder / "app.toml").write_text("")
    assert "gcc" in APP.packages_to_build(folder)


def test_without_a_sandbox_there_is_another_way(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(folder, "build", "true")
    monkeypatch.setattr(builds.bubblewrap, "why_not", lambda: "no namespaces")
    with pytest.raises(MissingProgramError) as error:
        build_program(folder, "debian-bookworm", Silent())
    assert "no namespaces" in error.value.message and "debian-bookworm" in (error.value.hint or "")
