"""A way to break a claim on a page: with the story of its witness there, or on a page of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from bob.answer.answer import Way
from bob.report.nearby import nearby, witness_command
from bob.report.page import Story
from bob.report.site import INDEX, WITNESSES
from bob.report.witness_page import to_html, witness_text
from bob.witness import bundle
from bob.witness.document import read


@dataclass(frozen=True, slots=True)
class ShownWay:
    """A way with its place on the page: ``where`` says which crash states show it, ``story`` what its witness shows
    (None: there is no such file), and ``command`` shows it again (empty: no witness was kept)."""

    anchor: str
    way: Way
    where: str
    story: Story | None
    command: str

    @property
    def is_drawn_here(self) -> bool:
        """Whether the time line of the witness is on this page."""
        return self.story is not None and not self.story.page

    @property
    def apart(self) -> ShownWay:
        """The same with a page of its own for its witness."""
        page = f"{WITNESSES}/{self.anchor}.html"
        return self if self.story is None else replace(self, story=replace(self.story, page=page))


def shown_way(anchor: str, way: Way, run: Path, where: str = "") -> ShownWay:
    """Return ``way``, whose witness is in the folder ``run``, at the place ``anchor`` of a page."""
    if way.witness is None:
        return ShownWay(anchor, way, where, None, "")
    path = run / way.witness
    story = Story(read(path), path, "") if bundle.is_there(path) else None
    return ShownWay(anchor, way, where, story, witness_command(run, way.witness))


def witness_pages(ways: Iterable[ShownWay], home: str = "") -> Iterator[tuple[PurePosixPath, str]]:
    """Yield the page of each witness that has one, and its file beside, each with its place in their folder. All link
    to ``home``, if any, as it is seen from the answers."""
    for shown in ways:
        if shown.story is not None and shown.story.page:
            page, path = PurePosixPath(shown.story.page), shown.story.path
            file = page.with_suffix(".json")
            above = home and f"../{home}"
            yield page, to_html(shown.story.witness, nearby(path), f"../{INDEX}", shown.anchor, above, file.name)
            yield file, witness_text(path)
