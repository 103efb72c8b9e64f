"""Pages in Markdown about programs on file systems: one about many programs, and one about a single program. The first
has a table with a row for each program and a column for each file system; a × means that the program is vulnerable.
Below the table are the reasons for each ×. A program may be recorded at several *paces*: at full speed (undisturbed),
or slowed down. A *witness* is a file about one crash state that the program does not survive."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path

from bob.answer.answer import Answer
from bob.answer.result import AskedProgram, Result, SubjectResult
from bob.claim.verdict import Verdict
from bob.program.answer import Consequence
from bob.program.program import Pace
from bob.report.counts import of_model
from bob.report.escape import markdown, markdown_code
from bob.report.promises import is_left_open, left_open
from bob.report.repair import Repair, repair_of
from bob.text import compact, plural

_MARKS = {Verdict.HOLDS: "safe", Verdict.FAILS: "×", Verdict.UNKNOWN: "?"}


def page(
    programs: Sequence[Result], configurations: Sequence[str], folder: str, head: Sequence[str] | None = None
) -> str:
    """Return the page about ``programs``, with ``configurations`` as columns. In the results, an answer has the name
    ``CONFIGURATION`` if the program ran undisturbed, and ``CONFIGURATION-PACE`` if it ran at another pace. All answers
    of one configuration stand in the same column. Commands on the page name witnesses in ``folder``. ``head`` has the
    lines before the table (None: the usual ones)."""
    lines = [
        *(_head(programs) if head is None else head),
        "| program | " + " | ".join(configurations) + " |",
        "|---" * (len(configurations) + 1) + "|",
    ]
    by_column = [
        (one.program, [_by_pace(one, name) for name in configurations]) for one in programs if one.program is not None
    ]
    for program, columns in by_column:
        cells = [_cell(program, answers) for answers in columns]
        lines.append(f"| [{program.name}](#{program.name}) | " + " | ".join(cells) + " |")
    for program, columns in by_column:
        lines += ["", f"## {program.name}", "", f"{markdown(program.about)}.", ""]
        for one in left_open(program):
            lines += [f"Not promised ({one.words}): {markdown(one.because)}", ""]
        for answers in columns:
            known: set[tuple[Consequence | None, str]] = set()
            for subject in answers.values():
                lines += _entry(subject, Path(folder), known, _relied_on)
                known |= {(way.consequence, way.evidence) for way in subject.answer.ways}
    return "\n".join(lines) + "\n"


def page_of_one(result: Result, folder: Path) -> str:
    """Return the page about the program of ``result``: its answers, and what to repair. ``folder`` has the
    witnesses."""
    kernel = result.environment.kernel
    lines = [f"# {markdown(result.program_name)} after a crash{f', on Linux {markdown(kernel)}' if kernel else ''}", ""]
    for subject in result.subjects:
        lines += _entry(subject, folder, frozenset(), _all_of)
    return "\n".join(lines) + "\n"


def _by_pace(program: Result, configuration: str) -> dict[Pace, SubjectResult]:
    subjects = {subject.name: subject for subject in program.file_systems}
    return {pace: subjects[name] for pace in Pace if (name := pace.of(configuration)) in subjects}


def _head(programs: Sequence[Result]) -> list[str]:
    kernels = dict.fromkeys(one.environment.kernel for one in programs)
    return [
        f"# Programs after a crash, on Linux {', '.join(kernels)}",
        "",
        "Each cell is the answer of `bob app run PROGRAM` on one file system. If it names paces, the answer",
        "depends on [the pace](../../../docs/apps.md#at-which-pace) at which the program ran. *safe*: the checker",
        "accepts every explored crash state; this is not a proof. ×: it refuses some, and the cell names the loss.",
        "*not promised*: the program's own documentation leaves these losses open.",
        "The lists below the table say what the program relies on in each ×",
        "([how](../../../docs/apps.md#what-the-program-relies-on)).",
        "",
    ]


def _cell(program: AskedProgram, answers: Mapping[Pace, SubjectResult]) -> str:
    """Return a cell of the table. If the answers at different paces differ, the cell names the paces of each answer."""
    paces: dict[str, list[Pace]] = {}
    for pace, subject in answers.items():
        paces.setdefault(_verdict(subject.answer), []).append(pace)
    said = "; ".join(f"{verdict} ({', '.join(alike)})" for verdict, alike in paces.items())
    failing = [subject.answer for subject in answers.values() if subject.answer.verdict is Verdict.FAILS]
    is_open = failing and all(is_left_open(program, answer) for answer in failing)
    return f"{'*not promised*: ' if is_open else ''}{said if len(paces) > 1 else next(iter(paces), '–')}"


def _verdict(answer: Answer) -> str:
    if answer.verdict is not Verdict.FAILS:
        return _MARKS[answer.verdict]
    return f"× {', '.join(sorted({way.consequence.words for way in answer.ways if way.consequence is not None}))}"


def _entry(
    subject: SubjectResult,
    folder: Path,
    known: Set[tuple[Consequence | None, str]],
    told: Callable[[Repair], Iterator[str]],
) -> list[str]:
    """Return the lines about one answer. A page shows the answers for several paces one after the other. ``known`` has
    the ways to break the program that an earlier answer has shown already. The lines give only the number of these
    ways. ``told`` yields the lines about each other way."""
    answer, seen = subject.answer, _seen(subject)
    new = [way for way in answer.ways if (way.consequence, way.evidence) not in known]
    if answer.verdict is Verdict.FAILS:
        again = len(answer.ways) - len(new)
        as_above = f", {again if new else 'all'} of them as above" if again else ""
        lines = [f"- **{subject.title}**: × {len(answer.ways)}{as_above} ({seen})"]
    else:
        reason = f": {markdown(answer.reason)}" if answer.reason else " as far as explored"
        lines = [f"- **{subject.title}**: {_MARKS[answer.verdict]}{reason} ({seen})"]
    for way in new:
        count = f"{compact(way.states)} crash states" if subject.model is None else plural(way.trees, "tree")
        lines.append(f"  - {markdown(way.evidence)}, in {count}")
        lines += (f"    - {line}" for line in told(repair_of(way, folder)))
    return lines


def _seen(subject: SubjectResult) -> str:
    answer, checks, model = subject.answer, subject.checks, subject.model
    assert checks is not None
    if model is not None:
        return f"{plural(model.tried, 'state')}, {of_model(model)}; {plural(checks.trees, 'tree')}"
    explored = f"{compact(answer.states.explored)} of {compact(answer.states.legal_sectors)} crash states"
    return f"{explored}, {checks.trees} outcomes, {checks.runs} checks"


def _relied_on(repair: Repair) -> Iterator[str]:
    for one in repair.relied_on:
        several = f", for each of {one.times} such calls" if one.times > 1 else ""
        yield f"{markdown(one.sentence)}{several}"
    if repair.others:
        yield f"and {plural(repair.others, 'other reason')}: apps.json.xz has them"
    if repair.replay:
        yield markdown_code(repair.replay)


def _all_of(repair: Repair) -> Iterator[str]:
    yield from map(markdown, repair.why)
    if repair.replay:
        yield markdown_code(repair.replay)
