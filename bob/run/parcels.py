"""What one worker of a cluster is given, and what it gives back: values that travel, with files as bytes.

A parcel is a part of a run with the files of its directory. Its worker has its own guests and images, and needs no
file of anybody else: what it is to go on with comes with the parcel, and what it made goes back with the answer.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import bob
from bob.errors import StoreError
from bob.run.parts import Part
from bob.run.prober import note_environment, now
from bob.store.files import write_whole
from bob.store.lock import LOCK
from bob.store.run_directory import RunDirectory

_LEVEL = 1
"""Of zlib: logs and observations become a tenth; a higher level takes several times as long for a tenth less."""
_NOTHING = b"PK\5\6" + bytes(18)
"""A zip archive without files."""
_LATE = ("recorded.json", "observed.json", "refused.json", "lost.json", "result.json", "run.json")
"""What says that the rest is there, so it is written after that, in this order."""

OF_A_CONFIGURATION = "mkfs_version"
"""The field of an environment that differs from configuration to configuration."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """A part of a run (:class:`bob.run.parts.Part`) that travels.

    ``run`` is the identity of the run, ``key`` that of the parcel in it, ``title`` for people. ``given`` are the files
    of the part's directory (:func:`packed`), of which run.json says what is asked. ``numbers`` is as of the part.
    ``environment`` is what the parcel must be measured on, as far as it is known; ``jobs`` are the guests side by side,
    ``connect`` is the libvirt connection that they run on. ``bob`` is the version that made the parcel.
    """

    run: str
    key: str
    title: str
    bob: str
    given: bytes
    numbers: tuple[int, ...] | None = None
    environment: Mapping[str, str] | None = None
    jobs: int = 1
    connect: str | None = None


def parcel_of(part: Part) -> Parcel:
    """The parcel of a part. If it has only some workloads, the files of the others stay here."""
    run, host, numbers = part.run, part.host, part.numbers
    key, given, about = run.path.name, is_given(part), run.about()
    return Parcel(
        run=about["id"],
        key=key if numbers is None else f"{key}-from-{numbers[0]}",
        title=part.title,
        bob=bob.__version__,
        given=packed(run.path, lambda path: path.name == "run.json" or given(path)),
        numbers=numbers,
        environment=about.get("environment"),
        jobs=host.jobs or 1,
        connect=host.connect,
    )


@dataclass(frozen=True, slots=True)
class Piece:
    """What became of a parcel: its ``files``, packed, and the ``environment`` that it was measured on.

    ``refusal`` is as in :class:`bob.run.parts.Ended`. ``unfit`` says why this worker could not do it, so that another
    one has to; ``broke`` that bob itself broke there, and how. ``stopped``: the parcel was ended before it was done;
    what was finished is among the files. ``worker`` names who did it, and ``seconds`` is how long that took.
    """

    files: bytes
    environment: Mapping[str, str] | None = None
    refusal: tuple[str, str | None] | None = None
    unfit: str | None = None
    broke: str | None = None
    stopped: bool = False
    worker: str = ""
    seconds: float = 0.0

    @property
    def failure(self) -> str | None:
        """Why it was not done; None if it was, as far as it was not stopped."""
        return self.unfit or self.broke


def keep(piece: Piece, part: Part) -> None:
    """Write the files of ``piece`` into the directory of its ``part``.

    Raises StoreError if that was begun on another machine or image.
    """
    run = part.run
    if not piece.files or piece.environment is None:
        return
    if part.numbers is None:
        unpack(piece.files, run.path)
        return
    if "environment" not in run.about():
        run.note(started=now())
    note_environment(run, piece.environment)
    theirs = is_given(part)
    unpack(piece.files, run.path, lambda path: theirs(path) and not _is_kept_base(run, path))


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


def is_given(part: Part) -> Callable[[PurePosixPath], bool]:
    """Whether a file is what the workloads of ``part`` need: theirs, or a base image."""
    if part.numbers is None:
        return lambda _path: True
    workloads = part.run.planned()
    names = {part.run.folder(number, workloads[number]).name for number in part.numbers}
    return lambda path: path.parts[0] == "bases" or (path.parts[0] == "workloads" and path.parts[1] in names)


def _is_kept_base(run: RunDirectory, path: PurePosixPath) -> bool:
    return path.parts[0] == "bases" and run.has_base(path.stem)


def _turn(path: PurePosixPath) -> tuple[int, int, str]:
    """What a recording refers to comes before it, and the run's own files come last."""
    late = _LATE.index(path.name) + 1 if path.name in _LATE else 0
    return len(path.parts) == 1, late, str(path)
