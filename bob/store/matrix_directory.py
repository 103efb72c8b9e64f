"""The run directory of a matrix: run.json, result.json, and one run directory for each configuration.

::

    RUN/run.json            the set's name, and the folders of its columns
    RUN/result.json         bob.result/2, all columns that are done
    RUN/ext4-ordered/       a run directory like that of a probe (bob/store/run_directory.py)

So a matrix that was stopped goes on where it was, and a column is shown, judged and replayed like any probe.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bob.answer.document import to_json
from bob.answer.merge import merged, within
from bob.answer.result import Result, Run
from bob.errors import StoreError
from bob.store.files import read_document, write_document
from bob.store.run_directory import RunDirectory, empty_folder
from bob.store.run_kind import RunKind, is_of_kind


class MatrixDirectory:
    """The run directory of a matrix; made by :meth:`create`, opened again by the constructor."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not self.is_one(path):
            raise StoreError(f"{path} is no run of a matrix", hint="bob matrix makes one")
        self.about: Mapping[str, Any] = read_document(path / "run.json")

    @staticmethod
    def is_one(path: Path) -> bool:
        """Whether ``path`` is a matrix's run directory, not a probe's."""
        return is_of_kind(path, RunKind.MATRIX)

    @classmethod
    def create(cls, path: Path, about: Mapping[str, Any], names: Sequence[str]) -> MatrixDirectory:
        """Make the directory ``path`` for columns of these names; StoreError if it holds something already."""
        folders = [_slug(name) for name in names]
        if len(set(folders)) < len(folders):
            folders = [f"{slug}-{number}" for number, slug in enumerate(folders, 1)]
        with empty_folder(path):
            write_document(path / "run.json", {**about, "columns": folders})
        return cls(path)

    @property
    def folders(self) -> list[Path]:
        """The folders of the columns, in the order of the table."""
        return [self.path / name for name in self.about["columns"]]

    @property
    def written(self) -> list[Path]:
        """All directories that who goes on with the matrix writes."""
        return [self.path, *self.folders]

    def columns(self) -> list[RunDirectory]:
        """The columns' run directories, in the order of the table."""
        return [RunDirectory(folder) for folder in self.folders]

    def save_result(self, results: Sequence[tuple[Path, Result]]) -> Result:
        """Keep and return the results of columns (by their folders) as one. It is finished when all of them are."""
        times = [result.run.finished for _folder, result in results]
        finished = max(times) if len(times) == len(self.folders) and all(times) else ""
        about, first = self.about, results[0][1].run
        run = Run(about["id"], about["started"], finished, about["bob"], first.seed, first.budget)
        combined = merged([within(result, folder.name) for folder, result in results], run)
        write_document(self.path / "result.json", to_json(combined))
        return combined


def _slug(name: str) -> str:
    """A configuration's name as a folder's."""
    return re.sub(r"[^A-Za-z0-9.,=^_-]+", "-", name).strip("-.")[:60] or "column"
