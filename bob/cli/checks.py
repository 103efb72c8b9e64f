"""What a probe needs of this machine, one check at a time; ``bob doctor`` prints them."""

from __future__ import annotations

import os
import platform
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bob.catalogue.request import DEFAULT_IMAGE
from bob.errors import BobError
from bob.guest.capacity import check_jobs
from bob.image import find, images_folder, installed, load_recipe, mmdebstrap, recipe_names
from bob.image.tree import depmod
from bob.run.agents import check_image
from bob.settings import places, settings
from bob.store.new_folder import why_no_new_file
from bob.text import plural, size

_MIB = 2**20
_CACHE_BYTES = 1024 * _MIB
"""An image has 290 MB, each saved guest some 150 MB."""

_TEMPORARY_BYTES = 512 * _MIB
"""Each guest that runs has a copy of its saved state there."""


class Health(StrEnum):
    """A probe can do without a NOTE, not without what is MISSING."""

    OK = "ok"
    MISSING = "missing"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Check:
    """Something that was looked for: its name, what was found, and what to do where that is not enough."""

    name: str
    state: Health
    found: str
    hint: str | None = None


def checks() -> Iterator[Check]:
    """Every check, as it is made; asking libvirt can take some seconds the first time."""
    yield _settings()
    yield _python()
    yield _qemu()
    yield _user()
    yield from _libvirt()
    yield from _space()
    yield from _builders(needed=not _has_image(settings().image or DEFAULT_IMAGE))
    yield from _images()
    yield _saved()


def _settings() -> Check:
    """Which bob.toml is read, and what it says. Raises UsageError for a wrong one: where the cache is hangs on it."""
    found = settings()
    if found.path is None:
        return Check("settings", Health.OK, f"those of bob: there is no {' and no '.join(map(str, places()))}")
    said = ", ".join(f"{key} {value}" for key, value in found.said.items()) or "nothing"
    try:
        if found.image is not None:
            check_image(found.image)
        check_jobs(found.jobs)
    except BobError as wrong:
        return Check("settings", Health.MISSING, f"{found.path}: {wrong.message}", wrong.hint)
    return Check("settings", Health.OK, f"{found.path} says {said}")


def _has_image(name: str) -> bool:
    """Whether a probe by default needs to build no image."""
    if name in recipe_names():
        return find(load_recipe(name)) is not None
    return any(image.name == name for image in installed())


def _python() -> Check:
    """Which one; an older one than bob needs would not have come this far."""
    return Check("Python", Health.OK, f"{platform.python_version()}, {sys.executable}")


def _qemu() -> Check:
    program = shutil.which("qemu-system-x86_64")
    if program is None:
        return Check("QEMU", Health.MISSING, "there is no qemu-system-x86_64", "apt-get install qemu-system-x86")
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return Check("QEMU", Health.MISSING, f"{program} does not start: {error}", "apt-get install qemu-system-x86")
    return Check("QEMU", Health.OK, said.partition("\n")[0].removeprefix("QEMU emulator version "))


def _user() -> Check:
    try:
        pwd.getpwnam("libvirt-qemu")
    except KeyError:
        return Check(
            "user libvirt-qemu",
            Health.MISSING,
            "it does not exist, and libvirt's QEMU driver asks for it",
            "apt-get install libvirt-daemon-system",
        )
    return Check("user libvirt-qemu", Health.OK, "exists")


def _libvirt() -> Iterator[Check]:
    """libvirt, asked as a probe would ask it; then what it will run guests with."""
    try:
        from bob.guest.driver import connect, disconnect
        from bob.guest.root import Root
    except ImportError as error:
        found = f"libvirt-python cannot be loaded: {error}"
        yield Check("libvirt", Health.MISSING, found, "apt-get install libvirt-dev pkg-config gcc; pip install .")
        return
    try:
        uri = Root.shared().uri
        connection, versions = connect(uri)
    except BobError as error:
        yield Check("libvirt", Health.MISSING, error.message, error.hint)
        return
    disconnect(connection, uri)
    yield Check("libvirt", Health.OK, f"{versions.libvirt}, inside bob (no daemon), runs QEMU {versions.qemu}")
    yield _accelerator(f"QEMU {versions.qemu}, libvirt {versions.libvirt}")
    yield _network()


def _accelerator(versions: str) -> Check:
    from bob.guest.accelerator import choose

    try:
        choice = choose(versions, _not_now)
    except _NotTried:
        return Check("accelerator", Health.OK, "/dev/kvm opens; the first probe tries whether a guest boots with it")
    except BobError as error:
        return Check("accelerator", Health.MISSING, error.message, error.hint)
    return Check("accelerator", Health.OK, f"{choice.accelerator.value.upper()}: {choice.reason}")


def _network() -> Check:
    from bob.guest.network import choose_network

    choice = choose_network()
    return Check("network", Health.OK, f"{choice.kind.value}: {choice.reason}")


class _NotTried(Exception):
    """Only booting a guest would tell."""


def _not_now() -> bool:
    raise _NotTried


def _space() -> Iterator[Check]:
    cache = images_folder().parent
    yield _folder("cache", cache, _CACHE_BYTES, "set XDG_CACHE_HOME to another folder, or cache in bob.toml")
    yield _folder("temporary files", Path(tempfile.gettempdir()), _TEMPORARY_BYTES, "set TMPDIR to another folder")


def _folder(name: str, folder: Path, needed: int, hint: str) -> Check:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if reason := why_no_new_file(existing):
        return Check(name, Health.MISSING, f"{folder} cannot be written: {reason}", hint)
    free = shutil.disk_usage(existing).free
    found = f"{folder}, {size(free)} free"
    if free < needed:
        return Check(name, Health.MISSING, f"{found}, {size(needed)} needed", f"free some space, or {hint}")
    return Check(name, Health.OK, found)


def _builders(*, needed: bool) -> Iterator[Check]:
    """The programs that build guest images; who has the image can do without."""
    state = Health.MISSING if needed else Health.NOTE
    programs = mmdebstrap.PROGRAMS if os.geteuid() == 0 else mmdebstrap.PROGRAMS | mmdebstrap.USER_PROGRAMS
    for program, package in programs.items():
        path = shutil.which(program)
        if path is None:
            yield Check(program, state, "not installed; it is for building guest images", f"apt-get install {package}")
        else:
            yield Check(program, Health.OK, path)
    path = depmod()
    if path is None:
        yield Check("depmod", Health.NOTE, "not installed; it is for --kernel-tree", "apt-get install kmod")
    else:
        yield Check("depmod", Health.OK, path)
    if mmdebstrap.KEYRING.exists():
        yield Check("Debian's keys", Health.OK, str(mmdebstrap.KEYRING))
    else:
        found = "not installed; they are for building guest images"
        yield Check("Debian's keys", state, found, "apt-get install debian-archive-keyring")


def _images() -> Iterator[Check]:
    for name in recipe_names():
        found = find(load_recipe(name))
        if found is None:
            yield Check(f"image {name}", Health.NOTE, "not built; a probe does it first", f"bob image build {name}")
        else:
            yield Check(f"image {name}", Health.OK, f"kernel {found.kernel_release}, built {found.built[:10]}")


def _saved() -> Check:
    folder = images_folder().parent / "saved"
    states = [path for path in folder.glob("*") if not path.suffix] if folder.is_dir() else []
    taken = size(sum(path.stat().st_size for path in states))
    if not states:
        return Check("saved guests", Health.NOTE, "none yet; the first probe boots its guests and saves them")
    return Check("saved guests", Health.OK, f"{plural(len(states), 'guest')}, {taken}")
