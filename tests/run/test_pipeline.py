"""The pipeline's control flow, with guests that are made up: order, losses, failures, and leaving early."""

from __future__ import annotations

import errno
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from inline_snapshot import snapshot

import samples_of_runs as samples
from bob.agent.client import AgentBroken, what_happened
from bob.agent.loss import GuestLost, Loss, LossCause
from bob.claim.property.judged_case import judge_of_mixtures
from bob.claim.property.readings import OutcomeReadings
from bob.crash import case
from bob.crash.device import DeviceModel
from bob.errors import (
    BobError,
    MalformedError,
    OperationRefusedError,
    RecordingError,
    StoreError,
    UsageError,
)
from bob.guest.spec import Clock
from bob.observe.effort import Effort
from bob.observe.observation import OutcomeTable
from bob.observe.observations import ExploredState, Observations
from bob.progress import Silent
from bob.record.base import base_name
from bob.run import pipeline as module
from bob.run import pool
from bob.run.pipeline import ExploredCase, Pipeline, Task
from bob.store.run_directory import RunDirectory
from bob.store.run_documents import RefusedWorkload
from bob.subject import Subject, configuration
from bob.trace.base import Base
from bob.trace.recording import Completion
from bob.workload.language import parse
from bob.workload.operations import At, Workload
from wording import text_with

LOSS = GuestLost(Loss(LossCause.HUNG, ""), "no answer")
WORKLOADS = [replace(samples.WORKLOAD, name=f"workload {number}") for number in range(6)]
OBSERVED = Observations(
    (ExploredState(samples.FIRST, 0),), OutcomeTable([samples.NOTHING], [samples.INITIAL]), samples.COVERAGE
)


Tell = Callable[[int], None]


@dataclass
class World:
    """What the made-up guests do, and what was asked of them. ``started``, ``recording``, ``observing`` may raise."""

    recording: Callable[[Workload], None] = lambda _workload: None
    observing: Callable[[Workload], Observations] = lambda _workload: OBSERVED
    started: Callable[[Clock], None] = lambda _clock: None
    guests: list[Clock] = field(default_factory=list)
    ended: list[Clock] = field(default_factory=list)
    made: list[object] = field(default_factory=list)
    put: list[str] = field(default_factory=list)
    narrated: list[bool] = field(default_factory=list)
    efforts: list[Effort] = field(default_factory=list)
    most: int = 0

    @contextmanager
    def agent_in(self, _guests: object, _image: object, clock: Clock, _world: object) -> Iterator[object]:
        self.guests.append(clock)
        self.most = max(self.most, len(self.guests) - len(self.ended))
        try:
            self.started(clock)
            yield SimpleNamespace(is_sound=True)
        finally:
            self.ended.append(clock)

    def make_base(
        self, _agent: object, _configuration: object, setup: object, _pattern: int, *, narrates: bool
    ) -> Base:
        self.made.append(setup)
        self.narrated.append(narrates)
        return samples.BASE

    def put_base(self, _agent: object, base: Base) -> None:
        self.put.append(base.name)

    def record(
        self,
        _agent: object,
        _configuration: object,
        _base: Base,
        workload: Workload,
        *,
        completion: Completion,
        narrates: bool,
    ) -> object:
        self.narrated.append(narrates)
        assert completion is Completion.OLDEST_FIRST
        self.recording(workload)
        return samples.RECORDING

    def explore(
        self,
        _agent: object,
        _configuration: object,
        _plan: object,
        effort: Effort,
        told: Callable[[int], None],
        *_: Any,
    ) -> Observations:
        told(1)
        self.efforts.append(effort)
        try:
            return self.observing(samples.WORKLOAD)
        except (GuestLost, AgentBroken, UsageError) as loss:
            lost, died = what_happened(loss), isinstance(loss, GuestLost)
            return Observations((), OutcomeTable(), samples.plan().nothing_explored(), lost, died=died)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    for name in ("make_base", "put_base", "record", "explore"):
        monkeypatch.setattr(module, name, getattr(world, name))
    monkeypatch.setattr(pool, "agent_in", world.agent_in)
    monkeypatch.setattr(case, "checked", lambda _recording, _base: samples.TRACE)
    return world


