"""What one worker of a cluster is given, and what it gives back: values that travel, with files as bytes.

A parcel is a piece of a run: a whole run directory of a probe (a column of a matrix, a lot of a search), some workloads
of one, or a program on one configuration. Its worker has its own guests and images, and needs no file of anybody else:
what it is to go on with comes with the parcel, and what it made goes back with the answer.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from bob.errors import StoreError
from bob.judge.program_result import Programs
from bob.store.files import write_whole
from bob.store.lock import LOCK

_LEVEL = 1
"""Of zlib: logs and observations become a tenth; a higher level takes several times as long for a tenth less."""
_NOTHING = b"PK\5\6" + bytes(18)
"""A zip archive without files."""
_LATE = ("recorded.json", "observed.json", "refused.json", "lost.json", "result.json", "run.json")
"""What says that the rest is there, so it is written after that, in this order."""

OF_A_CONFIGURATION = "mkfs_version"
"""The field of an environment that differs from configuration to configuration."""


@dataclass(frozen=True, slots=True)
class ProgramWork:
    """A program to be tried on one configuration, the one with this ``number`` of its run. ``request``, ``program`` and
    the ``models`` are documents. Where ``answers`` is False, the models have their answer by another parcel; here is
    asked whether they allow what the file system leaves."""

    program: Mapping[str, Any]
    request: Mapping[str, Any]
    number: int
    models: tuple[Mapping[str, Any], ...] = ()
    explores: bool = True
    answers: bool = True


@dataclass(frozen=True, slots=True)
class Parcel:
    """A piece of a run.

    ``run`` is the identity of the run, ``key`` that of the parcel in it, ``title`` for people. ``given`` are the files
    of a run directory to go on with (:func:`packed`). Of the workloads with these ``numbers`` it is to be seen what a
    crash leaves; where there are None, of all that the run directory asks for, and they are judged, too. ``program``:
    a program is tried, in place of that. ``environment`` is what the parcel must be measured on, as far as it is known;
    ``jobs`` are the guests side by side, ``connect`` is the libvirt connection that they run on. ``bob`` is the version
    that made the parcel.
    """

    run: str
    key: str
    title: str
    bob: str
    given: bytes
    numbers: tuple[int, ...] | None = None
    program: ProgramWork | None = None
    environment: Mapping[str, str] | None = None
    jobs: int = 1
    connect: str | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """What became of a parcel: its ``files``, packed, and the ``environment`` that it was measured on.

    ``refusal`` are the words, and the hint, by which mkfs or the kernel refused the configuration, or a program cannot
    be run. ``unfit`` says why this worker could not do it, so that another one has to; ``broke`` that bob itself broke
    there, and how. ``stopped``: the parcel was ended
    before it was done; what was finished is among the files. ``programs`` is the answer for a program.
    ``worker`` names who did it, and ``seconds`` is how long that took.
    """

    files: bytes
    environment: Mapping[str, str] | None = None
    refusal: tuple[str, str | None] | None = None
    unfit: str | None = None
    broke: str | None = None
    stopped: bool = False
    programs: Programs | None = None
    worker: str = ""
    seconds: float = 0.0

    @property
    def failure(self) -> str | None:
        """Why it was not done; None if it was, as far as it was not stopped."""
        return self.unfit or self.broke


def packed(folder: Path, wanted: Callable[[PurePosixPath], bool] = lambda _path: True) -> bytes:
    """The files in ``folder`` whose path is ``wanted``, but for its lock."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()):
            name = PurePosixPath(path.relative_to(folder).as_posix())
            if name.name != LOCK and name.suffix != ".part" and wanted(name):
                archive.writestr(zipfile.ZipInfo(str(name)), path.read_bytes(), zipfile.ZIP_DEFLATED, _LEVEL)
    return buffer.getvalue()


def unpack(files: bytes, folder: Path, wanted: Callable[[PurePosixPath], bool] = lambda _path: True) -> None:
    """Write the ``wanted`` ones of packed ``files`` below ``folder``, each whole or not at all. What says that other
    files are there comes after them: a workload counts as done only when all of it is.

    Raises StoreError for a path that leads out of ``folder``, and where it cannot be written.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(files)) as archive:
            for name in sorted(map(PurePosixPath, archive.namelist()), key=_turn):
                if name.is_absolute() or ".." in name.parts or not name.parts:
                    raise StoreError(f"a worker sent the file {str(name)!r}, which is no file of a run")
                if wanted(name):
                    target = folder / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    write_whole(target, archive.read(str(name)))
    except zipfile.BadZipFile as error:
        raise StoreError(f"what a worker sent is damaged: {error}", hint="--resume does it again") from None
    except OSError as error:
        raise StoreError(
            f"cannot write {error.filename or folder}: {error.strerror}", hint="is the disk full?"
        ) from None


def new_in(folder: Path, given: bytes) -> bytes:
    """The files in ``folder``, packed, that are not among the packed files that were ``given``, or are others now."""
    with zipfile.ZipFile(io.BytesIO(given or _NOTHING)) as archive:
        known = {name.filename: name.CRC for name in archive.infolist()}
    return packed(folder, lambda path: known.get(str(path)) != zlib.crc32((folder / path).read_bytes()))


def is_of(folders: Iterable[str]) -> Callable[[PurePosixPath], bool]:
    """Whether a file is what workloads in these ``folders`` of a run directory need: theirs, or a base."""
    names = set(folders)

    def wanted(path: PurePosixPath) -> bool:
        return path.parts[0] == "bases" or (path.parts[0] == "workloads" and path.parts[1] in names)

    return wanted


def _turn(path: PurePosixPath) -> tuple[int, int, str]:
    """What a recording refers to comes before it, and the run's own files come last."""
    late = _LATE.index(path.name) + 1 if path.name in _LATE else 0
    return len(path.parts) == 1, late, str(path)
