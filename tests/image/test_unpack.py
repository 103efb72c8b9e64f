"""An image's files, unpacked for sandboxes on the host: once, whole, and for one user."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bob.errors import ImageError
from bob.image.unpack import unpacked

WHEN = 1_600_000_000


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    top = tmp_path / "files"
    (top / "usr/bin").mkdir(parents=True)
    (top / "usr/bin/tool").write_bytes(os.urandom(100_000))
    (top / "usr/bin/tool").chmod(0o4755)
    (top / "private").mkdir(mode=0o700)
    (top / "private/key").write_text("key")
    (top / "private/key").chmod(0o600)
    (top / "bin").symlink_to("usr/bin")
    os.utime(top / "usr/bin/tool", (WHEN, WHEN))
    (tmp_path / "image").mkdir()
    disk = tmp_path / "image" / "root.erofs"
    subprocess.run(["mkfs.erofs", "--quiet", "--preserve-mtime", "-x-1", str(disk), str(top)], check=True)
    return disk


def test_files_keep_modes_and_times_and_belong_to_one_user(disk: Path, tmp_path: Path) -> None:
    owner = 4711 if os.geteuid() == 0 else os.geteuid()
    said: list[str] = []
    folder = unpacked(disk, owner, said.append)
    assert folder == disk.parent / f"unpacked-{owner}" and len(said) == 1
    tool, key = (folder / path for path in ("usr/bin/tool", "private/key"))
    assert tool.read_bytes() == (tmp_path / "files/usr/bin/tool").read_bytes()
    assert (tool.stat().st_mode & 0o777, tool.stat().st_mtime) == (0o755, WHEN)
    assert [one.stat().st_mode & 0o777 for one in (key, key.parent)] == [0o600, 0o700]
    assert (folder / "bin").readlink() == Path("usr/bin")
    assert {path.lstat().st_uid for path in (folder, *folder.rglob("*"))} == {owner}


def test_it_is_done_once_and_by_its_image_where_a_link_leads_there(disk: Path, tmp_path: Path) -> None:
    link = tmp_path / "root.erofs"
    link.symlink_to(disk)
    folder = unpacked(link, os.geteuid(), lambda _step: None)
    inode = folder.stat().st_ino
    (disk.parent / f".unpacked-{os.geteuid()}.part").mkdir()
    assert unpacked(disk, os.geteuid(), pytest.fail) == folder == disk.parent / f"unpacked-{os.geteuid()}"
    assert folder.stat().st_ino == inode


def test_another_user_has_another_folder_and_another_disk_is_unpacked_again(disk: Path) -> None:
    others = [4711, 4712] if os.geteuid() == 0 else [os.geteuid()]
    folders = [unpacked(disk, owner, lambda _step: None) for owner in others]
    assert [folder.stat().st_uid for folder in folders] == others
    again = disk.with_name("files")
    again.mkdir()
    (again / "new").touch()
    for already in (False, True):
        if already:
            disk.unlink()
        subprocess.run(["mkfs.erofs", "--quiet", str(disk), str(again)], check=True)
        assert [path.name for path in unpacked(disk, others[0], lambda _step: None).iterdir()] == ["new"]


def test_where_the_program_is_missing_it_is_named(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ImageError, match=r"fsck\.erofs is not installed") as refused:
        unpacked(disk, os.geteuid(), lambda _step: None)
    assert refused.value.hint is None


def test_what_an_ended_bob_has_left_half_done_is_done_again(disk: Path) -> None:
    part = disk.parent / f".unpacked-{os.geteuid()}.part"
    (part / "usr").mkdir(parents=True)
    (part / "usr/of-before").touch()
    folder = unpacked(disk, os.geteuid(), lambda _step: None)
    assert not (folder / "usr/of-before").exists() and not part.exists()


def test_a_damaged_image_is_told_and_leaves_nothing(disk: Path) -> None:
    disk.write_bytes(bytes(8192))
    with pytest.raises(ImageError, match="cannot be unpacked"):
        unpacked(disk, os.geteuid(), lambda _step: None)
    assert not [path.name for path in disk.parent.glob("*unpacked*") if not path.name.endswith(".lock")]
