"""Record a program's workload on one configuration (a file system with its options). Then bob tries the program's
checker on trees with a known right answer. If an answer is wrong, bob does not use the checker."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from bob import documents
from bob.agent.client import Agent, AgentBroken, what_happened
from bob.agent.loss import GuestLost, KernelFell, LossCause
from bob.agent.shared import HOME, ROOT, WORLD
from bob.catalogue.request import ProbeRequest
from bob.counts import Count
from bob.crash.device import DeviceModel
from bob.crash.legal import count_writes, growth_points
from bob.errors import MalformedError, UsageError
from bob.guest.spec import Clock
from bob.observe.observation import Observation
from bob.observe.session import session_of
from bob.program.answer import CheckerAnswer, CheckerRun
from bob.program.effect_order import in_effect_order
from bob.program.libc import check_libc
from bob.program.program import EMPTIED, Program
from bob.program.stack import from_chosen, located
from bob.program.strace import PASSING, SystemCall, name_of, parse
from bob.program.transcript import ProgramCase, Transcript
from bob.program.untraced import mapped
from bob.progress import Progress
from bob.protocol.arguments import MAPPED
from bob.record.base import make_program_base
from bob.record.recorder import RecordedProgram, put_program, record_program, trace_frames
from bob.run.pool import ProgramGuests, clock_to_check
from bob.schema import Document, encode
from bob.store.files import read_document, read_raw, reading, write_document, write_whole
from bob.store.run_directory import RunDirectory
from bob.story.timeline import ProgramCallEvent
from bob.subject import Subject
from bob.subject.subject import ConfigurationDocument
from bob.trace.base import Base
from bob.trace.timeline import parse_timeline

T = TypeVar("T")
TOLD = "told.json"  # the output of a recorded program, with its times
SCRIPTS = "setup ", "workload "  # a message that begins so says that this script failed
ABOUT_SCRIPTS = (
    "the script runs as root in a guest, in the file system under test, with the packages that app.toml names; "
    "the message above has its stderr"
)
ABOUT_NODES = (
    "nodes run as root until bob kills them, each with its own network, processes, temporary files and disk (all else "
    "is read-only), with the packages that cluster.toml names"
)


@dataclass(frozen=True, slots=True)
class Preflight:
    """Numbers about the recording of a program. The program wrote ``outputs`` pieces of output, with ``told`` bytes in
    all, and made ``calls`` system calls that bob traced. A window has the crashes between two pieces of output; there
    are ``windows`` of them. ``states`` is the number of legal crash states (those that the disk may leave) in all
    windows, without torn writes."""

    configuration: str
    outputs: int
    told: int
    calls: int
    windows: int
    states: Count


class AppCheckDocument(Document, frozen=True, tag_field="schema", tag="bob.app-check/1"):
    """The JSON that `bob app check` prints if bob can record the program and trust its checker."""

    program: str
    configurations: tuple[Preflight, ...]


def preflight_of(case: ProgramCase) -> Preflight:
    parts, transcript = case.windows, case.transcript
    states = sum(count_writes(growth_points(window.trace, case.plan.model)) for window in parts)
    calls = sum(call.name not in PASSING for call in transcript.calls)
    return Preflight(case.name, len(parts) - 1, len(transcript.output), calls, len(parts), states)


def record_program_run(
    guests: ProgramGuests,
    program: Program,
    request: ProbeRequest,
    run: RunDirectory | None = None,
    number: int = 0,
    *,
    stores: bool = False,
    like: ProgramCase | None = None,
) -> ProgramCase:
    """Record the program's workload on the requested configuration, and keep the recording in ``run`` under ``number``.
    Raise UsageError if the setup or the workload fails or does not end, and RecordingError if the recording is
    inconsistent.

    With ``stores``, the recording has the program's stores to files that it maps into memory. A trace of stores slows
    down each call. Therefore bob first records the calls alone. If some of them make shared mappings, bob records the
    program again, with its stores. ``like`` is an earlier recording of the same program. If ``like`` has such stores,
    bob traces them from the start, and records the program only once."""
    made, program, progress = request.configuration, replace(program, pace=request.pace), guests.progress
    guests.world(program)  # building the disk of packages may take minutes, with a message of its own
    progress.step(f"recording the workload of {program.name} on {request.pace.of(made.name)}")

    def record_in_a_guest(watches: bool) -> tuple[Base, RecordedProgram]:
        def recording(agent: Agent) -> tuple[Base, RecordedProgram]:
            check_libc(program, agent.about.get("libc", ""), guests.image.name)
            put_program(agent, program)
            base = make_program_base(agent, made, program)
            completion = request.model.completion
            return base, record_program(agent, made, base, program, completion=completion, stores=watches)

        try:
            return guests.ask(program, Clock.VIRTUAL, recording)
        except GuestLost as lost:
            raise _fallen(lost, program, run) from None

    watches = stores and like is not None and any(call.name == MAPPED for call in like.transcript.calls)
    try:
        base, recorded = record_in_a_guest(watches)
        if stores and not watches and mapped(parse(recorded.calls), ROOT):
            progress.step(f"recording {program.name} again, with its stores through mappings")
            base, recorded = record_in_a_guest(True)
    except UsageError as refused:
        if refused.message.startswith(SCRIPTS):
            raise UsageError(refused.message, hint=ABOUT_NODES if program.nodes else ABOUT_SCRIPTS) from None
        raise
    case = case_of(made, program, base, recorded, request.model)
    if run is not None:
        _keep(run, number, case, recorded)
    progress.recorded(program.name)
    return case


def kept_case(program: Program, request: ProbeRequest, run: RunDirectory, number: int) -> ProgramCase | None:
    """Return the recording that ``run`` keeps under ``number``, or None if it lacks a whole one. Raise StoreError if
    its files are damaged."""
    made, program = request.configuration, replace(program, pace=request.pace)
    folder = run.folder(number, program)
    if not (folder / TOLD).is_file():  # bob writes this file last
        return None
    told = read_document(folder / TOLD, required=True)
    with reading(folder / TOLD):
        calls = read_raw(folder / "calls", told["checksums"]).decode(errors="replace")
        output = "".join(text for _time, text in told["told"]).encode("latin-1")
        _work, base, recording = run.recording(folder)
        return case_of(
            made, program, run.base(base), RecordedProgram(recording, output, calls, told["pipe"]), request.model
        )


def _fallen(lost: GuestLost, program: Program, run: RunDirectory | None) -> GuestLost | KernelFell:
    """Return the error to raise after the guest was lost during a recording. If the kernel panicked or hung, return
    KernelFell, and write the console's output into ``run``. Otherwise return ``lost``."""
    if not lost.loss.is_by_kernel:
        return lost
    verb = "panicked" if lost.loss.cause is LossCause.PANICKED else "hung"
    hint = None
    if run is not None:
        path = run.path / "console.txt"
        write_whole(path, lost.loss.console.encode())
        hint = f"its console output is in {path}"
    return KernelFell(f"the kernel {verb} while {program.name} was recorded: {lost.loss.said}", hint=hint)


