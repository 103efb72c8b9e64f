"""The answers to a quick question for a terminal: of each expectation, whether it holds, and the ways to break it.

Everything is printed to a rich Console whose owner says which colours the styles ``bob.*`` have.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from bob.expect.answers import Answer
from bob.expect.document import Tried
from bob.report.broken import broken
from bob.report.counts import compact, explored, plural
from bob.report.nearby import nearby, witness_command
from bob.report.rows import style
from bob.report.trimmed import Trimmed
from bob.result import States, Verdict
from bob.workload.language import write_one
from bob.workload.operations import At

WHEN = {
    At.END: "the crash comes after the last operation has returned",
    At.ANY: "the crash comes anywhere after the first operation was called",
}
HOLDS_MEANS = "holds: no explored crash state breaks it. It is no proof."
NEEDS_NO_CRASH = "it does not hold even where nothing is lost: is it what was meant?"


def print_answers(console: Console, tried: Tried, run: Path) -> None:
    """Print ``tried``, whose witnesses are in the folder ``run``."""
    made, model = tried.configuration, tried.model
    options = [f"mkfs {made.mkfs_options}"] if made.mkfs_options else []
    told = ", ".join([*options, f"mounted {tried.mount}"])
    title = Text.assemble((made.name, "bob.title"), (f"   {told}", "bob.dim"))
    console.print(Trimmed(broken(title, console.width)))
    for number, operation in enumerate(tried.workload.operations, start=1):
        _print(console, Text(f"op{number}  {write_one(operation)}"), 2)
    console.print()
    for answer, witnesses in zip(tried.answers, tried.witnesses, strict=True):
        _print_answer(console, tried, answer, witnesses, run)
        console.print()
    if tried.unmountable.states:
        what = f"! {plural(tried.unmountable.states, 'crash state')} could not be mounted, and count for nothing above"
        _print(console, Text(what, "bob.unmountable"), 0)
        _print(console, Text(tried.unmountable.error or ""), 4)
        _print_command(console, run, tried.unmountable.witness)
        console.print()
    for note in tried.notes:
        _print(console, Text(f"note: {note}", "bob.dim"), 0)
    cache = "volatile write cache" if model.write_cache.value == "volatile" else "no write cache"
    foot = (
        f"{WHEN[tried.at]}; finish {tried.workload.finish.name}",
        f"explored: {explored(tried.states)}, by {plural(tried.states.mounted, 'mount')}",
        f"kernel {tried.environment.kernel}, {cache}, writes of {model.atomic_write_bytes:,} bytes are atomic",
        f"run {nearby(run)}",
    )
    for line in foot:
        _print(console, Text(line, "bob.dim"), 0)
    if any(answer.verdict is Verdict.HOLDS for answer in tried.answers) and tried.states.exhaustive != "sectors":
        _print(console, Text(HOLDS_MEANS, "bob.dim"), 0)


def _print_answer(console: Console, tried: Tried, answer: Answer, witnesses: tuple[str, ...], run: Path) -> None:
    _print(console, Text(answer.expectation.line, "bob.title"), 0)
    match answer.verdict:
        case Verdict.FAILS:
            ways = f", in {plural(len(answer.ways), 'way')}" if len(answer.ways) > 1 else ""
            _print(console, Text(f"× breaks in {plural(answer.states, 'crash state')}{ways}", style(answer.verdict)), 0)
            if answer.needs_no_crash:
                _print(console, Text(NEEDS_NO_CRASH, "bob.unknown"), 2)
        case Verdict.HOLDS:
            _print(console, Text(held(tried.states, tried.unmountable.states), style(answer.verdict)), 0)
        case _:
            _print(console, Text(f"? {answer.reason}", style(answer.verdict)), 0)
    for way, path in zip(answer.ways, witnesses, strict=False):
        _print(console, Text.assemble(way.evidence, (f"   in {plural(way.states, 'crash state')}", "bob.dim")), 4)
        _print_command(console, run, path)
    if left := answer.ways[len(witnesses) :]:
        more = sum(way.states for way in left)
        words = (
            f"and {plural(len(left), 'more way')} in {plural(more, 'crash state')}: --witnesses N shows more of them"
        )
        _print(console, Text(words, "bob.dim"), 4)


def held(states: States, unmountable: int) -> str:
    """In how many of the legal crash states an expectation holds that none of the explored ones breaks."""
    mounted = " that can be mounted" if unmountable else ""
    if states.exhaustive == "sectors":
        return f"holds in all {compact(states.legal_sectors)} legal crash states"
    return f"holds in all explored legal crash states{mounted}: {explored(states)}"


def _print(console: Console, text: Text, indent: int) -> None:
    console.print(Trimmed(Padding(text, (0, 0, 0, indent))))


def _print_command(console: Console, run: Path, witness: str | None) -> None:
    """The command on a line of its own, however long: one that is broken up cannot be pasted."""
    if witness:
        console.print(Text(" " * 4 + witness_command(run, witness), "bob.command"), soft_wrap=True)