def task(run: RunDirectory, workloads: Sequence[Workload] = WORKLOADS, fs: str = "ext4") -> Task:
    made = samples.CONFIGURATION if fs == "ext4" else configuration(fs)
    return Task(made, DeviceModel(completion=Completion.OLDEST_FIRST), Effort(10, 1), run, tuple(workloads))


def started(*tasks: Task, jobs: int = 2) -> Pipeline:
    return Pipeline(object(), object(), tasks, Silent(), jobs)  # type: ignore[arg-type]


def pipeline(tmp_path: Path, workloads: Sequence[Workload] = WORKLOADS) -> Pipeline:
    return started(task(RunDirectory.create(tmp_path / "run", {}), workloads))


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("worker ")]


def results(pipeline: Pipeline, workloads: int = len(WORKLOADS)) -> list[ExploredCase | RefusedWorkload | None]:
    with pipeline:
        found = [pipeline.result(0, number) for number in range(workloads)]
    assert not workers()
    return found


def at(number: int, failure: BaseException) -> Callable[[Workload], None]:
    def recording(workload: Workload) -> None:
        if workload is WORKLOADS[number]:
            raise failure

    return recording


def test_results_come_in_order_and_are_kept(world: World, tmp_path: Path) -> None:
    made = pipeline(tmp_path)
    found = results(made)
    assert [item.case.workload for item in found if isinstance(item, ExploredCase)] == WORKLOADS
    assert world.guests.count(Clock.VIRTUAL) == 1
    assert sorted(clock.value for clock in world.guests) == sorted(clock.value for clock in world.ended)
    assert world.made == [samples.WORKLOAD.setup]
    run = RunDirectory(tmp_path / "run")
    assert all(run.is_observed(folder) for folder in run.workloads())
    assert len(run.workloads()) == len(WORKLOADS)


def test_mixtures_are_judged_unless_crashes_come_after_a_return(world: World, tmp_path: Path) -> None:
    returned = replace(samples.WORKLOAD, name="returned", at=At.END)
    results(pipeline(tmp_path, [samples.WORKLOAD]), 1)
    [effort] = world.efforts
    assert replace(effort, mixing=None) == Effort(10, 1)
    assert effort.mixing is not None
    seen = samples.observed(found=[samples.NOTHING, samples.OVERWRITTEN_ALONE, samples.ALL, samples.UNMOUNTABLE])
    nothing, overwritten, everything, refused = seen.findings.observations()
    assert effort.mixing(nothing, overwritten)
    assert not effort.mixing(nothing, everything)
    assert not effort.mixing(nothing, refused)
    assert not effort.mixing(refused, refused)
    assert judge_of_mixtures(returned, OutcomeReadings.of(samples.case(returned))) is None


@pytest.mark.parametrize("loss", [None, LOSS])
def test_a_guest_is_made_ready_while_the_first_workload_is_recorded(
    world: World, tmp_path: Path, loss: BobError | None
) -> None:
    ready = threading.Event()

    def started(clock: Clock) -> None:
        if clock is Clock.REAL and not ready.is_set():
            ready.set()
            if loss is not None:
                raise loss

    world.started = started
    world.recording = lambda _workload: (ready.wait(30), None)[1]
    found = results(pipeline(tmp_path))
    assert ready.is_set()
    assert all(isinstance(item, ExploredCase) and item.observed == OBSERVED for item in found), "it costs no workload"


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        (LOSS, f"the guest was lost while recording: {LOSS}"),
        (AgentBroken("the agent failed at record: KeyError"), "'the agent failed at record: KeyError'"),
    ],
)
def test_a_recorder_that_is_lost_costs_one_workload(world: World, tmp_path: Path, loss: BobError, told: str) -> None:
    world.recording = at(2, loss)
    found = results(pipeline(tmp_path))
    assert [number for number, item in enumerate(found) if isinstance(item, RefusedWorkload)] == [2]
    assert told in str(found[2])
    assert world.guests.count(Clock.VIRTUAL) == 3  # one more for a second attempt
    # the new guest is given the base that the old one made: states are built on the one that was recorded on
    assert world.made == [samples.WORKLOAD.setup]
    assert samples.BASE.name in world.put
    run = RunDirectory(tmp_path / "run")
    folder = run.folder(2, WORKLOADS[2])
    assert run.refusal(folder) is None
    lost = run.loss(folder)
    assert lost is not None
    assert told.strip("'") in lost.reason
    assert not run.is_done(folder)


