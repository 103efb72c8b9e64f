"""A page in Markdown about programs on file systems. Its table has a row for each program and a column for each file
system; a × means that the program is vulnerable. Below the table are the reasons for each ×. A program may be recorded
at several *paces*: at full speed (undisturbed), or slowed down. A *witness* is a file about one crash state that the
program does not survive."""

from collections.abc import Mapping, Sequence, Set

from bob.answer.answer import Answer
from bob.answer.result import AskedProgram, Result, SubjectResult
from bob.claim.verdict import Verdict
from bob.judge.statics import told_once
from bob.program.answer import Consequence
from bob.program.program import Pace
from bob.report.escape import markdown
from bob.report.programs import MOST_RELIED_ON
from bob.report.promises import is_left_open, left_open
from bob.text import compact, plural

_MARKS = {Verdict.HOLDS: "safe", Verdict.FAILS: "×", Verdict.UNKNOWN: "?"}


def page(programs: Sequence[Result], configurations: Sequence[str], folder: str) -> str:
    """Return the page about ``programs``, with ``configurations`` as columns. In the results, an answer has the name
    ``CONFIGURATION`` if the program ran undisturbed, and ``CONFIGURATION-PACE`` if it ran at another pace. All answers
    of one configuration stand in the same column. Commands on the page name witnesses in ``folder``."""
    lines = [
        *_head(programs),
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
                lines += _entry(subject, folder, known)
                known |= {(way.consequence, way.evidence) for way in subject.answer.ways}
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


def _entry(subject: SubjectResult, folder: str, known: Set[tuple[Consequence | None, str]]) -> list[str]:
    """Return the lines about one answer. A page shows the answers for several paces one after the other. ``known`` has
    the ways to break the program that an earlier answer has shown already. The lines give only the number of these
    ways."""
    answer, checks = subject.answer, subject.checks
    assert checks is not None
    explored = f"{compact(answer.states.explored)} of {compact(answer.states.legal_sectors)} crash states"
    seen = f"{explored}, {checks.trees} outcomes, {checks.runs} checks"
    if answer.verdict is not Verdict.FAILS:
        reason = f": {markdown(answer.reason)}" if answer.reason else " as far as explored"
        return [f"- **{subject.name}**: {_MARKS[answer.verdict]}{reason} ({seen})"]
    new = [way for way in answer.ways if (way.consequence, way.evidence) not in known]
    again = len(answer.ways) - len(new)
    as_above = f", {again if new else 'all'} of them as above" if again else ""
    lines = [f"- **{subject.name}**: × {len(answer.ways)}{as_above} ({seen})"]
    for way in new:
        lines.append(f"  - {markdown(way.evidence)}, in {compact(way.states)} crash states")
        reasons = told_once(way.relied_on)
        for relied, times in reasons[:MOST_RELIED_ON]:
            several = f", for each of {times} such calls" if times > 1 else ""
            lines.append(f"    - {markdown(relied.sentence)}{several}")
        if (more := len(reasons) - MOST_RELIED_ON) > 0:
            lines.append(f"    - and {plural(more, 'other reason')}: apps.json.xz has them")
        if way.witness:
            lines.append(f"    - `bob replay {folder}/{way.witness}`")
    return lines
