"""Recipes, their keys, the cache and the kernel's unpacking; nothing is built or booted."""

from __future__ import annotations

import json
import lzma
import os
import shutil
import struct
from pathlib import Path

import pytest
from inline_snapshot import snapshot
from msgspec import structs

from bob.errors import ImageError, MalformedError, MissingProgramError, UsageError
from bob.image import (
    build,
    check_kernel,
    check_subject,
    find,
    images_folder,
    installed,
    load_recipe,
    mmdebstrap,
    recipe_names,
    remove,
)
from bob.image.cache import Image, image_folder, image_key, locked, write_manifest
from bob.image.kernel import vmlinux
from bob.image.needs import option
from bob.image.recipe import Recipe
from bob.resources import shipped
from bob.subject import configuration, layers
from wording import text_with

NAME = "debian-bookworm"


@pytest.fixture
def recipes(tmp_path: Path) -> Path:
    """A folder of recipes that a test may change."""
    return Path(shutil.copytree(shipped("guest-images"), tmp_path / "guest-images"))


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """The shipped recipe, with an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return load_recipe(NAME)


def put(recipe: Recipe, release: str = "6.1.0-1-amd64", version: str = "6.1.187-1") -> Image:
    """An image in the cache as a build leaves it, of toy files."""
    tools = {"e2fsprogs": "1.47.0-2", f"linux-image-{release}": version}
    key = image_key(recipe.key, release, tools)
    folder = image_folder(recipe.name, key)
    folder.mkdir(parents=True)
    for name in ("kernel", "initrd", "root.erofs", "ssh_key"):
        (folder / name).write_text(name)
    image = Image(
        name=recipe.name,
        key=key,
        folder=folder,
        kernel_release=release,
        cmdline=recipe.cmdline,
        host_key="ssh-ed25519 AAAA",
        built="2026-01-01T00:00:00+00:00",
        tools=tools,
        sizes={path.name: path.stat().st_size for path in folder.iterdir()},
        recipe=recipe.key,
    )
    write_manifest(image)
    return image


def test_every_shipped_recipe_loads() -> None:
    assert NAME in recipe_names()
    for name in recipe_names():
        recipe = load_recipe(name)
        assert recipe.name == name
        assert "\n" not in recipe.cmdline and "panic=-1" in recipe.cmdline


def test_unknown_name_says_what_is_known() -> None:
    with pytest.raises(UsageError) as caught:
        load_recipe("debian-potato")
    assert NAME in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["../guest-images/debian-bookworm", "", "debian-bookworm/"])
def test_name_is_no_path(name: str) -> None:
    with pytest.raises(UsageError):
        load_recipe(name)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('suite = "bookworm"', ""),
        ('suite = "bookworm"', "suite = 12"),
        ("[modules]", "[module]"),
        ('    "kmod",', '    "kmod; reboot",'),
        ('suite = "bookworm"', "suite = "),
    ],
)
def test_bad_declaration(recipes: Path, old: str, new: str) -> None:
    declaration = recipes / NAME / "image.toml"
    text = declaration.read_text()
    assert old in text
    declaration.write_text(text.replace(old, new))
    with pytest.raises(MalformedError):
        load_recipe(NAME, recipes)


def test_missing_guest_file(recipes: Path) -> None:
    (recipes / NAME / "init").unlink()
    with pytest.raises(MalformedError, match="init"):
        load_recipe(NAME, recipes)


def test_a_recipe_like_another_says_only_what_is_different() -> None:
    bookworm, trixie, later = (load_recipe(f"debian-{name}") for name in ("bookworm", "trixie", "trixie-backports"))
    assert (trixie.suite, trixie.packages, trixie.modules.keep) == ("trixie", bookworm.packages, bookworm.modules.keep)
    assert (later.suite, later.more_suites) == ("trixie", ("trixie-backports",))
    assert set(bookworm.packages) - set(later.packages) == {"reiserfsprogs"}
    assert later.modules.boot == bookworm.modules.boot and later.modules.initramfs != bookworm.modules.initramfs


def test_dots_are_the_items_of_the_recipe_that_it_is_like() -> None:
    bookworm, more = load_recipe("debian-bookworm"), load_recipe("debian-bookworm-more")
    assert more.packages == (*bookworm.packages, "cryptsetup-bin", "hfsutils", "lvm2", "udftools")
    assert more.modules == structs.replace(bookworm.modules, keep=(*bookworm.modules.keep, "drivers/cdrom"))


def test_key_follows_the_recipe_that_it_is_like(recipes: Path) -> None:
    keys = [load_recipe(name, recipes).key for name in ("debian-trixie", "debian-trixie-backports")]
    for path in sorted((recipes / NAME).iterdir()):
        path.write_bytes(path.read_bytes() + b"\n")
        keys += [load_recipe(name, recipes).key for name in ("debian-trixie", "debian-trixie-backports")]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("like", ["debian-potato", "debian-trixie", "debian-trixie-backports"])
def test_like_no_other(recipes: Path, like: str) -> None:
    declaration = recipes / "debian-trixie" / "image.toml"
    declaration.write_text(declaration.read_text().replace('debian-bookworm"', f'{like}"'))
    with pytest.raises(MalformedError, match=like):
        load_recipe("debian-trixie", recipes)


def test_key_follows_every_file(recipes: Path) -> None:
    keys = {load_recipe(NAME, recipes).key}
    assert keys == {load_recipe(NAME).key}, "where a recipe is must not matter"
    files = sorted((recipes / NAME).iterdir())
    for path in files:
        path.write_bytes(path.read_bytes() + b"\n")
        keys.add(load_recipe(NAME, recipes).key)
    assert len(keys) == 1 + len(files)
    assert all(len(key) == 16 and int(key, 16) >= 0 for key in keys)


def test_cache_finds_what_was_put(recipe: Recipe) -> None:
    assert find(recipe) is None and installed() == []
    image = put(recipe)
    assert find(recipe) == image
    assert installed() == [image]
    assert image.kernel.is_file() and image.initrd.is_file() and image.root.is_file() and image.ssh_key.is_file()
    remove(image)
    assert find(recipe) is None and installed() == [] and not image.folder.exists()


def test_the_key_names_the_kernel_that_the_build_found(recipe: Recipe) -> None:
    """A recipe names a suite, and the suite moves on."""
    old = put(recipe, "6.1.0-56-amd64", "6.1.190-1")
    assert find(recipe) == old, "without a network, what was built is taken"
    new = put(recipe, "6.1.0-57-amd64", "6.1.192-3")
    rebuilt = put(recipe, "6.1.0-57-amd64", "6.1.192-4")
    assert len({recipe.key, old.key, new.key, rebuilt.key}) == 4
    assert len({old.named, new.named, rebuilt.named}) == 3
    assert {image.kernel_release for image in installed()} == {"6.1.0-56-amd64", "6.1.0-57-amd64"}
    for when, image in enumerate((old, new, rebuilt)):
        other = put_again(image)
        assert (other.key, other.kernel_release) == (image.key, image.kernel_release), "the same build, the same key"
        os.utime(image.folder / "image.json", (2**31 + when, 2**31 + when))
        assert find(recipe) == image


def put_again(image: Image) -> Image:
    """The same image, made by somebody else: with another login, at another time."""
    key = image_key(image.recipe, image.kernel_release, {**image.tools, "e2fsprogs": "1.47.1"})
    return structs.replace(image, key=key, host_key="ssh-ed25519 BBBB", built="2026-02-02T00:00:00+00:00")


def test_an_image_of_before_keys_named_kernels_is_taken_and_named_by_its_kernel(recipe: Recipe) -> None:
    image = put(recipe)
    manifest = image.folder / "image.json"
    document = json.loads(manifest.read_text())
    del document["recipe"], document["checksum"]
    manifest.write_text(json.dumps({**document, "key": recipe.key}))
    folder = image.folder.with_name(f"{NAME}-{recipe.key}")
    image.folder.rename(folder)
    found = find(recipe)
    assert found == structs.replace(image, folder=folder)
    assert found.key != recipe.key


def test_another_recipe_is_another_image(recipe: Recipe) -> None:
    put(recipe)
    assert find(structs.replace(recipe, files={**recipe.files, "init": b"#!/bin/sh\n"})) is None


@pytest.mark.parametrize("damage", ["missing", "short", "manifest"])
def test_damaged_image_is_no_image(recipe: Recipe, damage: str) -> None:
    image = put(recipe)
    match damage:
        case "missing":
            image.initrd.unlink()
        case "short":
            image.root.write_text("")
        case "manifest":
            (image.folder / "image.json").write_text('{"name": ')
    assert find(recipe) is None and installed() == []


def test_half_built_and_half_removed_do_not_count(recipe: Recipe) -> None:
    image = put(recipe)
    image.folder.rename(image.folder.with_name(f".{image.folder.name}.part"))
    assert find(recipe) is None and installed() == []


def test_relative_cache_folder_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert images_folder() == Path.home() / ".cache" / "bob" / "images"


def test_second_build_takes_the_first_ones_image(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mmdebstrap, "check_programs", lambda: None)
    monkeypatch.setattr(mmdebstrap, "run", lambda *_, **__: pytest.fail("built again"))
    image = put(recipe)
    assert build(recipe, lambda _: None) == image


def test_lock_tells_that_it_waits(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []

    class Waited(Exception):
        pass

    def waiting() -> None:
        waited.append(True)
        raise Waited

    folder = image_folder(recipe.name, recipe.key)
    with locked(folder, waiting):
        assert not waited
        with pytest.raises(Waited), locked(folder, waiting):
            pass


MODULES = """kernel/fs/ext4/ext4.ko
kernel/drivers/md/dm-log-writes.ko
kernel/drivers/md/dm-mod.ko
kernel/drivers/block/loop.ko.xz
kernel/drivers/virtio/virtio_pci.ko
kernel/drivers/block/virtio_blk.ko
kernel/drivers/net/virtio_net.ko
kernel/fs/erofs/erofs.ko
kernel/fs/overlayfs/overlay.ko
"""


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("dm-log-writes", "dm_log_writes (CONFIG_DM_LOG_WRITES)"),
        ("dm-mod", "dm_mod (CONFIG_BLK_DEV_DM)"),
        ("loop", "loop (CONFIG_BLK_DEV_LOOP)"),
        ("overlay", "overlay (CONFIG_OVERLAY_FS)"),
        ("virtio_blk", "virtio_blk (CONFIG_VIRTIO_BLK)"),
    ],
)
def test_missing_module_is_named_with_its_option(recipe: Recipe, gone: str, said: str) -> None:
    image = put(recipe)
    (image.folder / "modules").write_text(MODULES)
    check_kernel(image)
    (image.folder / "modules").write_text(MODULES.replace(f"/{gone}.ko", "/other.ko"))
    with pytest.raises(UsageError) as caught:
        check_kernel(image)
    assert text_with(caught.value.message, said).replace(said, "MODULE") == snapshot(
        "the kernel 6.1.0-1-amd64 of debian-bookworm lacks the module MODULE"
    )


def test_missing_file_system(recipe: Recipe) -> None:
    image = put(recipe)
    (image.folder / "modules").write_text(MODULES)
    check_subject(image, ("ext4",), ("e2fsprogs",))
    with pytest.raises(UsageError) as refused:
        check_subject(image, ("f2fs",), ("f2fs-tools",))
    assert text_with(str(refused.value), "f2fs", "CONFIG_F2FS_FS") == snapshot(
        "the kernel 6.1.0-1-amd64 of debian-bookworm lacks the module f2fs (CONFIG_F2FS_FS)"
    )
    with pytest.raises(UsageError) as refused:
        check_subject(image, ("ext4",), ("no-such-tools",))
    assert text_with(str(refused.value), "no-such-tools") == snapshot(
        "the image debian-bookworm lacks the package no-such-tools"
    )


def test_missing_program_names_its_package(recipe: Recipe, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingProgramError) as caught:
        build(recipe, lambda _: None)
    assert "mmdebstrap" in caught.value.message and "mmdebstrap" in (caught.value.hint or "")


def test_failed_build_leaves_nothing_but_a_log(recipe: Recipe, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "mmdebstrap").write_text(
        "#!/bin/sh\necho 'I: starting...'\necho 'E: no such suite: potato' >&2\nexit 1\n"
    )
    (programs / "ssh-keygen").write_text("#!/bin/sh\nexit 0\n")
    (programs / "setpriv").write_text('#!/bin/sh\nwhile [ "$1" != mmdebstrap ]; do shift; done\nexec "$@"\n')
    for path in programs.iterdir():
        path.chmod(0o755)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(mmdebstrap, "check_programs", lambda: None)
    monkeypatch.setattr(mmdebstrap, "_is_root", lambda: True)
    steps: list[str] = []
    with pytest.raises(ImageError) as caught:
        build(recipe, steps.append)
    assert str(caught.value) == snapshot("mmdebstrap failed: no such suite: potato")
    assert steps == ["starting"]
    (log,) = images_folder().glob("*.log")
    assert str(log) in (caught.value.hint or "") and "potato" in log.read_text()
    assert find(recipe) is None and list(scratch.iterdir()) == []
    assert not [path for path in images_folder().iterdir() if path.is_dir()]


def bzimage(payload: bytes) -> bytes:
    """A bzImage of one setup sector with ``payload`` as its compressed kernel."""
    head = bytearray(1024)
    head[0x1F1] = 1
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", head, 0x248, 0, len(payload))
    return bytes(head) + payload


ELF = b"\x7fELF" + bytes(100) + struct.pack("<III4sQ", 4, 8, 18, b"Xen\0", 0x1000000)


def test_kernel_is_unpacked() -> None:
    assert vmlinux(bzimage(lzma.compress(ELF) + struct.pack("<I", len(ELF)))) == ELF


@pytest.mark.parametrize(
    "image",
    [b"", ELF, bzimage(b"unknown"), bzimage(lzma.compress(ELF[:50])), bzimage(b"\xfd7zXZ\0" + bytes(50))],
    ids=["empty", "elf", "unknown", "no-pvh-note", "broken"],
)
def test_kernel_that_cannot_be_unpacked(image: bytes) -> None:
    assert vmlinux(image) is None


def test_a_layer_that_the_kernel_lacks_is_named_with_its_option(recipe: Recipe) -> None:
    image = put(recipe)
    (image.folder / "modules").write_text(MODULES)
    made = configuration("ext4", on="bcache")
    with pytest.raises(UsageError) as refused:
        check_subject(image, made.modules, made.packages)
    assert text_with(str(refused.value), "bcache", "CONFIG_BCACHE") == snapshot(
        "the kernel 6.1.0-1-amd64 of debian-bookworm lacks the module bcache (CONFIG_BCACHE)"
    )


def test_every_module_of_a_layer_has_its_option() -> None:
    """Names of options in drivers/md/Kconfig, drivers/md/bcache/Kconfig, drivers/block/Kconfig and lib/Kconfig."""
    found = {name: option(name) for layer in layers().values() for name in layer.modules if not layer.fs}
    assert found == snapshot(
        {
            "bcache": "CONFIG_BCACHE",
            "dm_cache": "CONFIG_DM_CACHE",
            "dm_cache_smq": "CONFIG_DM_CACHE_SMQ",
            "dm_crypt": "CONFIG_DM_CRYPT",
            "dm_delay": "CONFIG_DM_DELAY",
            "dm_raid": "CONFIG_DM_RAID",
            "raid456": "CONFIG_MD_RAID456",
            "dm_era": "CONFIG_DM_ERA",
            "dm_integrity": "CONFIG_DM_INTEGRITY",
            "dm_mod": "CONFIG_BLK_DEV_DM",
            "ext4": "CONFIG_EXT4_FS",
            "loop": "CONFIG_BLK_DEV_LOOP",
            "dm_mirror": "CONFIG_DM_MIRROR",
            "nbd": "CONFIG_BLK_DEV_NBD",
            "overlay": "CONFIG_OVERLAY_FS",
            "raid0": "CONFIG_MD_RAID0",
            "raid1": "CONFIG_MD_RAID1",
            "raid10": "CONFIG_MD_RAID10",
            "dm_snapshot": "CONFIG_DM_SNAPSHOT",
            "dm_thin_pool": "CONFIG_DM_THIN_PROVISIONING",
            "dm_writecache": "CONFIG_DM_WRITECACHE",
        }
    )
