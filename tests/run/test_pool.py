"""The pool of guests: each job ends once, in at most two guests, whatever is lost; and what ends a run ends it."""

from __future__ import annotations

import errno
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bob.agent.client import Agent, AgentBroken
from bob.agent.loss import GuestLost, Loss, LossCause
from bob.errors import MalformedError, StoreError, UsageError
from bob.guest.spec import Clock
from bob.progress import Silent
from bob.run import pool as module
from bob.run.pool import Errand, Idle, Job, JobQueue, LostGuest, Pool, StateSink, each_in_a_guest

LOSS = GuestLost(Loss(LossCause.HUNG, ""), "no answer")
ITEMS = [(f"item {number}", number) for number in range(4)]


class Watching(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.states: Counter[str] = Counter()
        self._lock = threading.Lock()

    def step(self, text: str) -> None:
        with self._lock:
            self.lines.append(text)

    def observed(self, workload: str, states: int) -> None:
        with self._lock:
            self.states[workload] += states


class Numbered(int):
    """An agent, by the number of its guest."""

    is_sound = True


@dataclass
class World:
    """Guests that are made up: what became of them, in order; those with a number in ``failing`` are lost at their
    start."""

    story: list[str] = field(default_factory=list)
    failing: set[int] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def agent_in(self, *_: object) -> Iterator[Numbered]:
        with self.lock:
            self.story.append("start")
            number = self.story.count("start")
        try:
            if number in self.failing:
                raise LOSS
            yield Numbered(number)
        finally:
            with self.lock:
                self.story.append("end")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(module, "agent_in", made.agent_in)
    return made


def pool(progress: Watching) -> Pool:
    return Pool(None, None, progress)  # type: ignore[arg-type]


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("worker ")]


# One after the other


def done(fails: dict[tuple[int, int], Exception], told: Watching) -> Iterator[tuple[int, int]]:
    """What is done of the items, as (guest, item); guest and item that fail."""

    def do(agent: Agent, item: int) -> tuple[int, int]:
        number = int(agent)  # type: ignore[call-overload]
        if (number, item) in fails:
            raise fails[number, item]
        return number, item

    return each_in_a_guest(None, None, Clock.REAL, ITEMS, do, told)  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", [LOSS, AgentBroken("the agent failed")])
def test_what_a_lost_guest_was_doing_is_begun_anew_and_the_rest_goes_on(world: World, loss: Exception) -> None:
    told = Watching()
    assert list(done({(1, 1): loss, (2, 3): loss}, told)) == [(1, 0), (2, 1), (2, 2), (3, 3)]
    assert world.story == ["start", "end"] * 3
    assert [line.partition(":")[0] for line in told.lines] == ["item 1", "item 3"]


def test_an_agent_that_failed_at_something_that_was_done_all_the_same_does_no_more(world: World) -> None:
    """It may still give the answer that was not waited for, and the next question would get it."""

    def do(agent: Agent, item: int) -> tuple[int, int]:
        agent.is_sound = item != 1
        return int(agent), item  # type: ignore[call-overload]

    found = each_in_a_guest(None, None, Clock.REAL, ITEMS, do, Watching())  # type: ignore[arg-type]
    assert list(found) == [(1, 0), (1, 1), (2, 2), (2, 3)]
    assert world.story == ["start", "end"] * 2


def test_the_second_loss_of_one_item_ends_it(world: World) -> None:
    found = done({(1, 1): LOSS, (2, 1): LOSS}, Watching())
    assert next(found) == (1, 0)
    with pytest.raises(GuestLost):
        next(found)
    assert world.story == ["start", "end"] * 2