OOPS = "[ 3.0] kernel BUG at fs/ext4/inline.c:235!"


@pytest.mark.parametrize(
    ("fall", "is_finding"),
    [
        (Loss(LossCause.PANICKED, OOPS, "op 1 begin"), True),
        (Loss(LossCause.HUNG, "[ 9.0] INFO: task python3:7 blocked for more than 362 seconds.", "op 1 begin"), True),
        (Loss(LossCause.HUNG, "nothing of interest", "op 1 begin"), False),
        (Loss(LossCause.VANISHED, OOPS, "op 1 begin"), False),
    ],
)
def test_a_kernel_that_falls_twice_at_a_workload_is_a_finding(
    world: World, tmp_path: Path, fall: Loss, is_finding: bool
) -> None:
    world.recording = at(2, GuestLost(fall, "no answer"))
    found = results(pipeline(tmp_path))
    [refused] = [item for item in found if isinstance(item, RefusedWorkload)]
    run = RunDirectory(tmp_path / "run")
    folder = run.folder(2, WORKLOADS[2])
    assert (refused.fall, run.is_done(folder)) == ((fall, True) if is_finding else (None, False))
    assert world.narrated.count(True) == 1, "the second attempt alone is narrated"
    if is_finding:
        assert run.refusal(folder) == refused
        assert "operation 1 (" in refused.reason
        assert fall.said in refused.reason


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (
            UsageError("operation 1 failed: Invalid argument"),
            snapshot("the guest refused it: operation 1 failed: Invalid argument"),
        ),
        (RecordingError("two sectors differ"), snapshot("bob rejected the recording: two sectors differ")),
        (MalformedError("the log is damaged"), snapshot("bob rejected the recording: the log is damaged")),
    ],
)
def test_a_workload_that_cannot_be_recorded_costs_itself(
    world: World, tmp_path: Path, refusal: BobError, words: str
) -> None:
    world.recording = at(0, refusal)
    found = results(pipeline(tmp_path))
    assert isinstance(found[0], RefusedWorkload)
    assert found[0].reason == words
    assert all(isinstance(item, ExploredCase) for item in found[1:])
    assert world.guests.count(Clock.VIRTUAL) == 1


def observed_after(world: World, path: Path, *losses: BobError) -> list[Observations]:
    """What is told of each workload when the first ones to be observed end in ``losses``: by one worker, as of two each
    may take one of the losses, for another workload."""
    left = list(losses)

    def observing(_workload: Workload) -> Observations:
        if left:
            raise left.pop()
        return OBSERVED

    world.observing = observing
    one_after_another = started(task(RunDirectory.create(path / "run", {})), jobs=1)
    found = [item.observed for item in results(one_after_another) if isinstance(item, ExploredCase)]
    assert len(found) == len(WORKLOADS)
    return found


@pytest.mark.parametrize(
    ("losses", "told"),
    [
        ([LOSS, LOSS], f"the guest was lost: {LOSS}"),
        ([AgentBroken("the agent failed at observe: it broke")], snapshot("the agent failed at observe: it broke")),
        ([UsageError("no such thing")], snapshot("the guest refused it: no such thing")),
    ],
)
def test_an_observer_that_is_lost_says_so(world: World, tmp_path: Path, losses: list[BobError], told: str) -> None:
    found = observed_after(world, tmp_path, *losses)
    [lost] = [observed for observed in found if observed.lost]
    assert lost.lost == told
    assert lost.coverage.explored == 0
    assert lost.coverage.exhaustive is None


def test_a_guest_that_dies_gives_its_workload_back(world: World, tmp_path: Path) -> None:
    found = observed_after(world, tmp_path, LOSS)
    assert [observed.earlier_loss for observed in found if observed.earlier_loss] == [
        snapshot("the guest was lost: the guest hangs: no answer")
    ]
    assert not any(observed.lost for observed in found)
    assert world.guests.count(Clock.REAL) >= 2
    run = RunDirectory(tmp_path / "run")
    assert [run.observed(folder).earlier_loss for folder in run.workloads()].count(None) == len(WORKLOADS) - 1


