"""The answer for a program as a page that stands alone, or as several: one for the answer, one for each witness.

The words are in ``programs.html.j2``. A page that stands alone has the time lines of the witnesses in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from markupsafe import Markup

from bob.answer.answer import Answer, Way
from bob.answer.result import Allowed, Result, SubjectResult
from bob.claim.verdict import Verdict
from bob.judge.statics import told_once
from bob.protocol.diagram import Protocol
from bob.report.counts import of_model
from bob.report.protocol_drawing import drawn, svg
from bob.report.shown_way import ShownWay, shown_way, witness_pages
from bob.report.site import INDEX
from bob.report.templating import html
from bob.version import __version__

_MARKS = {Verdict.HOLDS: "·", Verdict.FAILS: "×", Verdict.UNKNOWN: "?"}
_SAYS = {Verdict.HOLDS: "safe as far as explored", Verdict.FAILS: "vulnerable", Verdict.UNKNOWN: "not known"}


@dataclass(frozen=True, slots=True)
class _Shown:
    """An answer with its place on the page, and the update protocol with what the program relies on there, as a picture
    (empty where it is not known)."""

    anchor: str
    subject: SubjectResult
    protocol: str

    @property
    def answer(self) -> Answer:
        """The answer."""
        return self.subject.answer

    @property
    def tone(self) -> str:
        """The class of its colours."""
        return self.answer.verdict.value

    @property
    def mark(self) -> str:
        """What stands in the table."""
        return _MARKS[self.answer.verdict]

    @property
    def says(self) -> str:
        """The answer in words."""
        return _SAYS[self.answer.verdict]


@dataclass(frozen=True, slots=True)
class ShownFileSystem(_Shown):
    """The answer on one file system."""

    ways: tuple[ShownWay, ...]

    @property
    def has_pictures(self) -> bool:
        """Whether time lines are drawn on this page."""
        return any(way.is_drawn_here for way in self.ways)


@dataclass(frozen=True, slots=True)
class ShownModel(_Shown):
    """The answer of one model."""

    model: Allowed
    share: str


def to_html(result: Result, run: Path) -> str:
    """Return the page about ``result``, whose witnesses are in the folder ``run``."""
    return _render(result, _laid_out(result, run))


def pages(result: Result, run: Path, home: str = "") -> Iterator[tuple[PurePosixPath, str]]:
    """Yield the pages about ``result``, each with its place in their folder: those of the witnesses, and last the
    answers, which link to them. All link to ``home``, if any, as it is seen from the answers."""
    shown = [replace(one, ways=tuple(way.apart for way in one.ways)) for one in _laid_out(result, run)]
    yield from witness_pages((way for one in shown for way in one.ways), home)
    yield INDEX, _render(result, shown, home)


def _laid_out(result: Result, run: Path) -> list[ShownFileSystem]:
    protocols = {protocol.configuration: protocol for protocol in result.protocols}
    return [
        _laid_out_one(f"answer-{number}", subject, run, protocols.get(subject.name))
        for number, subject in enumerate(result.file_systems, start=1)
    ]


def _laid_out_one(anchor: str, subject: SubjectResult, run: Path, protocol: Protocol | None) -> ShownFileSystem:
    ways = subject.answer.ways
    shown = tuple(shown_way(f"{anchor}-{place}", way, run) for place, way in enumerate(ways, start=1))
    return ShownFileSystem(anchor, subject, _picture(protocol, ways, subject.name), shown)


def _picture(protocol: Protocol | None, ways: Sequence[Way], where: str) -> str:
    if protocol is None:
        return ""
    return Markup(svg(drawn(protocol, ways), f"The update protocol, and what it relies on, on {where}"))


def _render(result: Result, file_systems: list[ShownFileSystem], home: str = "") -> str:
    kernel = result.environment.kernel
    first = result.protocols[0] if result.protocols else None
    models = [
        ShownModel(
            f"model-{number}",
            one,
            _picture(first, one.answer.ways, f"model {one.name}"),
            one.model,
            of_model(one.model),
        )
        for number, one in enumerate(result.models, start=1)
        if one.model is not None
    ]
    page = html().get_template("programs.html.j2")
    shown = {"where": f" on Linux {kernel}" if kernel else "", "file_systems": file_systems, "models": models}
    return page.render(bob=__version__, home=home, program=result.program, told_once=told_once, **shown)
