"""Check, before a guest runs, that its image has the kernel modules and the packages (such as the one with mkfs) that a
run needs. If a module is missing, the error also names the kernel option that builds it."""

from collections.abc import Iterable

from bob.errors import UsageError
from bob.image.cache import Image

LATE_MODULES = ("nbd",)  # a disk that completes writes late needs these

KERNEL_OPTIONS = tuple(
    f"CONFIG_{name}"
    for name in (
        "X86_64", "BINFMT_ELF", "BINFMT_SCRIPT", "BLK_DEV_INITRD", "BLK_DEV_IO_TRACE", "DEVTMPFS", "INET", "PROC_FS",
        "SERIAL_8250_CONSOLE", "SYSFS", "TMPFS", "UNIX",
    )
)  # fmt: skip
"""Options that a guest's kernel must have built in, because a module cannot provide them."""

_OPTIONS = {
    "dm_mod": "BLK_DEV_DM",
    "loop": "BLK_DEV_LOOP",
    "nbd": "BLK_DEV_NBD",
    "virtio_rng": "HW_RANDOM_VIRTIO",
    "veth": "VETH",
    "bridge": "BRIDGE",
    "overlay": "OVERLAY_FS",
    **{name: f"MD_{name.upper()}" for name in ("raid0", "raid1", "raid10", "raid456")},
    "dm_thin_pool": "DM_THIN_PROVISIONING",
    "bcache": "BCACHE",
    "raid6_pq": "RAID6_PQ",
}
_NO_FILE_SYSTEMS = ("dm_", "virtio_")


def option(module: str) -> str:
    """Return the name of the kernel option that builds ``module``, such as CONFIG_EXT4_FS for ext4."""
    other = module if module.startswith(_NO_FILE_SYSTEMS) or module in _OPTIONS else f"{module}_fs"
    return f"CONFIG_{_OPTIONS.get(module, other.upper())}"


def missing(there: Iterable[str], needed: Iterable[str]) -> list[str]:
    known = frozenset(there)
    return [f"{module} ({option(module)})" for module in needed if module not in known]


def check_kernel(image: Image) -> None:
    _check_modules(image, image.needed)


def check_subject(image: Image, modules: Iterable[str], packages: Iterable[str]) -> None:
    """Raise UsageError if ``image`` lacks a kernel module of ``modules``, or a package of ``packages``. A run needs the
    programs in these packages."""
    _check_modules(image, modules)
    if lacking := [name for name in packages if name not in image.tools]:
        raise UsageError(f"the image {image.name} lacks the package {', '.join(lacking)}", hint=image.instead[1])


def _check_modules(image: Image, needed: Iterable[str]) -> None:
    if lacking := missing(image.modules, needed):
        kernel = f"the kernel {image.kernel_release} of {image.name}"
        raise UsageError(f"{kernel} lacks the module {', '.join(lacking)}", hint=image.instead[0])
