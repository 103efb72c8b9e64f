"""A program's workload recorded on one configuration, and its checker tried before it is trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

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
from bob.image import Image, ensure_world
from bob.observe.observation import Observation
from bob.observe.session import CheckerRun, session_of
from bob.program.answer import CheckerAnswer
from bob.program.case import ProgramCase
from bob.program.effect_order import in_effect_order
from bob.program.functions import located
from bob.program.program import EMPTIED, Program
from bob.program.stack import from_chosen
from bob.program.strace import PASSING, SystemCall, name_of, parse
from bob.program.transcript import Transcript
from bob.program.untraced import mapped
from bob.progress import Progress
from bob.protocol.arguments import MAPPED
from bob.record.base import make_program_base
from bob.record.recorder import RecordedProgram, put_program, record_program, trace_frames
from bob.run.agents import AnyGuests, unshared
from bob.run.pool import each_in_a_guest
from bob.schema import Document, encode
from bob.store.files import write_document, write_whole
from bob.store.run_directory import RunDirectory
from bob.story.timeline import ProgramCallEvent
from bob.subject import Subject
from bob.subject.subject import ConfigurationDocument
from bob.trace.base import Base
from bob.trace.timeline import parse_timeline

SCRIPTS = "setup ", "workload "
"""What a refusal begins with that is a script's."""
ABOUT_SCRIPTS = (
    "it runs as root in a guest, in the file system under test, with the packages that app.toml names; "
    "what it prints to stderr stands here"
)


@dataclass(frozen=True, slots=True)
class Preflight:
    """What is known of a program before its crash states are explored: how much it told, in how many outputs, and how
    many system calls of it were traced; how many windows there are between outputs, with how many legal states of whole
    writes together."""

    configuration: str
    outputs: int
    told: int
    calls: int
    windows: int
    states: Count


class AppCheckDocument(Document, frozen=True, tag_field="schema", tag="bob.app-check/1"):
    """A program that can be explored: `bob app check`."""

    program: str
    configurations: tuple[Preflight, ...]


def preflight_of(case: ProgramCase) -> Preflight:
    """What is known of a program that was recorded."""
    parts, transcript = case.windows, case.transcript
    states = sum(count_writes(growth_points(window.trace, case.plan.model)) for window in parts)
    calls = sum(call.name not in PASSING for call in transcript.calls)
    return Preflight(case.name, len(parts) - 1, len(transcript.output), calls, len(parts), states)


def record_program_run(
    guests: AnyGuests,
    image: Image,
    program: Program,
    request: ProbeRequest,
    progress: Progress,
    run: RunDirectory | None = None,
    number: int = 0,
    *,
    stores: bool = False,
    like: ProgramCase | None = None,
) -> ProgramCase:
    """Record the program's workload, and keep that in ``run``. Where ``stores`` through mappings matter, and there are
    any, it is recorded once more, with these: that takes longer for each call. Where another recording, which it is
    ``like``, had any, it is recorded with these at once. Its calls have no frames: :func:`frames_of`.

    Raises UsageError where a script of it fails or does not end, RecordingError where the recording is not to be
    believed.
    """
    made, program = request.configuration, replace(program, pace=request.pace)
    world = ensure_world(image, program.packages, progress.step)
    progress.step(f"recording the workload of {program.name} on {request.pace.of(made.name)}")

    def recording(agent: Agent, watches: bool) -> tuple[Base, RecordedProgram]:
        put_program(agent, program)
        base = make_program_base(agent, made, program)
        return base, record_program(agent, made, base, program, completion=request.model.completion, stores=watches)

    def in_a_guest(watches: bool) -> tuple[Base, RecordedProgram]:
        items = [(program.name, watches)]
        try:
            [found] = each_in_a_guest(guests, image, Clock.VIRTUAL, items, recording, progress, world)
        except GuestLost as lost:
            raise _fallen(lost, program, run) from None
        return found

    watches = stores and like is not None and any(call.name == MAPPED for call in like.transcript.calls)
    try:
        base, recorded = in_a_guest(watches)
        if stores and not watches and mapped(parse(recorded.calls), ROOT):
            progress.step(f"recording what {program.name} stores through mappings")
            base, recorded = in_a_guest(True)
    except UsageError as refused:
        if refused.message.startswith(SCRIPTS):
            raise UsageError(refused.message, hint=ABOUT_SCRIPTS) from None
        raise
    case = case_of(made, program, base, recorded, request.model)
    if run is not None:
        _keep(run, number, case, recorded)
    progress.recorded(program.name)
    return case


def _fallen(lost: GuestLost, program: Program, run: RunDirectory | None) -> GuestLost | KernelFell:
    """A finding where the kernel says that it panicked or hangs, with the console in ``run``; else the loss itself."""
    if not lost.loss.is_by_kernel:
        return lost
    verb = "panicked" if lost.loss.cause is LossCause.PANICKED else "hung"
    hint = None
    if run is not None:
        path = run.path / "console.txt"
        write_whole(path, lost.loss.console.encode())
        hint = f"its console is in {path}"
    return KernelFell(f"the kernel {verb} while {program.name} was recorded: {lost.loss.said}", hint=hint)


