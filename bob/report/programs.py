"""The answer for a program for a terminal: of each configuration whether the program survives, and what harms it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.text import Text

from bob.answer.answer import Cross, Way
from bob.answer.result import Allowed, Result, SubjectResult
from bob.claim.verdict import Verdict
from bob.judge.modelled import Change
from bob.judge.statics import told_once
from bob.report.counts import explored, of_model
from bob.report.lines import Trimmed, broken, print_indented
from bob.report.nearby import nearby, witness_command
from bob.report.rows import style
from bob.text import plural

SAFE_MEANS = "safe: the checker accepts every crash state that was explored. It is no proof."
MOST_RELIED_ON = 3
"""Of what a program relies on, so much is told for each vulnerability; result.json has all."""


def print_programs(console: Console, result: Result, run: Path) -> None:
    """Print the answers for a program, whose witnesses are in the folder ``run``."""
    assert result.program is not None
    title = Text.assemble((result.program.name, "bob.title"), (f"   {result.program.about}", "bob.dim"))
    print_indented(console, title, 0)
    for subject in result.subjects:
        console.print()
        if subject.model is None:
            _print_file_system(console, subject, run)
        else:
            _print_model(console, subject, subject.model)
    console.print()
    if Verdict.HOLDS in result.verdicts:
        print_indented(console, Text(SAFE_MEANS, "bob.dim"), 0)
    console.print(Text(f"run {nearby(run)}", "bob.dim"), soft_wrap=True)


def _print_file_system(console: Console, subject: SubjectResult, run: Path) -> None:
    mounted = f"   mounted {subject.effective_mount_options}"
    console.print(Trimmed(broken(Text.assemble((subject.name, "bob.title"), (mounted, "bob.dim")), console.width)))
    _print_verdict(console, subject)
    answer = subject.answer
    for way in answer.ways:
        where = f"   in {plural(way.states, 'crash state')}, {plural(way.trees, 'outcome')}"
        print_indented(console, Text.assemble(way.evidence, (where, "bob.dim")), 4)
        _print_why(console, way)
        if way.witness:
            console.print(Text(" " * 6 + witness_command(run, way.witness), "bob.command"), soft_wrap=True)
    mounts = plural(answer.states.mounted, "mount")
    print_indented(console, Text(f"{explored(answer.states)}; {mounts}, {seen(subject, 'outcome')}", "bob.dim"), 2)
    for note in subject.notes:
        print_indented(console, Text(f"note: {note}", "bob.dim"), 2)


def seen(subject: SubjectResult, what: str) -> str:
    """Return how many trees the checker saw, each of which is a ``what``, and how often it ran."""
    assert subject.checks is not None
    return f"{plural(subject.checks.trees, what)}, {plural(subject.checks.runs, 'check')}"


def _print_verdict(console: Console, subject: SubjectResult) -> None:
    answer = subject.answer
    match answer.verdict:
        case Verdict.HOLDS:
            said = "safe as far as explored"
        case Verdict.FAILS:
            said = f"× {_counted(len(answer.ways), '').strip()}"
        case _:
            said = f"? {answer.reason}"
    print_indented(console, Text(said, style(answer.verdict)), 2)


def _print_model(console: Console, subject: SubjectResult, model: Allowed) -> None:
    title = Text.assemble(("model ", "bob.dim"), (subject.name, "bob.title"), (f"   {model.about}", "bob.dim"))
    console.print(Trimmed(broken(title, console.width)))
    _print_verdict(console, subject)
    for way in subject.answer.ways:
        print_indented(console, Text.assemble(way.evidence, (f"   in {plural(way.trees, 'tree')}", "bob.dim")), 4)
        _print_why(console, way)
        if way.crossed:
            said = "; ".join(f"{cross.value} on {', '.join(names)}" for cross, names in _by_answer(way.crossed).items())
            print_indented(console, Text(said, "bob.dim"), 6)
    if model.tried:
        tried = f"{plural(model.tried, 'crash state')} of the model tried ({of_model(model)})"
        print_indented(console, Text(f"{tried}, {seen(subject, 'tree')}", "bob.dim"), 2)
        of = f"{plural(model.operations, 'operation')}, {plural(model.micro_operations, 'micro-operation')}"
        print_indented(console, Text(f"the program's calls are {of}", "bob.dim"), 2)
    for missed in model.missed:
        print_indented(console, Text(missed.words, "bob.fails" if missed.is_wrong else "bob.dim"), 2)
    for note in subject.notes:
        print_indented(console, Text(f"note: {note}", "bob.dim"), 2)


def print_change(console: Console, found: Change) -> None:
    """Print what a changed model changes for a program."""
    models = (found.before, found.after)
    counts = (_counted(len(model.answer.ways), f"by {model.name}") for model in models)
    print_indented(console, Text.assemble((found.program, "bob.title"), f": {', '.join(counts)}"), 0)
    for model in models:
        if model.answer.reason:
            print_indented(console, Text(f"? {model.name}: {model.answer.reason}", "bob.unknown"), 2)
        elif model.model is not None and not model.model.is_all:
            tried = f"{plural(model.model.tried, 'crash state')} tried, {of_model(model.model)}"
            print_indented(console, Text(f"{model.name}: {tried}", "bob.dim"), 2)
    for said, some, tone in (("added", found.added, "bob.fails"), ("mended", found.mended, "bob.holds")):
        for one in some:
            print_indented(console, Text(f"{said}: {one.evidence}", tone), 2)
            _print_why(console, one)
    if found.kept:
        print_indented(console, Text(_counted(len(found.kept), "in both"), "bob.dim"), 2)


def _by_answer(crossed: Mapping[str, Cross]) -> dict[Cross, list[str]]:
    return {
        cross: [name for name, said in crossed.items() if said is cross] for cross in dict.fromkeys(crossed.values())
    }


def _counted(count: int, where: str) -> str:
    return f"{count} {'vulnerability' if count == 1 else 'vulnerabilities'} {where}"


def _print_why(console: Console, way: Way) -> None:
    output = way.last_output
    said = f"the program had told: {output}" if output else "the program had told nothing"
    print_indented(console, Text(said, "bob.dim"), 6)
    reasons = told_once(way.relied_on)
    for relied, times in reasons[:MOST_RELIED_ON]:
        kind = f"   {relied.kind}" if relied.kind else ""
        several = f"   for each of {times} such calls" if times > 1 else ""
        print_indented(console, Text.assemble(relied.sentence, (kind + several, "bob.dim")), 6)
    more = len(reasons) - MOST_RELIED_ON
    if more > 0:
        print_indented(console, Text(f"and {plural(more, 'other reason')}: result.json has them", "bob.dim"), 6)
