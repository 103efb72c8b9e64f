"""The columns of a report: configurations of one or several results, each with a unique name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from bob.answer.result import Result, SubjectResult

DEFAULT = "default"  # variant of a configuration that is named as its file system


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A configuration in a report; the paths of witnesses start at ``run``."""

    label: str
    result: Result
    configuration: SubjectResult
    run: Path

    @property
    def fs(self) -> str:
        return self.configuration.fs

    @property
    def variant(self) -> str:
        """The label without the file system: "wsync" of "xfs-wsync"."""
        if not self.label.startswith(self.fs):
            return self.label or self.fs
        rest = self.label[len(self.fs) :]
        if not rest or rest.startswith(","):
            return DEFAULT + rest
        return rest[1:] if rest[0] in "- " and len(rest) > 1 else self.label


def columns_of(results: Iterable[tuple[Result, Path]]) -> list[ShownColumn]:
    """Return all configurations of ``results``, each given with the folder of its files. Unique labels name them: the
    configuration's name, with kernel or run if names come twice."""
    found = [(result, column, run) for result, run in results for column in result.subjects]
    labels = [column.name for _result, column, _run in found]
    if len(set(labels)) < len(found):
        labels = [f"{column.name}, {result.environment.kernel}" for result, column, _run in found]
    if len(set(labels)) < len(found):
        labels = [f"{column.name}, {result.run.id}" for result, column, _run in found]
    return [ShownColumn(label, *parts) for label, parts in zip(labels, found, strict=True)]


def results_of(columns: Iterable[ShownColumn]) -> list[Result]:
    return list({id(column.result): column.result for column in columns}.values())


def kernels_of(results: Iterable[Result]) -> list[str]:
    return list(dict.fromkeys(result.environment.kernel for result in results))


def grouped(columns: Iterable[ShownColumn]) -> list[tuple[str, list[ShownColumn]]]:
    """Return the columns under their file systems; only neighbours share a heading."""
    return [(fs, list(group)) for fs, group in groupby(columns, key=lambda column: column.fs)]
