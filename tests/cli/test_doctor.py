"""bob doctor: what is missing, with a hint each; nothing is asked of libvirt here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from bob.cli import checks
from bob.cli.checks import Check, Health
from bob.image import Image, load_recipe, recipe_names
from bob.image.cache import image_folder, image_key, images_folder, write_manifest
from wording import line_with, text_with

from .stand_in import Bob

NAMES = {"mmdebstrap", "mkfs.erofs", "cpio", "ssh-keygen", "Debian's keys"}


@pytest.fixture(autouse=True)
def no_libvirt(monkeypatch: pytest.MonkeyPatch) -> None:
    """libvirt is there, and Debian's mirror."""

    def libvirt() -> Iterator[Check]:
        yield Check("libvirt", Health.OK, "9.0.0")

    monkeypatch.setattr(checks, "_libvirt", libvirt)
    monkeypatch.setattr(checks, "why_unreachable", lambda _suite: None)


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
    assert line_with(ended.out, "qemu-system-x86_64", "missing") == snapshot(
        "missing QEMU                           qemu-system-x86_64 is not installed"
    )
    assert line_with(ended.out, "apt-get install qemu-system-x86").split()[0] == "hint"
    assert ended.out.splitlines()[-1] == snapshot(
        "a probe cannot run: QEMU, mmdebstrap, mkfs.erofs, cpio, ssh-keygen, setpriv, unshare"
    )


def test_settings_that_no_probe_can_have(bob: Bob) -> None:
    Path("bob.toml").write_text("jobs = 9999")
    ended = bob("doctor")
    assert line_with(ended.out, "missing", "bob.toml", "--jobs", 9999) == snapshot(
        "missing settings                       bob.toml: --jobs 9999: at most two guests per processor, and bob may use 2 processors"
    )
    assert ended.out.splitlines()[-1] == snapshot("a probe cannot run: settings")


def test_who_has_the_image_needs_no_builder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _program, **_more: None)

    needed = {check.name: check.state for check in checks._builders(needed=True)}
    spare = {check.name: check.state for check in checks._builders(needed=False)}

    assert needed["mmdebstrap"] is Health.MISSING
    assert spare["mmdebstrap"] is Health.NOTE


