"""The answers to a quick question for a terminal: of each expectation, whether it holds, and the ways to break it.

Everything is printed to a rich Console whose owner says which colours the styles ``bob.*`` have.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from bob.claim.verdict import Verdict
from bob.crash.coverage import States
from bob.judge.answers import Answer, Way
from bob.judge.tried import Tried
from bob.report.counts import explored
from bob.report.lines import Trimmed, broken, print_indented
from bob.report.nearby import nearby, witness_command
from bob.report.rows import style
from bob.text import compact, plural
from bob.workload.language import write_one
from bob.workload.operations import At

WHEN = {
    At.END: "the crash comes after the last operation has returned",
    At.ANY: "the crash comes anywhere after the first operation was called",
}
HOLDS_MEANS = "holds: no explored crash state breaks it. It is no proof."
LINES_OF_A_FALL = 12
"""So many lines of the console are shown where the kernel panicked or hung; the result document has more."""
NEEDS_NO_CRASH = (
    "the state with every write there breaks it, too: either it is not what was meant, or the file system loses it "
    "without the loss of any write"
)


def print_answers(console: Console, tried: Tried, run: Path) -> None:
    """Print ``tried``, whose witnesses are in the folder ``run``."""
    made, model = tried.configuration, tried.model
    options = [f"mkfs {made.mkfs_options}"] if made.mkfs_options else []
    told = ", ".join([*options, *([f"mounted {tried.mount}"] if tried.mount else [])])
    title = Text.assemble((made.name, "bob.title"), (f"   {told}", "bob.dim"))
    console.print(Trimmed(broken(title, console.width)))
    for number, operation in enumerate(tried.workload.operations, start=1):
        print_indented(console, Text(f"op{number}  {write_one(operation)}"), 2)
    console.print()
    for answer, witnesses in zip(tried.answers, tried.witnesses, strict=True):
        _print_answer(console, tried, answer, witnesses, run)
        console.print()
    if tried.unmountable.states:
        asked = any(answer.expectation.asks_of_mounts for answer in tried.answers)
        verb = "counts" if tried.unmountable.states == 1 else "count"
        counts = f"{verb} above only where mounts is asked" if asked else f"{verb} for nothing above"
        what = f"! {plural(tried.unmountable.states, 'crash state')} could not be mounted, and {counts}"
        print_indented(console, Text(what, "bob.unmountable"), 0)
        print_indented(console, Text(tried.unmountable.error or ""), 4)
        _print_command(console, run, tried.unmountable.witness)
        console.print()
    for part in tried.falls:
        assert part.fall is not None
        print_indented(console, Text(f"! {part.refused}", "bob.unmountable"), 0)
        for line in part.fall.lines[1:LINES_OF_A_FALL]:  # it has the first one already
            print_indented(console, Text(line), 4)
        console.print()
    for note in tried.notes:
        print_indented(console, Text(f"note: {note}", "bob.dim"), 0)
    foot = (
        f"{WHEN[tried.at]}",
        *_finishes(tried),
        f"kernel {tried.environment.kernel}{_in_real_time(tried)}, {model.words}",
        f"run {nearby(run)}",
    )
    for line in foot:
        print_indented(console, Text(line, "bob.dim"), 0)
    if any(answer.verdict is Verdict.HOLDS for answer in tried.answers) and tried.states.exhaustive != "sectors":
        print_indented(console, Text(HOLDS_MEANS, "bob.dim"), 0)


def _in_real_time(tried: Tried) -> str:
    """On which machine, where that is none that bob has booted."""
    on = tried.environment
    return f" of {on.image.partition(' ')[0]}, in real time" if on.clock == "real" else ""


def _finishes(tried: Tried) -> list[str]:
    """How much was explored, for each way to finish."""
    return [
        f"finish {part.finish.name}: "
        + (
            f"not recorded: {part.refused}"
            if part.refused
            else f"{explored(part.states)}, by {plural(part.states.mounted, 'mount')}"
        )
        for part in tried.finishes
    ]


def _print_answer(console: Console, tried: Tried, answer: Answer, witnesses: tuple[str, ...], run: Path) -> None:
    print_indented(console, Text(answer.expectation.line, "bob.title"), 0)
    match answer.verdict:
        case Verdict.FAILS:
            ways = f"can break in {plural(len(answer.ways), 'way')}" if len(answer.ways) > 1 else "breaks"
            print_indented(
                console, Text(f"× {ways}, in {plural(answer.states, 'crash state')}", style(answer.verdict)), 0
            )
            if answer.each:
                print_indented(console, Text(by_finish(tried, answer), "bob.dim"), 2)
            if answer.needs_no_crash:
                print_indented(console, Text(NEEDS_NO_CRASH, "bob.unknown"), 2)
        case Verdict.HOLDS:
            unmountable = 0 if answer.expectation.asks_of_mounts else tried.unmountable.states
            print_indented(console, Text(held(tried.states, unmountable), style(answer.verdict)), 0)
        case _:
            print_indented(console, Text(f"? {answer.reason}", style(answer.verdict)), 0)
    for way, path in zip(answer.ways, witnesses, strict=False):
        where = f"   in {plural(way.states, 'crash state')}" + shown_by(tried, answer, way)
        print_indented(console, Text.assemble(way.evidence, (where, "bob.dim")), 4)
        _print_command(console, run, path)
    if left := answer.ways[len(witnesses) :]:
        more = sum(way.states for way in left)
        words = (
            f"and {plural(len(left), 'more way')} in {plural(more, 'crash state')}: --witnesses N shows more of them"
        )
        print_indented(console, Text(words, "bob.dim"), 4)


def by_finish(tried: Tried, answer: Answer) -> str:
    """What each recording says of an expectation that breaks in one of them."""
    said = []
    for part, one in zip(tried.finishes, answer.each, strict=True):
        match one.verdict:
            case Verdict.FAILS:
                what = f"breaks in {compact(one.states)}"
            case Verdict.HOLDS:
                what = "holds"
            case _:
                what = f"not known ({one.reason})"
        said.append(f"finish {part.finish.name}: {what}")
    return "; ".join(said)


def shown_by(tried: Tried, answer: Answer, way: Way) -> str:
    """The finishes whose recordings show ``way``, that of its witness first; nothing where there is one recording."""
    if not answer.each:
        return ""
    names = [part.finish.name for part, count in zip(tried.finishes, answer.counts(way), strict=True) if count]
    first = tried.finishes[way.place].finish.name
    return f", finish {', '.join(dict.fromkeys([first, *names]))}"


def held(states: States, unmountable: int) -> str:
    """In how many of the legal crash states an expectation holds that none of the explored ones breaks."""
    mounted = " that can be mounted" if unmountable else ""
    if states.exhaustive == "sectors":
        return f"holds in all {compact(states.legal_sectors)} legal crash states"
    return f"holds in all explored legal crash states{mounted}: {explored(states)}"


def _print_command(console: Console, run: Path, witness: str | None) -> None:
    """The command on a line of its own, however long: one that is broken up cannot be pasted."""
    if witness:
        console.print(Text(" " * 4 + witness_command(run, witness), "bob.command"), soft_wrap=True)
