"""Build a guest image from its recipe, a folder that says how to build the image. mmdebstrap makes a Debian root file
system. From it, the script pack.sh makes the files that QEMU needs: kernel, initramfs and read-only root disk. The
cache keeps these files."""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from bob.errors import ImageError, UsageError
from bob.image import cache, mmdebstrap
from bob.image.cache import MODULES, OWN, Image, find, images_folder, installed, locked
from bob.image.kernel import vmlinux
from bob.image.recipe import GUEST_FILES, PACK_SCRIPTS, Recipe, load_recipe, recipe_names

_SCRATCH_PREFIX = "bob-image-"


def ensure(name: str, progress: Callable[[str], None]) -> Image:
    """Return the image ``name``. If the cache lacks it, build it first, and call ``progress`` with each step. Raises
    what :func:`named` and :func:`build` raise."""
    asked = named(name)
    return asked if isinstance(asked, Image) else find(asked) or build(asked, progress)


def named(name: str) -> Image | Recipe:
    """Return the image ``name`` if the name has the form IMAGE+RELEASE. Such a name means an image with a user's own
    kernel, which this function does not build. For a name without ``+``, return the recipe of this name. Raises
    UsageError if ``name`` is unknown, MalformedError if its recipe cannot be used."""
    if OWN not in name:
        return load_recipe(name)
    found = [image for image in installed() if image.name == name]
    if not found:
        raise UsageError(f"unknown image {name!r}", hint="--kernel-tree makes it, or --kernel with --modules")
    return max(found, key=cache.when_chosen)


def image_names() -> list[str]:
    return [*recipe_names(), *sorted({image.name for image in installed() if OWN in image.name})]


def build(recipe: Recipe, progress: Callable[[str], None]) -> Image:
    """Build the image of ``recipe`` (1 to 2 minutes, with a download of 150 MB), unless another process has just built
    it. If the build fails, the cache keeps no part of the image. Raises MissingProgramError or ImageError."""
    mmdebstrap.check_programs()
    name = f"{recipe.name}-{recipe.key}"
    with locked(images_folder() / name, lambda: progress("waiting for another build of this image")) as lock:
        image = find(recipe)
        if image is not None:
            return image
        part = images_folder() / f".{name}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            with scratch_folder(lock) as scratch:
                _make_root(recipe, part, scratch, progress)
            progress("finishing the image")
            folder = cache.image_folder(recipe.name, _finish(recipe, part))
            shutil.rmtree(folder, ignore_errors=True)  # an image in this folder would be damaged, or half removed
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    built = find(recipe)
    if built is None:
        raise ImageError(f"the image in {folder} vanished while it was built", hint="was the recipe edited? try again")
    return built


def _make_root(recipe: Recipe, part: Path, scratch: Path, progress: Callable[[str], None]) -> None:
    ssh_key = part / "ssh_key"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"bob {recipe.name}", "-f", str(ssh_key)]
    subprocess.run(words, check=True)
    inputs = {part / "ssh_key.pub": "ssh_key.pub"}
    for name in GUEST_FILES:
        (part / name).write_bytes(recipe.files[name])
        inputs[part / name] = name
    outputs = ("root.erofs", "initrd", "vmlinuz", "release", "versions", MODULES, "host_key.pub")
    hooks = [
        'mkdir "$1/.bob"',
        *(f"upload {shlex.quote(str(path))} /.bob/{name}" for path, name in inputs.items()),
        mmdebstrap.joined(*(path.read_text() for path in PACK_SCRIPTS)),
        *(f"download /.bob/{name} {shlex.quote(str(part / name))}" for name in outputs),
    ]
    environment = {
        "BOB_PACKAGES": " ".join(recipe.packages),
        "BOB_INITRAMFS_MODULES": " ".join(recipe.modules.initramfs),
        "BOB_BOOT_MODULES": " ".join(recipe.modules.boot),
        "BOB_KEEP_MODULES": " ".join(recipe.modules.keep),
        "BOB_REMOVE": " ".join(recipe.strip.remove),
        "TMPDIR": str(scratch),
        "INITRD": "No",  # do not make Debian's own initramfs: it takes half a minute, and bob does not use it
    }
    log = part.with_name(f"{recipe.name}-{recipe.key}.log")
    sources = [_source(recipe.suite, suite) for suite in recipe.more_suites]
    packages = (recipe.kernel_package, *recipe.packages)
    mmdebstrap.run(recipe, packages, hooks, environment, log, progress, setup=sources)
    for path in inputs:
        path.unlink()


