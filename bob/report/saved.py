"""A result that was saved, read again: what ``bob.load`` gives, and where ``bob show`` starts from."""

from __future__ import annotations

import lzma
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bob import documents, fields
from bob.claim.property.vocabulary import row_of_today
from bob.claim.verdict import Verdict
from bob.errors import BobError, MalformedError, StoreError
from bob.judge.program_result import SCHEMA as PROGRAM_SCHEMA
from bob.judge.program_result import Programs
from bob.judge.program_result import from_json as programs_from_json
from bob.judge.tried import SCHEMA, Tried
from bob.judge.tried import from_json as tried_from_json
from bob.report.columns import Column, columns_of
from bob.result import Result, from_json
from bob.store.run_directory import RunDirectory, cannot_be_resumed, instead_of_resuming
from bob.text import plural

if TYPE_CHECKING:
    import pandas as pd  # takes a while to load


T = TypeVar("T")
STOPPED = "the run was stopped before its end: file systems and paces that come later are not here"
"""What is noted of each answer of such a run of bob app."""


@dataclass(frozen=True, slots=True, repr=False)
class Saved:
    """A result and the folder that its files are in. Everything here is made anew when it is asked for."""

    result: Result
    folder: Path

    def __repr__(self) -> str:
        """One line: what is in it may be megabytes."""
        verdicts = Counter(cell.verdict for column in self.result.configurations for cell in column.properties)
        told = ", ".join(f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict if verdicts[verdict])
        return f"<{plural(len(self.result.configurations), 'configuration')} in {self.folder}: {told or 'no cells'}>"

    def _repr_html_(self) -> str:
        """The table, which a notebook shows of a cell's last value."""
        return str(self.matrix().to_html())

    def matrix(self) -> pd.DataFrame:
        """The table: properties under their family in rows, configurations in columns, the marks of the verdicts.

        The marks are ``×`` (fails), ``holds``, ``?`` (unknown) and ``–`` (skipped); empty where it was not probed.
        """
        from bob.report.matrix import matrix

        return matrix([self.result])

    def cells(self) -> pd.DataFrame:
        """One row for each cell: verdict, counts, evidence, witness; see :func:`bob.report.frames.cell_frame`."""
        from bob.report.frames import cell_frame

        return cell_frame(self._columns())

    def workloads(self) -> pd.DataFrame:
        """One row for each workload of each cell; see :func:`bob.report.frames.workload_frame`."""
        from bob.report.frames import workload_frame

        return workload_frame(self._columns())

    def _columns(self) -> list[Column]:
        return columns_of([(self.result, self.folder)])


PROGRAMS_SCHEMA = "bob.apps/1"


def load(path: Path) -> Saved:
    """The result in ``path``: a run directory, or a result document.

    Raises StoreError where there is none or it cannot be read, MalformedError where it is damaged.
    """
    return Saved(read_result(path), path if path.is_dir() else path.parent)


def tried(path: Path) -> Tried | None:
    """The answers in ``path``, a run directory or a file; None where it is no quick question's, or cannot be read.

    Raises MalformedError where they are damaged.
    """
    return _of_schema(path, SCHEMA, tried_from_json)


def programs(path: Path) -> Programs | None:
    """The answers for a program in ``path``, as :func:`tried` has those to a quick question."""
    found = _of_schema(path, PROGRAM_SCHEMA, programs_from_json)
    about = _about(path)
    if found is None or "program" not in about or "finished" in about:
        return found
    return replace(found, results=tuple(replace(one, notes=(*one.notes, STOPPED)) for one in found.results))


def several_programs(path: Path) -> list[Programs] | None:
    """The answers for one program or several in ``path``: a run directory, its result, or a file of reports/make-apps,
    which may be compressed (.xz); None and MalformedError as in :func:`tried`."""
    one = programs(path)
    if one is not None:
        return [one]
    return _of_schema(path, PROGRAMS_SCHEMA, lambda document: list(map(programs_from_json, document["programs"])))


