"""The answers to a quick question as a page that stands alone, or as several: the answers, and a page for each witness.

The words are in ``answers.html.j2``. A page that stands alone has the time lines of the witnesses in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from bob.answer.answer import Answer, Way
from bob.answer.result import Result
from bob.claim.expectation.language import parse
from bob.claim.verdict import Verdict
from bob.report.answers import NEEDS_NO_CRASH, WHEN, asks_of_mounts, by_finish, explored_of, says, shown_by
from bob.report.nearby import nearby
from bob.report.shown_way import ShownWay, shown_way, witness_pages
from bob.report.site import INDEX
from bob.report.templating import MARKS_HERE, html
from bob.text import plural
from bob.version import __version__


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer with its place on the page; ``says`` is its one line, ``each`` what each recording says of it."""

    anchor: str
    answer: Answer
    says: str
    each: str
    ways: tuple[ShownWay, ...]

    @property
    def line(self) -> str:
        """The expectation in a line."""
        return parse(self.answer.name).line

    @property
    def tone(self) -> str:
        """The class of its colours."""
        return self.answer.verdict.value

    @property
    def mark(self) -> str:
        """What stands beside it."""
        return MARKS_HERE[self.answer.verdict]


def to_html(result: Result, run: Path) -> str:
    """Return the page about a quick question, whose witnesses are in the folder ``run``."""
    return _render(result, run, _laid_out(result, run), _unmountable(result, run))


def pages(result: Result, run: Path) -> Iterator[tuple[PurePosixPath, str]]:
    """Yield the pages about a quick question, each with its place in their folder: those of the witnesses, and last the
    answers, which link to them."""
    answers = [replace(one, ways=tuple(way.apart for way in one.ways)) for one in _laid_out(result, run)]
    unmountable = _unmountable(result, run).apart
    yield from witness_pages([*(way for one in answers for way in one.ways), unmountable])
    yield INDEX, _render(result, run, answers, unmountable)


def _laid_out(result: Result, run: Path) -> list[ShownAnswer]:
    return [_laid_out_answer(f"answer-{number}", answer, run) for number, answer in enumerate(result.answers, start=1)]


def _laid_out_answer(anchor: str, answer: Answer, run: Path) -> ShownAnswer:
    ways = tuple(
        shown_way(f"{anchor}-{place}", way, run, f"in {plural(way.states, 'crash state')}{shown_by(answer, way)}")
        for place, way in enumerate(answer.ways, start=1)
    )
    each = by_finish(answer) if len(answer.recordings) > 1 and answer.verdict is Verdict.FAILS else ""
    return ShownAnswer(anchor, answer, says(answer), each, ways)


def _unmountable(result: Result, run: Path) -> ShownWay:
    """Return what could not be mounted, as a way to break a claim of its own."""
    refused = result.subjects[0].unmountable or Way("", 0)
    return shown_way("unmountable", refused, run, plural(refused.states, "crash state"))


def _render(result: Result, run: Path, answers: Sequence[ShownAnswer], unmountable: ShownWay) -> str:
    ways = [*(way for one in answers for way in one.ways), unmountable]
    [subject], asked = result.subjects, result.workload
    assert asked is not None
    return (
        html()
        .get_template("answers.html.j2")
        .render(
            bob=__version__,
            home="",
            result=result,
            subject=subject,
            run=nearby(run),
            answers=answers,
            unmountable=unmountable,
            asks_of_mounts=asks_of_mounts(subject),
            asked=asked,
            when=WHEN[asked.at],
            needs_no_crash=NEEDS_NO_CRASH,
            finishes=[(part.finish, explored_of(part)) for part in subject.answers[0].recordings],
            has_pictures=any(way.is_drawn_here for way in ways),
        )
    )