@pytest.mark.parametrize("jobs", [1, 2, 3, 5])
def test_any_number_of_guests(world: World, tmp_path: Path, jobs: int) -> None:
    runs = [RunDirectory.create(tmp_path / str(number), {}) for number in range(4)]
    with started(*[task(run) for run in runs], jobs=jobs) as made:
        for place in range(4):
            assert all(isinstance(made.result(place, number), ExploredCase) for number in range(len(WORKLOADS)))
    assert not workers()
    assert world.most <= jobs + max(1, jobs // 2)  # the guests of those who record wait
    assert world.guests.count(Clock.REAL) <= jobs
    assert world.guests.count(Clock.VIRTUAL) == 4
    assert sorted(world.made, key=str) == [samples.WORKLOAD.setup] * 4


def test_what_waits_long_is_read_back(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HELD_BYTES", 0)
    asked_for = threading.Semaphore(1)  # no result waits for another to be asked for

    def observing(_workload: Workload) -> Observations:
        assert asked_for.acquire(timeout=60)
        return OBSERVED

    world.observing = observing
    found = []
    with started(task(RunDirectory.create(tmp_path / "run", {})), jobs=1) as made:
        for number in range(len(WORKLOADS)):
            found.append(made.result(0, number))
            asked_for.release()
    assert [item.case.workload for item in found if isinstance(item, ExploredCase)] == WORKLOADS


@pytest.mark.parametrize("held", [0, 10**6])
def test_what_waits_long_to_be_judged_is_left_to_the_run_directory(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr(module, "HELD_BYTES", held)
    run = RunDirectory.create(tmp_path / "run", {})
    with started(task(run), jobs=1) as made:
        deadline = time.monotonic() + 60
        # Not until all are in the run directory: the last one waits to be judged a moment later.
        while len(made._tasks[0].results) < len(WORKLOADS):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        found = [made.result(0, number) for number in range(len(WORKLOADS))]
    assert isinstance(found[0], ExploredCase)
    assert all(isinstance(item, ExploredCase) if held else item is None for item in found[1:])


def test_a_loss_on_the_way_ends_that_guest(world: World, tmp_path: Path) -> None:
    left = [replace(OBSERVED, lost="it is gone")]
    world.observing = lambda _workload: left.pop() if left else OBSERVED
    found = [item.observed for item in results(pipeline(tmp_path)) if isinstance(item, ExploredCase)]
    assert [observed.lost for observed in found].count("it is gone") == 1


@pytest.mark.parametrize("failure", [StoreError("cannot write"), OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_a_failure_reaches_the_caller_and_leaves_no_thread(
    world: World, tmp_path: Path, failure: BaseException
) -> None:
    world.recording = at(1, failure)
    with pytest.raises(type(failure)):
        results(pipeline(tmp_path))
    assert not workers()
    assert len(world.guests) == len(world.ended)


def test_a_tree_that_a_file_system_cannot_have_refuses_the_workloads_that_begin_with_it(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> Base:
        raise OperationRefusedError("operation 3 of the initial tree (create /d/n) failed: File name too long")

    monkeypatch.setattr(module, "make_base", refuse)
    found = results(pipeline(tmp_path))
    words = "the guest could not make its initial tree: operation 3 of the initial tree (create /d/n) failed: File name too long"
    assert [one.reason for one in found if isinstance(one, RefusedWorkload)] == [words] * len(WORKLOADS)


def test_a_configuration_that_is_refused_reaches_the_caller(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> Base:
        raise UsageError("mount refused (EINVAL)")

    monkeypatch.setattr(module, "make_base", refuse)
    with pytest.raises(UsageError) as refused:
        results(pipeline(tmp_path))
    assert str(refused.value) == snapshot("mount refused (EINVAL)")


def test_leaving_early_leaves_no_thread(world: World, tmp_path: Path) -> None:
    started = threading.Event()

    def observing(_workload: Workload) -> Observations:
        started.set()
        return OBSERVED

    world.observing = observing
    with pytest.raises(ZeroDivisionError), pipeline(tmp_path, WORKLOADS * 50) as made:
        made.result(0, 0)
        started.wait(5)
        raise ZeroDivisionError
    assert not workers()
    assert len(world.guests) == len(world.ended)


def test_each_initial_tree_has_one_base(world: World, tmp_path: Path) -> None:
    other = replace(samples.WORKLOAD, setup=parse("write /a 0 4096; create /b"))
    results(pipeline(tmp_path, [WORKLOADS[0], other, WORKLOADS[1], other]), 4)
    assert world.made == [samples.WORKLOAD.setup, other.setup]


def test_a_run_that_was_stopped_is_gone_on_with(world: World, tmp_path: Path) -> None:
    recorded: list[str] = []
    world.recording = lambda workload: recorded.append(workload.name)
    run = RunDirectory.create(tmp_path / "run", {})
    folders = [run.folder(number, workload) for number, workload in enumerate(WORKLOADS)]
    run.save_base(replace(samples.BASE, name=base_name(samples.CONFIGURATION, samples.WORKLOAD.setup)))
    run.save_base(samples.BASE)
    for number in (0, 1):
        run.save_recording(folders[number], WORKLOADS[number], samples.BASE, samples.RECORDING)
    run.save_observed(folders[0], OBSERVED)
    run.save_refusal(folders[2], RefusedWorkload.of(WORKLOADS[2], "it was refused"))
    folders[3].mkdir()
    (folders[3] / "log").write_bytes(b"half a log")
    found = results(started(task(run)))
    assert [item is None for item in found] == [True, False, True, False, False, False]
    assert recorded == [workload.name for workload in WORKLOADS[3:]]
    assert world.made == []  # the base is the one that the run has, in which nothing is drawn anew
    assert all(run.is_done(folder) for folder in folders)
    again = results(started(task(run)))
    assert again == [None] * len(WORKLOADS)
    assert recorded == [workload.name for workload in WORKLOADS[3:]]


def test_several_configurations_in_turn(world: World, tmp_path: Path) -> None:
    runs = [RunDirectory.create(tmp_path / name, {}) for name in ("one", "two", "three")]
    fs = "ext4", "xfs", "ext3"
    with started(*[task(run, fs=one) for run, one in zip(runs, fs, strict=True)]) as made:
        for place in range(3):
            found = [made.result(place, number) for number in range(len(WORKLOADS))]
            assert all(isinstance(item, ExploredCase) and item.case.subject.fs.name == fs[place] for item in found)
    assert not workers()
    assert world.guests.count(Clock.VIRTUAL) == 3
    assert world.made == [samples.WORKLOAD.setup] * 3
    assert all(run.is_done(folder) for run in runs for folder in run.workloads())


def test_a_configuration_that_is_refused_leaves_the_others(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_base(agent: object, made: Subject, setup: object, pattern: int, *, narrates: bool) -> Base:
        if made.fs.name == "xfs":
            raise UsageError("mkfs.xfs failed (1)")
        return world.make_base(agent, made, setup, pattern, narrates=narrates)

    monkeypatch.setattr(module, "make_base", make_base)
    runs = [RunDirectory.create(tmp_path / name, {}) for name in ("one", "two")]
    with started(task(runs[0], fs="xfs"), task(runs[1])) as made:
        for _ in range(2):
            with pytest.raises(UsageError) as refused:
                made.result(0, 0)
            assert text_with(str(refused.value), "mkfs.xfs") == snapshot("mkfs.xfs failed (1)")
        assert all(isinstance(made.result(1, number), ExploredCase) for number in range(len(WORKLOADS)))
    assert not runs[0].workloads()


def test_an_exception_leaves_its_workload_unknown_and_no_other(world: World, tmp_path: Path) -> None:
    world.recording = at(2, ValueError("zip() argument 2 is shorter"))
    run = RunDirectory.create(tmp_path / "run", {})
    found = results(started(task(run)))
    assert [number for number, item in enumerate(found) if isinstance(item, RefusedWorkload)] == [2]
    assert "ValueError: zip() argument 2" in str(found[2])
    folder = run.folder(2, WORKLOADS[2])
    assert "Traceback (most recent" in (folder / "traceback.txt").read_text()
    assert not run.is_done(folder)
    assert world.guests.count(Clock.VIRTUAL) == 2, "the guest in which it happened is not believed any more"


def test_an_exception_while_observing_leaves_its_workload_unknown_and_no_other(world: World, tmp_path: Path) -> None:
    broken = [ValueError("zip() argument 2 is shorter")]

    def observing(_workload: Workload) -> Observations:
        if broken:
            raise broken.pop()
        return OBSERVED

    world.observing = observing
    run = RunDirectory.create(tmp_path / "run", {})
    found = results(started(task(run), jobs=1))
    [lost] = [item for item in found if isinstance(item, RefusedWorkload)]
    assert lost.reason == snapshot(
        "bob itself failed while it observed this workload: ValueError: zip() argument 2 is shorter"
    )
    [file] = run.path.glob("workloads/*/traceback.txt")
    assert "in observing" in file.read_text()
    assert not run.is_done(file.parent)
    again = results(started(task(run), jobs=1))
    assert [item for item in again if item is not None] == [again[found.index(lost)]]
    assert not list(run.path.glob("workloads/*/lost.json")) + list(run.path.glob("workloads/*/traceback.txt"))


def test_a_recording_whose_guest_was_lost_is_tried_again_at_once(world: World, tmp_path: Path) -> None:
    left: list[BaseException] = [LOSS]

    def recording(workload: Workload) -> None:
        if workload is WORKLOADS[2] and left:
            raise left.pop()

    world.recording = recording
    assert all(isinstance(item, ExploredCase) for item in results(pipeline(tmp_path)))
    assert world.guests.count(Clock.VIRTUAL) == 2


def test_what_was_lost_is_tried_again_when_the_run_is_gone_on_with(world: World, tmp_path: Path) -> None:
    world.recording = at(2, LOSS)
    lost = [LOSS, LOSS]

    def observing(_workload: Workload) -> Observations:
        if lost:
            raise lost.pop()
        return OBSERVED

    world.observing = observing
    run = RunDirectory.create(tmp_path / "run", {})
    results(started(task(run), jobs=1))
    folders = [run.folder(number, workload) for number, workload in enumerate(WORKLOADS)]
    assert [run.is_done(folder) for folder in folders].count(False) == 2
    assert run.losses() == 2
    world.recording = lambda _workload: None
    found = [item for item in results(started(task(run), jobs=1)) if item is not None]
    assert len(found) == 2
    assert all(isinstance(item, ExploredCase) and item.observed.lost is None for item in found)
    assert all(run.is_done(folder) for folder in folders)
    assert not run.losses()
    told = [run.observed(folder).earlier_loss for folder in folders]
    assert [loss for loss in told if loss] == [
        snapshot("the guest was lost: the guest hangs: no answer"),
        snapshot("the guest was lost while recording: the guest hangs: no answer"),
    ]


def test_a_refuted_prediction_is_not_tried_again(world: World, tmp_path: Path) -> None:
    world.observing = lambda _workload: replace(OBSERVED, lost="a prediction was wrong", final=True)
    run = RunDirectory.create(tmp_path / "run", {})
    results(started(task(run)))
    assert all(run.is_done(folder) for folder in run.workloads())


@pytest.mark.parametrize("clock", list(Clock))
def test_a_guest_that_ends_with_the_run_marks_nothing(world: World, tmp_path: Path, clock: Clock) -> None:
    """Who stops a run may end its guests before the workers know of it: what they then lose was not lost."""
    at_work, stopped = threading.Event(), threading.Event()

    def lose(_workload: Workload) -> Observations:
        at_work.set()
        assert stopped.wait(30)
        raise LOSS

    world.recording, world.observing = (lose, world.observing) if clock is Clock.VIRTUAL else (world.recording, lose)  # type: ignore[assignment]
    run = RunDirectory.create(tmp_path / "run", {})
    made = started(task(run))
    made.__enter__()
    assert at_work.wait(30)
    threading.Timer(0.1, stopped.set).start()
    made.__exit__()
    assert not workers()
    assert not [path for path in run.path.glob("workloads/*/*") if path.name in {"refused.json", "lost.json"}]
    assert all(run.observed(folder).lost is None for folder in run.workloads() if run.is_observed(folder))


def test_an_interrupt_while_it_stops_leaves_the_threads_to_be_waited_for(world: World, tmp_path: Path) -> None:
    """An interrupted Thread.join takes the thread for ended (CPython, _wait_for_tstate_lock): then Python ends, and all
    guests with it, while the thread is still recording."""
    at_work, go_on = threading.Event(), threading.Event()

    def wait(_workload: Workload) -> None:
        at_work.set()
        assert go_on.wait(30)

    world.recording = wait
    made = pipeline(tmp_path)
    made.__enter__()
    assert at_work.wait(30)
    interrupt = threading.Timer(0.3, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        made.__exit__()
    assert [thread for thread in workers() if thread.is_alive()], "it is still there, and Python knows"
    go_on.set()
    made.__exit__()
    assert not workers()
