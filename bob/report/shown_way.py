"""A way to break a claim on a page, with the story of its witness there or on a page of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from markupsafe import Markup

from bob.answer.answer import Way
from bob.report.drawing import svg
from bob.report.nearby import nearby, witness_command
from bob.report.witness_page import to_html, witness_text
from bob.witness import bundle
from bob.witness.document import Witness, read

INDEX = PurePosixPath("index.html")  # the first of several pages
WITNESSES = "witnesses"  # the folder for pages of witnesses


@dataclass(frozen=True, slots=True)
class Story:
    """The story of the witness in the file ``path``; ``page`` is the place of its own page, or empty."""

    witness: Witness
    path: Path
    page: str

    @property
    def sentence(self) -> str:
        return self.witness.sentence

    @property
    def picture(self) -> Markup:
        """The time line without a legend: the page has one for all of them."""
        found = self.witness
        return Markup(svg(found.timeline, found.operations, found.claim.role, found.evidence, legend=False))


@dataclass(frozen=True, slots=True)
class ShownWay:
    """A way at ``anchor`` of a page. ``where`` says which crash states show it, ``story`` is None without the file, and
    ``command`` shows it again (empty without a witness)."""

    anchor: str
    way: Way
    where: str
    story: Story | None
    command: str

    @property
    def page(self) -> str:
        """The place of its witness's page; empty if it lacks one."""
        return self.story.page if self.story else ""

    @property
    def is_drawn_here(self) -> bool:
        return self.story is not None and not self.story.page

    @property
    def apart(self) -> ShownWay:
        """The same way with a page of its own for its witness."""
        page = f"{WITNESSES}/{self.anchor}.html"
        return self if self.story is None else replace(self, story=replace(self.story, page=page))


def shown_way(anchor: str, way: Way, run: Path, where: str = "", page: str = "") -> ShownWay:
    """Return ``way`` at ``anchor`` of a page, with its witness in ``run``. Raise MalformedError if that is damaged."""
    path = run / (way.witness or "")
    story = Story(read(path), path, page) if way.witness and bundle.is_there(path) else None
    return ShownWay(anchor, way, where, story, witness_command(run, way.witness))


def witness_pages(ways: Iterable[ShownWay], home: str = "") -> Iterator[tuple[PurePosixPath, str]]:
    """Yield the page and file of each witness that has a page, with their places. They link to the answers, and to
    ``home``, as seen from the answers."""
    for shown in ways:
        if shown.story is not None and shown.page:
            page, path = PurePosixPath(shown.page), shown.story.path
            above = "../" * shown.page.count("/")
            file = page.with_suffix(".json")
            back = home and f"{above}{home}"
            yield page, to_html(shown.story.witness, nearby(path), f"{above}{INDEX}", shown.anchor, back, file.name)
            yield file, witness_text(path)
