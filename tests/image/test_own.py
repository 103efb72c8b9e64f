"""A kernel of one's own over an image that is there; nothing is booted."""

from __future__ import annotations

import lzma
import shutil
import struct
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from bob.errors import MissingProgramError, UsageError
from bob.image import ensure, image_names, installed, load_recipe, named
from bob.image.cache import GUEST_MODULES
from bob.image.kernel import release_of
from bob.image.needs import KERNEL_OPTIONS, LATE_MODULES, option
from bob.image.own import load_order, own_image, read_build
from bob.image.tree import depmod, options, tree_build
from wording import text_with

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


def test_a_package_of_debian_13_has_its_modules_below_usr(mine: tuple[Path, Path], tmp_path: Path) -> None:
    bzimage, folder = mine
    below = tmp_path / "unpacked" / "usr" / "lib" / "modules"
    below.mkdir(parents=True)
    folder.rename(below / RELEASE)
    for given in (tmp_path / "unpacked", tmp_path / "unpacked" / "usr"):
        assert read_build(bzimage, given, load_recipe(NAME)).folder == below / RELEASE


@pytest.mark.parametrize(
    ("gone", "said"),
    [("drivers/md/dm-log-writes.ko", "CONFIG_DM_LOG_WRITES"), ("drivers/block/loop.ko", "CONFIG_BLK_DEV_LOOP")],
)
def test_a_missing_module_is_named(mine: tuple[Path, Path], gone: str, said: str) -> None:
    bzimage, folder = mine
    (folder / "kernel" / gone).unlink()
    with pytest.raises(UsageError, match=rf"{RELEASE} .* \({said}\)"):
        read_build(bzimage, folder, load_recipe(NAME))


def test_what_is_no_build(mine: tuple[Path, Path], tmp_path: Path) -> None:
    bzimage, folder = mine
    with pytest.raises(UsageError) as refused:
        read_build(folder / "modules.dep", folder, load_recipe(NAME))
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot(
        "TMP/installed/lib/modules/6.16.0-mine/modules.dep is not a bzImage"
    )
    with pytest.raises(UsageError) as refused:
        read_build(bzimage, tmp_path, load_recipe(NAME))
    assert text_with(str(refused.value).replace(str(tmp_path), "TMP"), RELEASE) == snapshot(
        "cannot find the modules of the kernel 6.16.0-mine in TMP"
    )
    (folder / "modules.dep").rename(folder / "kernel/modules.dep")
    with pytest.raises(UsageError) as refused:
        read_build(bzimage, folder, load_recipe(NAME))
    assert text_with(str(refused.value).replace(str(tmp_path), "TMP"), RELEASE, "modules.dep") == snapshot(
        "TMP/installed/lib/modules/6.16.0-mine lacks modules.dep"
    )
    folder.rename(folder.with_name("6.16.0-another"))
    with pytest.raises(UsageError) as refused:
        read_build(bzimage, folder.with_name("6.16.0-another"), load_recipe(NAME))
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot(
        "cannot find the modules of the kernel 6.16.0-mine in TMP/installed/lib/modules/6.16.0-another"
    )


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
    assert name in image_names() and ensure(name, print) == named(name) == image
    (folder / "kernel/fs/f2fs/f2fs.ko").write_text("another one")
    assert own_image(recipe, read_build(bzimage, folder, recipe), lambda _: None).key != image.key
    assert len(installed()) == 3


def test_a_kernel_that_nobody_made(recipe) -> None:  # noqa: F811
    with pytest.raises(UsageError) as refused:
        ensure(f"{NAME}+6.99", print)
    assert str(refused.value) == snapshot("unknown image 'debian-bookworm+6.99'")


