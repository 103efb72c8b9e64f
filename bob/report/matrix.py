"""Properties against configurations: the shape of Table 1, as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from bob.answer.result import Result
from bob.report.columns import Pair, labels
from bob.report.rows import MARKS, by_family


def matrix(results: Iterable[Result]) -> pd.DataFrame:
    """The verdict marks (``×``, ``holds``, ``?``, ``–``) of all results; empty where a property was not probed.

    Rows are properties under their family (a two-level index), in Table 1's order; columns are configurations.
    """
    return matrix_of([(result, column) for result in results for column in result.subjects])


def matrix_of(columns: Sequence[Pair]) -> pd.DataFrame:
    """The same of these columns: configurations, each with the result that it is from."""
    families = by_family(column for _result, column in columns)
    rows = [(family, name) for family, names in families.items() for name in names]
    marks = [{cell.name: MARKS[cell.verdict] for cell in column.answers} for _result, column in columns]
    levels = [[family for family, _name in rows], [name for _family, name in rows]]
    return pd.DataFrame(
        [[column.get(name, "") for column in marks] for _family, name in rows],
        index=pd.MultiIndex.from_arrays(levels, names=["family", "property"]),
        columns=pd.Index(labels(columns), dtype=object),
    )
