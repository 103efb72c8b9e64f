"""A program's workload recorded on one configuration, and its checker tried before it is trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from bob import documents
from bob.agent.client import Agent, AgentBroken, what_happened
from bob.agent.inside.mounts import ROOT
from bob.agent.inside.programs import HOME
from bob.agent.inside.world import WORLD
from bob.agent.loss import Cause, GuestLost, KernelFell
from bob.crash.case import Case
from bob.crash.legal import count_writes, growth_points
from bob.crash.plan import Plan
from bob.errors import MalformedError, UsageError
from bob.guest.spec import Clock
from bob.image import Image, ensure_world
from bob.observe.session import Checking, Session
from bob.observe.sights import Sights
from bob.program.answer import CheckerAnswer
from bob.program.effect_order import in_effect_order
from bob.program.lines import located
from bob.program.program import EMPTIED, Program
from bob.program.stack import from_chosen
from bob.program.strace import PASSING, SystemCall, name_of, parse
from bob.program.transcript import Transcript, Window, windows
from bob.program.untraced import mapped
from bob.progress import Progress
from bob.protocol.arguments import MAPPED
from bob.protocol.diagram import Protocol, Step
from bob.record.base import make_program_base
from bob.record.recorder import RecordedProgram, put_program, record_program, trace_frames
from bob.request import ProbeRequest
from bob.run.agents import AnyGuests, unshared
from bob.run.pool import each_in_a_guest
from bob.schema import encode
from bob.store.files import write_document, write_whole
from bob.store.run_directory import RunDirectory
from bob.story.timeline import Asked
from bob.subject import Configuration
from bob.subject.configuration import ConfigurationDocument
from bob.trace.base import Base
from bob.trace.timeline import parse_timeline
from bob.workload.operations import Workload

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
    states: int


@dataclass(slots=True)
class TakenProgram:
    """A program that was recorded on one configuration: its ``case``, the ``windows`` that it is cut into, and its
    ``transcript``. ``sights`` are the disks that were mounted for it, ``steps`` what its calls turned out to do."""

    request: ProbeRequest
    program: Program
    world: Path | None
    case: Case
    windows: tuple[Window, ...]
    transcript: Transcript
    sights: Sights = field(default_factory=dict)
    steps: tuple[Step, ...] = ()

    @property
    def name(self) -> str:
        """What its answer is called: the configuration, and the pace."""
        return self.request.pace.of(self.request.configuration.name)

    @property
    def has_stores(self) -> bool:
        """Whether what it stores through mappings is among its calls."""
        return any(call.name == MAPPED for call in self.transcript.calls)

    @property
    def protocol(self) -> Protocol | None:
        """What the program did, as far as that is known by now; None where it is not."""
        return Protocol(self.name, self.steps) if self.steps else None

    @property
    def preflight(self) -> Preflight:
        model = self.request.model
        states = sum(count_writes(growth_points(window.trace, model)) for window in self.windows)
        calls = sum(call.name not in PASSING for call in self.transcript.calls)
        return Preflight(self.name, len(self.windows) - 1, len(self.transcript.told), calls, len(self.windows), states)


def take(
    guests: AnyGuests,
    image: Image,
    program: Program,
    request: ProbeRequest,
    progress: Progress,
    run: RunDirectory | None = None,
    number: int = 0,
    *,
    stores: bool = False,
    like: TakenProgram | None = None,
) -> TakenProgram:
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

    watches = stores and like is not None and like.has_stores
    try:
        base, recorded = in_a_guest(watches)
        if stores and not watches and mapped(parse(recorded.calls), ROOT):
            progress.step(f"recording what {program.name} stores through mappings")
            base, recorded = in_a_guest(True)
    except UsageError as refused:
        if refused.message.startswith(SCRIPTS):
            raise UsageError(refused.message, hint=ABOUT_SCRIPTS) from None
        raise
    done = taken(program, request, world, base, recorded)
    if run is not None:
        _keep(run, number, done, recorded)
    progress.recorded(program.name)
    return done


def _fallen(lost: GuestLost, program: Program, run: RunDirectory | None) -> GuestLost | KernelFell:
    """A finding where the kernel says that it panicked or hangs, with the console in ``run``; else the loss itself."""
    if not lost.loss.is_by_kernel:
        return lost
    verb = "panicked" if lost.cause is Cause.PANICKED else "hung"
    hint = None
    if run is not None:
        path = run.path / "console.txt"
        write_whole(path, lost.console.encode())
        hint = f"its console is in {path}"
    return KernelFell(f"the kernel {verb} while {program.name} was recorded: {lost.loss.said}", hint=hint)


def frames_of(guests: AnyGuests, image: Image, taken: TakenProgram, progress: Progress) -> tuple[SystemCall, ...]:
    """:func:`framed` of a run in a guest of its own. Those of one such run are for all recordings of a program."""
    program, made, world = taken.program, taken.request.configuration, taken.world
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


def framed(agent: Agent, made: Configuration, base: Base, program: Program) -> tuple[SystemCall, ...]:
    """The calls of another run of the ``program``, which the agent's guest must have, with their frames: with source
    lines, and from the frame on that the program chose."""
    found = located(calls_of(trace_frames(agent, made, base, program)), program, HOME)
    return tuple(replace(call, stack=from_chosen(call.stack, program.frames)) for call in found)


def calls_of(text: str) -> tuple[SystemCall, ...]:
    """The program's calls in what strace wrote: all but the one by which bob itself goes into the program's world.
    There that directory is a link to the root, so the program's own chroot to it would change nothing."""
    return tuple(call for call in parse(text) if not (call.name == "chroot" and name_of(call.arguments[0]) == WORLD))


