"""Properties against configurations: the shape of Table 1, as a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pandas as pd

from bob.report.rows import MARKS, by_family
from bob.result import ConfigurationResult, Result

_Column = tuple[Result, ConfigurationResult]

# What a column is called: the first of these that tells all columns apart.
_LABELS: tuple[Callable[[_Column], str], ...] = (
    lambda column: column[1].name,
    lambda column: f"{column[1].name}, {column[0].environment.kernel}",
    lambda column: f"{column[1].name}, {column[0].run.id}",
)


def matrix(results: Iterable[Result]) -> pd.DataFrame:
    """The verdict marks (``×``, ``holds``, ``?``, ``–``) of all results; empty where a property was not probed.

    Rows are properties under their family (a two-level index), in Table 1's order; columns are configurations.
    """
    columns = [(result, column) for result in results for column in result.configurations]
    families = by_family(column for _result, column in columns)
    rows = [(family, name) for family, names in families.items() for name in names]
    marks = [{cell.name: MARKS[cell.verdict] for cell in column.properties} for _result, column in columns]
    return pd.DataFrame(
        [[column.get(name, "") for column in marks] for _family, name in rows],
        index=pd.MultiIndex.from_tuples(rows, names=["family", "property"]),
        columns=pd.Index(_labels(columns), dtype=object),
    )


def _labels(columns: Sequence[_Column]) -> list[str]:
    labels: list[str] = []
    for label in _LABELS:
        labels = [label(column) for column in columns]
        if len(set(labels)) == len(labels):
            break
    return labels
