"""A bundle, ``bob.witnesses/1``: all witnesses (crash states that break a property) of a run, or of a matrix (a run for
each of several configurations), in one file, ``witnesses.json.xz``. The bundle stands in place of the folder
``witnesses/``. Paths of witnesses stay the same: the path ``witnesses/append-any.json`` is valid for a run with such a
folder, and also for a run with a bundle instead. A matrix has one folder for each configuration. In its bundle, the
witness ``xfs/witnesses/append-any.json`` has the name ``xfs/append-any``."""

import lzma
import shutil
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from bob import documents, fields
from bob.errors import MalformedError, StoreError
from bob.schema import LATER, Document, decode, encode, is_later
from bob.store.files import write_document, write_whole

SCHEMA = "bob.witnesses/1"
FOLDER = "witnesses"
FILE = f"{FOLDER}.json.xz"
SHARED = (
    *("base", "environment", "configuration", "device_model", "program"),
    *("inodes_before", "inodes_after", "status_before", "status_after"),
)
"""The fields that several witnesses often have in common, above all base images. A witness may lack some of these
fields."""


class BundleDocument(Document, frozen=True, tag_field="schema", tag=SCHEMA):
    """All ``witnesses`` of the bundle, by name. Many witnesses have the same value in a field, such as the base image.
    The tuple SHARED names such fields, and the bundle stores each of their values once. ``shared`` has, for each of
    these fields, the list of its values. In a witness, such a field is an index into that list."""

    shared: dict[str, list[Any]]
    witnesses: dict[str, dict[str, Any]]


def load(path: Path) -> dict[str, Any]:
    """Return the JSON object of the witness ``path``, from its file or from a bundle. Raises OSError if neither has the
    witness, ValueError if the file is not a document of bob, and MalformedError if the bundle is damaged."""
    if not path.is_file() and (bundled := _bundled(path)) is not None:
        return _whole(*bundled)
    return documents.opened(path.read_bytes())


def is_there(path: Path) -> bool:
    """Return whether the witness ``path`` exists, in a file of its own or in a bundle."""
    if path.is_file():
        return True
    bundled = _bundled(path)
    return bundled is not None and bundled[1] in _read(bundled[0]).witnesses


def within(folder: Path) -> list[Path]:
    """Return the paths of all witnesses in ``folder`` and its subfolders, sorted."""
    found = set(folder.glob(f"**/{FOLDER}/*.json"))
    for bundle in folder.glob(f"**/{FILE}"):
        for name in _read(bundle).witnesses:
            configuration, _, own = name.rpartition("/")
            found.add(bundle.parent / configuration / FOLDER / f"{own}.json")
    return sorted(found)


def pack(folder: Path) -> Path:
    """Replace a folder of witnesses by a bundle, and return the path of the bundle. ``folder`` is the folder of
    witnesses if its name is ``witnesses``. Otherwise it is the folder of a matrix, and the folders ``*/witnesses`` in
    it all go into one bundle. Raises StoreError if such a folder is empty or has other files."""
    is_one = folder.name == FOLDER
    packed = [folder] if is_one else sorted(folder.glob(f"*/{FOLDER}"))
    files = {one: sorted(one.iterdir()) if one.is_dir() else [] for one in packed}
    if not files or not all(files.values()) or any(path.suffix != ".json" for path in chain(*files.values())):
        raise StoreError(
            f"cannot bundle {folder}",
            hint=f"it must be a folder {FOLDER}, or have such folders below, with witnesses only",
        )
    bundle = folder.with_name(FILE) if is_one else folder / FILE
    named = {path: path.stem if is_one else f"{path.parent.parent.name}/{path.stem}" for path in chain(*files.values())}
    _write(bundle, {name: documents.opened(path.read_bytes()) for path, name in named.items()})
    for one in packed:
        shutil.rmtree(one)
    return bundle


def save(changed: Mapping[Path, Mapping[str, Any]]) -> None:
    """Write changed witnesses to the place where :func:`load` finds them: to their own files, or into their bundle."""
    bundled: dict[Path, dict[str, Mapping[str, Any]]] = {}
    for path, document in changed.items():
        if path.is_file():
            write_document(path, document)
        elif (found := _bundled(path)) is not None:
            bundled.setdefault(found[0], {})[found[1]] = document
    for bundle, new in bundled.items():
        _write(bundle, {name: new.get(name) or _whole(bundle, name) for name in _read(bundle).witnesses})


def _write(bundle: Path, witnesses: Mapping[str, Mapping[str, Any]]) -> None:
    shared: dict[str, list[Any]] = {part: [] for part in SHARED}
    short: dict[str, Any] = {}
    for name, whole in witnesses.items():
        document = dict(whole)
        for part in filter(document.__contains__, SHARED):
            known = shared[part]
            if document[part] not in known:
                known.append(document[part])
            document[part] = known.index(document[part])
        short[name] = document
    text = documents.text(encode(BundleDocument(shared, short)))
    write_whole(bundle, lzma.compress(documents.sealed(text), preset=9))


def _bundled(path: Path) -> tuple[Path, str] | None:
    """Return the bundle that may contain the witness ``path``, and the name that the witness would have in it."""
    if path.parent.name != FOLDER or path.suffix != ".json":
        return None
    run = path.parent.parent
    places = ((run / FILE, path.stem), (run.parent / FILE, f"{run.name}/{path.stem}"))
    return next(((bundle, name) for bundle, name in places if bundle.is_file()), None)


def _whole(bundle: Path, name: str) -> dict[str, Any]:
    document = _read(bundle)
    if name not in document.witnesses:
        raise FileNotFoundError(2, f"{bundle} lacks this witness")
    found = document.witnesses[name]
    try:
        return {**found, **{part: known[found[part]] for part, known in document.shared.items() if part in found}}
    except fields.MISSHAPEN as error:
        raise MalformedError(f"{bundle} is damaged: {fields.said(error)}", hint="was it truncated?") from None


def _read(bundle: Path) -> BundleDocument:
    return _read_as_of(bundle, bundle.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read_as_of(bundle: Path, _modified: int) -> BundleDocument:
    try:
        document = documents.opened(lzma.decompress(bundle.read_bytes()))
        if document.get("schema") != SCHEMA:
            found = document.get("schema")
            hint = LATER if is_later(found, SCHEMA) else None
            raise MalformedError(f"{bundle} has schema {found!r}, not {SCHEMA!r}", hint=hint)
        return decode(BundleDocument, document)
    except fields.MISSHAPEN as error:
        said = f"{bundle} is not a bundle of witnesses: {fields.said(error)}"
        raise MalformedError(said, hint="was it truncated?") from None
