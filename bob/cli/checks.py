"""The checks of ``bob doctor``. They find out whether this machine can run a *probe*: an experiment that crashes a file
system in a guest (a virtual machine)."""

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
from bob.image.failure import VARIABLE, why_unreachable
from bob.image.tree import depmod
from bob.run.agents import check_image
from bob.sandbox import bubblewrap
from bob.settings import places, settings
from bob.store.new_folder import why_no_new_file
from bob.text import plural, size

_MIB = 2**20
_CACHE_BYTES = 1024 * _MIB  # an image takes 290 MB, each saved guest some 150 MB

_TEMPORARY_BYTES = 512 * _MIB  # each running guest has a copy of its saved state among the temporary files


class Health(StrEnum):
    """The state of something that a probe needs. If the state is MISSING, a probe cannot run. With OK or NOTE, it
    can."""

    OK = "ok"
    MISSING = "missing"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Check:
    """The check of one thing that a probe needs: its ``name``, what bob ``found``, and a hint if that is not enough for
    a probe."""

    name: str
    state: Health
    found: str
    hint: str | None = None


def checks() -> Iterator[Check]:
    """Do all checks, and yield each result. The first call of libvirt may take some seconds."""
    yield _settings()
    yield Check("Python", Health.OK, f"{platform.python_version()}, {sys.executable}")
    yield _qemu()
    yield _user()
    yield from _libvirt()
    cache = images_folder().parent
    yield _folder("cache", cache, _CACHE_BYTES, "set XDG_CACHE_HOME to another folder, or cache in bob.toml")
    yield _folder("temporary files", Path(tempfile.gettempdir()), _TEMPORARY_BYTES, "set TMPDIR to another folder")
    yield from _builders(needed=not _has_image(settings().image or DEFAULT_IMAGE))
    yield from _images()
    yield _saved()
    yield _sandbox()


def _settings() -> Check:
    """Check bob.toml. Raise UsageError if it is malformed, since other checks need the folder of the cache that it
    names."""
    found = settings()
    if found.path is None:
        return Check("settings", Health.OK, f"bob's defaults; neither {' nor '.join(map(str, places()))} exists")
    said = ", ".join(f"{key} {value}" for key, value in found.said.items()) or "nothing"
    try:
        if found.image is not None:
            check_image(found.image)
        check_jobs(found.jobs)
    except BobError as wrong:
        return _missing("settings", f"{found.path}: {wrong.message}", wrong.hint)
    return Check("settings", Health.OK, f"{found.path} sets {said}")


def _has_image(name: str) -> bool:
    if name in recipe_names():
        return find(load_recipe(name)) is not None
    return any(image.name == name for image in installed())


def _qemu() -> Check:
    program, hint = shutil.which("qemu-system-x86_64"), "apt-get install qemu-system-x86"
    if program is None:
        return _missing("QEMU", "qemu-system-x86_64 is not installed", hint)
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return _missing("QEMU", f"{program} does not start: {error}", hint)
    return Check("QEMU", Health.OK, said.partition("\n")[0].removeprefix("QEMU emulator version "))


def _user() -> Check:
    name = "user libvirt-qemu"
    try:
        pwd.getpwnam("libvirt-qemu")
    except KeyError:
        found = "it does not exist, and libvirt's QEMU driver needs it"
        return _missing(name, found, "apt-get install libvirt-daemon-system")
    return Check(name, Health.OK, "exists")


def _libvirt() -> Iterator[Check]:
    try:
        from bob.guest.driver import connect, disconnect, why_no_guest
        from bob.guest.network import choose_network
        from bob.guest.root import Root
    except ImportError as error:
        found = f"libvirt-python cannot be loaded: {error}"
        yield _missing("libvirt", found, "apt-get install libvirt-dev pkg-config gcc; pip install .")
        return
    try:
        uri = Root.shared().uri
        connection, versions = connect(uri)
    except BobError as error:
        yield _missing("libvirt", error.message, error.hint)
        return
    why_not = why_no_guest(connection)
    disconnect(connection, uri)
    if why_not is not None:
        yield _missing("guest", f"QEMU does not start: {why_not}", "a container may forbid it; see its log")
    yield Check("libvirt", Health.OK, f"{versions.libvirt}, inside bob (no daemon), runs QEMU {versions.qemu}")
    yield _accelerator(f"QEMU {versions.qemu}, libvirt {versions.libvirt}")
    network = choose_network()
    yield Check("network", Health.OK, f"{network.kind.value}: {network.reason}")


