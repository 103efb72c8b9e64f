"""Built images: images/NAME-KEY/ in bob's cache, complete or not there at all. A recipe names a Debian suite, whose
kernel changes. So the key of an image is that of its recipe and of the kernel that the build found."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, TextIO

from bob import documents
from bob.errors import ImageError
from bob.fields import UNREADABLE
from bob.image.recipe import Recipe
from bob.schema import Document, adapt, decode, encode
from bob.settings import cache_home

MANIFEST = "image.json"
MODULES = "modules"  # the image's list of kernel modules, by the path of each, built-in ones too
MODULES_DISK = "modules.erofs"  # the modules of a kernel that is not the image's own
GUEST_MODULES = ("virtio_pci", "virtio_blk", "virtio_net", "erofs", "overlay", "loop", "dm_mod", "dm_log_writes")
"""A guest needs these to be ready, and to record."""
OWN = "+"  # stands in an image's name between that of another image and the release of a kernel of one's own


@dataclass(frozen=True, slots=True)
class Image:
    """A built guest image, of the ``recipe`` with this key (empty: its kernel is one's own). Its own ``key`` names the
    kernel's package, too.

    ``root`` is the guest's first virtio disk, read-only; ``cmdline`` is the kernel's command line. The holder of
    ``ssh_key`` is root in the guest, which proves itself with ``host_key`` (one line, as in known_hosts). ``tools``
    maps package names to versions, ``sizes`` file names to bytes; ``built`` is a UTC time (ISO 8601).
    """

    name: str
    key: str
    folder: Path
    kernel_release: str
    cmdline: str
    host_key: str
    built: str
    tools: Mapping[str, str] = field(repr=False)
    sizes: Mapping[str, int] = field(repr=False)
    recipe: str = ""
    needed: ClassVar[tuple[str, ...]] = GUEST_MODULES
    instead: ClassVar[tuple[str, str]] = (
        "take another --image, or a kernel that has it as m or y", "`bob image list` shows the others",
    )  # fmt: skip
    """Ways out where its kernel lacks a module, and where it lacks a package."""

    @property
    def named(self) -> str:
        """Its name, and in brackets its key, as in results."""
        return f"{self.name} ({self.key})"

    @property
    def kernel(self) -> Path:
        """The kernel: an ELF vmlinux that QEMU starts by its PVH entry, or Debian's own where that fails."""
        return self.folder / "kernel"

    @property
    def initrd(self) -> Path:
        return self.folder / "initrd"

    @property
    def root(self) -> Path:
        return self.folder / "root.erofs"

    @property
    def ssh_key(self) -> Path:
        return self.folder / "ssh_key"

    @property
    def modules_disk(self) -> Path | None:
        """The guest's second disk: the modules of a kernel of one's own (erofs). None where the root has them."""
        return self.folder / MODULES_DISK if MODULES_DISK in self.sizes else None

    @property
    def bytes_of_its_own(self) -> int:
        """The bytes that its removal frees: a link leads to another image's file."""
        return sum(size for name, size in self.sizes.items() if not (self.folder / name).is_symlink())

    @property
    def modules(self) -> frozenset[str]:
        """The kernel's modules by name, with underscores, built-in ones too."""
        return module_names((self.folder / MODULES).read_text())


class ImageDocument(Document, frozen=True, kw_only=True, tag_field="schema", tag="bob.image/1"):
    """The file image.json. Older ones have no ``recipe``: their key is that of the recipe."""

    name: str
    key: str
    recipe: str = ""
    kernel_release: str
    cmdline: str
    host_key: str
    built: str
    tools: Mapping[str, str]
    sizes: Mapping[str, int]


def module_names(paths: str) -> frozenset[str]:
    """Return the names of the modules in a list of files, one path on a line."""
    return frozenset(Path(line).name.partition(".ko")[0].replace("-", "_") for line in paths.split())


def images_folder() -> Path:
    """Return the folder of all images; it need not exist."""
    return cache_home() / "images"


def image_key(recipe: str, kernel_release: str, tools: Mapping[str, str]) -> str:
    """Return 16 hexadecimal digits that name the ``recipe`` with this key, and the kernel that its build found.
    Packages of several versions share a release, so ``tools`` (packages and their versions) says which one it is."""
    version = tools.get(f"linux-image-{kernel_release}", "")
    return hashlib.sha256(f"{recipe}\n{kernel_release}\n{version}\n".encode()).hexdigest()[:16]


def image_folder(name: str, key: str) -> Path:
    return images_folder() / f"{name}-{key}"


def find(recipe: Recipe) -> Image | None:
    """Return the image of exactly this recipe, of several the last one; a damaged one counts as not built."""
    found = [image for image in installed() if (image.name, image.recipe) == (recipe.name, recipe.key)]
    return max(found, key=when_chosen, default=None)


def installed() -> list[Image]:
    """Return every image in the cache, also of recipes that have changed since, by name and age."""
    found = (load(path.parent) for path in images_folder().glob(f"[!.]*/{MANIFEST}"))
    return sorted((image for image in found if image), key=lambda image: (image.name, image.built))


def chosen(image: Image) -> None:
    """Note that ``image`` is the one of its name from now on: two builds of one kernel have one name."""
    os.utime(image.folder / MANIFEST)


def when_chosen(image: Image) -> int:
    """Return when that was, or when it was made (nanoseconds)."""
    return (image.folder / MANIFEST).stat().st_mtime_ns


def remove(image: Image) -> None:
    """Delete the image. The manifest goes first: after an interruption the rest does not count as an image."""
    (image.folder / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(image.folder, ignore_errors=True)


def write_manifest(image: Image) -> None:
    """Write the manifest that :func:`find` reads into the image's folder."""
    document = encode(adapt(ImageDocument, image))
    (image.folder / MANIFEST).write_bytes(documents.sealed(json.dumps(document, indent=2)))


@contextmanager
def locked(folder: Path, waiting: Callable[[], None]) -> Iterator[TextIO]:
    """Hold the lock of the build of ``folder``, calling ``waiting`` once if another process has it; yield the lock
    file. The kernel releases it whatever becomes of this process."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        handle = (folder.parent / f".{folder.name}.lock").open("a+")
    except OSError as error:
        raise ImageError(
            f"cannot write to {folder.parent}: {error.strerror}",
            hint="set XDG_CACHE_HOME to another folder, or cache in bob.toml",
        ) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle


def load(folder: Path) -> Image | None:
    """Return the image in ``folder``; None where it is missing, or any file of it is missing or cut short."""
    try:
        document = decode(ImageDocument, documents.opened((folder / MANIFEST).read_bytes()))
        image = adapt(Image, document, folder=folder)
        if not image.recipe and OWN not in image.name:  # before images named their kernel
            image = replace(image, recipe=image.key, key=image_key(image.key, image.kernel_release, image.tools))
        whole = all((folder / name).stat().st_size == size for name, size in image.sizes.items())
    except UNREADABLE:
        return None
    return image if whole else None