@pytest.mark.skipif(not (shutil.which("mkfs.erofs") and shutil.which("cpio")), reason="they make images")
def test_of_two_builds_of_one_name_that_one_is_meant_that_was_asked_for(
    mine: tuple[Path, Path],
    recipe,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tree is built, changed, built anew, and changed back: its kernel says the same release each time."""
    monkeypatch.setattr("bob.image.own.check_programs", lambda: None)
    put(recipe)
    bzimage, folder = mine
    module = folder / "kernel/fs/f2fs/f2fs.ko"
    before, after = b"as it was", b"changed"
    keys = []
    for content in (before, after, before):
        module.write_bytes(content)
        image = own_image(recipe, read_build(bzimage, folder, recipe), lambda _: None)
        assert ensure(image.name, print).key == image.key
        keys.append(image.key)
    assert keys[0] == keys[2] != keys[1]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A build tree as Linux 6.3 and later leave it."""
    return made_tree(tmp_path / "linux", "{path}.o")


def made_tree(tree: Path, line: str) -> Path:
    """A tree whose modules.order has such lines; some of what guests need is built in."""
    for path in (*PATHS, ELSEWHERE):
        file = tree / f"{path}.ko"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(path.encode())
    (tree / "modules.order").write_text("".join(line.format(path=path) + "\n" for path in (*PATHS, ELSEWHERE)))
    (tree / "modules.builtin").write_text("".join(f"kernel/{path}.ko\n" for path in BUILT_IN))
    for name in ("arch/x86/boot", "include/config"):
        (tree / name).mkdir(parents=True)
    (tree / "arch/x86/boot/bzImage").write_bytes(kernel())
    (tree / "include/config/kernel.release").write_text(f"{RELEASE}\n")
    configured = [f"{name}=y" for name in KERNEL_OPTIONS] + [f"{option(name)}=m" for name in (*GUEST_MODULES, "f2fs")]
    (tree / "include/config/auto.conf").write_text("\n".join(['CONFIG_LOCALVERSION="-mine"', *configured]) + "\n")
    return tree


NEEDS_DEPMOD = pytest.mark.skipif(depmod() is None, reason="it makes the index of modules")


@NEEDS_DEPMOD
@pytest.mark.parametrize("line", ["{path}.o", "{path}.ko", "kernel/{path}.ko"], ids=["6.3", "5.4", "5.3"])
def test_a_tree_is_read(tmp_path: Path, line: str) -> None:
    with tree_build(made_tree(tmp_path / "linux", line), load_recipe(NAME), ["f2fs"]) as build:
        assert (build.release, build.bzimage, build.strips) == (RELEASE, kernel(), False)
        assert build.paths == tuple(sorted(f"kernel/{path}.ko" for path in PATHS))
        assert {"f2fs", "dm_log_writes", "virtio_pci"} <= build.names
        assert "kernel/fs/f2fs/f2fs.ko:" in (build.folder / "modules.dep").read_text()
        assert (
            read_build(tmp_path / "linux/arch/x86/boot/bzImage", build.folder, load_recipe(NAME)).paths == build.paths
        )
        folder = build.folder
    assert not folder.exists()


@NEEDS_DEPMOD
def test_a_kernel_without_modules_has_all_in_it(tree: Path) -> None:
    (tree / "modules.order").unlink()
    with (tree / "modules.builtin").open("a") as builtin:
        builtin.writelines(f"kernel/{path}.ko\n" for path in PATHS)
    with tree_build(tree, load_recipe(NAME), ["f2fs"]) as build:
        assert build.paths == () and {*GUEST_MODULES, "f2fs"} <= build.names


def test_what_a_kernel_lacks_is_named_at_once(tree: Path) -> None:
    auto = tree / "include/config/auto.conf"
    said = auto.read_text()
    for gone in ("CONFIG_DM_LOG_WRITES", "CONFIG_SERIAL_8250_CONSOLE"):
        said = "".join(one for one in said.splitlines(keepends=True) if not one.startswith(gone))
    auto.write_text(f"# CONFIG_SERIAL_8250_CONSOLE is not set\n{said}")
    lacking = "CONFIG_SERIAL_8250_CONSOLE, CONFIG_DM_LOG_WRITES, CONFIG_BLK_DEV_NBD, CONFIG_XFS_FS"
    build = tree_build(tree, load_recipe(NAME), ["nbd", "xfs"])
    with pytest.raises(UsageError, match=f" {lacking}$") as refused, build:
        pass
    assert text_with(
        refused.value.hint, "scripts/config", "SERIAL_8250_CONSOLE", "DM_LOG_WRITES", "BLK_DEV_NBD", "XFS_FS"
    ) == snapshot(
        "scripts/config -e SERIAL_8250_CONSOLE -e DM_LOG_WRITES -e BLK_DEV_NBD -e XFS_FS; make olddefconfig; make"
    )


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "include/config/auto.conf",
            None,
            snapshot("TREE is not the build tree of a kernel: include/config/auto.conf: No such file or directory"),
        ),
        (
            "arch/x86/boot/bzImage",
            None,
            snapshot("TREE is not the build tree of a kernel: arch/x86/boot/bzImage: No such file or directory"),
        ),
        (
            "include/config/kernel.release",
            "6.17.0\n",
            snapshot("TREE/arch/x86/boot/bzImage belongs to the kernel 6.16.0-mine, and its tree to 6.17.0"),
        ),
        ("fs/f2fs/f2fs.ko", None, snapshot("cannot find TREE/fs/f2fs/f2fs.ko")),
        ("fs/erofs/erofs.ko", None, snapshot("cannot find TREE/fs/erofs/erofs.ko")),
        (
            "modules.builtin",
            "",
            snapshot(
                "TREE lacks the module virtio_pci (CONFIG_VIRTIO_PCI), virtio_blk (CONFIG_VIRTIO_BLK), virtio_net (CONFIG_VIRTIO_NET), overlay (CONFIG_OVERLAY_FS)"
            ),
        ),
    ],
)
@NEEDS_DEPMOD
def test_what_is_no_built_tree(tree: Path, name: str, content: str | None, said: str) -> None:
    if content is None:
        (tree / name).unlink()
    else:
        (tree / name).write_text(content)
    with pytest.raises(UsageError) as refused, tree_build(tree, load_recipe(NAME)):
        pass
    assert str(refused.value).replace(str(tree), "TREE") == said


def test_modules_that_have_to_be_signed(tree: Path) -> None:
    with (tree / "include/config/auto.conf").open("a") as auto:
        auto.write("CONFIG_MODULE_SIG_FORCE=y\n")
    with pytest.raises(UsageError) as refused, tree_build(tree, load_recipe(NAME)):
        pass
    assert str(refused.value).replace(str(tree), "TREE") == snapshot(
        "the kernel 6.16.0-mine in TREE loads signed modules only, and those in a build tree are not signed"
    )


def test_depmod_is_asked_for_by_its_package(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bob.image.tree.depmod", lambda: None)
    with pytest.raises(MissingProgramError) as missing, tree_build(tree, load_recipe(NAME)):
        pass
    assert missing.value.hint == "apt-get install kmod"


def test_options_are_what_is_y_or_m() -> None:
    text = 'CONFIG_A=y\nCONFIG_B_2=m\n# CONFIG_C is not set\nCONFIG_D="y"\nCONFIG_E=10\n CONFIG_F=y\nCONFIG_G=yes\n'
    assert options(text) == {"CONFIG_A", "CONFIG_B_2"}


def test_the_page_has_every_option_that_is_asked_for() -> None:
    page = (Path(__file__).parents[2] / "docs/machines.md").read_text()
    needed = {*KERNEL_OPTIONS, *(option(module) for module in (*GUEST_MODULES, *LATE_MODULES))}
    assert {name for name in needed if f"`{name}`" not in page} == set()
