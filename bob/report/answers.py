"""The printing of the answers to a quick question (`bob try`): whether each expectation (a condition on the tree after
a crash) holds, and the ways to break it. A *witness* is a file about one crash state that breaks an expectation. A
*finish* is how the workload ends, such as with an fsync. Each finish has its own recording."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from bob.answer.answer import Answer, ByRecording, Way
from bob.answer.result import Result, SubjectResult
from bob.claim.expectation.language import parse
from bob.claim.verdict import Verdict
from bob.report.counts import explored
from bob.report.lines import print_command, print_indented, print_title
from bob.report.nearby import nearby
from bob.report.rows import style
from bob.report.table import options
from bob.text import compact, plural
from bob.workload.operations import At
from bob.workload.plain import WorkloadDocument

_WHEN = {
    At.END: "the crash comes after the last operation has returned",
    At.ANY: "the crash comes anywhere after the first operation was called",
}
_WHEN_IMPORTED = "the crash comes at any entry of the log that was asked for"
HOLDS_MEANS = "holds: no explored crash state breaks it. This is not a proof."
LINES_OF_A_FALL = 12  # printed lines of the console after a panic or hang; the result has more of them
NEEDS_NO_CRASH = (
    "the state with every write breaks it, too: either you expected something else, or the file system loses it "
    "even if the disk loses nothing"
)


def print_answers(console: Console, result: Result, run: Path) -> None:
    """Print the answers to a quick question. ``run`` is the folder that has their witnesses."""
    [subject], asked = result.subjects, result.workload
    assert asked is not None
    told = ", ".join(options(subject.mkfs_options, subject.effective_mount_options))
    print_title(console, (subject.name, "bob.title"), (f"   {told}", "bob.dim"))
    for number, operation in enumerate(asked.operations, start=1):
        print_indented(console, f"op{number}  {operation}", 2)
    console.print()
    for answer in subject.answers:
        _print_answer(console, answer, run)
        console.print()
    if (refused := subject.unmountable) is not None:
        asks = asks_of_mounts(subject)
        counts = "only expectations with `mounts` count them" if asks else "the answers above do not count them"
        what = f"! {plural(refused.states, 'crash state')} could not be mounted; {counts}"
        print_indented(console, what, 0, "bob.unmountable")
        print_indented(console, refused.evidence, 4)
        print_command(console, run, refused.witness)
        console.print()
    for part in subject.falls:
        assert part.fall is not None
        print_indented(console, f"! {part.reason}", 0, "bob.unmountable")
        for line in part.fall.lines[1:LINES_OF_A_FALL]:  # the reason already has the first line
            print_indented(console, line, 4)
        console.print()
    on = result.environment
    in_real_time = f" of {on.image.partition(' ')[0]}, in real time" if on.clock == "real" else ""
    states = subject.answers[0].states
    holds = any(answer.verdict is Verdict.HOLDS for answer in subject.answers) and states.exhaustive != "sectors"
    for line in (
        *(f"note: {note}" for note in subject.notes),
        when(asked),
        *(f"finish {part.finish}: {explored_of(part)}" for part in subject.answers[0].recordings),
        f"kernel {on.kernel}{in_real_time}, {result.model.words}",
        f"run {nearby(run)}",
        *([HOLDS_MEANS] if holds else []),
    ):
        print_indented(console, line, 0, "bob.dim")


def when(asked: WorkloadDocument) -> str:
    """Return in words when crashes of the recorded workload may come."""
    return _WHEN_IMPORTED if asked.workload.is_imported else _WHEN[asked.at]


def asks_of_mounts(subject: SubjectResult) -> bool:
    """Return whether some expectation about ``subject`` asks, by the word ``mounts``, whether a crash state can be
    mounted."""
    return any(parse(answer.name).asks_of_mounts for answer in subject.answers)


def explored_of(part: ByRecording) -> str:
    """Return in words how much of a recording's crash states bob explored. If the recording is missing, return the
    reason."""
    if not part.is_recorded:
        return f"not recorded: {part.reason}"
    return f"{explored(part.states)}, by {plural(part.states.mounted, 'mount')}"


def _print_answer(console: Console, answer: Answer, run: Path) -> None:
    print_indented(console, parse(answer.name).line, 0, "bob.title")
    mark = {Verdict.FAILS: "× ", Verdict.HOLDS: ""}.get(answer.verdict, "? ")
    print_indented(console, f"{mark}{says(answer)}", 0, style(answer.verdict))
    if answer.verdict is Verdict.FAILS:
        if len(answer.recordings) > 1:
            print_indented(console, by_finish(answer), 2, "bob.dim")
        if answer.needs_no_crash:
            print_indented(console, NEEDS_NO_CRASH, 2, "bob.unknown")
    shown = [way for way in answer.ways if way.witness is not None]
    for way in shown:
        where = f"   in {plural(way.states, 'crash state')}" + shown_by(answer, way)
        print_indented(console, Text.assemble(way.evidence, (where, "bob.dim")), 4)
        print_command(console, run, way.witness)
    if left := answer.ways[len(shown) :]:
        more = f"and {plural(len(left), 'more way')} in {plural(sum(way.states for way in left), 'crash state')}"
        print_indented(console, f"{more}: --witnesses N shows more of them", 4, "bob.dim")


def says(answer: Answer) -> str:
    """Return in one line whether the expectation of ``answer`` holds."""
    match answer.verdict:
        case Verdict.FAILS:
            ways = f"can break in {plural(len(answer.ways), 'way')}" if len(answer.ways) > 1 else "breaks"
            return f"{ways}, in {plural(answer.violations, 'crash state')}"
        case Verdict.HOLDS:
            return held(answer)
    return answer.reason or "not known"


def by_finish(answer: Answer) -> str:
    """Return in words, for each recording, whether the expectation of ``answer`` holds in its crash states. In this
    text, a recording is named by its finish."""
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
    """Return a phrase that names the finishes of the recordings whose crash states break the expectation in the way
    ``way``. The recording with the witness of ``way`` comes first. Return an empty text if ``answer`` has only one
    recording."""
    if len(answer.recordings) < 2:
        return ""
    finishes = [one.finish for one in answer.recordings]
    names = [name for name, count in zip(finishes, way.by_recording, strict=True) if count]
    return f", finish {', '.join(dict.fromkeys([finishes[way.place], *names]))}"


def held(answer: Answer) -> str:
    """Return a phrase that says in how many legal crash states (those that a crash may leave) the expectation of
    ``answer`` holds."""
    states = answer.states
    if states.exhaustive == "sectors":
        return f"holds in all {compact(states.legal_sectors)} legal crash states"
    mounted = " that can be mounted" if states.unmountable and not parse(answer.name).asks_of_mounts else ""
    return f"holds in all explored legal crash states{mounted}: {explored(states)}"
