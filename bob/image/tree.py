"""Use a kernel from its build tree: its bzImage, its modules and its configuration. A folder gets links to the few
modules that a guest needs, and bob runs depmod on this folder. The image gets copies of these modules without debug
information."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bob.errors import ImageError, MissingProgramError, UsageError
from bob.image.cache import GUEST_MODULES
from bob.image.kernel import release_of
from bob.image.needs import KERNEL_OPTIONS, missing, option
from bob.image.own import Build, is_kept
from bob.image.recipe import Recipe

BZIMAGE = "arch/x86/boot/bzImage"
CONFIGURED = "include/config/auto.conf"  # the options of the last ``make``; ``.config`` may have changed since then
RELEASE = "include/config/kernel.release"
_SET = re.compile(r"^(CONFIG_\w+)=[ym]$", re.M)
_MOST_NAMES = 5


def options(configuration: str) -> frozenset[str]:
    return frozenset(_SET.findall(configuration))


@contextmanager
def tree_build(tree: Path, recipe: Recipe, modules: Iterable[str] = ()) -> Iterator[Build]:
    """Yield the kernel that was built in ``tree`` (DIR of ``make O=DIR``). The folder with its modules exists until the
    end of the ``with`` block. Raises UsageError if the tree is unfit, or lacks a kernel option or module that a guest
    needs. Raises MissingProgramError if depmod is not installed, and ImageError if depmod fails."""
    said = options(_text(tree, CONFIGURED))
    release = _text(tree, RELEASE).strip()
    packed = _bytes(tree, BZIMAGE)
    if release_of(packed) != release:
        mismatch = f"{tree / BZIMAGE} belongs to the kernel {release_of(packed)}, and its tree to {release}"
        raise UsageError(mismatch, hint=f"make -C {tree}")
    _check_options(tree, release, said, modules)
    program = depmod()
    if program is None:
        raise MissingProgramError("depmod is needed to take modules from a build tree", hint="apt-get install kmod")
    with tempfile.TemporaryDirectory(prefix="bob-tree-") as scratch:
        folder = Path(scratch, "lib/modules", release)
        paths = _link_modules(tree, folder, recipe)
        done = subprocess.run([program, "-b", scratch, release], capture_output=True, text=True)
        if done.returncode:
            raise ImageError(f"depmod failed: {done.stderr.strip()}")
        build = Build(release, packed, folder, paths, strips="CONFIG_DEBUG_INFO" in said)
        if lacking := missing(build.names, (*GUEST_MODULES, *modules)):
            raise UsageError(f"{tree} lacks the module {', '.join(lacking)}", hint=f"make -C {tree} modules")
        yield build


def depmod() -> str | None:
    """Return the path of depmod, or None if depmod is not installed. This function searches PATH, then /usr/sbin and
    /sbin, which an ordinary user's PATH may lack."""
    return shutil.which("depmod", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _check_options(tree: Path, release: str, said: frozenset[str], modules: Iterable[str]) -> None:
    needed = (*KERNEL_OPTIONS, *(option(module) for module in (*GUEST_MODULES, *modules)))
    if lacking := [name for name in dict.fromkeys(needed) if name not in said]:
        enable = " ".join(f"-e {name.removeprefix('CONFIG_')}" for name in lacking)
        raise UsageError(
            f"the kernel {release} in {tree} was built without {', '.join(lacking)}",
            hint=f"scripts/config {enable}; make olddefconfig; make",
        )
    if "CONFIG_MODULE_SIG_FORCE" in said:  # modules get their signatures only at their installation
        raise UsageError(
            f"the kernel {release} in {tree} loads signed modules only, and those in a build tree are not signed",
            hint="make modules_install INSTALL_MOD_PATH=DIR; then --kernel and --modules DIR",
        )


def _link_modules(tree: Path, folder: Path, recipe: Recipe) -> tuple[str, ...]:
    """Link the modules that a guest may need into ``folder``, laid out for depmod; return their paths in ``folder``."""
    folder.mkdir(parents=True)
    order = tree / "modules.order"  # this file is missing without CONFIG_MODULES
    built = [_module(tree, line) for line in (order.read_text().split() if order.is_file() else ())]
    paths = {f"kernel/{path}": tree / path for path in built if is_kept(f"kernel/{path}", recipe)}
    if gone := [str(path) for path in paths.values() if not path.is_file()]:
        more = ", ..." if len(gone) > _MOST_NAMES else ""
        raise UsageError(f"cannot find {', '.join(gone[:_MOST_NAMES])}{more}", hint=f"make -C {tree} modules")
    for path, there in paths.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).symlink_to(there.resolve())
    (folder / "modules.order").write_text("".join(f"{path}\n" for path in paths))
    for name in ("modules.builtin", "modules.builtin.modinfo"):
        if (tree / name).is_file():
            shutil.copyfile(tree / name, folder / name)
    return tuple(sorted(paths))


def _module(tree: Path, line: str) -> str:
    """Return the path of a module in its build tree, for a line of modules.order. Such a line is kernel/fs/ext4/ext4.ko
    up to Linux 5.3, fs/ext4/ext4.ko up to 6.2, and fs/ext4/ext4.o since 6.3. A leading kernel/ may also be a real
    folder of the tree. So bob tests whether the path with kernel/ exists, or the path without it."""
    path = line.removesuffix(".o") + ".ko" if line.endswith(".o") else line
    inner = path.removeprefix("kernel/")
    return inner if inner != path and not (tree / path).is_file() and (tree / inner).is_file() else path


def _text(tree: Path, name: str) -> str:
    return _bytes(tree, name).decode(errors="replace")


def _bytes(tree: Path, name: str) -> bytes:
    try:
        return (tree / name).read_bytes()
    except OSError as error:
        raise UsageError(
            f"{tree} is not the build tree of a kernel: {name}: {error.strerror}",
            hint="run `make` there; after make O=DIR, name DIR",
        ) from None
