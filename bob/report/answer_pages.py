"""HTML pages with the answers to a quick question (`bob try`), or with the results for a program (`bob app`). An answer
is about one claim (what each crash state should satisfy). A line of evidence says how a crash state breaks the claim.
The pages are either a single self-contained page, or a page with the answers and one more for each witness. A witness
is a file with one crash state that breaks a claim. The text is in the templates ``answers.html.j2`` and
``programs.html.j2``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath

from markupsafe import Markup

from bob.answer.answer import Answer
from bob.answer.result import UNMOUNTABLE, Result, SubjectResult, beside
from bob.claim.expectation.language import parse
from bob.judge.statics import told_once
from bob.protocol.diagram import Protocol
from bob.report import answers as words
from bob.report import cluster_drawing
from bob.report.counts import of_model
from bob.report.nearby import nearby
from bob.report.promises import is_left_open, left_open
from bob.report.protocol_drawing import drawn, svg
from bob.report.shown_way import INDEX, ShownWay, shown_way, witness_pages
from bob.report.templating import html
from bob.text import plural


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer, as a page shows it. ``anchor`` is the HTML id of its place on the page. A crash may break the answer's
    claim in several ``ways``. A way is a group of crash states that break the claim with the same evidence.
    ``protocol`` is an SVG of the program's update protocol (how its calls change the file system). It is empty if the
    protocol is unknown. ``grids`` is an SVG of the crash states of a cluster; it is empty for other programs."""

    anchor: str
    subject: SubjectResult
    answer: Answer
    ways: tuple[ShownWay, ...] = ()
    protocol: str = ""
    grids: str = ""


def to_html(result: Result, run: Path) -> str:
    """Return the page of ``result``, whose witnesses are in the folder ``run``."""
    return _render(result, run, _laid_out(result, run))


def pages(result: Result, run: Path, home: str = "") -> Iterator[tuple[PurePosixPath, str]]:
    """Yield the path and the text of each file. First come two files for each witness: its page, and the witness
    itself. The page of the answers comes last. ``home`` is the URL of the folder of bob's web site, relative to the
    page of the answers. Unless it is empty, all pages have links to the site."""
    shown = [replace(one, ways=tuple(way.apart for way in one.ways)) for one in _laid_out(result, run)]
    yield from witness_pages((way for one in shown for way in one.ways), home)
    yield INDEX, _render(result, run, shown, home)


def _laid_out(result: Result, run: Path) -> list[ShownAnswer]:
    return list(_of_question(result, run) if result.program is None else _of_program(result, run))


def _of_question(result: Result, run: Path) -> Iterator[ShownAnswer]:
    [subject] = result.subjects
    for number, answer in enumerate(subject.answers, start=1):
        anchor = f"answer-{number}"
        where = [f"in {plural(way.states, 'crash state')}{words.shown_by(answer, way)}" for way in answer.ways]
        ways = enumerate(zip(answer.ways, where, strict=True), start=1)
        shown = tuple(shown_way(f"{anchor}-{place}", way, run, said) for place, (way, said) in ways)
        yield ShownAnswer(anchor, subject, answer, shown)
    if (refused := subject.unmountable) is not None:
        shown = (shown_way(UNMOUNTABLE, refused, run, plural(refused.states, "crash state")),)
        yield ShownAnswer(UNMOUNTABLE, subject, beside(UNMOUNTABLE, UNMOUNTABLE, [refused]), shown)


def _of_program(result: Result, run: Path) -> Iterator[ShownAnswer]:
    protocols = {protocol.configuration: protocol for protocol in result.protocols}
    for number, subject in enumerate(result.file_systems, start=1):
        anchor, answer = f"answer-{number}", subject.answer
        ways = tuple(shown_way(f"{anchor}-{place}", way, run) for place, way in enumerate(answer.ways, start=1))
        picture = _picture(protocols.get(subject.name), answer, subject.name)
        grids = subject.tuples.grids if subject.tuples is not None else ()
        pictured = Markup(cluster_drawing.svg(grids, subject.name)) if grids else ""
        yield ShownAnswer(anchor, subject, answer, ways, picture, pictured)
    first = result.protocols[0] if result.protocols else None
    for number, subject in enumerate(result.models, start=1):
        picture = _picture(first, subject.answer, f"model {subject.name}")
        yield ShownAnswer(f"model-{number}", subject, subject.answer, (), picture)


def _picture(protocol: Protocol | None, answer: Answer, where: str) -> str:
    if protocol is None:
        return ""
    return Markup(svg(drawn(protocol, answer.ways), f"The update protocol, and what it relies on, on {where}"))


def _render(result: Result, run: Path, shown: Sequence[ShownAnswer], home: str = "") -> str:
    has_pictures = any(way.is_drawn_here for one in shown for way in one.ways)
    same = {"home": home, "has_pictures": has_pictures}
    if (program := result.program) is not None:
        kernel = result.environment.kernel
        page = html().get_template("programs.html.j2")
        return page.render(
            **same,
            program=program,
            left_open=left_open(program),
            is_left_open=partial(is_left_open, program),
            where=f" on Linux {kernel}" if kernel else "",
            file_systems=[one for one in shown if one.subject.model is None],
            models=[one for one in shown if one.subject.model is not None],
            told_once=told_once,
            share=of_model,
        )
    [subject], asked = result.subjects, result.workload
    assert asked is not None
    unmountable = next((one.ways[0] for one in shown if one.answer.claim.kind == UNMOUNTABLE), None)
    page = html().get_template("answers.html.j2")
    return page.render(
        **same,
        result=result,
        subject=subject,
        run=nearby(run),
        answers=[one for one in shown if one.answer.claim.kind != UNMOUNTABLE],
        unmountable=unmountable,
        asks_of_mounts=words.asks_of_mounts(subject),
        asked=asked,
        when=words.when(asked),
        needs_no_crash=words.NEEDS_NO_CRASH,
        line=lambda answer: parse(answer.name).line,
        says=words.says,
        by_finish=words.by_finish,
        explored_of=words.explored_of,
    )