def frames_of(guests: ProgramGuests, case: ProgramCase) -> tuple[SystemCall, ...]:
    """Return the program's system calls, each with its stack frames. To get the frames, bob runs the program once more,
    in a new guest and only for this purpose. The frames serve for all recordings of the program."""
    program, made = case.work, case.subject
    guests.progress.step(f"looking at the stack frames of the calls of {program.name}")

    def tracing(agent: Agent) -> tuple[SystemCall, ...]:
        put_program(agent, program)
        return framed(agent, made, make_program_base(agent, made, program), program)

    return framed_if_any(lambda: guests.ask(program, Clock.VIRTUAL, tracing), guests.progress)


def framed_if_any(look: Callable[[], tuple[SystemCall, ...]], progress: Progress) -> tuple[SystemCall, ...]:
    """Call ``look``, and return the system calls with stack frames that it returns. If ``look`` fails, report that to
    ``progress``, and return (). bob then loses only the names of the functions that made the calls."""
    try:
        return look()
    except MalformedError as error:
        progress.step(f"the stack frames of the calls are not known: {error}")
    except (GuestLost, AgentBroken, UsageError) as failure:
        progress.step(f"the stack frames of the calls are not known: {what_happened(failure)}")
    return ()


def framed(agent: Agent, made: Subject, base: Base, program: Program) -> tuple[SystemCall, ...]:
    """Run ``program`` once more; the guest already has its files. Return its system calls with stack frames and source
    lines. In each stack, keep the innermost frame that matches a pattern of ``program.frames``, and its callers. If no
    frame matches, keep all. ``made`` is the configuration, and ``base`` the content of its disk at the start."""
    found = located(calls_of(trace_frames(agent, made, base, program)), program, HOME)
    return tuple(replace(call, stack=from_chosen(call.stack, program.frames)) for call in found)


def calls_of(text: str) -> tuple[SystemCall, ...]:
    """Return the system calls in strace's output ``text``. Leave out the chroot that bob itself makes to enter the tree
    for the program. A call of the program that looks the same is left out, too. Such a call changes nothing: in that
    tree, the directory is a link to the root."""
    return tuple(call for call in parse(text) if not (call.name == "chroot" and name_of(call.arguments[0]) == WORLD))


def case_of(
    subject: Subject, program: Program, base: Base, recorded: RecordedProgram, model: DeviceModel
) -> ProgramCase:
    """Return a recorded program with its legal crash states (a ProgramCase). The recording began on the disk ``base``.
    Raise RecordingError if the recording is inconsistent."""
    calls, line = in_effect_order(calls_of(recorded.calls)), parse_timeline(recorded.recording.timeline)
    transcript = Transcript.of(calls, recorded.pipe, recorded.output, line)
    return ProgramCase.of(subject, program, base, recorded.recording, model, transcript=transcript)


