"""The cache of built images. Each image has a folder images/NAME-KEY/. bob first fills a temporary folder, and renames
it when the image is complete. KEY is a digest of the recipe (the folder that says how to build the image) and of the
kernel package that the build installed."""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, TextIO

from msgspec import structs

from bob import documents
from bob.errors import ImageError
from bob.fields import UNREADABLE
from bob.image.recipe import Recipe
from bob.schema import Document, adapt, decode, encode
from bob.settings import cache_home

MANIFEST = "image.json"
MODULES = "modules"  # a file with the paths of the kernel's modules, including built-in ones
MODULES_DISK = "modules.erofs"  # a disk with the modules of a user's own kernel
GUEST_MODULES = ("virtio_pci", "virtio_blk", "virtio_net", "erofs", "overlay", "loop", "dm_mod", "dm_log_writes")
OWN = "+"  # separates an image's name from the release of a user's own kernel


class ImageDocument(Document, frozen=True, kw_only=True, tag_field="schema", tag="bob.image/1"):
    """The content of image.json, an image's manifest. ``key`` is a digest of the recipe and of the installed kernel
    package, and ``recipe`` is a digest of the recipe alone. Older files lack ``recipe``; their ``key`` is the digest of
    the recipe."""

    name: str
    key: str
    recipe: str = ""
    kernel_release: str
    cmdline: str
    host_key: str
    built: str
    tools: Mapping[str, str]
    sizes: Mapping[str, int]


class Image(ImageDocument, frozen=True, kw_only=True):
    """A built guest image. ``recipe`` is a digest of its recipe (empty for a user's own kernel), and ``key`` is a
    digest of the recipe and of the kernel. ``root`` is the guest's first virtio disk, which is read-only. ``ssh_key``
    is a private key that logs in as root; ``host_key`` is the guest's public key, as in known_hosts. ``tools`` maps
    packages to versions, ``sizes`` maps file names to bytes. ``built`` is a UTC time (ISO 8601). bob refuses an image
    that lacks one of the modules ``needed``. ``instead`` has two hints for error messages: one about a missing module,
    and one about a missing package."""

    folder: Path
    needed: ClassVar[tuple[str, ...]] = GUEST_MODULES
    instead: ClassVar[tuple[str, str]] = (
        "use another --image, or a kernel with that option as m or y", "`bob image list` shows other images",
    )  # fmt: skip

    @property
    def named(self) -> str:
        return f"{self.name} ({self.key})"

    @property
    def kernel(self) -> Path:
        """The path of the kernel for QEMU. The file is an ELF vmlinux, which QEMU starts by its PVH entry. If bob could
        not unpack the vmlinux, the file is the bzImage."""
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
        """The guest's second disk (erofs), with the modules of a user's own kernel. None if the modules are on the root
        disk."""
        return self.folder / MODULES_DISK if MODULES_DISK in self.sizes else None

    @property
    def bytes_of_its_own(self) -> int:
        """The bytes that a removal of this image frees. Symlinks, which lead to files of another image, do not
        count."""
        return sum(size for name, size in self.sizes.items() if not (self.folder / name).is_symlink())

    @property
    def modules(self) -> frozenset[str]:
        """The names of the kernel's modules, including built-in modules, with ``_`` in place of ``-``."""
        return module_names((self.folder / MODULES).read_text())


def module_names(paths: str) -> frozenset[str]:
    return frozenset(Path(line).name.partition(".ko")[0].replace("-", "_") for line in paths.split())


def images_folder() -> Path:
    return cache_home() / "images"


def image_key(recipe: str, kernel_release: str, tools: Mapping[str, str]) -> str:
    """Return the key of an image, 16 hexadecimal digits. The key is a digest of the recipe's key, the kernel's
    release and the kernel package's version. The release is not enough, because several versions share one release."""
    version = tools.get(f"linux-image-{kernel_release}", "")
    return hashlib.sha256(f"{recipe}\n{kernel_release}\n{version}\n".encode()).hexdigest()[:16]


def image_folder(name: str, key: str) -> Path:
    return images_folder() / f"{name}-{key}"


def find(recipe: Recipe) -> Image | None:
    """Return the undamaged image that was built from the present text of ``recipe``. If there are several, return the
    image that the user chose last (:func:`chosen`). Return None if there is no such image."""
    found = [image for image in installed() if (image.name, image.recipe) == (recipe.name, recipe.key)]
    return max(found, key=when_chosen, default=None)


def installed() -> list[Image]:
    """Return all undamaged images in the cache, sorted by name and age."""
    found = (load(path.parent) for path in images_folder().glob(f"[!.]*/{MANIFEST}"))
    return sorted((image for image in found if image), key=lambda image: (image.name, image.built))


def chosen(image: Image) -> None:
    """Store the time of this call as the time when the user last chose ``image``. If the user built one kernel release
    several times, several images have the same name. From now on, that name stands for ``image``."""
    os.utime(image.folder / MANIFEST)


def when_chosen(image: Image) -> int:
    """Return the time (ns) when the user last chose ``image``. If the user never chose it, return the time when bob
    made it."""
    return (image.folder / MANIFEST).stat().st_mtime_ns


def remove(image: Image) -> None:
    """Delete the image, beginning with its manifest: if the removal is interrupted, bob ignores the remaining files."""
    (image.folder / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(image.folder, ignore_errors=True)


def write_manifest(image: Image) -> None:
    document = encode(adapt(ImageDocument, image))
    (image.folder / MANIFEST).write_bytes(documents.sealed(json.dumps(document, indent=2)))


@contextmanager
def locked(folder: Path, waiting: Callable[[], None]) -> Iterator[TextIO]:
    """Yield the lock file of ``folder``, locked. If another process holds the lock, call ``waiting`` first. Raises
    ImageError if bob cannot write to the cache."""
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
    """Return the image in ``folder``. Return None if its manifest (image.json) is missing or damaged, or if one of its
    files is missing or has the wrong size."""
    try:
        document = decode(ImageDocument, documents.opened((folder / MANIFEST).read_bytes()))
        image = adapt(Image, document, folder=folder)
        if not image.recipe and OWN not in image.name:  # an image from before ``key`` covered the kernel
            image = structs.replace(
                image, recipe=image.key, key=image_key(image.key, image.kernel_release, image.tools)
            )
        whole = all((folder / name).stat().st_size == size for name, size in image.sizes.items())
    except UNREADABLE:
        return None
    return image if whole else None
