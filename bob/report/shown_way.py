"""A way to break a claim, as a page shows it. A way is one kind of crash state. The page tells the story of its
witness, or links to a page of the witness."""

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

INDEX = PurePosixPath("index.html")  # the main page, which has links to the pages of the witnesses
WITNESSES = "witnesses"  # the folder for the pages of the witnesses


@dataclass(frozen=True, slots=True)
class ShownWay:
    """A way to break a claim, at ``anchor`` of a page. ``where`` says which crash states show it. ``witness`` is None
    if ``run`` lacks the file of the witness. ``page`` is the path of the witness's own page, or empty."""

    anchor: str
    way: Way
    run: Path
    where: str = ""
    witness: Witness | None = None
    page: str = ""

    @property
    def path(self) -> Path:
        return self.run / (self.way.witness or "")

    @property
    def command(self) -> str:
        """The command that shows the witness again; empty without a witness."""
        return witness_command(self.run, self.way.witness)

    @property
    def picture(self) -> Markup:
        """The time line of the witness without a legend, since the page has one legend for all time lines."""
        found = self.witness
        assert found is not None
        return Markup(svg(found.timeline, found.operations, found.claim.role, found.evidence, legend=False))

    @property
    def is_drawn_here(self) -> bool:
        return self.witness is not None and not self.page

    @property
    def apart(self) -> ShownWay:
        """The same way with a page of its own for its witness."""
        return self if self.witness is None else replace(self, page=f"{WITNESSES}/{self.anchor}.html")


def shown_way(anchor: str, way: Way, run: Path, where: str = "", page: str = "") -> ShownWay:
    """Return what a page shows of ``way``, in a section with the id ``anchor``. The folder ``run`` has the witness.
    Raise MalformedError if the witness is damaged."""
    shown = ShownWay(anchor, way, run, where)
    if not way.witness or not bundle.is_there(shown.path):
        return shown
    return replace(shown, witness=read(shown.path), page=page)


def witness_pages(ways: Iterable[ShownWay], home: str = "") -> Iterator[tuple[PurePosixPath, str]]:
    """Yield for each witness with its own page this page, and the file of the witness. Each comes with its path. The
    pages link to the answers, and to a site's folder ``home``, whose URL is relative to the page of the answers."""
    for shown in ways:
        if shown.witness is not None and shown.page:
            page = PurePosixPath(shown.page)
            above = "../" * shown.page.count("/")
            file = page.with_suffix(".json")
            back = home and f"{above}{home}"
            yield page, to_html(shown.witness, nearby(shown.path), f"{above}{INDEX}", shown.anchor, back, file.name)
            yield file, witness_text(shown.path)
