"""Parcels. A parcel is what bob sends to a worker of a cluster: a part of a run, together with the files that the
worker needs for it. The worker sends back a result with the new files."""

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bob.errors import StoreError
from bob.run.parts import RunPart
from bob.run.prober import note_environment
from bob.store.files import write_whole
from bob.store.lock import LOCK
from bob.store.run_directory import RunDirectory, now
from bob.version import __version__

_LEVEL = 1  # for zlib: logs and observations shrink to a tenth; a higher level saves little and takes much longer
_NOTHING = b"PK\5\6" + bytes(18)  # a zip archive without files
_DONE = ("observed.json", "refused.json")  # either file says that a workload is done, unless it was lost
_LATE = ("recorded.json", "observed.json", "refused.json", "lost.json", "result.json", "run.json")
"""The files that mark other files as complete. They are written after all other files, in this order."""

OF_A_CONFIGURATION = "mkfs_version"  # this field of an environment differs between configurations


@dataclass(frozen=True, slots=True)
class Parcel:
    """A part of a run (:class:`bob.run.parts.RunPart`), to be sent to a worker. ``run`` identifies the run, and ``key``
    identifies the parcel in the run. ``bob`` is the version of bob that made the parcel. ``given`` is an archive with
    the files of the part. The file run.json among them says what to do. The worker must do the workloads with the
    ``numbers``; None stands for all workloads of the part. The worker must have the ``environment``, for example the
    same kernel; None stands for any environment. The worker may use ``jobs`` guests at a time, in the libvirt at
    ``connect``."""

    run: str
    key: str
    title: str
    bob: str
    given: bytes
    numbers: tuple[int, ...] | None = None
    environment: Mapping[str, str] | None = None
    jobs: int = 1
    connect: str | None = None


def parcel_of(part: RunPart, identity: str) -> Parcel:
    """Return the parcel for ``part`` of the run with the name ``identity``. The parcel leaves out the files of
    workloads that belong to other parts."""
    run, host, numbers = part.run, part.host, part.numbers
    key, given, about = run.path.name, is_given(part), run.about()
    return Parcel(
        run=identity,
        key=key if numbers is None else f"{key}-from-{numbers[0]}",
        title=part.title,
        bob=__version__,
        given=packed(run.path, lambda path: path.name == "run.json" or given(path)),
        numbers=numbers,
        environment=about.get("environment"),
        jobs=host.jobs or 1,
        connect=host.connect,
    )


@dataclass(frozen=True, slots=True)
class ParcelResult:
    """The result of a parcel. ``files`` is an archive with the files that the worker made. ``environment`` describes
    the worker's guest, for example its kernel. ``refusal`` has the message and the hint if mkfs or the kernel refused
    the configuration, or if a script of the program under test failed. If this worker cannot do the parcel, ``unfit``
    says why. Another worker perhaps can do it. ``broke`` is an error of bob itself. If the parcel was ``stopped``
    early, the files have all finished workloads."""

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
        """The reason why the worker failed to do the parcel, or None if the worker did it or the run was stopped."""
        return self.unfit or self.broke


def keep(result: ParcelResult, part: RunPart) -> None:
    """Write the files of ``result`` into the run directory of ``part``. Raise StoreError if the rest of the run was
    made on another machine or with another image than ``result``."""
    run = part.run
    if not result.files or result.environment is None:
        return
    if part.numbers is None:
        written = unpack(result.files, run.path)
    else:
        if "environment" not in run.about():
            run.note(started=now())
        note_environment(run, result.environment)
        theirs = is_given(part)
        written = unpack(result.files, run.path, lambda path: theirs(path) and not _is_kept_base(run, path))
    for path in written:  # a worker sends new files, but cannot say that a file was removed
        if path.name in _DONE and path.with_name("lost.json") not in written:
            run.clear_loss(run.path / path.parent)


def packed(folder: Path, wanted: Callable[[PurePosixPath], bool] = lambda _path: True) -> bytes:
    """Return an archive of files in ``folder``. ``wanted`` is a function that says whether the file with a given path
    goes into the archive. The lock file is always left out."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()):
            name = PurePosixPath(path.relative_to(folder).as_posix())
            if name.name != LOCK and name.suffix != ".part" and wanted(name):
                archive.writestr(zipfile.ZipInfo(str(name)), path.read_bytes(), zipfile.ZIP_DEFLATED, _LEVEL)
    return buffer.getvalue()


def unpack(
    files: bytes, folder: Path, wanted: Callable[[PurePosixPath], bool] = lambda _path: True
) -> list[PurePosixPath]:
    """Write files of the archive ``files`` into ``folder``, and return their paths. ``wanted`` is a function that says
    whether to write the file with a given path. If bob crashes meanwhile, it has written each file completely or not at
    all. A file that marks a workload as done is written after all files of workloads. Raise StoreError if a path leads
    out of ``folder``, or if writing fails."""
    written = []
    try:
        with zipfile.ZipFile(io.BytesIO(files)) as archive:
            for name in sorted(map(PurePosixPath, archive.namelist()), key=_turn):
                if name.is_absolute() or ".." in name.parts or not name.parts:
                    raise StoreError(f"a worker sent the file {str(name)!r}, which does not belong to a run")
                if wanted(name):
                    target = folder / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    write_whole(target, archive.read(str(name)))
                    written.append(name)
    except zipfile.BadZipFile as error:
        raise StoreError(f"a worker sent damaged files: {error}", hint="--resume repeats the work") from None
    except OSError as error:
        raise StoreError(
            f"cannot write {error.filename or folder}: {error.strerror}", hint="is the disk full?"
        ) from None
    return written


def new_in(folder: Path, given: bytes) -> bytes:
    """Return an archive of the files in ``folder`` that are new or changed. ``given`` is the archive with the old
    files."""
    with zipfile.ZipFile(io.BytesIO(given or _NOTHING)) as archive:
        known = {name.filename: name.CRC for name in archive.infolist()}
    return packed(folder, lambda path: known.get(str(path)) != zlib.crc32((folder / path).read_bytes()))


def is_given(part: RunPart) -> Callable[[PurePosixPath], bool]:
    """Return a function that says whether ``part`` needs the file with a given path. The part needs all base images,
    and the files of its own workloads."""
    if part.numbers is None:
        return lambda _path: True
    workloads = part.run.planned()
    names = {part.run.folder(number, workloads[number]).name for number in part.numbers}
    return lambda path: path.parts[0] == "bases" or (path.parts[0] == "workloads" and path.parts[1] in names)


def _is_kept_base(run: RunDirectory, path: PurePosixPath) -> bool:
    return path.parts[0] == "bases" and run.has_base(path.stem)


def _turn(path: PurePosixPath) -> tuple[int, int, str]:
    """Return a sort key: bob writes the files in this order. The files that mark a recording or a workload as complete
    come after most other files. The files of the whole run, such as run.json, come last."""
    late = _LATE.index(path.name) + 1 if path.name in _LATE else 0
    return len(path.parts) == 1, late, str(path)
