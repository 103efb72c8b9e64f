"""A user's own kernel in an existing image. The image with that kernel is called IMAGE+RELEASE.

The kernel's modules are on a second disk. The modules that the kernel needs to mount the root are also in an archive,
which bob appends to the image's initramfs. Linux unpacks both archives. If both contain a file with the same path, the
file of the appended archive replaces the other file."""

import gzip
import hashlib
import lzma
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from msgspec import structs

from bob.errors import ImageError, UsageError
from bob.image.build import ensure
from bob.image.cache import GUEST_MODULES, MODULES, MODULES_DISK, OWN, Image, chosen, load, module_names, write_manifest
from bob.image.kernel import release_of, vmlinux
from bob.image.mmdebstrap import check_programs
from bob.image.needs import missing
from bob.image.recipe import Recipe

_UNPACK: dict[str, Callable[[bytes], bytes]] = {"": lambda data: data, ".xz": lzma.decompress, ".gz": gzip.decompress}
_INDEX = "modules.dep"


@dataclass(frozen=True, slots=True)
class Build:
    """A user's own kernel, and the modules for a guest. ``paths`` are the paths of the modules, relative to ``folder``.
    ``strips`` is True if the modules have debug information, which bob must remove."""

    release: str
    bzimage: bytes
    folder: Path
    paths: tuple[str, ...]
    strips: bool = False

    @property
    def names(self) -> frozenset[str]:
        return module_names(self.listing)

    @property
    def listing(self) -> str:
        builtin = self.folder / "modules.builtin"
        return "\n".join([*self.paths, builtin.read_text() if builtin.is_file() else ""])


def read_build(bzimage: Path, modules: Path, recipe: Recipe) -> Build:
    """Return the kernel in the file ``bzimage`` with its modules in the folder ``modules``: lib/modules/RELEASE, or a
    folder above it. Raises UsageError for unfit files, and if a module is missing that every guest needs."""
    try:
        packed = bzimage.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read {bzimage}: {error.strerror}", hint="name arch/x86/boot/bzImage of a built kernel"
        ) from None
    release = release_of(packed)
    if release is None:
        raise UsageError(f"{bzimage} is not a bzImage", hint="name arch/x86/boot/bzImage of a built kernel")
    folders = [modules / release, modules / "lib/modules" / release, modules / "usr/lib/modules" / release]
    folders += [modules] if modules.resolve().name == release else []
    folder = next((one for one in folders if one.is_dir()), None)
    if folder is None:
        raise UsageError(
            f"cannot find the modules of the kernel {release} in {modules}",
            hint=f"make modules_install INSTALL_MOD_PATH=DIR puts them into DIR/lib/modules/{release}",
        )
    if not (folder / _INDEX).is_file():
        raise UsageError(
            f"{folder} lacks {_INDEX}", hint=f"depmod -b DIR {release} makes it in DIR/lib/modules/{release}"
        )
    paths = sorted(str(path.relative_to(folder)) for path in folder.glob("**/*.ko*"))
    build = Build(release, packed, folder, tuple(path for path in paths if is_kept(path, recipe)))
    if lacking := missing(build.names, GUEST_MODULES):
        raise UsageError(
            f"the kernel {release} lacks the module {', '.join(lacking)}", hint="set the option to m or y, and rebuild"
        )
    return build


def is_kept(path: str, recipe: Recipe) -> bool:
    """Return whether an image of ``recipe`` gets the module at ``path``. The image gets the modules that the recipe
    lists, and all out-of-tree modules, which are outside the folder kernel/ (in the folders extra and updates)."""
    wanted = tuple(f"kernel/{kept}" if kept.endswith(".ko") else f"kernel/{kept}/" for kept in recipe.modules.keep)
    return path.startswith(wanted) or not path.startswith("kernel/")


