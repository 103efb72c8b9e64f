"""A kernel of one's own over an image that is there; nothing is booted."""

from __future__ import annotations

import lzma
import shutil
import struct
from pathlib import Path

import pytest

from bob.errors import UsageError
from bob.image import check_name, ensure, image_names, installed, load_recipe
from bob.image.kernel import release_of
from bob.image.own import load_order, own_image, read_build

from .test_recipe import bzimage, put, recipe  # noqa: F401

NAME, RELEASE = "debian-bookworm", "6.16.0-mine"
BUILT_IN = ("drivers/virtio/virtio_pci", "drivers/block/virtio_blk", "drivers/net/virtio_net", "fs/overlayfs/overlay")
PATHS = ("drivers/block/loop", "drivers/md/dm-mod", "drivers/md/dm-log-writes", "fs/erofs/erofs", "fs/f2fs/f2fs")
ELSEWHERE = "sound/soundcore"
DEP = """\
kernel/drivers/block/loop.ko:
kernel/drivers/md/dm-mod.ko:
kernel/drivers/md/dm-log-writes.ko: kernel/drivers/md/dm-mod.ko
kernel/fs/erofs/erofs.ko.xz: kernel/lib/zstd.ko kernel/lib/common.ko
kernel/lib/zstd.ko: kernel/lib/common.ko
kernel/lib/common.ko:
"""


def kernel(text: str = f"{RELEASE} (me@here) #1 SMP") -> bytes:
    """A bzImage that says its version."""
    packed = bytearray(bzimage(b"unknown"))
    struct.pack_into("<H", packed, 0x20E, len(packed) - 0x200)
    return bytes(packed) + text.encode() + b"\0"


@pytest.fixture
def mine(tmp_path: Path) -> tuple[Path, Path]:
    """A bzImage, and what modules_install made."""
    bzimage = tmp_path / "bzImage"
    bzimage.write_bytes(kernel())
    folder = tmp_path / "installed/lib/modules" / RELEASE
    for path in (*PATHS, "lib/zstd", "lib/common", ELSEWHERE):
        file = folder / f"kernel/{path}.ko"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(path.encode())
    erofs = folder / "kernel/fs/erofs/erofs.ko"
    erofs.with_suffix(".ko.xz").write_bytes(lzma.compress(erofs.read_bytes()))
    erofs.unlink()
    (folder / "modules.dep").write_text(DEP)
    (folder / "modules.builtin").write_text("".join(f"kernel/{path}.ko\n" for path in BUILT_IN))
    return bzimage, folder


def test_release_is_in_the_bzimage() -> None:
    assert release_of(kernel()) == RELEASE
    assert release_of(b"\x7fELF" + bytes(1000)) is None
    assert release_of(b"") is None


@pytest.mark.parametrize("up", [0, 1, 3], ids=["RELEASE", "lib/modules", "INSTALL_MOD_PATH"])
def test_a_build_is_read(mine: tuple[Path, Path], up: int) -> None:
    bzimage, folder = mine
    given = [folder, *folder.parents][up]
    build = read_build(bzimage, given, load_recipe(NAME))
    assert (build.release, build.folder) == (RELEASE, folder)
    assert {"f2fs", "dm_log_writes", "virtio_pci", "overlay", "erofs"} <= build.names
    assert "soundcore" not in build.names, "no guest needs it"


@pytest.mark.parametrize(
    ("gone", "said"),
    [("drivers/md/dm-log-writes.ko", "CONFIG_DM_LOG_WRITES"), ("drivers/block/loop.ko", "CONFIG_BLK_DEV_LOOP")],
)
def test_a_missing_module_is_named(mine: tuple[Path, Path], gone: str, said: str) -> None:
    bzimage, folder = mine
    (folder / "kernel" / gone).unlink()
    with pytest.raises(UsageError, match=rf"the kernel {RELEASE} has no module .* \({said}\)"):
        read_build(bzimage, folder, load_recipe(NAME))


def test_what_is_no_build(mine: tuple[Path, Path], tmp_path: Path) -> None:
    bzimage, folder = mine
    with pytest.raises(UsageError, match="is no bzImage"):
        read_build(folder / "modules.dep", folder, load_recipe(NAME))
    with pytest.raises(UsageError, match=f"has no modules of the kernel {RELEASE}"):
        read_build(bzimage, tmp_path, load_recipe(NAME))
    (folder / "modules.dep").rename(folder / "kernel/modules.dep")
    with pytest.raises(UsageError, match=f"{RELEASE} has no modules.dep"):
        read_build(bzimage, folder, load_recipe(NAME))
    folder.rename(folder.with_name("6.16.0-another"))
    with pytest.raises(UsageError, match="has no modules of"):
        read_build(bzimage, folder.with_name("6.16.0-another"), load_recipe(NAME))


def test_modules_come_after_what_they_need() -> None:
    assert load_order(DEP, ["erofs", "dm_log_writes", "built_in"]) == [
        "kernel/lib/common.ko",
        "kernel/lib/zstd.ko",
        "kernel/fs/erofs/erofs.ko.xz",
        "kernel/drivers/md/dm-mod.ko",
        "kernel/drivers/md/dm-log-writes.ko",
    ]


@pytest.mark.skipif(not (shutil.which("mkfs.erofs") and shutil.which("cpio")), reason="they make images")
def test_an_image_is_made_once(mine: tuple[Path, Path], recipe, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr("bob.image.own.check_programs", lambda: None)
    base = put(recipe)
    bzimage, folder = mine
    build = read_build(bzimage, folder, recipe)

    image = own_image(recipe, build, lambda _: None)

    name = f"{NAME}+{RELEASE}"
    assert (image.name, image.kernel_release, image.cmdline) == (name, RELEASE, base.cmdline)
    assert image.root.resolve() == base.root and image.ssh_key.resolve() == base.ssh_key
    assert image.kernel.read_bytes() == kernel(), "it cannot be unpacked, so the guest does"
    assert image.modules == build.names
    assert image.modules_disk is not None and image.modules_disk.is_file() and base.modules_disk is None
    initrd = image.initrd.read_bytes()
    assert initrd.startswith(base.initrd.read_bytes()) and b"/modules/common.ko\n/modules/zstd.ko\n" in initrd
    assert b"fs/erofs/erofs" in initrd, "unpacked"
    assert own_image(recipe, build, lambda _: pytest.fail("made again")) == image
    assert name in image_names() and ensure(name, print) == image
    check_name(name)
    (folder / "kernel/fs/f2fs/f2fs.ko").write_text("another one")
    assert own_image(recipe, read_build(bzimage, folder, recipe), lambda _: None).key != image.key
    assert len(installed()) == 3


def test_a_kernel_that_nobody_made(recipe) -> None:  # noqa: F811
    with pytest.raises(UsageError, match="there is no image"):
        ensure(f"{NAME}+6.99", print)