def result_file(path: Path) -> Path:
    """The file of the result in ``path``, a directory or that file; a large one of a reference is compressed (.xz). It
    may not be there."""
    if not path.is_dir():
        return path
    plain, packed = path / "result.json", path / "result.json.xz"
    return packed if packed.exists() and not plain.exists() else plain


def document_of(file: Path) -> dict[str, Any]:
    """The document in a file, which may be compressed. Raises OSError, and :data:`bob.fields.MISSHAPEN` for what is
    none."""
    data = file.read_bytes()
    return documents.opened(lzma.decompress(data) if file.suffix == ".xz" else data)


def _of_schema(path: Path, schema: str, from_document: Callable[[dict[str, Any]], T]) -> T | None:
    file = result_file(path)
    try:
        document = document_of(file)
    except fields.UNREADABLE:  # read_result says why
        return None
    if document.get("schema") != schema:
        return None
    _check_run(file, document)
    try:
        return from_document(document)
    except MalformedError as error:
        raise MalformedError(f"{file}: {error.message}", hint=error.hint) from error


def _about(path: Path) -> Mapping[str, Any]:
    """What the run directory ``path`` says of itself; nothing where that cannot be read."""
    if not (path / "run.json").is_file():
        return {}
    try:
        return RunDirectory(path).about()
    except BobError:
        return {}


def _check_run(file: Path, document: Mapping[str, Any]) -> None:
    """Raise MalformedError where ``file`` is the result of another run than the run.json beside it."""
    run = document.get("run", document)
    try:
        about = documents.opened(file.with_name("run.json").read_bytes())
    except fields.UNREADABLE:  # there is none, or it is told where it is needed
        return
    ids = about.get("id"), run.get("id") if isinstance(run, Mapping) else None
    if file.name.startswith("result.json") and None not in ids and ids[0] != ids[1]:
        raise MalformedError(f"{file} is of the run {ids[1]}, and {file.parent} is {ids[0]}", hint="put back its own")


def _instead(path: Path) -> str:
    """What to do with a directory that has no result."""
    if (path / "run.json").is_file():
        if cannot_be_resumed(_about(path)):
            return instead_of_resuming(path)
        return f"was it stopped? bob judge {path} judges what is finished"
    if (path.parent / "result.json").is_file():
        return f"it is a part of a run, which is told as a whole: bob show {path.parent}"
    return "name a run directory, or a result that --json wrote"


def read_result(path: Path) -> Result:
    """Return the result in ``path``, a run directory or a file.

    Raises StoreError or MalformedError where there is none, or that cannot be read.
    """
    file = result_file(path)
    if not file.exists():
        if file == path:
            raise StoreError(f"there is no {path}", hint="name a run directory, or a result that --json wrote")
        raise StoreError(f"{path} has no result.json", hint=_instead(path))
    try:
        document = document_of(file)
    except OSError as error:
        raise StoreError(f"cannot read {file}: {error.strerror}") from error
    except documents.ChangedError as error:
        instead = f"bob judge {path} writes it anew" if (path / "workloads").is_dir() else documents.BY_HAND
        raise MalformedError(f"{file}: {error}", hint=instead) from error
    except fields.MISSHAPEN as error:
        raise MalformedError(f"{file} is no result: {fields.said(error)}", hint="was it truncated?") from error
    _check_run(file, document)
    try:
        result = _in_words_of_today(from_json(document))
    except MalformedError as error:
        hint = _SHOWN_BY.get(str(document.get("schema")), error.hint)
        raise MalformedError(f"{file}: {error.message}", hint=hint) from error
    return result


_SHOWN_BY = {
    "bob.apm/1": "`bob apm show FILE` shows a model",
    "bob.witness/1": "`bob witness show FILE` shows a witness",
    "bob.witnesses/1": "`bob witness show` shows one of them, by the path that it has in the bundle",
}
"""By schema: what shows a document that is no result."""


def _in_words_of_today(result: Result) -> Result:
    """``result`` with the names that its rows have today (:mod:`bob.claim.property.vocabulary`)."""
    columns = (
        replace(column, properties=tuple(replace(cell, name=row_of_today(cell.name)) for cell in column.properties))
        for column in result.configurations
    )
    return replace(result, configurations=tuple(columns))
