"""The columns of a report: configurations of one or several results, each with a unique name."""

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
)  # names of columns: the first function with unique names is taken

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
    """Return all configurations of ``results``, each given with the folder of its files."""
    found = [(result, column, run) for result, run in results for column in result.subjects]
    names = labels([(result, column) for result, column, _run in found])
    return [ShownColumn(name, *parts) for name, parts in zip(names, found, strict=True)]


def results_of(columns: Iterable[ShownColumn]) -> list[Result]:
    return list({id(column.result): column.result for column in columns}.values())


def kernels_of(results: Iterable[Result]) -> list[str]:
    return list(dict.fromkeys(result.environment.kernel for result in results))


def grouped(columns: Iterable[ShownColumn]) -> list[tuple[str, list[ShownColumn]]]:
    """Return the columns under their file systems; only neighbours share a heading."""
    return [(fs, list(group)) for fs, group in groupby(columns, key=lambda column: column.fs)]


def labels(columns: Sequence[Pair]) -> list[str]:
    """Return unique names of the columns: the configuration's, with kernel or run if names come twice."""
    found: list[str] = []
    for label in _LABELS:
        found = [label(column) for column in columns]
        if len(set(found)) == len(found):
            break
    return found
