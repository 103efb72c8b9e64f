"""The answer for a program as a page that stands alone, or as several: one for the answer, one for each witness.

The words are in ``programs.html.j2``. A page that stands alone has the time lines of the witnesses in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from markupsafe import Markup

from bob.judge.program_result import ModelResult, Predicted, ProgramResult, Programs, Safety, Vulnerability
from bob.judge.reliance import told_once
from bob.protocol.diagram import Protocol
from bob.report.counts import of_model
from bob.report.nearby import nearby, witness_command
from bob.report.page import Story
from bob.report.protocol_drawing import drawn, svg
from bob.report.site import INDEX, WITNESSES
from bob.report.templating import html
from bob.report.witness_page import to_html as witness_page
from bob.report.witness_page import witness_text
from bob.version import __version__
from bob.witness import bundle
from bob.witness.document import read

_TONES = {Safety.SAFE: "holds", Safety.VULNERABLE: "fails", Safety.UNKNOWN: "unknown"}
_MARKS = {Safety.SAFE: "·", Safety.VULNERABLE: "×", Safety.UNKNOWN: "?"}
_SAYS = {Safety.SAFE: "safe as far as explored", Safety.VULNERABLE: "vulnerable", Safety.UNKNOWN: "not known"}


@dataclass(frozen=True, slots=True)
class ShownVulnerability:
    """A vulnerability with its place on the page, the ``story`` of its witness (None where there is no such file), and
    the ``command`` that shows it again."""

    anchor: str
    found: Vulnerability
    story: Story | None
    command: str

    @property
    def told(self) -> str:
        """What the program had told last before the crash that is easiest to explain."""
        lines = [line.strip() for line in self.found.told.decode(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else ""


@dataclass(frozen=True, slots=True)
class _Shown:
    """An answer with its place on the page: the class of its colours, what stands in the table, and in words; and the
    update protocol with what the program relies on there, as a picture (empty where it is not known)."""

    anchor: str
    tone: str
    mark: str
    says: str
    protocol: str


@dataclass(frozen=True, slots=True)
class ShownAnswer(_Shown):
    """The answer on one configuration."""

    result: ProgramResult
    vulnerabilities: tuple[ShownVulnerability, ...]

    @property
    def has_pictures(self) -> bool:
        """Whether time lines are drawn on this page."""
        return any(one.story is not None and not one.story.page for one in self.vulnerabilities)


@dataclass(frozen=True, slots=True)
class ShownModel(_Shown):
    """The answer of one model."""

    found: ModelResult
    share: str


def to_html(found: Programs, run: Path) -> str:
    """The page about ``found``, whose witnesses are in the folder ``run``."""
    return _render(found, _laid_out(found, run))


def pages(found: Programs, run: Path, home: str = "") -> Iterator[tuple[PurePosixPath, str]]:
    """The pages about ``found``, each with its place in their folder: one for each witness, with its file beside; and
    last the answer, which links to them. All link to ``home``, if any, which is as it is seen from the answer."""
    shown = [
        replace(answer, vulnerabilities=tuple(map(_apart, answer.vulnerabilities))) for answer in _laid_out(found, run)
    ]
    for one in (one for answer in shown for one in answer.vulnerabilities):
        if one.story is not None:
            above = home and f"../{home}"
            page = PurePosixPath(one.story.page)
            file, path = page.with_suffix(".json"), one.story.path
            yield page, witness_page(one.story.witness, nearby(path), f"../{INDEX}", one.anchor, above, file.name)
            yield file, witness_text(path)
    yield INDEX, _render(found, shown, home)


def _apart(shown: ShownVulnerability) -> ShownVulnerability:
    """The same with a page of its own for its witness."""
    page = f"{WITNESSES}/{shown.anchor}.html"
    return shown if shown.story is None else replace(shown, story=replace(shown.story, page=page))


def _laid_out(found: Programs, run: Path) -> list[ShownAnswer]:
    protocols = {protocol.configuration: protocol for protocol in found.protocols}
    return [
        _laid_out_answer(number, result, run, protocols.get(result.configuration))
        for number, result in enumerate(found.results, start=1)
    ]


def _laid_out_answer(number: int, result: ProgramResult, run: Path, protocol: Protocol | None) -> ShownAnswer:
    shown = []
    for place, one in enumerate(result.vulnerabilities, start=1):
        path = None if one.witness is None else run / one.witness
        story = Story(read(path), path, "") if path is not None and bundle.is_there(path) else None
        command = "" if one.witness is None else witness_command(run, one.witness)
        shown.append(ShownVulnerability(f"answer-{number}-{place}", one, story, command))
    picture = _picture(protocol, result.vulnerabilities, result.configuration)
    return ShownAnswer(f"answer-{number}", *_said(result.safety), picture, result, tuple(shown))


def _picture(protocol: Protocol | None, vulnerabilities: Sequence[Vulnerability | Predicted], where: str) -> str:
    if protocol is None:
        return ""
    return Markup(svg(drawn(protocol, vulnerabilities), f"The update protocol, and what it relies on, on {where}"))


def _said(safety: Safety) -> tuple[str, str, str]:
    return _TONES[safety], _MARKS[safety], _SAYS[safety]


def _render(found: Programs, answers: list[ShownAnswer], home: str = "") -> str:
    kernels = f" on Linux {found.kernel}" if found.kernel else ""
    first = found.protocols[0] if found.protocols else None
    models = [
        ShownModel(
            f"model-{number}",
            *_said(one.safety),
            _picture(first, one.vulnerabilities, f"model {one.model}"),
            one,
            of_model(one),
        )
        for number, one in enumerate(found.models, start=1)
    ]
    page = html().get_template("programs.html.j2")
    shown = {"where": kernels, "answers": answers, "models": models}
    return page.render(bob=__version__, home=home, found=found, told_once=told_once, **shown)
