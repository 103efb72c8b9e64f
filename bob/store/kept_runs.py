"""List and remove the run directories in a folder. For safety, bob removes a directory only if its run.json looks like
one of bob's. It must have an ``id``, and the version of the bob that wrote it."""

import fcntl
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from shutil import rmtree
from typing import Any

from bob import documents
from bob.answer.document import from_json
from bob.errors import MalformedError, StoreError
from bob.store.files import read_document
from bob.store.lock import LOCK, writing
from bob.store.run_kind import RunKind, kind_of, subject_of


class RunState(StrEnum):
    DONE = "done"
    STOPPED = "stopped"
    RUNNING = "running"
    DAMAGED = "damaged"  # its run.json cannot be read, or bob did not write it
    NO_RUN = "no run"  # it lacks run.json: bob was killed early, or the folder is the user's own


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run directory, as `bob runs` lists it. If run.json lacks the value of a field, the field is empty (None in the
    case of ``kind``). ``of`` names in words what the run is about: the file system, the program or the set of
    configurations."""

    path: str
    id: str
    state: RunState
    kind: RunKind | None
    of: str  # in words: the file system, program or set that the run is about
    started: str  # ISO 8601
    bytes: int  # on the disk
    verdicts: Mapping[str, int]  # how many cells have each verdict


def runs_in(folder: Path) -> Iterator[KeptRun]:
    """Yield the run directories in ``folder``, in the order of their names. A subfolder that is not a run directory may
    contain run directories, such as one for each kernel. Yield these instead of the subfolder. If it contains other
    files only, yield the subfolder with the state NO_RUN. Raise StoreError if ``folder`` cannot be read."""
    try:
        entries = sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
    except OSError as error:
        raise StoreError(f"cannot read {folder}: {error.strerror}", hint="name another folder with --in") from None
    for path in entries:
        found = [path] if _has_run(path) else _below(path)
        yield from map(kept_run, found)
        if not found and not _is_empty(path):
            yield _unknown(path, RunState.NO_RUN)


def kept_run(path: Path) -> KeptRun:
    try:
        about = read_document(path / "run.json")
        _check(path, about)
    except StoreError:
        return _unknown(path, RunState.DAMAGED)
    kind, result = kind_of(about), _result(path)
    is_done = "finished" in about or (kind is RunKind.MATRIX and _is_finished(result))
    state = RunState.RUNNING if is_locked(path) else RunState.DONE if is_done else RunState.STOPPED
    told = str(about["id"]), state, kind, subject_of(about), str(about.get("started", ""))
    return KeptRun(str(path), *told, disk_use(path), _verdicts(result))


def _unknown(path: Path, state: RunState) -> KeptRun:
    return KeptRun(str(path), "", state, None, "", "", disk_use(path), {})


def remove(path: Path) -> int:
    """Remove the run directory ``path``, and return how many bytes it had on the disk. Raise StoreError if ``path`` is
    not a run directory, or if another bob is writing it."""
    check_run(path)
    used = disk_use(path)
    with writing([path, *_below(path)]):  # another bob may be writing a single column of a matrix
        try:
            rmtree(path.resolve())  # rmtree refuses the path "."
        except OSError as error:
            raise StoreError(
                f"cannot remove {error.filename or path}: {error.strerror}", hint="check its permissions"
            ) from None
    return used


def check_run(path: Path) -> None:
    """Raise StoreError unless ``path`` is a run directory."""
    if path.is_symlink():
        raise StoreError(f"{path} is a link, not a run directory", hint=f"bob runs remove {path.resolve()}")
    if not _has_run(path):
        raise _no_run(path)
    _check(path, read_document(path / "run.json"))


def is_locked(path: Path) -> bool:
    """Return whether a process of bob is writing the run directory ``path`` now. This function only tries a shared
    lock; it writes nothing."""
    try:
        handle = os.open(path / LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(handle)
    return False


def disk_use(path: Path) -> int:
    """Return how many bytes ``path`` and its contents take on the disk."""
    used = 0
    for folder, _folders, names in os.walk(path):
        for name in (".", *names):
            with suppress(OSError):  # the file was removed meanwhile
                used += (Path(folder) / name).lstat().st_blocks * 512
    return used


def _has_run(path: Path) -> bool:
    return (path / "run.json").is_file()


def _below(path: Path) -> list[Path]:
    """Return the run directories directly in ``path``: the columns of a matrix (one for each configuration), the
    batches of a search, or the runs on several kernels."""
    try:
        return sorted(inner for inner in path.iterdir() if not inner.is_symlink() and _has_run(inner))
    except OSError:
        return []


def _no_run(path: Path) -> StoreError:
    if not path.exists():
        return StoreError(f"{path} does not exist", hint="bob runs lists run directories")
    if below := _below(path):
        hint = f"it contains run directories: {', '.join(inner.name for inner in below)}"
    else:
        hint = "it lacks run.json; if bob was killed early, remove it by rm -r"
    return StoreError(f"{path} is not a run directory", hint=hint)


def _is_empty(path: Path) -> bool:
    try:
        return not any(path.iterdir())
    except OSError:
        return False


def _check(path: Path, about: Mapping[str, Any]) -> None:
    if not all(isinstance(about.get(key), str) for key in ("id", "bob")):
        raise StoreError(f"{path} is not a run directory", hint="bob did not write its run.json")


def _is_finished(result: Mapping[str, Any]) -> bool:
    run = result.get("run")
    return isinstance(run, dict) and bool(run.get("finished"))


def _verdicts(result: Mapping[str, Any]) -> dict[str, int]:
    try:
        return dict(Counter(answer.verdict.value for answer in from_json(result).answers))
    except MalformedError:
        return {}


def _result(path: Path) -> dict[str, Any]:
    try:
        return documents.opened((path / "result.json").read_bytes())
    except (OSError, ValueError):
        return {}
