"""Unpack a disk (erofs) into a folder beside the disk's file. The disk is the root of a guest image, or a world (the
user space of a program under test, :mod:`bob.image.world`). Sandboxes on the host use the folder as their root."""

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from bob.errors import ImageError
from bob.image.cache import locked

UNPACKED = "unpacked"
PROGRAM = "fsck.erofs"  # from erofs-utils, which a build needs, too


def unpacked(disk: Path, owner: int, progress: Callable[[str], None]) -> Path:
    """Return the folder with the files of the erofs image ``disk``. If there is no such folder, unpack the image. All
    files belong to the user ``owner``, but keep their modes and times. The folder is beside ``disk``, so bob removes
    both together. Raises ImageError if the image cannot be unpacked."""
    disk = disk.resolve()
    folder = disk.with_name(f"{UNPACKED}-{owner}")
    mark = folder.with_name(f"{folder.name}.of")
    if _is_of(mark, disk) and folder.is_dir():
        return folder
    with locked(folder, lambda: progress("waiting for another bob to unpack this image")):
        if _is_of(mark, disk) and folder.is_dir():
            return folder
        progress("unpacking the image for checks on the host")
        part = folder.with_name(f".{folder.name}.part")
        try:
            for left in (part, folder):
                shutil.rmtree(left, ignore_errors=True)
            words = [PROGRAM, f"--extract={part}", "--preserve-perms", "--no-preserve-owner", str(disk)]
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if done.returncode:
                raise ImageError(f"{disk} cannot be unpacked: {' '.join((done.stderr or done.stdout).split())}")
            _give(part, owner)
            part.rename(folder)
            mark.write_text(_stamp(disk))
        except FileNotFoundError as missing:
            if missing.filename != PROGRAM:
                raise ImageError(f"{disk} cannot be unpacked: {missing.strerror}") from missing
            raise ImageError(f"{disk} cannot be unpacked: {PROGRAM} is not installed") from missing
        except OSError as error:
            raise ImageError(f"{disk} cannot be unpacked: {error.strerror}", hint="is the disk full?") from error
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return folder


def _stamp(disk: Path) -> str:
    status = disk.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def _is_of(mark: Path, disk: Path) -> bool:
    """Return whether bob unpacked the present content of ``disk``. The file ``mark`` contains the size and the time
    that the disk had when bob unpacked it."""
    with suppress(OSError):
        return mark.read_text() == _stamp(disk)
    return False


def _give(top: Path, owner: int) -> None:
    """Make ``owner`` the owner of all files below ``top``."""
    if owner == os.geteuid():
        return
    for path in (top, *top.rglob("*")):
        os.lchown(path, owner, owner)
