"""The answer for a program for a terminal: of each configuration whether the program survives, and what harms it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.text import Text

from bob.judge.modelled import Change
from bob.judge.program_result import Cross, ModelResult, Predicted, ProgramResult, Programs, Safety, Vulnerability
from bob.judge.reliance import told_once
from bob.report.counts import explored, of_model
from bob.report.lines import Trimmed, broken, print_indented
from bob.report.nearby import nearby, witness_command
from bob.text import plural

SAFE_MEANS = "safe: the checker accepts every crash state that was explored. It is no proof."
MOST_RELIED_ON = 3
"""Of what a program relies on, so much is told for each vulnerability; result.json has all."""
_STYLES = {Safety.SAFE: "bob.holds", Safety.VULNERABLE: "bob.fails", Safety.UNKNOWN: "bob.unknown"}


def print_programs(console: Console, answers: Programs, run: Path) -> None:
    """Print the ``answers`` for a program, whose witnesses are in the folder ``run``."""
    print_indented(console, Text.assemble((answers.program, "bob.title"), (f"   {answers.about}", "bob.dim")), 0)
    for result in answers.results:
        console.print()
        _print_result(console, result, run)
    for model in answers.models:
        console.print()
        _print_model(console, model)
    console.print()
    if Safety.SAFE in answers.safeties:
        print_indented(console, Text(SAFE_MEANS, "bob.dim"), 0)
    console.print(Text(f"run {nearby(run)}", "bob.dim"), soft_wrap=True)


def _print_result(console: Console, result: ProgramResult, run: Path) -> None:
    title = Text.assemble((result.configuration, "bob.title"), (f"   mounted {result.mount}", "bob.dim"))
    console.print(Trimmed(broken(title, console.width)))
    _print_safety(console, result)
    for one in result.vulnerabilities:
        _print_vulnerability(console, one, run)
    seen = f"{plural(result.trees, 'outcome')}, {plural(result.checks, 'check')}"
    mounts = plural(result.states.mounted, "mount")
    print_indented(console, Text(f"{explored(result.states)}; {mounts}, {seen}", "bob.dim"), 2)
    for note in result.notes:
        print_indented(console, Text(f"note: {note}", "bob.dim"), 2)


def _print_safety(console: Console, result: ProgramResult | ModelResult) -> None:
    match result.safety:
        case Safety.SAFE:
            said = "safe as far as explored"
        case Safety.VULNERABLE:
            said = f"× {_counted(len(result.vulnerabilities), '').strip()}"
        case Safety.UNKNOWN:
            said = f"? {result.reason}"
    print_indented(console, Text(said, _STYLES[result.safety]), 2)


def _print_model(console: Console, model: ModelResult) -> None:
    title = Text.assemble(("model ", "bob.dim"), (model.model, "bob.title"), (f"   {model.about}", "bob.dim"))
    console.print(Trimmed(broken(title, console.width)))
    _print_safety(console, model)
    for one in model.vulnerabilities:
        print_indented(console, Text.assemble(one.evidence, (f"   in {plural(one.trees, 'tree')}", "bob.dim")), 4)
        _print_why(console, one)
        if one.crossed:
            said = "; ".join(f"{cross.value} on {', '.join(names)}" for cross, names in _by_answer(one.crossed).items())
            print_indented(console, Text(said, "bob.dim"), 6)
    if model.tried:
        tried = f"{plural(model.tried, 'crash state')} of the model tried ({of_model(model)})"
        print_indented(
            console, Text(f"{tried}, {plural(model.trees, 'tree')}, {plural(model.checks, 'check')}", "bob.dim"), 2
        )
        of = f"{plural(model.operations, 'operation')}, {plural(model.micro_operations, 'micro-operation')}"
        print_indented(console, Text(f"the program's calls are {of}", "bob.dim"), 2)
    for missed in model.missed:
        print_indented(console, Text(missed.words, "bob.fails" if missed.is_wrong else "bob.dim"), 2)
    for note in model.notes:
        print_indented(console, Text(f"note: {note}", "bob.dim"), 2)


def print_change(console: Console, found: Change) -> None:
    """What a model that was changed changes for a program."""
    models = (found.before, found.after)
    counts = (_counted(len(model.vulnerabilities), f"by {model.model}") for model in models)
    print_indented(console, Text.assemble((found.program, "bob.title"), f": {', '.join(counts)}"), 0)
    for model in models:
        if model.reason:
            print_indented(console, Text(f"? {model.model}: {model.reason}", "bob.unknown"), 2)
        elif not model.is_all:
            tried = f"{plural(model.tried, 'crash state')} tried, {of_model(model)}"
            print_indented(console, Text(f"{model.model}: {tried}", "bob.dim"), 2)
    for said, some, style in (("added", found.added, "bob.fails"), ("mended", found.mended, "bob.holds")):
        for one in some:
            print_indented(console, Text(f"{said}: {one.evidence}", style), 2)
            _print_why(console, one)
    if found.kept:
        print_indented(console, Text(_counted(len(found.kept), "in both"), "bob.dim"), 2)


def _by_answer(crossed: Mapping[str, Cross]) -> dict[Cross, list[str]]:
    return {
        cross: [name for name, said in crossed.items() if said is cross] for cross in dict.fromkeys(crossed.values())
    }


def _counted(count: int, where: str) -> str:
    return f"{count} {'vulnerability' if count == 1 else 'vulnerabilities'} {where}"


def _print_vulnerability(console: Console, one: Vulnerability, run: Path) -> None:
    where = f"   in {plural(one.states, 'crash state')}, {plural(one.trees, 'outcome')}"
    print_indented(console, Text.assemble(one.evidence, (where, "bob.dim")), 4)
    _print_why(console, one)
    if one.witness:
        console.print(Text(" " * 6 + witness_command(run, one.witness), "bob.command"), soft_wrap=True)


def _print_why(console: Console, one: Vulnerability | Predicted) -> None:
    told = one.told.decode(errors="replace").split("\n")
    lines = [line for line in told if line.strip()]
    said = f"the program had told: {lines[-1].strip()}" if lines else "the program had told nothing"
    print_indented(console, Text(said, "bob.dim"), 6)
    reasons = told_once(one.relied_on)
    for relied, times in reasons[:MOST_RELIED_ON]:
        kind = f"   {relied.kind}" if relied.kind else ""
        several = f"   for each of {times} such calls" if times > 1 else ""
        print_indented(console, Text.assemble(relied.sentence, (kind + several, "bob.dim")), 6)
    more = len(reasons) - MOST_RELIED_ON
    if more > 0:
        print_indented(console, Text(f"and {plural(more, 'other reason')}: result.json has them", "bob.dim"), 6)
