"""Saved guests: the state of a booted guest on disk. bob restores a guest in one second, but needs ten seconds to boot
it. One saved state cannot be restored twice at a time: libvirt restores it only under the UUID and the name that it was
saved with. So each restore gets a copy of the state with another UUID, and another name of the same length (0.1 s for
140 MB)."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from uuid import UUID

from bob.guest.domain_xml import Identity
from bob.settings import cache_folder

FORMAT = 1  # increased when older saved guests become unusable for a reason that their definition does not show

_HEADER_BYTES = 64 * 1024  # libvirt's header and XML are some 6 KB
_UNUSED_SECONDS = 30 * 24 * 3600.0


class BadState(Exception):
    """An error: the file of a saved state does not contain the UUID and the name under which bob saved the guest."""


@dataclass(frozen=True, slots=True)
class SavedState:
    """The file of a guest's saved state, whether the file exists or not. ``identity`` is the UUID and the name of the
    saved guest."""

    path: Path
    identity: Identity

    @staticmethod
    def of(*definition: str) -> SavedState:
        """Return the place of the saved state for the guest that the texts ``definition`` describe, such as its XML and
        the versions of QEMU and libvirt. Each change of these texts leads to another file."""
        digest = hashlib.sha256("\0".join((str(FORMAT), *definition)).encode()).hexdigest()[:32]
        return SavedState(cache_folder("saved") / digest, Identity(UUID(digest)))

    def exists(self) -> bool:
        return self.path.exists()

    @property
    def part(self) -> Path:
        return self.path.with_suffix(".part")

    def commit(self) -> None:
        """Sync the file ``self.part``, where libvirt has saved the guest. Rename this file to ``path``, and sync its
        folder. After a crash of the host, the saved state is either whole or absent."""
        for path in (self.part, self.part.parent):
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
            if path == self.part:
                path.rename(self.path)
        _remove_unused(self.path.parent)

    def copy_for(self, identity: Identity, copy: Path) -> None:
        """Write a copy that libvirt restores as the guest ``identity``. Raises OSError or BadState."""
        shutil.copyfile(self.path, copy)
        with copy.open("r+b") as file:
            header = file.read(_HEADER_BYTES)
            for old, new in ((str(self.identity.uuid), str(identity.uuid)), (self.identity.name, identity.name)):
                if old.encode() not in header:
                    raise BadState(f"{self.path} does not contain {old}")
                header = header.replace(old.encode(), new.encode())
            file.seek(0)
            file.write(header)
        os.utime(self.path)  # notes the time of use: states that are unused for long are removed

    @contextmanager
    def locked(self, seconds: float) -> Iterator[bool]:
        """Take the lock for saving this state, and yield True. Yield False if another process holds the lock for
        ``seconds``."""
        with self.path.with_suffix(".lock").open("w") as handle:
            yield _is_locked(handle, seconds)


def _is_locked(file: IO[str], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() > end:
            return False
        time.sleep(0.05)


def _remove_unused(folder: Path) -> None:
    for path in folder.iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _UNUSED_SECONDS:
                path.unlink()
