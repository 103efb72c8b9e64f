"""Results as several HTML pages: the table, and a page for each witness that it links to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from bob.report.columns import ShownColumn
from bob.report.nearby import nearby
from bob.report.page import PageColumn, laid_out, render
from bob.report.witness_page import to_html, witness_text

INDEX = PurePosixPath("index.html")
WITNESSES = "witnesses"


def pages(
    columns: Sequence[ShownColumn], shown: Sequence[PageColumn] | None = None, home: str = ""
) -> Iterator[tuple[PurePosixPath, str]]:
    """The pages about ``columns``, each with its place in their folder: the witnesses, each with its file beside; and
    last the table, which links to them.

    ``shown`` is what :func:`shown_apart` says of them, where that is known already; ``home`` is a page that all of them
    are to link to, as it is seen from the table.
    """
    shown = shown_apart(columns) if shown is None else shown
    for column in shown:
        stories = [(cell.story, cell.anchor) for cell in column.cells.values()]
        stories.append((column.unmountable, column.unmountable_anchor))
        stories += [(one.story, one.anchor) for one in column.troubles]
        for story, anchor in stories:
            if story is not None:
                above = "../" * story.page.count("/")
                page = PurePosixPath(story.page)
                file, table = page.with_suffix(".json"), f"{above}{INDEX}"
                back = home and f"{above}{home}"
                yield page, to_html(story.witness, nearby(story.path), table, anchor, back, file.name)
                yield file, witness_text(story.path)
    yield INDEX, render(columns, shown, home=home)


def shown_apart(columns: Sequence[ShownColumn]) -> list[PageColumn]:
    """``columns`` with a page for each witness."""
    return list(laid_out(columns, WITNESSES))