def own_image(recipe: Recipe, build: Build, progress: Callable[[str], None]) -> Image:
    """Return the image with the files of ``recipe`` and the kernel of ``build``. If it is missing, bob makes it
    from the image of ``recipe``, which has Debian's kernel. If that image is missing, too, bob builds that first."""
    base = ensure(recipe.name, progress)
    name = f"{recipe.name}{OWN}{build.release}"
    key = _key(base, build)
    folder = base.folder.with_name(f"{name}-{key}")
    if image := load(folder):
        chosen(image)
        return image
    check_programs()
    progress(f"making an image of {recipe.name} with the kernel {build.release}")
    part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        _fill(part, base, build, recipe)
        write_manifest(
            structs.replace(
                base,
                name=name,
                key=key,
                recipe="",
                folder=part,
                kernel_release=build.release,
                built=datetime.now(UTC).isoformat(timespec="seconds"),
                tools={tool: version for tool, version in base.tools.items() if not tool.startswith("linux-image")},
                sizes={path.name: path.stat().st_size for path in sorted(part.iterdir())},
            )
        )
        shutil.rmtree(folder, ignore_errors=True)  # an image in this folder would be damaged
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    made = load(folder)
    if made is None:
        raise ImageError(f"the image in {folder} vanished while it was made", hint="try again")
    return made


def _key(base: Image, build: Build) -> str:
    digest = hashlib.sha256(f"{base.key} {base.built}\n".encode() + hashlib.sha256(build.bzimage).digest())
    for path in build.paths:
        digest.update(f"{path}\n".encode() + hashlib.sha256((build.folder / path).read_bytes()).digest())
    return digest.hexdigest()[:16]


def _fill(part: Path, base: Image, build: Build, recipe: Recipe) -> None:
    (part / "root.erofs").symlink_to(base.root)
    (part / "ssh_key").symlink_to(base.ssh_key)
    (part / "kernel").write_bytes(vmlinux(build.bzimage) or build.bzimage)
    (part / MODULES).write_text(build.listing)
    with tempfile.TemporaryDirectory() as scratch:
        disk, initramfs = Path(scratch, "disk"), Path(scratch, "initramfs")
        for path in (*build.paths, *(path.name for path in build.folder.glob("modules.*"))):
            there = disk / build.release / path
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(build.folder / path, there)
        if build.strips and build.paths and shutil.which("strip"):  # a kernel's build needs binutils, too
            _run(["strip", "--strip-debug", *(str(disk / build.release / path) for path in build.paths)])
        _run(["mkfs.erofs", "--quiet", "-x-1", str(part / MODULES_DISK), str(disk)])
        first = [name for name in recipe.modules.initramfs if name in build.names]
        paths = load_order((build.folder / _INDEX).read_text(), first)
        names = [_unpacked(disk / build.release / path, initramfs / "modules") for path in paths]
        (initramfs / "modules.list").write_text("".join(f"/modules/{name}\n" for name in names))
        files = "\n".join(str(path.relative_to(initramfs)) for path in sorted(initramfs.glob("**/*")))
        command = ["cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0"]
        archive = _run(command, files.encode() + b"\n", initramfs)
        first_archive = base.initrd.read_bytes()
        padding = bytes(-len(first_archive) % 512)
        (part / "initrd").write_bytes(first_archive + padding + archive)


def load_order(index: str, names: Iterable[str]) -> list[str]:
    """Return the paths of the modules ``names``, and of the modules that they depend on. In the returned order, each
    module comes after the modules that it depends on. ``index`` is the text of modules.dep. This file does not list
    built-in modules, so the result lacks them."""
    needs = {path: needed.split() for path, _, needed in (line.partition(":") for line in index.splitlines())}
    by_name = {name: path for path in needs for name in module_names(path)}
    order: dict[str, None] = {}
    for name in names:
        if (path := by_name.get(name)) is not None:
            order.update(dict.fromkeys([*reversed(needs[path]), path]))
    return list(order)


def _unpacked(path: Path, folder: Path) -> str:
    name, _, packing = path.name.partition(".ko")
    if packing not in _UNPACK:
        raise UsageError(f"bob cannot decompress {path}", hint="build with CONFIG_MODULE_COMPRESS=n")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.ko").write_bytes(_UNPACK[packing](path.read_bytes()))
    return f"{name}.ko"


def _run(command: list[str], given: bytes = b"", folder: Path | None = None) -> bytes:
    done = subprocess.run(command, input=given, capture_output=True, cwd=folder, env={**os.environ, "LC_ALL": "C"})
    if done.returncode:
        raise ImageError(f"{command[0]} failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
