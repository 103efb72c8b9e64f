"""Results as several HTML pages: the table, and a page for each witness that it links to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from bob.report.columns import Column
from bob.report.nearby import nearby
from bob.report.page import Story, laid_out, render
from bob.report.witness_page import to_html

INDEX = PurePosixPath("index.html")
WITNESSES = "witnesses"


def pages(columns: Sequence[Column]) -> Iterator[tuple[PurePosixPath, str]]:
    """The pages about ``columns``, each with its place in their folder: the witnesses, and last the table, which links
    to them."""
    shown = list(laid_out(columns, WITNESSES))
    for column in shown:
        stories = [(cell.story, cell.anchor) for cell in column.cells.values()]
        stories.append((column.unmountable, column.unmountable_anchor))
        stories += [(one.story, one.anchor) for one in column.troubles]
        for story, anchor in stories:
            if story is not None:
                page = to_html(story.witness, nearby(story.path), _back(story), anchor)
                yield PurePosixPath(story.page), page
    yield INDEX, render(columns, shown)


def _back(story: Story) -> str:
    """Where the table is, seen from the page of a witness."""
    return f"{'../' * story.page.count('/')}{INDEX}"
