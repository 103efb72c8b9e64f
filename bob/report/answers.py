"""The answers to a quick question for a terminal: of each expectation, whether it holds, and the ways to break it.

Everything is printed to a rich Console whose owner says which colours the styles ``bob.*`` have.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from bob.answer.answer import Answer, ByRecording, Way
from bob.answer.result import Result, SubjectResult
from bob.claim.expectation.language import parse
from bob.claim.verdict import Verdict
from bob.report.counts import explored
from bob.report.lines import Trimmed, broken, print_indented
from bob.report.nearby import nearby, witness_command
from bob.report.rows import style
from bob.text import compact, plural
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


def print_answers(console: Console, result: Result, run: Path) -> None:
    """Print the answers to a quick question, whose witnesses are in the folder ``run``."""
    [subject], asked = result.subjects, result.workload
    assert asked is not None
    options = [f"mkfs {subject.mkfs_options}"] if subject.mkfs_options else []
    mounted = subject.effective_mount_options
    told = ", ".join([*options, *([f"mounted {mounted}"] if mounted else [])])
    title = Text.assemble((subject.name, "bob.title"), (f"   {told}", "bob.dim"))
    console.print(Trimmed(broken(title, console.width)))
    for number, operation in enumerate(asked.operations, start=1):
        print_indented(console, Text(f"op{number}  {operation}"), 2)
    console.print()
    for answer in subject.answers:
        _print_answer(console, answer, run)
        console.print()
    if (refused := subject.unmountable) is not None:
        verb = "counts" if refused.states == 1 else "count"
        counts = f"{verb} above only where mounts is asked" if asks_of_mounts(subject) else f"{verb} for nothing above"
        what = f"! {plural(refused.states, 'crash state')} could not be mounted, and {counts}"
        print_indented(console, Text(what, "bob.unmountable"), 0)
        print_indented(console, Text(refused.evidence), 4)
        _print_command(console, run, refused.witness)
        console.print()
    for part in subject.falls:
        assert part.fall is not None
        print_indented(console, Text(f"! {part.reason}", "bob.unmountable"), 0)
        for line in part.fall.lines[1:LINES_OF_A_FALL]:  # it has the first one already
            print_indented(console, Text(line), 4)
        console.print()
    for note in subject.notes:
        print_indented(console, Text(f"note: {note}", "bob.dim"), 0)
    foot = (
        f"{WHEN[asked.at]}",
        *_finishes(subject),
        f"kernel {result.environment.kernel}{_in_real_time(result)}, {result.model.words}",
        f"run {nearby(run)}",
    )
    for line in foot:
        print_indented(console, Text(line, "bob.dim"), 0)
    states = subject.answers[0].states
    if any(answer.verdict is Verdict.HOLDS for answer in subject.answers) and states.exhaustive != "sectors":
        print_indented(console, Text(HOLDS_MEANS, "bob.dim"), 0)


def asks_of_mounts(subject: SubjectResult) -> bool:
    """Return whether an expectation asks whether crash states mount."""
    return any(parse(answer.name).asks_of_mounts for answer in subject.answers)


def _in_real_time(result: Result) -> str:
    """On which machine, where that is none that bob has booted."""
    on = result.environment
    return f" of {on.image.partition(' ')[0]}, in real time" if on.clock == "real" else ""


def _finishes(subject: SubjectResult) -> list[str]:
    """How much was explored, for each way to finish."""
    return [f"finish {part.finish}: {explored_of(part)}" for part in subject.answers[0].recordings]


def explored_of(part: ByRecording) -> str:
    """Return how much was explored of a recording, or why there is none."""
    if not part.is_recorded:
        return f"not recorded: {part.reason}"
    return f"{explored(part.states)}, by {plural(part.states.mounted, 'mount')}"


def _print_answer(console: Console, answer: Answer, run: Path) -> None:
    print_indented(console, Text(parse(answer.name).line, "bob.title"), 0)
    match answer.verdict:
        case Verdict.FAILS:
            print_indented(console, Text(f"× {says(answer)}", style(answer.verdict)), 0)
            if len(answer.recordings) > 1:
                print_indented(console, Text(by_finish(answer), "bob.dim"), 2)
            if answer.needs_no_crash:
                print_indented(console, Text(NEEDS_NO_CRASH, "bob.unknown"), 2)
        case Verdict.HOLDS:
            print_indented(console, Text(says(answer), style(answer.verdict)), 0)
        case _:
            print_indented(console, Text(f"? {answer.reason}", style(answer.verdict)), 0)
    shown = [way for way in answer.ways if way.witness is not None]
    for way in shown:
        where = f"   in {plural(way.states, 'crash state')}" + shown_by(answer, way)
        print_indented(console, Text.assemble(way.evidence, (where, "bob.dim")), 4)
        _print_command(console, run, way.witness)
    if left := answer.ways[len(shown) :]:
        more = sum(way.states for way in left)
        words = (
            f"and {plural(len(left), 'more way')} in {plural(more, 'crash state')}: --witnesses N shows more of them"
        )
        print_indented(console, Text(words, "bob.dim"), 4)


def says(answer: Answer) -> str:
    """Return the answer to an expectation in a line."""
    match answer.verdict:
        case Verdict.FAILS:
            ways = f"can break in {plural(len(answer.ways), 'way')}" if len(answer.ways) > 1 else "breaks"
            return f"{ways}, in {plural(answer.violations, 'crash state')}"
        case Verdict.HOLDS:
            return held(answer)
    return answer.reason or "not known"


def by_finish(answer: Answer) -> str:
    """What each recording says of an expectation that breaks in one of them."""
    said = []
    for one in answer.recordings:
        match one.verdict:
            case Verdict.FAILS:
                what = f"breaks in {compact(one.violations)}"
            case Verdict.HOLDS:
                what = "holds"
            case _:
                what = f"not known ({one.reason})"
        said.append(f"finish {one.finish}: {what}")
    return "; ".join(said)


def shown_by(answer: Answer, way: Way) -> str:
    """The finishes whose recordings show ``way``, that of its witness first; nothing where there is one recording."""
    if len(answer.recordings) < 2:
        return ""
    finishes = [one.finish for one in answer.recordings]
    names = [name for name, count in zip(finishes, way.by_recording, strict=True) if count]
    return f", finish {', '.join(dict.fromkeys([finishes[way.place], *names]))}"


def held(answer: Answer) -> str:
    """In how many of the legal crash states an expectation holds that none of the explored ones breaks."""
    states = answer.states
    mounted = " that can be mounted" if states.unmountable and not parse(answer.name).asks_of_mounts else ""
    if states.exhaustive == "sectors":
        return f"holds in all {compact(states.legal_sectors)} legal crash states"
    return f"holds in all explored legal crash states{mounted}: {explored(states)}"


def _print_command(console: Console, run: Path, witness: str | None) -> None:
    """The command on a line of its own, however long: one that is broken up cannot be pasted."""
    if witness:
        console.print(Text(" " * 4 + witness_command(run, witness), "bob.command"), soft_wrap=True)
