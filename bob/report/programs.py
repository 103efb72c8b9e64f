"""The printing of the answers for a program: whether it survives on each configuration, and what harms it. A *witness*
is a file about one crash state that harms the program."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from bob.answer.answer import Way
from bob.answer.result import Allowed, Result, SubjectResult
from bob.claim.verdict import Verdict
from bob.judge.modelled import Change
from bob.report.counts import explored, of_model
from bob.report.lines import print_command, print_indented, print_title
from bob.report.nearby import nearby
from bob.report.repair import repair_of
from bob.report.rows import style
from bob.text import plural

SAFE_MEANS = "safe: the checker accepts every explored crash state. This is not a proof."


def print_programs(console: Console, result: Result, run: Path) -> None:
    """Print the answers for a program, whose witnesses are in the folder ``run``."""
    assert result.program is not None
    about = (f"   {result.program.about}", "bob.dim")
    print_indented(console, Text.assemble((result.program.name, "bob.title"), about), 0)
    for subject in result.subjects:
        console.print()
        if subject.model is None:
            _print_file_system(console, subject, run)
        else:
            _print_model(console, subject, subject.model)
        for note in subject.notes:
            print_indented(console, f"note: {note}", 2, "bob.dim")
    console.print()
    if Verdict.HOLDS in result.verdicts:
        print_indented(console, SAFE_MEANS, 0, "bob.dim")
    console.print(Text(f"run {nearby(run)}", "bob.dim"), soft_wrap=True)


def _print_file_system(console: Console, subject: SubjectResult, run: Path) -> None:
    mounted = f"   mounted {subject.effective_mount_options}"
    print_title(console, (subject.name, "bob.title"), (mounted, "bob.dim"))
    _print_verdict(console, subject)
    states = subject.answer.states
    for way in subject.answer.ways:
        where = f"in {plural(way.states, 'crash state')}, {plural(way.trees, 'outcome')}"
        _print_way(console, way, where)
        print_command(console, run, way.witness, 6)
    line = f"{explored(states)}; {plural(states.mounted, 'mount')}, {seen(subject, 'outcome')}"
    print_indented(console, line, 2, "bob.dim")
    if subject.tuples is not None:
        print_indented(console, subject.tuples.words, 2, "bob.dim")


def seen(subject: SubjectResult, what: str) -> str:
    """Return in words how many different trees of files the program's checker saw, and how often it ran. ``what`` is
    the noun that the words use for a tree, for example "outcome"."""
    assert subject.checks is not None
    return f"{plural(subject.checks.trees, what)}, {plural(subject.checks.runs, 'check')}"


def _print_verdict(console: Console, subject: SubjectResult) -> None:
    answer = subject.answer
    match answer.verdict:
        case Verdict.HOLDS:
            said = "safe as far as explored"
        case Verdict.FAILS:
            said = f"× {_vulnerabilities(len(answer.ways))}"
        case _:
            said = f"? {answer.reason}"
    print_indented(console, said, 2, style(answer.verdict))


def _print_model(console: Console, subject: SubjectResult, model: Allowed) -> None:
    print_title(console, ("model ", "bob.dim"), (subject.name, "bob.title"), (f"   {model.about}", "bob.dim"))
    _print_verdict(console, subject)
    for way in subject.answer.ways:
        _print_way(console, way, f"in {plural(way.trees, 'tree')}")
        if way.crossed:
            answers = {
                cross: [name for name in way.crossed if way.crossed[name] is cross] for cross in way.crossed.values()
            }
            said = "; ".join(f"{cross.value} on {', '.join(names)}" for cross, names in answers.items())
            print_indented(console, said, 6, "bob.dim")
    if model.tried:
        tried = f"tried {plural(model.tried, 'crash state')} of the model ({of_model(model)})"
        print_indented(console, f"{tried}, {seen(subject, 'tree')}", 2, "bob.dim")
        of = f"{plural(model.operations, 'operation')}, {plural(model.micro_operations, 'micro-operation')}"
        print_indented(console, f"the program's calls are {of}", 2, "bob.dim")
    for missed in model.missed:
        print_indented(console, missed.words, 2, "bob.fails" if missed.is_wrong else "bob.dim")


def print_change(console: Console, found: Change) -> None:
    """Print how a change of a file system would affect a program. One model describes the file system before the
    change, and another model describes it after the change. The lines say which vulnerabilities of the program the
    change adds, and which vulnerabilities it removes. ``found`` has the answers of both models."""
    models = (found.before, found.after)
    counts = ", ".join(f"{_vulnerabilities(len(model.answer.ways))} by {model.name}" for model in models)
    print_indented(console, Text.assemble((found.program, "bob.title"), f": {counts}"), 0)
    for model in models:
        if model.answer.reason:
            print_indented(console, f"? {model.name}: {model.answer.reason}", 2, "bob.unknown")
        elif model.model is not None and not model.model.is_all:
            tried = f"{plural(model.model.tried, 'crash state')} tried, {of_model(model.model)}"
            print_indented(console, f"{model.name}: {tried}", 2, "bob.dim")
    for said, some, tone in (("added", found.added, "bob.fails"), ("mended", found.mended, "bob.holds")):
        for one in some:
            print_indented(console, f"{said}: {one.evidence}", 2, tone)
            _print_why(console, one)
    if found.kept:
        print_indented(console, f"{_vulnerabilities(len(found.kept))} in both", 2, "bob.dim")


def _vulnerabilities(count: int) -> str:
    return f"{count} {'vulnerability' if count == 1 else 'vulnerabilities'}"


def _print_way(console: Console, way: Way, where: str) -> None:
    print_indented(console, Text.assemble(way.evidence, (f"   {where}", "bob.dim")), 4)
    _print_why(console, way)


def _print_why(console: Console, way: Way) -> None:
    found = repair_of(way, Path())
    print_indented(console, found.moment, 6, "bob.dim")
    if found.behind:
        print_indented(console, found.behind, 6)
    for one in found.relied_on:
        beside = "".join(f"   {said}" for said in one.beside)
        print_indented(console, Text.assemble(one.sentence, (beside, "bob.dim")), 6)
    if found.more:
        print_indented(console, found.more, 6, "bob.dim")
