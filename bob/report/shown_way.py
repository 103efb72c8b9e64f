"""A part of a page, about one way to break a claim. A *claim* is what each crash state should satisfy. A way is one
kind of crash state that breaks the claim, and its *witness* is a recorded example. The page tells the story of the
witness, or links to another page that does."""

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
    """The part of a page about ``way``, which is a way to break a claim. This part is a section with the id ``anchor``.
    ``where`` says in words which crash states break the claim in this way. ``witness`` is the witness of the way, or
    None if the folder ``run`` lacks it. ``page`` is the path of the separate page about the witness, or empty without
    such a page."""

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
        """The command that shows the witness again, or an empty text if the way lacks a witness."""
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
        """A copy of this object that puts the witness on a separate page, or this object itself if it lacks a
        witness."""
        return self if self.witness is None else replace(self, page=f"{WITNESSES}/{self.anchor}.html")


def shown_way(anchor: str, way: Way, run: Path, where: str = "", page: str = "") -> ShownWay:
    """Return what a page shows of ``way``, in a section with the id ``anchor``. The folder ``run`` has the witness.
    ``where`` and ``page`` are those of :class:`ShownWay`. Raise MalformedError if the witness is damaged."""
    shown = ShownWay(anchor, way, run, where)
    if not way.witness or not bundle.is_there(shown.path):
        return shown
    return replace(shown, witness=read(shown.path), page=page)


def witness_pages(ways: Iterable[ShownWay], home: str = "") -> Iterator[tuple[PurePosixPath, str]]:
    """Yield the path and the text of two files for each witness that has a separate page: the page, and the witness
    itself. The pages link to the main page (``INDEX``), and to the start of bob's web site. ``home`` is the URL of the
    site's folder relative to the main page (empty: no such link)."""
    for shown in ways:
        if shown.witness is not None and shown.page:
            page = PurePosixPath(shown.page)
            above = "../" * shown.page.count("/")
            file = page.with_suffix(".json")
            back = home and f"{above}{home}"
            yield page, to_html(shown.witness, nearby(shown.path), f"{above}{INDEX}", shown.anchor, back, file.name)
            yield file, witness_text(shown.path)
