"""The columns of a report. Each column is a configuration (a file system with its options and device), and has a unique
name. The columns of one report may come from several results. A *witness* is a file about one crash state that breaks a
property."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from bob.answer.result import Result, SubjectResult
from bob.catalogue.places import place_of
from bob.text import plural

DEFAULT = "default"  # the variant of a configuration whose name is just that of its file system
# A heading names each one if there are no more configurations, or file systems, than these.
_FEW_CONFIGURATIONS, _FEW_FILE_SYSTEMS = 3, 6


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A configuration as a column of a report. ``label`` is its unique name. ``configuration`` has the answers for this
    configuration, and ``result`` has the answers for all configurations of the same run. The paths of witnesses are
    relative to the folder ``run``."""

    label: str
    result: Result
    configuration: SubjectResult
    run: Path

    @property
    def fs(self) -> str:
        return self.configuration.fs

    @property
    def variant(self) -> str:
        """The column's label without the name of the file system, such as "wsync" for the label "xfs-wsync"."""
        if not self.label.startswith(self.fs):
            return self.label or self.fs
        rest = self.label[len(self.fs) :]
        if not rest or rest.startswith(","):
            return DEFAULT + rest
        return rest[1:] if rest[0] in "- " and len(rest) > 1 else self.label


def columns_of(results: Iterable[tuple[Result, Path]]) -> list[ShownColumn]:
    """Return all configurations of ``results``, each with the folder of its files, and a unique label. The label is the
    configuration's name. If two configurations have the same name, bob adds the kernel's version to all labels, or the
    id of the run if the kernels are the same, too."""
    found = [(result, column, run) for result, run in results for column in result.subjects]
    labels = [column.name for _result, column, _run in found]
    if len(set(labels)) < len(found):
        labels = [f"{column.name}, {result.environment.kernel}" for result, column, _run in found]
    if len(set(labels)) < len(found):
        labels = [f"{column.name}, {result.run.id}" for result, column, _run in found]
    return [ShownColumn(label, *parts) for label, parts in zip(labels, found, strict=True)]


def heading(columns: Sequence[ShownColumn]) -> str:
    """Return the heading of a page about ``columns``: the file systems, the kernels, and what was tested."""
    places = [place_of(cell.name) for column in columns for cell in column.configuration.answers]
    asked = dict.fromkeys(
        place.layout.name.partition(",")[0] if place else "persistence properties" for place in places
    )
    what = " and ".join(asked) or "persistence properties"
    kernels = ", ".join(kernels_of(results_of(columns)))
    return f"{_about(columns)} on Linux {kernels}: {what}"


def _about(columns: Sequence[ShownColumn]) -> str:
    names = list(dict.fromkeys(column.configuration.name for column in columns))
    if len(names) <= _FEW_CONFIGURATIONS:
        return ", ".join(names) or "nothing"
    systems = list(dict.fromkeys(column.fs for column in columns))
    few = ", ".join(systems) if len(systems) <= _FEW_FILE_SYSTEMS else plural(len(systems), "file system")
    return few if len(systems) == len(names) else f"{len(names)} configurations of {few}"


def results_of(columns: Iterable[ShownColumn]) -> list[Result]:
    return list({id(column.result): column.result for column in columns}.values())


def kernels_of(results: Iterable[Result]) -> list[str]:
    return list(dict.fromkeys(result.environment.kernel for result in results))


def grouped(columns: Iterable[ShownColumn]) -> list[tuple[str, list[ShownColumn]]]:
    """Return the columns in groups of adjacent columns with the same file system. Each group comes with the name of the
    file system."""
    return [(fs, list(group)) for fs, group in groupby(columns, key=lambda column: column.fs)]
