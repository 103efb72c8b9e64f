"""Worlds: Debian root file systems with the packages that a program under test needs, but without a kernel. They are on
read-only disks (erofs) in the cache."""

import hashlib
import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from bob.errors import ImageError, UsageError
from bob.image import mmdebstrap
from bob.image.build import scratch_folder
from bob.image.cache import OWN, Image, images_folder, locked
from bob.image.recipe import Recipe, load_recipe

FORMAT = 1  # increased when the same packages make another world
ALWAYS = ("python3",)  # packages in every world: a script may be in Python, as it may without a world
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_UNKNOWN = re.compile(r"Unable to locate package (\S+)|Package '?([^\s']+)'? has no installation candidate")
_UNMET = re.compile(r"^The following packages have unmet dependencies:\n((?: .+\n)+)", re.MULTILINE)
_MOST_UNMET = 4  # lines of apt's output that an error quotes
_CLEAN = """
cd "$1"
rm -rf var/cache/apt var/lib/apt/lists usr/share/doc usr/share/man usr/share/info usr/share/locale
mkdir -p .bob var/cache/apt var/lib/apt/lists
"""
_DISK = """\
mkfs.erofs --quiet --preserve-mtime -x-1 --exclude-path=.bob --exclude-regex='^(dev|proc|sys|run|tmp)/.+' \\
    .bob/world.erofs .
"""


def ensure_world(image: Image, packages: Sequence[str], progress: Callable[[str], None]) -> Path | None:
    """Return the disk with a world that has ``packages``, for guests of ``image``. If the cache lacks such a world,
    build it first. Return None if ``packages`` is empty. Raises UsageError if Debian's suite lacks a package. Raises
    MissingProgramError if this machine lacks a program that the build needs, and ImageError if the build fails."""
    if not packages:
        return None
    for package in packages:
        if not _PACKAGE.fullmatch(package):
            raise UsageError(f"invalid Debian package name {package!r}", hint="expected a name such as 'lmdb-utils'")
    recipe = load_recipe(image.name.partition(OWN)[0])
    wanted = sorted({*packages, *ALWAYS})
    text = "\0".join((str(FORMAT), _CLEAN + _DISK, recipe.suite, recipe.architecture, *wanted))
    folder = images_folder().parent / "worlds" / f"{recipe.suite}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    disk = folder / "world.erofs"
    if disk.is_file():
        return disk
    mmdebstrap.check_programs()
    with locked(folder, lambda: progress("waiting for another build of these packages")) as lock:
        if disk.is_file():
            return disk
        part = folder.with_name(f".{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            with scratch_folder(lock) as scratch:
                progress(f"building a disk with {', '.join(packages)}")
                _make(recipe, wanted, part, scratch, progress)
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return disk


def _make(recipe: Recipe, packages: Sequence[str], part: Path, scratch: Path, progress: Callable[[str], None]) -> None:
    log = part.with_name(f"{part.name.strip('.')}.log")
    hooks = (mmdebstrap.joined(_CLEAN, _DISK), f"download /.bob/world.erofs {shlex.quote(str(part / 'world.erofs'))}")
    try:
        mmdebstrap.run(recipe, packages, hooks, {"TMPDIR": str(scratch)}, log, progress)
    except ImageError:
        if (mistake := mistake_in(log.read_text(errors="replace"), recipe.suite)) is not None:
            raise mistake from None
        raise


def mistake_in(said: str, suite: str) -> UsageError | None:
    """Return an error for the user if, according to apt's output ``said``, the user asked for packages that the Debian
    suite ``suite`` lacks or cannot install together. Otherwise return None."""
    if found := _UNKNOWN.search(said):
        hint = "correct packages in app.toml"
        return UsageError(f"Debian {suite} lacks the package {found[1] or found[2]!r}", hint=hint)
    if unmet := _UNMET.search(said):
        lines = [" ".join(line.split()).replace(" : ", ": ", 1) for line in unmet[1].splitlines()]
        more = f"; and {len(lines) - _MOST_UNMET} more" if len(lines) > _MOST_UNMET else ""
        return UsageError(
            f"Debian {suite} cannot install these packages together: {'; '.join(lines[:_MOST_UNMET])}{more}",
            hint="remove one of them from packages in app.toml",
        )
    return None
