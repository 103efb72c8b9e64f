"""The columns of a report: configurations of one or several results, each with a name that no other column has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bob.answer.result import Result, SubjectResult

Pair = tuple[Result, SubjectResult]

# What a column is called: the first of these that tells all columns apart.
_LABELS: tuple[Callable[[Pair], str], ...] = (
    lambda column: column[1].name,
    lambda column: f"{column[1].name}, {column[0].environment.kernel}",
    lambda column: f"{column[1].name}, {column[0].run.id}",
)

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
        """The heading that it stands under."""
        return self.configuration.fs

    @property
    def variant(self) -> str:
        """Its label without the file system: "wsync" of "xfs-wsync"."""
        if not self.label.startswith(self.fs):
            return self.label or self.fs
        match self.label[len(self.fs) :]:
            case "":
                return DEFAULT
            case rest if rest.startswith(","):
                return DEFAULT + rest
            case rest if rest[0] in "- ":
                return rest[1:] or self.label
        return self.label


def columns_of(results: Iterable[tuple[Result, Path]]) -> list[ShownColumn]:
    """All configurations of ``results``, each given with the folder that its files are in."""
    found = [(result, column, run) for result, run in results for column in result.subjects]
    names = labels([(result, column) for result, column, _run in found])
    return [ShownColumn(name, *parts) for name, parts in zip(names, found, strict=True)]


def grouped(columns: Sequence[ShownColumn]) -> list[tuple[str, list[ShownColumn]]]:
    """The columns under their file systems, in the order in which they stand; neighbours of one share a heading."""
    groups: list[tuple[str, list[ShownColumn]]] = []
    for column in columns:
        if groups and groups[-1][0] == column.fs:
            groups[-1][1].append(column)
        else:
            groups.append((column.fs, [column]))
    return groups


def labels(columns: Sequence[Pair]) -> list[str]:
    """What the columns are called: the configuration's name, with kernel or run where names come twice."""
    found: list[str] = []
    for label in _LABELS:
        found = [label(column) for column in columns]
        if len(set(found)) == len(found):
            break
    return found
