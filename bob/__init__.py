"""bob, the Block Order Breaker: which persistence properties does a file system have?

The way of the data is the layout of this package (docs/design.md, section 1)::

    record -> enumerate (crash) -> observe -> judge -> report -> derive (apm)

From Python, :func:`load` reads what a run found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    from bob.report.saved import Saved

__version__ = "0.1.0"


def load(path: str | os.PathLike[str]) -> Saved:
    """The result of a run: ``bob.load(run).matrix()`` is the table as a DataFrame (docs/reports.md).

    ``path`` is a run directory, or a file that ``--json`` wrote. Raises :class:`bob.errors.StoreError` where there is
    no result, :class:`bob.errors.MalformedError` where it is damaged.
    """
    from pathlib import Path

    from bob.report.saved import load

    return load(Path(path))
