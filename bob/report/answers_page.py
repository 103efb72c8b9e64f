"""The answers to a quick question as a page that stands alone, or as several: the answers, and a page for each witness.

The words are in ``answers.html.j2``. A page that stands alone has the time lines of the witnesses in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.judge.answers import Answer, Way
from bob.judge.tried import Tried
from bob.report.answers import NEEDS_NO_CRASH, WHEN, by_finish, held, shown_by
from bob.report.counts import explored
from bob.report.nearby import nearby, witness_command
from bob.report.page import Story
from bob.report.site import INDEX, WITNESSES
from bob.report.templating import MARKS_HERE, html
from bob.report.witness_page import to_html as witness_page
from bob.report.witness_page import witness_text
from bob.text import plural
from bob.version import __version__
from bob.witness import bundle
from bob.witness.document import read
from bob.workload.language import write_one


@dataclass(frozen=True, slots=True)
class ShownWay:
    """A way to break an expectation with its place on the page: ``where`` says in how many crash states and after which
    finish, ``story`` what its witness shows, and ``command`` shows it again; both are empty where none was kept."""

    anchor: str
    way: Way
    where: str
    story: Story | None = None
    command: str = ""


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer with its place on the page; ``says`` is its one line, ``each`` what each recording says of it."""

    anchor: str
    answer: Answer
    says: str
    each: str
    ways: tuple[ShownWay, ...]

    @property
    def tone(self) -> str:
        """The class of its colours."""
        return self.answer.verdict.value

    @property
    def mark(self) -> str:
        """What stands beside it."""
        return MARKS_HERE[self.answer.verdict]


def to_html(tried: Tried, run: Path) -> str:
    """The page about ``tried``, whose witnesses are in the folder ``run``."""
    return _render(tried, run, _laid_out(tried, run), _unmountable(tried, run))


def pages(tried: Tried, run: Path) -> Iterator[tuple[PurePosixPath, str]]:
    """The pages about ``tried``, each with its place in their folder: one for each witness, with its file beside; and
    last the answers, which link to them."""
    answers = [replace(one, ways=tuple(map(_apart, one.ways))) for one in _laid_out(tried, run)]
    unmountable = _apart(_unmountable(tried, run))
    for way in (*(way for one in answers for way in one.ways), unmountable):
        if way.story is not None:
            page, path = PurePosixPath(way.story.page), way.story.path
            file = page.with_suffix(".json")
            yield page, witness_page(way.story.witness, nearby(path), f"../{INDEX}", way.anchor, "", file.name)
            yield file, witness_text(path)
    yield INDEX, _render(tried, run, answers, unmountable)


def _apart(shown: ShownWay) -> ShownWay:
    """The same with a page of its own for its witness."""
    page = f"{WITNESSES}/{shown.anchor}.html"
    return shown if shown.story is None else replace(shown, story=replace(shown.story, page=page))


def _laid_out(tried: Tried, run: Path) -> list[ShownAnswer]:
    return [
        _laid_out_answer(tried, number, answer, witnesses, run)
        for number, (answer, witnesses) in enumerate(zip(tried.answers, tried.witnesses, strict=True), start=1)
    ]


def _laid_out_answer(tried: Tried, number: int, answer: Answer, witnesses: Sequence[str], run: Path) -> ShownAnswer:
    ways = []
    paths: list[str | None] = [*witnesses, *[None] * (len(answer.ways) - len(witnesses))]
    for place, (way, path) in enumerate(zip(answer.ways, paths, strict=True), start=1):
        where = f"in {plural(way.states, 'crash state')}{shown_by(tried, answer, way)}"
        command = "" if path is None else witness_command(run, path)
        ways.append(ShownWay(f"answer-{number}-{place}", way, where, _story(run, path), command))
    each = by_finish(tried, answer) if answer.each and answer.verdict is Verdict.FAILS else ""
    return ShownAnswer(f"answer-{number}", answer, _says(tried, answer), each, tuple(ways))


def _says(tried: Tried, answer: Answer) -> str:
    """The answer in a line."""
    match answer.verdict:
        case Verdict.FAILS:
            ways = f"can break in {plural(len(answer.ways), 'way')}" if len(answer.ways) > 1 else "breaks"
            return f"{ways}, in {plural(answer.states, 'crash state')}"
        case Verdict.HOLDS:
            return held(tried.states, 0 if answer.expectation.asks_of_mounts else tried.unmountable.states)
        case _:
            return answer.reason or "not known"


def _unmountable(tried: Tried, run: Path) -> ShownWay:
    """What could not be mounted, as a way to break a claim of its own."""
    found = tried.unmountable
    command = "" if found.witness is None else witness_command(run, found.witness)
    way = Way(found.error or "", found.states, None)
    return ShownWay("unmountable", way, plural(found.states, "crash state"), _story(run, found.witness), command)


def _story(run: Path, witness: str | None) -> Story | None:
    """The story of ``witness``; None where the file is not there any more."""
    path = None if witness is None else run / witness
    return Story(read(path), path, "") if path is not None and bundle.is_there(path) else None


def _render(tried: Tried, run: Path, answers: Sequence[ShownAnswer], unmountable: ShownWay) -> str:
    stories = [way.story for one in answers for way in one.ways] + [unmountable.story]
    return (
        html()
        .get_template("answers.html.j2")
        .render(
            bob=__version__,
            home="",
            tried=tried,
            made=tried.configuration,
            run=nearby(run),
            answers=answers,
            unmountable=unmountable,
            asks_of_mounts=any(answer.expectation.asks_of_mounts for answer in tried.answers),
            operations=[write_one(one) for one in tried.workload.operations],
            setup=[write_one(one) for one in tried.workload.setup],
            when=WHEN[tried.at],
            needs_no_crash=NEEDS_NO_CRASH,
            finishes=[(part.finish.name, part.refused, _explored(part.states)) for part in tried.finishes],
            has_pictures=any(story is not None and not story.page for story in stories),
        )
    )


def _explored(states: States) -> str:
    return f"{explored(states)}, by {plural(states.mounted, 'mount')}"
