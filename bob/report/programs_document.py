"""A table of programs × file systems, and below it what each × rests on, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from bob.judge.program_result import ProgramResult, Programs, Safety
from bob.judge.reliance import told_once
from bob.program.answer import Consequence
from bob.program.pace import Pace
from bob.report.escape import markdown
from bob.report.programs import MOST_RELIED_ON
from bob.text import compact, plural

_MARKS = {Safety.SAFE: "safe", Safety.VULNERABLE: "×", Safety.UNKNOWN: "?"}


def page(programs: Sequence[Programs], configurations: Sequence[str], folder: str) -> str:
    """Return the page about ``programs``, each named once, with these ``configurations`` as columns.

    An answer at a pace other than undisturbed is named ``CONFIGURATION-PACE``. The witnesses are in ``folder``, where
    the commands look for them.
    """
    lines = [
        *_head(programs),
        "| program | " + " | ".join(configurations) + " |",
        "|---" * (len(configurations) + 1) + "|",
    ]
    by_column = [(one, [_by_pace(one, name) for name in configurations]) for one in programs]
    for one, columns in by_column:
        lines.append(f"| [{one.program}](#{one.program}) | " + " | ".join(map(_cell, columns)) + " |")
    for one, columns in by_column:
        lines += ["", f"## {one.program}", "", f"{markdown(one.about)}.", ""]
        for answers in columns:
            known: set[tuple[Consequence, str]] = set()
            for result in answers.values():
                lines += _entry(result, folder, known)
                known |= {(each.consequence, each.evidence) for each in result.vulnerabilities}
    return "\n".join(lines) + "\n"


def _by_pace(program: Programs, configuration: str) -> dict[Pace, ProgramResult]:
    """Return the answers of one configuration, in the order of the paces."""
    results = {result.configuration: result for result in program.results}
    return {pace: results[name] for pace in Pace if (name := pace.of(configuration)) in results}


def _head(programs: Sequence[Programs]) -> list[str]:
    kernels = dict.fromkeys(one.kernel for one in programs)
    return [
        f"# Programs after a crash, on Linux {', '.join(kernels)}",
        "",
        "Each cell is the answer of `bob app run PROGRAM` on one file system. Where it names paces, the answer",
        "depends on [the pace](../../../docs/apps.md#at-which-pace) at which the program ran. *safe*: the checker",
        "accepts every crash state that was explored; it is no proof. ×: it refuses some, with the loss in the cell.",
        "Below the table stands what the program relies on in each ×",
        "([how](../../../docs/apps.md#what-the-program-relies-on)).",
        "",
    ]


def _cell(answers: Mapping[Pace, ProgramResult]) -> str:
    """Return what a cell says; the paces that agree are named together, and all of them need no name."""
    paces: dict[str, list[Pace]] = {}
    for pace, result in answers.items():
        paces.setdefault(_verdict(result), []).append(pace)
    if len(paces) < 2:
        return next(iter(paces), "–")
    return "; ".join(f"{verdict} ({', '.join(alike)})" for verdict, alike in paces.items())


def _verdict(result: ProgramResult) -> str:
    if result.safety is not Safety.VULNERABLE:
        return _MARKS[result.safety]
    return f"× {', '.join(sorted({one.consequence.words for one in result.vulnerabilities}))}"


def _entry(result: ProgramResult, folder: str, known: Set[tuple[Consequence, str]]) -> list[str]:
    """Return the lines about one answer; of what is ``known`` from an earlier pace, only how many it has."""
    states = result.states
    explored = f"{compact(states.explored)} of {compact(states.legal_sectors)} crash states"
    seen = f"{explored}, {result.trees} outcomes, {result.checks} checks"
    if result.safety is not Safety.VULNERABLE:
        reason = f": {markdown(result.reason)}" if result.reason else " as far as explored"
        return [f"- **{result.configuration}**: {_MARKS[result.safety]}{reason} ({seen})"]
    new = [one for one in result.vulnerabilities if (one.consequence, one.evidence) not in known]
    again = len(result.vulnerabilities) - len(new)
    as_above = f", {again if new else 'all'} of them as above" if again else ""
    lines = [f"- **{result.configuration}**: × {len(result.vulnerabilities)}{as_above} ({seen})"]
    for one in new:
        lines.append(f"  - {markdown(one.evidence)}, in {compact(one.states)} crash states")
        reasons = told_once(one.relied_on)
        for relied, times in reasons[:MOST_RELIED_ON]:
            several = f", for each of {times} such calls" if times > 1 else ""
            lines.append(f"    - {markdown(relied.sentence)}{several}")
        if (more := len(reasons) - MOST_RELIED_ON) > 0:
            lines.append(f"    - and {plural(more, 'other reason')}: apps.json.xz has them")
        if one.witness:
            lines.append(f"    - `bob replay {folder}/{one.witness}`")
    return lines