def frames_of(guests: AnyGuests, image: Image, case: ProgramCase, progress: Progress) -> tuple[SystemCall, ...]:
    """:func:`framed` of a run in a guest of its own. Those of one such run are for all recordings of a program."""
    program, made = case.work, case.subject
    world = ensure_world(image, program.packages, progress.step)
    progress.step(f"looking at the frames of the calls of {program.name}")

    def tracing(agent: Agent, _item: None) -> tuple[SystemCall, ...]:
        put_program(agent, program)
        return framed(agent, made, make_program_base(agent, made, program), program)

    def look() -> tuple[SystemCall, ...]:
        items = [(program.name, None)]
        [calls] = each_in_a_guest(guests, image, Clock.VIRTUAL, items, tracing, progress, world)
        return calls

    return framed_if_any(look, progress)


def framed_if_any(look: Callable[[], tuple[SystemCall, ...]], progress: Progress) -> tuple[SystemCall, ...]:
    """The calls with frames that ``look`` gets; none, and why, where it fails: without frames only the names of
    functions are missing."""
    try:
        return look()
    except MalformedError as error:
        progress.step(f"the frames are not known: {error}")
    except (GuestLost, AgentBroken, UsageError) as failure:
        progress.step(f"the frames are not known: {what_happened(failure)}")
    return ()


def framed(agent: Agent, made: Subject, base: Base, program: Program) -> tuple[SystemCall, ...]:
    """The calls of another run of the ``program``, which the agent's guest must have, with their frames: with source
    lines, and from the frame on that the program chose."""
    found = located(calls_of(trace_frames(agent, made, base, program)), program, HOME)
    return tuple(replace(call, stack=from_chosen(call.stack, program.frames)) for call in found)


def calls_of(text: str) -> tuple[SystemCall, ...]:
    """The program's calls in what strace wrote: all but the one by which bob itself goes into the program's world.
    There that directory is a link to the root, so the program's own chroot to it would change nothing."""
    return tuple(call for call in parse(text) if not (call.name == "chroot" and name_of(call.arguments[0]) == WORLD))


def case_of(
    subject: Subject, program: Program, base: Base, recorded: RecordedProgram, model: DeviceModel
) -> ProgramCase:
    """The case of what was recorded on ``base``. Raises RecordingError where that is not to be believed."""
    calls, line = in_effect_order(calls_of(recorded.calls)), parse_timeline(recorded.recording.timeline)
    transcript = Transcript.of(calls, recorded.pipe, recorded.output, line)
    return ProgramCase.of(subject, program, base, recorded.recording, model, transcript=transcript)


def tellings(transcript: Transcript, start: float) -> list[ProgramCallEvent]:
    """What a program told, and when, on a clock that was 0 at ``start`` (seconds)."""
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
        "told": [[output.at.time, output.data.decode("latin-1")] for output in case.transcript.outputs],
    }
    write_document(folder / "told.json", more)


def validate_checker(guests: AnyGuests, image: Image, case: ProgramCase, progress: Progress) -> None:
    """Try the checker before it is trusted: raises UsageError, with what it printed, where it refuses what the setup or
    a clean end leaves, or accepts what the program says that it must refuse."""
    program, plan, output = case.work, case.plan, case.transcript.output
    world = ensure_world(image, program.packages, progress.step)
    progress.step(f"trying the checker of {program.name} on {case.name}")
    pristine, complete = plan.controls[0], plan.controls[-1]

    def ask(agent: Agent, _item: None) -> list[CheckerAnswer]:
        put_program(agent, program)
        session = session_of(agent, case)
        asked = [
            CheckerRun(plan.composer.delta(pristine), b""),
            CheckerRun(plan.composer.delta(complete), output),
            *(CheckerRun(plan.composer.delta(complete), output, spoiler) for spoiler in program.must_fail),
        ]
        return session.check_program(asked, plan.composer.payload_since(0), program.seconds)

    items = [(program.name, None)]
    [answers] = each_in_a_guest(unshared(guests), image, Clock.REAL, items, ask, progress, world)
    hint = "bob app check tries the checker, and explores nothing"
    for answer, what in zip(answers, ("what setup leaves, with no output", "what a clean end leaves"), strict=False):
        if answer.consequence is not None:
            raise UsageError(f"the checker refuses {what}: {answer.evidence} (exit code {answer.code})", hint=hint)
    for answer, spoiler in zip(answers[2:], program.must_fail, strict=True):
        what = "an emptied directory, after all of the output" if spoiler == EMPTIED else f"what {spoiler} leaves"
        if answer.consequence is not None and not answer.is_judgement:
            raise UsageError(
                f"the checker does not judge {what}: {answer.evidence} (exit code {answer.code})",
                hint="it must refuse what is lost by itself: in time, without a signal, and not since it cannot be run",
            )
        if answer.consequence is None:
            raise UsageError(
                f"the checker accepts {what}: it cannot tell a loss",
                hint="must_fail in app.toml says what it must refuse; must_fail = [] says that there is no such thing",
            )


def look_at_ends(agent: Agent, case: ProgramCase) -> list[Observation]:
    """Mount what the setup leaves, and what a clean end leaves, and return both."""
    plan, session = case.plan, session_of(agent, case, closely=True)
    deltas = [plan.composer.delta(state) for state in (plan.controls[0], plan.controls[-1])]
    outcomes = session.observe(deltas, plan.composer.payload_since(0))
    return [session.findings.observation(outcome) for outcome in outcomes]
