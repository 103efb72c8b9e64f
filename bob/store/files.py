"""Read and write the files that bob keeps. bob writes a file whole or not at all. Most files have a checksum, which bob
verifies when it reads the file."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bob import documents, fields
from bob.errors import BobError, StoreError


class MissingFieldError(StoreError, KeyError):
    """A document lacks a field."""


class StoredTable(dict[str, Any]):
    """The JSON object in a file. A missing field raises MissingFieldError with the names of the field and of the
    file."""

    def __init__(self, path: Path, table: Mapping[str, Any]) -> None:
        super().__init__(table)
        self._path = path

    def __missing__(self, name: str) -> Any:
        why = f"{self._path} is damaged: {name!r} is missing"
        raise MissingFieldError(why, hint="did another version of bob write it?")


def read_document(path: Path, *, required: bool = False) -> StoredTable:
    """Return the JSON object in the file ``path``. Raise StoreError if the file is unreadable or its checksum is wrong.
    If ``required`` is true, a missing checksum is an error, too."""
    with reading(path):
        return StoredTable(path, documents.opened(path.read_bytes(), required=required))


def write_document(path: Path, document: Mapping[str, Any], *, compact: bool = False) -> None:
    """Write ``document`` with a checksum. If ``compact`` is true, the whole document is one line. Raise StoreError if
    writing fails."""
    write_whole(path, documents.sealed(json.dumps(document) if compact else documents.text(document)))


def rewrite_document(path: Path, document: Mapping[str, Any]) -> None:
    """Write ``document`` over the file ``path``. Add a checksum only if the old file has one. If run.json has a
    checksum, bob expects one in each file of the run. So a new checksum in an old run.json would make the run
    unreadable."""
    if checksum_in(path) is None:
        write_whole(path, documents.text(document).encode())
    else:
        write_document(path, document)


def write_whole(path: Path, data: bytes) -> None:
    """Write ``data`` to the file ``path``, whole or not at all. Raise StoreError if that fails."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}", hint="is the disk full?") from None


def read_raw(path: Path, known: Mapping[str, str]) -> bytes:
    """Return the bytes of the file ``path``. ``known`` maps names of files to their checksums. Raise StoreError if the
    file's checksum is in ``known``, and the bytes have another. Raise OSError if the file cannot be read."""
    data = path.read_bytes()
    if path.name in known and documents.checksum(data) != known[path.name]:
        raise changed(path, "its checksum does not fit")
    return data


def checksum_in(path: Path) -> str | None:
    """Return the checksum that the document in the file ``path`` states; None if the file or the checksum is
    missing."""
    with reading(path):
        return documents.checksum_in(path.read_bytes()) if path.is_file() else None


def changed(path: Path, why: str) -> StoreError:
    return StoreError(f"{path} is damaged: it was changed since bob wrote it: {why}", hint=_AGAIN)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors into a StoreError. The code in the with block reads the file ``path``; its errors mean that the file
    is unreadable or damaged."""
    try:
        yield
    except OSError as error:
        hint = "was the run finished?" if isinstance(error, FileNotFoundError) else "check its permissions"
        raise StoreError(f"cannot read {error.filename or path}: {error.strerror}", hint=hint) from None
    except StoreError:
        raise
    except BobError as error:
        raise StoreError(f"{path} is damaged: {error.message}", hint=_AGAIN) from None
    except fields.MISSHAPEN as error:
        raise StoreError(f"{path} is damaged: {fields.said(error)}", hint=_AGAIN) from None


_AGAIN = "restore the file, or probe again"