def tellings(transcript: Transcript, start: float) -> list[ProgramCallEvent]:
    """Return an event for each output of a program. The time of an event is in seconds after ``start``."""
    return [
        ProgramCallEvent(round(output.at.seconds - start, 6), f"tells {output.data.decode(errors='replace').strip()!r}")
        for output in transcript.outputs
    ]


def _keep(run: RunDirectory, number: int, case: ProgramCase, recorded: RecordedProgram) -> None:
    folder = run.folder(number, case.work)
    if not run.has_base(case.base.name):
        run.save_base(case.base)
    run.save_recording(folder, case.work, case.base, case.recording)
    write_whole(folder / "calls", recorded.calls.encode())
    more = {
        "checksums": {"calls": documents.checksum(recorded.calls.encode())},
        "configuration": encode(ConfigurationDocument.of(case.subject)),
        "pipe": case.transcript.pipe,
        "told": [[output.at.time, output.data.decode("latin-1")] for output in case.transcript.outputs],
    }
    write_document(folder / TOLD, more)


class Mistrust(NamedTuple):
    what: str
    answer: CheckerAnswer
    must_refuse: bool


def trust_trials(program: Program, first: T, last: T, output: bytes) -> list[CheckerRun[T]]:
    """Return the runs that test a checker before bob trusts it. The first run is on the tree after the setup
    (``first``), the second on the tree after a clean end (``last``). Each further run is on ``last`` with one kind of
    damage; ``program`` lists the kinds."""
    return [CheckerRun(first, b""), *(CheckerRun(last, output, spoiler) for spoiler in ("", *program.must_fail))]


def first_mistrust(program: Program, answers: Sequence[CheckerAnswer]) -> Mistrust | None:
    """Return the first wrong answer of a checker to the runs that :func:`trust_trials` lists, or None if all answers
    are right. A checker must accept intact trees, and refuse damaged ones."""
    spoilt = ["an emptied directory" if one == EMPTIED else f"the tree after {one}" for one in program.must_fail]
    for place, (what, answer) in enumerate(
        zip((_AFTER_SETUP, "the tree after a clean end", *spoilt), answers, strict=True)
    ):
        must_refuse, refuses = place > 1, answer.consequence is not None
        if refuses != must_refuse or (must_refuse and not answer.is_judgement):
            return Mistrust(what, answer, must_refuse)
    return None


_AFTER_SETUP = "the tree after the setup"
_AFTER = {
    (_AFTER_SETUP, False): ", with no output",
    ("an emptied directory", True): ", after all of the output",
}


def validate_checker(guests: ProgramGuests, case: ProgramCase) -> None:
    """Try the checker before bob trusts it. Raise UsageError with the checker's output if it refuses the tree after the
    setup or after a clean end. ``must_fail`` of the program names kinds of damage that the checker must refuse. Also
    raise UsageError if the checker accepts a tree with such damage."""
    program, plan = case.work, case.plan
    guests.progress.step(f"trying the checker of {program.name} on {case.name}")

    def ask(agent: Agent) -> list[CheckerAnswer]:
        put_program(agent, program)
        pristine, complete = (plan.composer.delta(state) for state in (plan.controls[0], plan.controls[-1]))
        runs = trust_trials(program, pristine, complete, case.transcript.output)
        return session_of(agent, case).check_program(runs, plan.composer.payload_since(0), program.seconds)

    answers = guests.ask(program, clock_to_check([program]), ask, is_spoilt=True)
    if (wrong := first_mistrust(program, answers)) is None:
        return
    what, answer = wrong.what + _AFTER.get((wrong.what, wrong.must_refuse), ""), wrong.answer
    said = f"{answer.evidence} (exit code {answer.code})"
    if not wrong.must_refuse:
        hint = "bob app check only tries the checker, and does not explore"
        raise UsageError(f"the checker refuses {what}: {said}", hint=hint)
    if answer.consequence is not None:
        raise UsageError(
            f"the checker does not judge {what}: {said}",
            hint="to refuse a tree, the checker must start, end in time, and not die of a signal",
        )
    raise UsageError(
        f"the checker accepts {what}, so it cannot detect a loss",
        hint="must_fail in app.toml lists what the checker must refuse; must_fail = [] if there is nothing",
    )


def look_at_ends(agent: Agent, case: ProgramCase) -> list[Observation]:
    """Mount the disk after the setup, and the disk after a clean end. Return two observations, one of each mount."""
    plan, session = case.plan, session_of(agent, case, closely=True)
    deltas = [plan.composer.delta(state) for state in (plan.controls[0], plan.controls[-1])]
    outcomes = session.observe(deltas, plan.composer.payload_since(0))
    return [session.findings.observation(outcome) for outcome in outcomes]
