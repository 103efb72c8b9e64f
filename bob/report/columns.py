"""The columns of a report: configurations of one or several results, each with a name that no other column has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from bob.answer.result import Result, SubjectResult

Pair = tuple[Result, SubjectResult]

_LABELS: tuple[Callable[[Pair], str], ...] = (
    lambda column: column[1].name,
    lambda column: f"{column[1].name}, {column[0].environment.kernel}",
    lambda column: f"{column[1].name}, {column[0].run.id}",
)
"""The names of columns: the first of these is taken that tells all columns apart."""

DEFAULT = "default"
"""The variant of a configuration that has no name but its file system's."""


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A configuration in a report. ``run`` is the folder from which the witnesses' paths start."""

    label: str
    result: Result
    configuration: SubjectResult
    run: Path

    @property
    def fs(self) -> str:
        """The file system, which is the heading above the column."""
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
    """Return all configurations of ``results``, each given with the folder that its files are in."""
    found = [(result, column, run) for result, run in results for column in result.subjects]
    names = labels([(result, column) for result, column, _run in found])
    return [ShownColumn(name, *parts) for name, parts in zip(names, found, strict=True)]


def results_of(columns: Iterable[ShownColumn]) -> list[Result]:
    """Return the results that the columns are from, each once."""
    return list({id(column.result): column.result for column in columns}.values())


def kernels_of(results: Iterable[Result]) -> list[str]:
    """Return the kernels of ``results``, each once."""
    return list(dict.fromkeys(result.environment.kernel for result in results))


def grouped(columns: Iterable[ShownColumn]) -> list[tuple[str, list[ShownColumn]]]:
    """Return the columns under their file systems; only neighbours of one file system share a heading."""
    return [(fs, list(group)) for fs, group in groupby(columns, key=lambda column: column.fs)]


def labels(columns: Sequence[Pair]) -> list[str]:
    """Return the names of the columns: the configuration's, with kernel or run where names come twice."""
    found: list[str] = []
    for label in _LABELS:
        found = [label(column) for column in columns]
        if len(set(found)) == len(found):
            break
    return found
