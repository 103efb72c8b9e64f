"""The run directory of a matrix: a run that tests several configurations of file systems. The directory has run.json,
result.json with the finished columns of the table, and a run directory for each column (one configuration)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bob.answer.bare import beside_bare
from bob.answer.merge import merged, within
from bob.answer.result import Result, Run
from bob.store.run_directory import RunDirectory
from bob.store.run_kind import RunFolder, RunKind


class MatrixDirectory(RunFolder):
    kind = RunKind.MATRIX

    @classmethod
    def create(cls, path: Path, about: Mapping[str, Any], names: Sequence[str]) -> MatrixDirectory:
        folders = [_slug(name) for name in names]
        if len(set(folders)) < len(folders):
            folders = [f"{slug}-{number}" for number, slug in enumerate(folders, 1)]
        return cls.made(path, {**about, "columns": folders})

    @cached_property
    def folders(self) -> list[Path]:
        """The run directories of the columns, in the order of the table."""
        return [self.path / name for name in self.about()["columns"]]

    @property
    def written(self) -> list[Path]:
        """All run directories that bob writes when it resumes the matrix."""
        return [self.path, *self.folders]

    def columns(self) -> list[RunDirectory]:
        return [RunDirectory(folder) for folder in self.folders]

    def save_columns(self, results: Sequence[tuple[Path, Result]]) -> Result:
        """Combine the results of the columns into one result, save it in result.json, and return it. ``results`` has a
        pair for each column: its folder and its result. The combined result counts as finished when all columns of the
        table are finished."""
        times = [result.run.finished for _folder, result in results]
        finished = max(times) if len(times) == len(self.folders) and all(times) else ""
        about, first = self.about(), results[0][1].run
        run = Run(about["id"], about["started"], finished, about["bob"], first.seed, first.budget)
        combined = merged([within(result, folder.name) for folder, result in results], run)
        combined = replace(combined, subjects=beside_bare(combined.subjects))
        self.save_result(combined)
        return combined


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.,=^_-]+", "-", name).strip("-.")[:60] or "column"
