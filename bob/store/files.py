"""The files that bob keeps: written whole or not at all, with a checksum; read, and told by name where changed."""

from __future__ import annotations

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
    """The JSON table in the file ``path``. A field that it lacks is told with its name and the file's: StoreError."""

    def __init__(self, path: Path, table: Mapping[str, Any]) -> None:
        super().__init__(table)
        self._path = path

    def __missing__(self, name: str) -> Any:
        why = f"{self._path} is damaged: {name!r} is missing"
        raise MissingFieldError(why, hint="was it made by another version of bob?")


def read_document(path: Path, *, required: bool = False) -> StoredTable:
    """The JSON table in the file ``path``, as it was written.

    Raises StoreError if there is none, where its checksum does not fit, and where one is ``required`` and not there.
    """
    with reading(path):
        return StoredTable(path, documents.opened(path.read_bytes(), required=required))


def write_document(path: Path, document: Mapping[str, Any], *, compact: bool = False) -> None:
    """Write ``document`` to the file ``path``, with its checksum, whole or not at all; StoreError if that fails. What
    nobody reads is ``compact``, all in one line."""
    write_whole(path, documents.sealed(json.dumps(document) if compact else documents.text(document)))


def rewrite_document(path: Path, document: Mapping[str, Any]) -> None:
    """The same in place of what is there. Where that has no checksum, ``document`` gets none: in a run directory it
    would promise that the other files have one, too."""
    if checksum_in(path) is None:
        write_whole(path, documents.text(document).encode())
    else:
        write_document(path, document)


def write_whole(path: Path, data: bytes) -> None:
    """Write ``path`` whole or not at all."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}", hint="is the disk full?") from None


def read_raw(path: Path, known: Mapping[str, str]) -> bytes:
    """The bytes of the file ``path``, whose checksum is among the ``known`` ones, by names, where it has one.

    Raises OSError where it cannot be read, StoreError where its checksum does not fit.
    """
    data = path.read_bytes()
    if path.name in known and documents.checksum(data) != known[path.name]:
        raise changed(path, "its checksum does not fit")
    return data


def checksum_in(path: Path) -> str | None:
    """The checksum that the document ``path`` says it has; None where it has none, or is not there."""
    with reading(path):
        return documents.checksum_in(path.read_bytes()) if path.is_file() else None


def changed(path: Path, why: str) -> StoreError:
    """What to say of a file that is not as bob wrote it."""
    return StoreError(f"{path} is damaged: it was changed since bob wrote it: {why}", hint=_AGAIN)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever is wrong with ``path`` is a StoreError."""
    try:
        yield
    except OSError as error:
        hint = "was the run finished?" if isinstance(error, FileNotFoundError) else "is it yours?"
        raise StoreError(f"cannot read {error.filename or path}: {error.strerror}", hint=hint) from None
    except StoreError:
        raise
    except BobError as error:
        raise StoreError(f"{path} is damaged: {error.message}", hint=_AGAIN) from None
    except fields.MISSHAPEN as error:
        raise StoreError(f"{path} is damaged: {fields.said(error)}", hint=_AGAIN) from None


_AGAIN = "put back the file as it was, or probe again"
