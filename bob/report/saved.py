"""A saved result, as ``bob.load`` returns it and ``bob show`` reads it. A *property* is a rule about crashes, and a
*witness* is a file about one crash state that breaks a property. The *evidence* says in a line what is wrong in that
state."""

from __future__ import annotations

import lzma
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bob import documents, fields
from bob.answer.answer import Answer
from bob.answer.document import results_in
from bob.answer.result import Result
from bob.claim.verdict import Verdict
from bob.errors import BobError, MalformedError, StoreError
from bob.report.columns import ShownColumn, columns_of
from bob.store.run_directory import RunDirectory
from bob.store.run_kind import RunKind, cannot_be_resumed, continued_by, instead_of_resuming, kind_of
from bob.text import plural

if TYPE_CHECKING:
    import pandas as pd  # imported only for types, since its import takes a while


STOPPED = "the run was stopped early, so later file systems and paces are missing"
"""The note that is added to each answer if a run of bob app was stopped."""


@dataclass(frozen=True, slots=True, repr=False)
class Saved:
    """A result and the folder of its files. ``path`` is the file or directory that bob read the result from, or None if
    the result does not come from a file. The methods return tables. Each call computes its table again."""

    result: Result
    folder: Path
    path: Path | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        verdicts = Counter(cell.verdict for column in self.result.subjects for cell in column.answers)
        told = ", ".join(f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict if verdicts[verdict])
        return f"<{plural(len(self.result.subjects), 'configuration')} in {self.folder}: {told or 'no cells'}>"

    def _repr_html_(self) -> str:
        return str(self.matrix().to_html())

    @property
    def answers(self) -> tuple[Answer, ...]:
        return self.result.answers

    def matrix(self) -> pd.DataFrame:
        """Return the table of marks, with a row for each property and a column for each configuration. The index has
        two levels: a family (a group of properties), and the property. The marks are ``×`` (fails), ``holds``, ``?``
        (unknown) and ``–`` (skipped). A mark is empty if the property was not probed."""
        from bob.report.frames import matrix

        return matrix(self._columns())

    def cells(self) -> pd.DataFrame:
        """Return a table with a row for each cell (the answer for one property of one configuration). Its columns are
        the verdict, counts, the evidence and the witness; see :func:`bob.report.frames.cell_frame`."""
        from bob.report.frames import cell_frame

        return cell_frame(self._columns())

    def workloads(self) -> pd.DataFrame:
        """Return a table with a row for each cell and each workload that tested the cell's property; see
        :func:`bob.report.frames.workload_frame`."""
        from bob.report.frames import workload_frame

        return workload_frame(self._columns())

    def _columns(self) -> list[ShownColumn]:
        return columns_of([(self.result, self.folder)])


def load(path: Path) -> Saved:
    """Return the result in ``path``, a run directory or a result document. Raise StoreError if the result is missing or
    cannot be read. Raise MalformedError if it is damaged, or if there are several results."""
    every = load_every(path)
    if len(every) != 1:
        raise MalformedError(f"{result_file(path)} has {len(every)} results", hint="bob show PATH")
    return every[0]


def load_every(path: Path) -> list[Saved]:
    """Return all results in ``path`` (reports/make-apps writes several in a file). Raise the errors of :func:`load`,
    but accept several results."""
    file = result_file(path)
    if not file.exists():
        if file == path:
            raise StoreError(f"{path} does not exist", hint="name a run directory, or a result that --json wrote")
        raise StoreError(f"{path} lacks a result.json", hint=_instead(path))
    try:
        data = file.read_bytes()
        document = documents.opened(lzma.decompress(data) if file.suffix == ".xz" else data)
    except OSError as error:
        raise StoreError(f"cannot read {file}: {error.strerror}") from error
    except documents.ChangedError as error:
        instead = f"bob judge {path} rewrites it" if (path / "workloads").is_dir() else documents.BY_HAND
        raise MalformedError(f"{file}: {error}", hint=instead) from error
    except fields.MISSHAPEN as error:
        raise MalformedError(f"{file} is not a result: {fields.said(error)}", hint="was it truncated?") from error
    _check_run(file, document)
    try:
        results = results_in(document)
    except MalformedError as error:
        hint = _SHOWN_BY.get(str(document.get("schema")), error.hint)
        raise MalformedError(f"{file}: {error.message}", hint=hint) from error
    about = _about(path)
    if kind_of(about) is RunKind.APP and "finished" not in about:
        results = [_noted(result, STOPPED) for result in results]
    return [Saved(result, path if path.is_dir() else path.parent, path) for result in results]


def load_table(path: Path) -> Saved:
    """Return the result in ``path``, a table of verdicts by property and configuration. Raise the errors of
    :func:`load`. Raise MalformedError also if the result is not such a table, but of ``bob try`` or ``bob app``."""
    return _as_table(load(path), path)


def load_answered(path: Path) -> Saved:
    """Return the result in ``path``, a table or the answers about a program. Raise the errors of :func:`load_table`,
    but accept a result of ``bob app``."""
    saved = load(path)
    return saved if saved.result.program is not None else _as_table(saved, path)


def _as_table(saved: Saved, path: Path) -> Saved:
    if not saved.result.is_table:
        verb = "try" if saved.result.workload is not None else "app"
        raise MalformedError(
            f"{result_file(path)} is a result of bob {verb}, which does not make a table",
            hint="bob show PATH",
        )
    return saved


def result_file(path: Path) -> Path:
    """Return the path of the file that has a result. ``path`` is this file or its directory. The file may be compressed
    (.xz). It need not exist."""
    if not path.is_dir():
        return path
    plain, packed = path / "result.json", path / "result.json.xz"
    return packed if packed.exists() and not plain.exists() else plain


def _about(path: Path) -> Mapping[str, Any]:
    """Return what run.json in ``path`` says about the run. Return an empty mapping if bob cannot read run.json."""
    if not (path / "run.json").is_file():
        return {}
    try:
        return RunDirectory(path).about()
    except BobError:
        return {}


def _check_run(file: Path, document: Mapping[str, Any]) -> None:
    """Raise MalformedError if the result in ``file`` belongs to another run than the run.json beside it."""
    run = document.get("run", document)
    ids = _about(file.parent).get("id"), run.get("id") if isinstance(run, Mapping) else None
    if file.name.startswith("result.json") and None not in ids and ids[0] != ids[1]:
        said = f"{file} belongs to the run {ids[1]}, but {file.parent} is the run {ids[0]}"
        raise MalformedError(said, hint="put back the run's own result")


def _instead(path: Path) -> str:
    """Return a hint for a directory that lacks a result."""
    if (path / "run.json").is_file():
        about = _about(path)
        if cannot_be_resumed(about):
            return instead_of_resuming(path)
        if kind_of(about) is RunKind.APP:
            return continued_by(path, about)
        return f"was it stopped? bob judge {path} judges what is finished"
    if (path.parent / "result.json").is_file():
        return f"this is a part of a run; show the whole run: bob show {path.parent}"
    return "name a run directory, or a result that --json wrote"


def _noted(result: Result, note: str) -> Result:
    subjects = (replace(one, notes=(*one.notes, note)) if one.model is None else one for one in result.subjects)
    return replace(result, subjects=tuple(subjects))


_SHOWN_BY = {
    "bob.apm/1": "`bob apm show FILE` shows a model",
    "bob.witness/1": "`bob witness show FILE` shows a witness",
    "bob.witnesses/1": "`bob witness show` shows one of them, by the path that it has in the bundle",
}  # hints for other documents than results, by their schema
