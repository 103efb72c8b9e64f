"""The printing of the story of a witness (a recorded crash that breaks a claim). The story begins with one sentence
that sums up the violation. It continues with the operations, the time line of the disk (its events in order), and the
evidence (the damage after the crash). The caller makes the Console (of the library rich), and sets the colours of the
styles ``bob.*``. A reader without colours misses nothing, since words say the same."""

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from bob.crash.caches import WriteCache
from bob.report.lines import print_indented
from bob.story.timeline import CallEvent, CrashTimeline, Fate, FlushEvent, ProgramCallEvent, StoryEvent, WriteEvent
from bob.text import plural, size
from bob.trace.model import SECTOR_BYTES
from bob.witness.document import Witness
from bob.workload.language import write_one

MARKS = {Fate.DURABLE: "■ durable", Fate.KEPT: "▣ kept", Fate.TORN: "◪ torn", Fate.LOST: "□ lost"}
STYLES = {Fate.DURABLE: "bob.holds", Fate.KEPT: "bob.command", Fate.TORN: "bob.unknown", Fate.LOST: "bob.fails"}
LACKS = {"missing": "missing after the crash", "partly": "there in part"}
LEGEND = "The others were pending: kept ones reached the disk all the same, torn ones in part, lost ones did not."


def print_story(console: Console, witness: Witness, replay: str) -> None:
    """Print the story of ``witness``. ``replay`` is the command that shows the violation again."""
    made = witness.configuration
    options = ", ".join(word for word in (made.mkfs_options, made.mount_options) if word)
    console.print(Text(f"{witness.title} on {made.name}" + (f" ({options})" if options else ""), "bob.title"))
    print_indented(console, f"kernel {witness.kernel}, {witness.work.title}", 0)
    for number, earlier in enumerate(witness.earlier, start=1):
        print_indented(console, f"crash {number}, of {earlier.title}: {earlier.sentence}", 0)
    console.print()
    print_indented(console, witness.sentence, 0, "bob.title")
    console.print()
    if witness.operations:
        _print_operations(console, witness)
    _print_timeline(console, witness.timeline, witness.model.write_cache)
    console.print(Text("found after the crash", "bob.heading"))
    print_indented(console, f"× {witness.evidence}", 2, "bob.fails")
    heading, asked = witness.claim.asks
    if asked:
        console.print(Text(heading, "bob.heading"))
        print_indented(console, asked, 2)
    console.print()
    console.print(Text(replay, "bob.command"), soft_wrap=True)


def _print_operations(console: Console, witness: Witness) -> None:
    console.print(Text("operations", "bob.heading"))
    for number, operation in enumerate(witness.operations, start=1):
        note = f" <- {said}" if (said := witness.claim.role(number)) else ""
        print_indented(console, Text.assemble(f"{number:>3} {write_one(operation)}", (note, "bob.dim")), 0)
    finish = witness.workload.finish
    ending = "; ".join(map(write_one, finish.operations)) or "until everything is written"
    print_indented(console, f"    then {ending}", 0, "bob.dim")
    console.print()


def _print_timeline(console: Console, line: CrashTimeline, cache: WriteCache) -> None:
    console.print(Text("what the disk was sent, and what the crash made of it", "bob.heading"))
    if line.left_out:
        print_indented(console, f"{plural(line.left_out, 'earlier write')}, all durable, not listed", 2, "bob.dim")
    for event in line.events:
        _print_event(console, event)
    print_indented(console, Rule(f"crash at {at(line.crash)}", characters="=", style="bob.fails"), 2)
    durable = f"durable: {cache.why_durable[:1].lower()}{cache.why_durable[1:]}."
    print_indented(console, f"{durable} {LEGEND}", 2, "bob.dim")
    console.print()


def _print_event(console: Console, event: StoryEvent) -> None:
    match event:
        case CallEvent():
            ended = "" if event.end is not None else ", still under way at the crash"
            said = f"{at(event.seconds):>11}  operation {event.number} is called{ended}"
            print_indented(console, said, 2, "bob.title")
        case ProgramCallEvent():
            parts = ((event.words, "bob.title"), (called(event), "bob.fails"))
            print_indented(console, Text.assemble(f"{at(event.seconds):>11}  ", *parts), 2)
        case FlushEvent():
            done = f"done at {at(event.end)}" if event.end is not None else "under way at the crash"
            said = f"flush{of_node(event)} at {at(event.seconds)}, {done}"
            print_indented(console, Rule(said, characters="-", style="bob.dim"), 2)
        case WriteEvent():
            row = Table.grid(padding=(0, 2, 0, 0))
            row.add_column(width=11, justify="right")
            row.add_column(width=9)
            row.add_column()
            row.add_row(at(event.seconds), Text(MARKS[event.fate], STYLES[event.fate]), Text(words(event)))
            print_indented(console, row, 2)


def called(event: ProgramCallEvent) -> str:
    """Return a note for a system call in the time line: the effect of the call is missing after the crash, or is there
    only in part. Return an empty text if nothing is missing."""
    return f"   {lacks}" if (lacks := LACKS.get(event.there)) else ""


def of_node(event: WriteEvent | FlushEvent) -> str:
    """Return the cluster's member whose disk gets a write or a flush, as words. Return "" if there is no cluster."""
    return "" if event.node is None else f" of node {event.node}"


def words(event: WriteEvent) -> str:
    """Return a write in words: "journal commit block, 4 KiB at sector 96 (jbd2/dm-0-8, FUA)"."""
    by = ", ".join(word for word in (event.task, "FUA" if event.fua else "") if word)
    what = event.what if event.count == 1 else f"{event.what} ({plural(event.count, 'write')})"
    kept = f"; there: {event.kept}" if event.kept else ""
    place = f"{what}, {size(event.sectors * SECTOR_BYTES)} at sector {event.sector:,}{of_node(event)}"
    decides = " <- the violation depends on it" if event.decides else ""
    return place + (f" ({by})" if by else "") + kept + decides


def at(seconds: float) -> str:
    """Return a time in words: below one second in milliseconds, otherwise in seconds."""
    return f"{seconds * 1000:.3f} ms" if abs(seconds) < 1 else f"{seconds:.3f} s"
