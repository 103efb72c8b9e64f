"""The ways to build an image, tried for what this machine permits; and why a build failed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from bob.image import failure, load_recipe, mmdebstrap
from bob.image.failure import explained, why_unreachable
from bob.image.mmdebstrap import BuildMode, joined
from wording import text_with

CONTAINER = Path(__file__).parents[1] / "ordinary_container.py"
RECIPE = load_recipe("debian-bookworm")
ASK = "from bob.image import mmdebstrap; print(mmdebstrap.build_mode().name)"

OFFLINE = """\
Ign:1 http://deb.debian.org/debian bookworm InRelease
Err:1 http://deb.debian.org/debian bookworm InRelease
  Temporary failure resolving 'deb.debian.org'
E: Failed to fetch http://deb.debian.org/debian/dists/bookworm/InRelease  Temporary failure resolving 'deb.debian.org'
E: apt-get update --error-on=any -oAPT::Status-Fd=<$fd> -oDpkg::Use-Pty=false failed
E: mmdebstrap failed to run
"""
GONE = """\
Err:2 http://192.0.2.1/debian bookworm Release
  404  Not Found [IP: 192.0.2.1 80]
E: apt-get update --error-on=any -oAPT::Status-Fd=<$fd> -oDpkg::Use-Pty=false failed
"""
FULL = """\
cp: error writing '/x/.bob/vmlinuz': No space left on device
E: setup failed: E: special hook failed with exit code 6400
E: mmdebstrap failed to run
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up capabilities and keep some")
@pytest.mark.parametrize(("rights", "way"), [([], BuildMode.CHROOT), (["--user", "65534"], BuildMode.FAKE)])
def test_an_ordinary_container_has_a_way(rights: list[str], way: BuildMode) -> None:
    words = [sys.executable, str(CONTAINER), *rights, sys.executable, "-c", ASK]
    environment = {**os.environ, "PYTHONPATH": str(CONTAINER.parents[1])}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [way.name]


@pytest.mark.skipif(os.geteuid() != 0, reason="unshare(2) is refused to others in many places")
def test_the_container_of_the_tests_is_one() -> None:
    tries = (
        "unshare --mount true; unshare -Ur true; mount -t tmpfs x /mnt; chroot / true && true & wait $! && echo forks"
    )
    done = subprocess.run([sys.executable, CONTAINER, "sh", "-c", tries], capture_output=True, text=True, check=True)
    assert done.stdout == "forks\n" and done.stderr.count("unshare failed") == 2 and "/mnt" in done.stderr


def test_links_that_fakechroot_made_lead_into_the_root_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "a root"
    (root / "usr").mkdir(parents=True)
    for name, to in (("inside", f"{root}/usr/bin/x"), ("relative", "usr"), ("elsewhere", "/proc/self")):
        (root / name).symlink_to(to)
    monkeypatch.setattr(mmdebstrap, "build_mode", lambda: BuildMode.FAKE)
    script = joined('echo "$1" >before\n', 'cp -a "$1" after\n')
    subprocess.run(["sh", "-euc", script, "sh", str(root)], cwd=tmp_path, check=True)
    links = {path.name: str(path.readlink()) for path in (tmp_path / "after").iterdir() if path.is_symlink()}
    assert links == {"inside": "/usr/bin/x", "relative": "usr", "elsewhere": "/proc/self"}
    monkeypatch.setattr(mmdebstrap, "build_mode", lambda: BuildMode.ROOT)
    assert joined("a\n", "b\n") == "a\nb\n"


def why(said: str, log: Path, *folders: Path) -> str:
    error = explained([line.strip() for line in said.splitlines()], RECIPE, log, folders)
    assert str(log) in (error.hint or "") and "\n" not in error.message
    return f"{error.message}\n{(error.hint or '').partition(';')[0]}"


def test_a_build_without_a_network_says_so(tmp_path: Path) -> None:
    assert text_with(why(OFFLINE, tmp_path / "log"), "deb.debian.org", "bookworm", "BOB_MIRROR") == snapshot(
        """\
cannot download the packages of Debian bookworm: Temporary failure resolving 'deb.debian.org'
is there a network? BOB_MIRROR sets another mirror, http_proxy a proxy\
"""
    )
    assert "404  Not Found" in why(GONE, tmp_path / "log")


def test_a_build_on_a_full_disk_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, scratch = tmp_path / "cache", tmp_path / "scratch"
    cache.mkdir(), scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    assert text_with(why(FULL, cache / "log", cache, scratch), str(scratch), "TMPDIR").startswith("the disk with")
    full = {cache: 4096, scratch: 2**40}
    monkeypatch.setattr(failure.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": full[folder]}))
    said = FULL.replace("No space left on device", "an error of no name")
    assert text_with(why(said, cache / "log", cache, scratch), str(cache), "XDG_CACHE_HOME").startswith("the disk with")
    full[cache] = 2**40
    assert why(said, cache / "log", cache, scratch).startswith("mmdebstrap failed: setup failed: E: special hook")


def test_doctor_reads_the_mirror_that_a_build_would_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as nobody:  # bound, but nobody listens
        nobody.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}/debian"
        for given in (address, f"deb [check-valid-until=no] {address} bookworm main"):
            monkeypatch.setenv("BOB_MIRROR", given)
            assert "refused" in (why_unreachable("bookworm") or "") and address in (why_unreachable("bookworm") or "")
    (tmp_path / "paper.list").write_text(f"deb {address} bookworm main\n")
    monkeypatch.setenv("BOB_MIRROR", str(tmp_path / "paper.list"))
    assert address in (why_unreachable("bookworm") or "")
    monkeypatch.setenv("BOB_MIRROR", "copy:///srv/debian")
    assert why_unreachable("bookworm") is None