def _source(suite: str, more: str) -> str:
    """Return a shell command that adds the Debian suite ``more`` to apt's sources in the new root file system. The
    command copies the line of ``suite``, so both suites come from the same mirror."""
    line = f"/^deb/s/ {suite} / {more} /p"
    return f'cat "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/*.list 2>/dev/null | sed -n "{line}" |' + (
        f' head -n 1 >"$1"/etc/apt/sources.list.d/{more}.list'
    )


def _finish(recipe: Recipe, part: Path) -> str:
    packed = (part / "vmlinuz").read_bytes()
    (part / "kernel").write_bytes(vmlinux(packed) or packed)
    release = (part / "release").read_text().strip()
    tools = dict(line.split(maxsplit=1) for line in (part / "versions").read_text().splitlines())
    host_key = " ".join((part / "host_key.pub").read_text().split()[:2])
    for name in ("vmlinuz", "release", "versions", "host_key.pub"):
        (part / name).unlink()
    (part / "ssh_key").chmod(0o600)
    key = cache.image_key(recipe.key, release, tools)
    cache.write_manifest(
        Image(
            name=recipe.name,
            key=key,
            recipe=recipe.key,
            folder=part,
            kernel_release=release,
            cmdline=recipe.cmdline,
            host_key=host_key,
            built=datetime.now(UTC).isoformat(timespec="seconds"),
            tools=tools,
            sizes={path.name: path.stat().st_size for path in sorted(part.iterdir())},
        )
    )
    return key


@contextmanager
def scratch_folder(lock: TextIO) -> Iterator[Path]:
    """Yield a scratch folder that other users may enter, such as apt's user and the users of a user namespace. The lock
    file contains the folder's path as long as the folder exists. So a later build can remove the folder of a build that
    was killed."""
    lock.seek(0)
    left = [path for path in lock.read().split("\n") if path]
    scratch = Path(tempfile.mkdtemp(prefix=_SCRATCH_PREFIX, dir=os.environ.get("TMPDIR", "/var/tmp")))
    scratch.chmod(0o755)
    left.append(str(scratch))
    _note(lock, left)
    try:
        for path in left[:-1]:
            _discard(Path(path))
        yield scratch
    finally:
        _discard(scratch)
        _note(lock, [path for path in left if Path(path).exists()])


def _note(lock: TextIO, paths: list[str]) -> None:
    lock.truncate(0)
    lock.write("".join(f"{path}\n" for path in paths))
    lock.flush()


def _discard(path: Path) -> None:
    """Remove the scratch folder ``path``. Files that this user has no permission to remove stay. Raises ImageError if
    something is mounted below the folder."""
    if not path.name.startswith(_SCRATCH_PREFIX) or not path.is_dir() or path.is_symlink():
        return
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    if any(f"{path}/" in f"{line.split()[4]}/" for line in mounts):
        raise ImageError(f"something is still mounted below {path}", hint="unmount it, then try again")
    command = ["rm", "-rf", "--one-file-system", str(path)]
    if subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode and os.geteuid() != 0:
        # A killed build's files have owners of mmdebstrap's user namespace; only a namespace like it can remove them.
        inside = ["unshare", "--user", "--map-root-user", "--map-auto", *command]
        subprocess.run(inside, check=False, stderr=subprocess.DEVNULL)