def _accelerator(versions: str) -> Check:
    from bob.guest.accelerator import choose

    try:
        choice = choose(versions, _not_now)
    except _NotTried:
        return Check("accelerator", Health.OK, "/dev/kvm opens; the first probe tests whether a guest boots with it")
    except BobError as error:
        return _missing("accelerator", error.message, error.hint)
    return Check("accelerator", Health.OK, f"{choice.accelerator.value.upper()}: {choice.reason}")


class _NotTried(Exception):
    """The error that ends the choice of an accelerator (KVM or TCG) when only a boot would show whether KVM works. bob
    doctor boots no kernel."""


def _not_now() -> bool:
    raise _NotTried


def _folder(name: str, folder: Path, needed: int, hint: str) -> Check:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if reason := why_no_new_file(existing):
        return _missing(name, f"{folder} cannot be written: {reason}", hint)
    free = shutil.disk_usage(existing).free
    found = f"{folder}, {size(free)} free"
    if free < needed:
        return _missing(name, f"{found}, {size(needed)} needed", f"free some space, or {hint}")
    return Check(name, Health.OK, found)


def _builders(*, needed: bool) -> Iterator[Check]:
    state = Health.MISSING if needed else Health.NOTE
    for program, package in mmdebstrap.programs().items():
        yield _installed(program, shutil.which(program), state, "needed to build guest images", package)
    yield from _build(needed=needed)
    yield _installed("depmod", depmod(), Health.NOTE, "needed for --kernel-tree", "kmod")
    keys = str(mmdebstrap.KEYRING) if mmdebstrap.KEYRING.exists() else None
    yield _installed("Debian's keys", keys, state, "needed to build guest images", "debian-archive-keyring")


def _build(*, needed: bool) -> Iterator[Check]:
    """Try what a build of the image needs of this machine. If there is an image, the network is not tried."""
    mode = mmdebstrap.build_mode()
    yield Check("image builds", Health.OK, mode.value)
    name = settings().image
    suite = load_recipe(name if name in recipe_names() else DEFAULT_IMAGE).suite
    if needed and (why := why_unreachable(suite)) is not None:
        hint = f"is there a network? {VARIABLE} sets another mirror, http_proxy a proxy"
        yield _missing("Debian's mirror", why, hint)


def _installed(name: str, path: str | None, state: Health, use: str, package: str) -> Check:
    if path is None:
        return Check(name, state, f"not installed; {use}", f"apt-get install {package}")
    return Check(name, Health.OK, path)


def _missing(name: str, found: str, hint: str | None) -> Check:
    return Check(name, Health.MISSING, found, hint)


def _images() -> Iterator[Check]:
    for name in recipe_names():
        found = find(load_recipe(name))
        if found is None:
            yield Check(f"image {name}", Health.NOTE, "not built; a probe builds it first", f"bob image build {name}")
        else:
            yield Check(f"image {name}", Health.OK, f"kernel {found.kernel_release}, built {found.built[:10]}")


def _saved() -> Check:
    folder = images_folder().parent / "saved"
    states = [path for path in folder.glob("*") if not path.suffix] if folder.is_dir() else []
    taken = size(sum(path.stat().st_size for path in states))
    if not states:
        return Check("saved guests", Health.NOTE, "none yet; the first probe boots its guests and saves them")
    return Check("saved guests", Health.OK, f"{plural(len(states), 'guest')}, {taken}")


def _sandbox() -> Check:
    """Check that bubblewrap can make a sandbox on this machine. The check runs only a trivial program in the
    sandbox."""
    name, package = bubblewrap.PROGRAM, bubblewrap.PACKAGE
    if not bubblewrap.is_installed():
        found = "not installed; programs' checkers then run in guests, more slowly"
        return Check(package, Health.NOTE, found, f"apt-get install {package}")
    if (why := bubblewrap.why_not()) is not None:
        needed = "user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns"
        hint = f"it needs version 0.8 and user namespaces: sysctl {needed}; without it, checkers run in guests"
        return Check(package, Health.NOTE, f"{name} cannot make a sandbox here: {why}", hint)
    return Check(package, Health.OK, "makes sandboxes for programs' checkers")
