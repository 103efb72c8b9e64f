"""A table of programs × file systems, and below it what each × rests on, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from bob.judge.program_result import ProgramResult, Programs, Safety
from bob.judge.reliance import told_once
from bob.report.counts import compact, plural
from bob.report.escape import markdown
from bob.report.programs import MOST_RELIED_ON

_MARKS = {Safety.SAFE: "safe", Safety.VULNERABLE: "×", Safety.UNKNOWN: "?"}


def page(programs: Sequence[Programs], configurations: Sequence[str], folder: str) -> str:
    """The page about ``programs``, each named once, with these ``configurations`` as columns; their witnesses are in
    ``folder``, where the commands look for them."""
    answers = [(one, {result.configuration: result for result in one.results}) for one in programs]
    lines = [
        *_head(programs),
        "| program | " + " | ".join(configurations) + " |",
        "|---" * (len(configurations) + 1) + "|",
    ]
    for one, by_name in answers:
        cells = [_cell(by_name.get(name)) for name in configurations]
        lines.append(f"| [{one.program}](#{one.program}) | " + " | ".join(cells) + " |")
    for one, by_name in answers:
        lines += ["", f"## {one.program}", "", f"{markdown(one.about)}.", ""]
        for result in filter(None, map(by_name.get, configurations)):
            lines += _told(result, folder)
    return "\n".join(lines) + "\n"


def _head(programs: Sequence[Programs]) -> list[str]:
    kernels = dict.fromkeys(one.kernel for one in programs)
    return [
        f"# Programs after a crash, on Linux {', '.join(kernels)}",
        "",
        "Each cell is the answer of `bob app run PROGRAM --pace undisturbed`. *safe*: the checker accepts every",
        "crash state that was explored; it is no proof. ×: it refuses some, with the loss in the cell. Below the",
        "table stands what the program relies on in each × ([how](../../../docs/apps.md#what-the-program-relies-on)).",
        "",
    ]


def _cell(result: ProgramResult | None) -> str:
    if result is None:
        return "–"
    if result.safety is not Safety.VULNERABLE:
        return _MARKS[result.safety]
    return f"× {', '.join(dict.fromkeys(one.consequence.words for one in result.vulnerabilities))}"


def _told(result: ProgramResult, folder: str) -> list[str]:
    states = result.states
    explored = f"{compact(states.explored)} of {compact(states.legal_sectors)} crash states"
    seen = f"{explored}, {result.trees} outcomes, {result.checks} checks"
    if result.safety is not Safety.VULNERABLE:
        reason = f": {markdown(result.reason)}" if result.reason else " as far as explored"
        return [f"- **{result.configuration}**: {_MARKS[result.safety]}{reason} ({seen})"]
    lines = [f"- **{result.configuration}**: ×  ({seen})"]
    for one in result.vulnerabilities:
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