@pytest.mark.parametrize("error", [UsageError("no"), MalformedError("damaged"), ValueError("bob broke")])
def test_what_is_refused_is_not_begun_anew(world: World, error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        list(done({(1, 0): error}, Watching()))
    assert raised.value is error
    assert world.story == ["start", "end"]


def test_no_items_need_no_guest(world: World) -> None:
    assert list(each_in_a_guest(None, None, Clock.REAL, [], lambda *_: None, Watching())) == []  # type: ignore[arg-type]
    assert not world.story


def test_results_are_had_as_they_come_and_who_wants_no_more_leaves_no_guest(world: World) -> None:
    found = done({}, Watching())
    assert next(found) == (1, 0)
    assert world.story == ["start"]
    found.close()  # type: ignore[attr-defined]
    assert world.story == ["start", "end"]


# Side by side


class End(Enum):
    """How an attempt at a job ends."""

    WELL = "well"
    UNSOUND = "well, but the agent failed"
    SPENT = "well, but the guest is not to be believed any more"
    DIED = "the guest is lost"
    FAILED = "the agent fails"
    KEPT = "the guest is lost, and the job has something"
    BROKE = "bob breaks"


@dataclass(frozen=True)
class Attempt:
    end: End
    states: int


ATTEMPTS = st.builds(Attempt, st.sampled_from(End), st.integers(0, 3))
LOSSES = {End.DIED, End.FAILED, End.KEPT}


class Scripted(Job):
    """A job whose attempts end as a script says; ``used`` has the guests that did something, ``over`` those that may do
    nothing more."""

    def __init__(self, number: int, script: tuple[Attempt, Attempt], used: list[int], over: set[int]) -> None:
        super().__init__(f"job {number}")
        self.script, self._used, self._over = iter(script), used, over
        self.ends: list[str] = []

    def do(self, agent: Agent, tell: StateSink) -> bool:
        attempt, guest = next(self.script), int(agent)  # type: ignore[call-overload]
        assert guest not in self._over
        self._used.append(guest)
        for _state in range(attempt.states):
            tell(1)
        if attempt.end is not End.WELL:
            self._over.add(guest)
        match attempt.end:
            case End.UNSOUND:
                agent.is_sound = False
            case End.DIED:
                raise LOSS
            case End.FAILED:
                raise AgentBroken("it failed")
            case End.KEPT:
                raise LostGuest("it was lost on the way")
            case End.BROKE:
                raise ValueError("broken")
        self.ends.append("done")
        return attempt.end is not End.SPENT

    def give_up(self, error: Exception, reason: str, trace: str = "") -> None:
        self.ends.append("broke" if trace else "lost")


def expected(script: tuple[Attempt, Attempt]) -> tuple[str, int, bool]:
    """How a job ends, how many states of it are told of in the end, and whether it was begun anew: plain and slow."""
    first, second = script
    again = first.end in LOSSES
    last = second if again else first
    word = "lost" if last.end in LOSSES else "broke" if last.end is End.BROKE else "done"
    return word, last.states, again


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(ATTEMPTS, ATTEMPTS), max_size=12), st.integers(1, 4))
def test_each_job_ends_once_in_at_most_two_guests(scripts: list[tuple[Attempt, Attempt]], guests: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        world, watching = World(), Watching()
        patch.setattr(module, "agent_in", world.agent_in)
        used: list[int] = []
        over: set[int] = set()
        jobs = [Scripted(number, script, used, over) for number, script in enumerate(scripts)]
        pool(watching).do_all(JobQueue(Clock.REAL, jobs), guests)
    assert not workers()
    outcomes = [expected(script) for script in scripts]
    assert [job.ends for job in jobs] == [[word] for word, _states, _again in outcomes]
    assert [watching.states[job.title] for job in jobs] == [states for _word, states, _again in outcomes]
    assert [job.first_loss is not None for job in jobs] == [again for _word, _states, again in outcomes]
    assert len(watching.lines) == sum(again for _word, _states, again in outcomes)
    assert world.story.count("start") == world.story.count("end")
    assert set(used) == set(range(1, world.story.count("start") + 1)), "no guest is started that nobody needs"


def test_a_guest_that_is_lost_at_its_start_costs_no_job_and_two_in_a_row_end_the_run(world: World) -> None:
    world.failing = {1, 3}
    told = Watching()
    assert list(done({(2, 1): LOSS}, told)) == [(2, 0), (4, 1), (4, 2), (4, 3)]
    assert len(told.lines) == 3
    world.failing = {5, 6}
    with pytest.raises(GuestLost):
        list(done({}, told))
    assert world.story.count("start") == world.story.count("end") == 6


@pytest.mark.parametrize("failure", [StoreError("cannot write"), OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_what_would_go_wrong_with_every_job_ends_the_run(world: World, failure: BaseException) -> None:
    class Failing(Job):
        def do(self, agent: Agent, tell: StateSink) -> bool:
            raise failure

    done_too: list[str] = []

    class Fine(Job):
        def do(self, agent: Agent, tell: StateSink) -> bool:
            done_too.append(self.title)
            return True

    with pytest.raises(type(failure)):
        pool(Watching()).do_all(JobQueue(Clock.REAL, [Fine("first"), Failing("second"), Fine("third")]), 1)
    assert done_too == ["first"]
    assert not workers() and world.story == ["start", "end"]


class Waiting(Job):
    """A job that goes on until it is told to end; then its guest is lost."""

    def __init__(self, at_work: threading.Event, go_on: Callable[[], bool]) -> None:
        super().__init__("waiting")
        self._at_work, self._go_on = at_work, go_on
        self.is_given_up = False

    def do(self, agent: Agent, tell: StateSink) -> bool:
        self._at_work.set()
        while self._go_on():
            tell(0)
        raise LOSS

    def give_up(self, error: Exception, reason: str, trace: str = "") -> None:
        self.is_given_up = True


def test_a_run_that_is_stopped_marks_nothing_and_ends_the_jobs_at_their_next_word(world: World) -> None:
    at_work = threading.Event()
    job, watching = Waiting(at_work, lambda: True), Watching()
    made = pool(watching)
    made.start(JobQueue(Clock.REAL, [job]), 2)
    assert at_work.wait(30)
    made.stop()
    assert not workers() and not job.is_given_up and job.first_loss is None and not watching.lines
    assert world.story.count("start") == world.story.count("end")


def test_a_guest_that_ends_with_the_run_is_no_loss(world: World) -> None:
    at_work, made = threading.Event(), pool(Watching())
    job = Waiting(at_work, lambda: not made.is_stopped)
    made.start(JobQueue(Clock.REAL, [job]), 1)
    assert at_work.wait(30)
    made.stop()
    assert not job.is_given_up and job.first_loss is None


def test_an_interrupt_while_it_waits_reaches_the_caller_and_ends_all_guests(world: World) -> None:
    at_work = threading.Event()
    jobs = [Waiting(at_work, lambda: True) for _ in range(3)]

    def interrupt() -> None:
        assert at_work.wait(30)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        pool(Watching()).do_all(JobQueue(Clock.REAL, jobs), 3)
    for late in workers():  # the interrupt came before it did anything
        late.join(30)
    assert not workers() and not any(job.is_given_up for job in jobs)
    assert world.story.count("start") == world.story.count("end") > 0


def test_who_has_nothing_to_do_yet_makes_a_guest_ready_and_errands_need_none(world: World) -> None:
    ready = threading.Event()

    class Later(JobQueue):
        """One worker goes on an errand, until the other one has a guest; then there is a job."""

        is_out = is_back = False

        def next(self, *, has_guest: bool) -> Job | Errand | Idle:
            if not self.is_out:
                self.is_out = True
                return self.errand
            if self._jobs or self.is_back:
                return super().next(has_guest=has_guest)
            return Idle.WAIT

        def errand(self) -> None:
            assert ready.wait(30)
            assert world.story == ["start"], "the one of who waits"
            with made.changed:
                self._jobs.append(fine)
                self.is_back = True
                made.changed.notify_all()

    class Fine(Job):
        guest = 0

        def do(self, agent: Agent, tell: StateSink) -> bool:
            self.guest = int(agent)  # type: ignore[call-overload]
            return True

    fine, made = Fine("fine"), pool(Watching())
    made.do_all(Later(Clock.REAL, begin=lambda _agent: ready.set()), 2)
    assert fine.guest in (1, 2)