def test_a_cache_that_cannot_be_written(bob: Bob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    check = found()["cache"]

    assert check.state is Health.MISSING
    assert "cannot be written" in check.found
    assert text_with(check.hint, "XDG_CACHE_HOME", "bob.toml") == snapshot(
        "set XDG_CACHE_HOME to another folder, or cache in bob.toml"
    )


def test_a_full_cache(bob: Bob, tmp_path: Path) -> None:
    check = checks._folder("cache", tmp_path, 2**60, "set XDG_CACHE_HOME to another folder")

    assert check.state is Health.MISSING
    assert check.found.endswith("1048576 TiB needed")


@pytest.mark.parametrize("kvm", ["kvm", "tcg", "nonsense"])
def test_the_accelerator_is_not_tried_out(bob: Bob, monkeypatch: pytest.MonkeyPatch, kvm: str) -> None:
    monkeypatch.setenv("BOB_ACCELERATOR", kvm)
    check = checks._accelerator("QEMU 7, libvirt 9")
    assert check.state is (Health.MISSING if kvm == "nonsense" else Health.OK)


def test_an_accelerator_that_nobody_tried_yet(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BOB_ACCELERATOR", raising=False)
    monkeypatch.setattr("os.access", lambda *_: True)
    assert text_with(checks._accelerator("QEMU 7, libvirt 9").found, "/dev/kvm") == snapshot(
        "/dev/kvm opens; the first probe tests whether a guest boots with it"
    )


def test_what_keeps_checkers_from_the_host_is_a_note(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial itself is real: these tests do not run without bubblewrap (tests/sandbox)."""
    assert found()["bubblewrap"] == Check("bubblewrap", Health.OK, "makes sandboxes for programs' checkers")
    refusal = "bwrap: No permissions to create new namespace"
    monkeypatch.setattr("bob.sandbox.bubblewrap.why_not", lambda: refusal)
    check = found()["bubblewrap"]
    assert check.state is Health.NOTE and refusal in check.found and "user namespaces" in (check.hint or "")
    monkeypatch.setattr("shutil.which", lambda _program, **_more: None)
    check = found()["bubblewrap"]
    assert (check.state, check.hint) == (Health.NOTE, "apt-get install bubblewrap")


def test_ready(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bob.cli.doctor.checks", lambda: iter([Check("QEMU", Health.OK, "7.2")]))

    ended = bob("doctor")

    assert (ended.code, ended.err) == (0, "")
    assert text_with(ended.out, "7.2") == snapshot("""\
ok      QEMU                           7.2

a probe can run
""")
    assert json.loads(bob("doctor", "--json", "-").out)["ready"] is True


# bob image, on a cache with toy images; nothing is built

NAME = "debian-bookworm"
KERNEL = "6.1.0-31-amd64"


def put(folder: Path, key: str, name: str = NAME, recipe: str = "of before") -> Path:
    """An image as a build leaves it, with one file of 3 MiB."""
    folder.mkdir(parents=True)
    (folder / "kernel").write_bytes(bytes(3 * 2**20))
    sizes = {"kernel": 3 * 2**20}
    write_manifest(toy(name, key, folder, KERNEL, sizes, recipe))
    return folder


def toy(name: str, key: str, folder: Path, release: str, sizes: Mapping[str, int], recipe: str = "") -> Image:
    return Image(
        name=name,
        key=key,
        folder=folder,
        kernel_release=release,
        cmdline="",
        host_key="",
        built="2026-11-21T00:00:00+00:00",
        tools={},
        sizes=sizes,
        recipe=recipe,
    )


@pytest.fixture
def built(bob: Bob) -> Path:
    """The image of the shipped recipe."""
    recipe = load_recipe(NAME)
    key = image_key(recipe.key, KERNEL, {})
    return put(image_folder(NAME, key), key, recipe=recipe.key)


def test_where_the_mirror_is_out_of_reach_no_probe_can_build(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "why_unreachable", lambda suite: f"no way to {suite}")
    check = found()["Debian's mirror"]
    assert (check.state, check.found) == (Health.MISSING, "no way to bookworm")


def test_who_has_the_image_needs_no_mirror(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "why_unreachable", lambda suite: f"no way to {suite}")
    assert "Debian's mirror" not in found()


def test_list_without_images(bob: Bob) -> None:
    ended = bob("image", "list")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[1].split() == [NAME, "not", "built"]


def test_each_image_has_a_line(bob: Bob, built: Path) -> None:
    name = f"{NAME}+6.12.107+deb13-amd64"
    put(images_folder() / f"{name}-0123456789abcdef", "0123456789abcdef", name)

    *lines, where = bob("image", "list").out.splitlines()

    assert where == f"in {images_folder()}"
    assert [line.split()[0] for line in lines] == ["image", *recipe_names(), name]


def test_list(bob: Bob, built: Path) -> None:
    old = put(images_folder() / f"{NAME}-0123456789abcdef", "0123456789abcdef")

    lines = bob("image", "list").out.splitlines()
    bob("image", "list", "--json", "i.json")
    document = json.loads(Path("i.json").read_text())

    assert lines[1].split()[:5] == [NAME, "built", KERNEL, "3", "MiB"]
    assert document["schema"] == "bob.images/1"
    assert [(row["state"], row["folder"]) for row in document["images"] if row["folder"]] == [
        ("built", str(built)),
        ("outdated", str(old)),
    ]


def test_build_what_is_there(bob: Bob, built: Path) -> None:
    key = built.name.removeprefix(f"{NAME}-")
    said = text_with(bob("image", "build").out, NAME, key, built)
    assert said.replace(key, "KEY").replace(str(built).replace(key, "KEY"), "FOLDER") == snapshot(
        "debian-bookworm (KEY) was built already: FOLDER\n"
    )
    [row] = json.loads(bob("image", "build", "--json", "-").out)["images"]
    assert (row["name"], row["state"], row["key"], row["folder"]) == (NAME, "built", key, str(built))


def test_rm_takes_the_outdated_ones_too(bob: Bob, built: Path) -> None:
    old = put(images_folder() / f"{NAME}-0123456789abcdef", "0123456789abcdef")

    ended = bob("image", "rm", NAME)

    assert (ended.code, ended.err) == (0, "")
    assert sorted(ended.out.splitlines()) == sorted(f"removed {folder} (3 MiB)" for folder in (built, old))
    assert not built.exists()
    assert not old.exists()


def test_rm_removes_nothing_if_one_name_is_wrong(bob: Bob, built: Path) -> None:
    ended = bob("image", "rm", NAME, "debian-potato")

    assert ended.code == 2
    assert text_with(ended.err, "debian-potato", NAME) == snapshot("""\
bob: the guest image 'debian-potato' is not built
hint: built: debian-bookworm
""")
    assert built.exists()


def test_kernels_of_ones_own_are_listed_and_removed(bob: Bob, built: Path) -> None:
    mine = put(images_folder() / f"{NAME}+6.16.0-0123456789abcdef", "0123456789abcdef", f"{NAME}+6.16.0")
    (mine / "root.erofs").symlink_to(built / "kernel")
    sizes = {"kernel": 3 * 2**20, "root.erofs": 3 * 2**20}
    write_manifest(toy(f"{NAME}+6.16.0", "0123456789abcdef", mine, "6.16.0", sizes))

    lines = bob("image", "list").out.splitlines()

    assert any(line.split() == [f"{NAME}+6.16.0", "own", "kernel", "6.16.0", "3", "MiB"] for line in lines)
    assert bob("image", "rm", f"{NAME}+6.16.0").out == f"removed {mine} (3 MiB)\n"
    assert built.exists() and not mine.exists()
