"""The file searched.json: what searches tried, in the folder of their run directories (bob/search/searched.py).

A search that ends, or finishes a lot, replaces its own part and leaves those of others as they are.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from bob import documents, fields
from bob.errors import MalformedError, StoreError
from bob.search.searched import Kept, from_json, merged, to_json
from bob.store.files import write_document
from bob.store.lock import alone

FILE = "searched.json"
SCHEMA = "bob.searched/1"


def read(folder: Path) -> tuple[Kept, ...]:
    """What the file in ``folder`` has; nothing where there is none.

    Raises StoreError where it cannot be read, MalformedError where it is damaged.
    """
    path = folder / FILE
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}", hint="is it yours?") from None
    try:
        document = documents.opened(data)
        if document.get("schema") != SCHEMA:
            raise ValueError(f"it has not got the schema {SCHEMA!r}")
        return merged(map(from_json, document["searches"]))
    except fields.MISSHAPEN as error:
        raise _damaged(path, fields.said(error)) from None


def check(folder: Path) -> None:
    """Raise what :func:`read` and :func:`update` would raise, before work is begun that is to be kept in ``folder``."""
    read(folder)
    if folder.is_dir() and not os.access(folder, os.W_OK):
        raise StoreError(f"cannot write {folder / FILE}: permission denied", hint="name another directory with --out")


def update(folder: Path, search: str, parts: Sequence[Kept]) -> None:
    """Have the file in ``folder`` say of the ``search`` with this id what ``parts`` say, and nothing else.

    Of several processes that do so at once, each waits for the others. Raises what :func:`read` raises, and StoreError
    where the file cannot be written.
    """
    with alone(folder):
        known = read(folder)
        kept = merged((one for one in known if one.id != search), parts)
        if kept != known:
            document = {"schema": SCHEMA, "searches": list(map(to_json, kept))}
            write_document(folder / FILE, document, compact=True)


def _damaged(path: Path, why: str) -> MalformedError:
    hint = "move it away; `bob judge SEARCH` writes down again what a search tried"
    return MalformedError(f"{path} is damaged: {why}", hint=hint)
