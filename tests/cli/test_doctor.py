"""bob doctor: what is missing, with a hint each; nothing is asked of libvirt here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bob.cli import checks
from bob.cli.checks import Check, State

from .stand_in import Bob

NAMES = {"mmdebstrap", "mkfs.erofs", "cpio", "ssh-keygen", "Debian's keys"}


@pytest.fixture(autouse=True)
def no_libvirt(monkeypatch: pytest.MonkeyPatch) -> None:
    """libvirt is there."""

    def libvirt() -> Iterator[Check]:
        yield Check("libvirt", State.OK, "9.0.0")

    monkeypatch.setattr(checks, "_libvirt", libvirt)


def found() -> dict[str, Check]:
    """All checks by name."""
    return {check.name: check for check in checks.checks()}


def test_what_is_checked(bob: Bob) -> None:
    expected = {"Python", "QEMU", "user libvirt-qemu", "libvirt", "cache", "temporary files", "saved guests"}
    assert set(found()) >= expected | NAMES | {"image debian-bookworm"}


def test_a_machine_with_nothing(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _program, **_more: None)

    ended = bob("doctor", "--json", "d.json")

    document = json.loads(Path("d.json").read_text())
    states = {check["name"]: check["state"] for check in document["checks"]}
    assert ended.code == 4
    assert document["schema"] == "bob.doctor/1"
    assert document["ready"] is False
    assert {name for name, state in states.items() if state == "missing"} >= {"QEMU", "mmdebstrap", "cpio"}
    assert "missing QEMU                           there is no qemu-system-x86_64\n" in ended.out
    assert "        hint                           apt-get install qemu-system-x86\n" in ended.out
    assert ended.out.splitlines()[-1].startswith("a probe cannot run: QEMU, ")


def test_who_has_the_image_needs_no_builder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _program, **_more: None)

    needed = {check.name: check.state for check in checks._builders(needed=True)}
    spare = {check.name: check.state for check in checks._builders(needed=False)}

    assert needed["mmdebstrap"] is State.MISSING
    assert spare["mmdebstrap"] is State.NOTE


def test_a_cache_that_cannot_be_written(bob: Bob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    check = found()["cache"]

    assert check.state is State.MISSING
    assert "cannot be written" in check.found
    assert check.hint == "set XDG_CACHE_HOME to another folder, or cache in bob.toml"


def test_a_full_cache(bob: Bob, tmp_path: Path) -> None:
    check = checks._folder("cache", tmp_path, 2**60, "set XDG_CACHE_HOME to another folder")

    assert check.state is State.MISSING
    assert check.found.endswith("1048576 TiB needed")


@pytest.mark.parametrize("kvm", ["kvm", "tcg", "nonsense"])
def test_the_accelerator_is_not_tried_out(bob: Bob, monkeypatch: pytest.MonkeyPatch, kvm: str) -> None:
    monkeypatch.setenv("BOB_ACCELERATOR", kvm)
    check = checks._accelerator("QEMU 7, libvirt 9")
    assert check.state is (State.MISSING if kvm == "nonsense" else State.OK)


def test_an_accelerator_that_nobody_tried_yet(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BOB_ACCELERATOR", raising=False)
    monkeypatch.setattr("os.access", lambda *_: True)
    assert checks._accelerator("QEMU 7, libvirt 9").found.startswith("/dev/kvm opens; the first probe tries")


def test_ready(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bob.cli.doctor.checks", lambda: iter([Check("QEMU", State.OK, "7.2")]))

    ended = bob("doctor")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "ok      QEMU                           7.2\n\na probe can run\n"
    assert json.loads(bob("doctor", "--json", "-").out)["ready"] is True