def taken(
    program: Program,
    request: ProbeRequest,
    world: Path | None,
    base: Base,
    recorded: RecordedProgram,
) -> TakenProgram:
    """What was recorded on ``base``, cut into windows. Raises RecordingError where that is not to be believed."""
    case = Case.of(Workload(program.name, (), ()), base, recorded.recording, request.model)
    calls, line = in_effect_order(calls_of(recorded.calls)), parse_timeline(recorded.recording.timeline)
    transcript = Transcript.of(calls, recorded.pipe, recorded.told, line)
    return TakenProgram(request, program, world, case, windows(case.plan.trace, transcript.outputs), transcript)


def tellings(transcript: Transcript, start: float) -> list[Asked]:
    """What a program told, and when, on a clock that was 0 at ``start`` (seconds)."""
    return [
        Asked(round(output.at.seconds - start, 6), f"tells {output.data.decode(errors='replace').strip()!r}")
        for output in transcript.outputs
    ]


def _keep(run: RunDirectory, number: int, done: TakenProgram, recorded: RecordedProgram) -> None:
    base, folder = done.case.base, run.folder(number, done.case.workload)
    if not run.has_base(base.name):
        run.save_base(base)
    run.save_recording(folder, done.case.workload, base, recorded.recording)
    write_whole(folder / "calls", recorded.calls.encode())
    more = {
        "checksums": {"calls": documents.checksum(recorded.calls.encode())},
        "configuration": encode(ConfigurationDocument.of(done.request.configuration)),
        "told": [[output.at.time, output.data.decode("latin-1")] for output in done.transcript.outputs],
    }
    write_document(folder / "told.json", more)


def trust(guests: AnyGuests, image: Image, taken: TakenProgram, progress: Progress) -> None:
    """Try the checker before it is trusted: raises UsageError, with what it printed, where it refuses what the setup or
    a clean end leaves, or accepts what the program says that it must refuse."""
    program, plan = taken.program, taken.case.plan
    progress.step(f"trying the checker of {program.name} on {taken.name}")
    pristine, complete = plan.controls[0], plan.controls[-1]

    def ask(agent: Agent, _item: None) -> list[CheckerAnswer]:
        put_program(agent, program)
        session = session_of(agent, taken, plan)
        asked = [
            Checking(plan.composer.delta(pristine), b""),
            Checking(plan.composer.delta(complete), taken.transcript.told),
            *(Checking(plan.composer.delta(complete), taken.transcript.told, spoiler) for spoiler in program.must_fail),
        ]
        return session.check_program(asked, plan.composer.payload_since(0), program.seconds)

    items = [(program.name, None)]
    [answers] = each_in_a_guest(unshared(guests), image, Clock.REAL, items, ask, progress, taken.world)
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


def session_of(agent: Agent, taken: TakenProgram, plan: Plan, *, closely: bool = False) -> Session:
    """A session in which the checker is asked of states of ``plan``; ``closely`` as in :class:`Session`."""
    floor, payload = plan.composer.floor_delta(), plan.composer.payload_since(0)
    return Session(agent, taken.request.configuration, plan.base, floor, payload, closely=closely)
